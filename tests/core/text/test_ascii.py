"""Texts of plain ASCII take a quicker way: it must say what the way of all other texts says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.run import Run
from core.text import abstention, folding, matching, numbers
from core.text import reading as r
from core.text.words import _WORD, has_words, words

CUES = (
    "not never can't won't isn't ain't N'T cannot neither nor no None nobody without lack lacks fails to unable khong "
    "fifteen one hundred 15 1,794 two and a half May may 27 July 1866 5/11/2018 3 km or the a _ a_b ` ? . , ; - 's "
    "I don't know not stated unknown n/a unanswerable answer sure unsure the passages do not mention information"
).split(" ")
ASCII = st.lists(st.sampled_from(CUES), max_size=9).map(" ".join) | st.text(
    st.characters(max_codepoint=127), max_size=40
)


class Marked(str):
    """A text that does not say that it is ASCII."""

    __slots__ = ()

    def isascii(self):
        return False


@given(ASCII)
def test_words_numbers_and_refusals_are_those_of_any_text(text):
    assert words(text) == _WORD.findall(text.casefold()) == words(Marked(text))
    assert has_words(text) == bool(_WORD.search(text))
    assert folding.folded(text) == folding._folded(text)
    head = folding._folded(text.strip())[: abstention._HEAD]
    assert abstention.is_abstention(text) == bool(abstention._PATTERNS.search(head))
    assert r.negations(text) == r.negations(Marked(text)) or "`" in text
    assert [m[0] for m in r._words(text)] == [m[0] for m in r._WORD.finditer(text)]
    every = numbers._pattern(True, False, False).finditer(text)
    assert {one.start for one in numbers.numbers(text)} <= {match.start() for match in every}


@given(ASCII)
def test_a_text_is_read_as_it_is_before_a_word_that_is_not_ascii(text):
    assert r.read(text) == r.read(f"{text} é")[:-1]


@pytest.mark.parametrize("run", ["recorded_run", "worked_answers"])
def test_a_reference_that_the_letters_rule_out_is_not_said(run):
    """The look at the letters alone must never say no where reading the text says yes."""
    queries = Run.load(f"sample_data/{run}").queries
    answers = [text for text in queries["answer"] if isinstance(text, str)]
    known = {text for texts in queries["reference_answers"] if texts for text in texts}
    seen = set()
    for answer in answers:
        spoken = folding.folded(answer).casefold()
        for reference in known:
            possible = all(word in spoken for word in matching._needed(reference))
            said = matching._holds(matching._said(answer), [matching._said(reference)])
            assert possible or not said, (answer, reference)
            seen.add((possible, said))
    assert {(True, True), (False, False)} <= seen


@pytest.mark.parametrize(
    ("answer", "reference"),
    [("It can't be.", "can not be"), ("They won't", "will not"), ("ﬁne arches", "fine arches"), ("1.5 km", "1500 m"),
     ("It is a MILL", "mill"), ("２７ July 1866", "27 July 1866")],
)  # fmt: skip
def test_what_is_written_in_another_way_is_still_said(answer, reference):
    assert matching.is_correct(answer, [reference]) is True


def test_a_unit_in_old_letters_is_read():
    assert matching.is_correct("15 ſ", ["15 s"]) is True
