"""Where the words of an answer occur; expected values are read off the texts by hand."""

from __future__ import annotations

import time

import pytest

from core.text.occurrence import marked, origins, phrases, snippet, telling

PASSAGES = {
    "1": "The canal was dug by hand. Nobody recorded the names of the men who dug it.",
    "2": "Work on the lock began in 1893 and ended in 1897.",
    "3": "A fire destroyed the mill in 1995; Mary Moss had sold it.",
}


@pytest.mark.parametrize(
    ("answer", "references", "sentence"),
    [
        ("in 1995", ["1893"], "“1995” occurs in passage 3; the reference “1893” in passage 2."),
        # The answer says the reference: there is one thing to say.
        ("It was Mary Moss.", ["Mary Moss"], "“Mary Moss” occurs in passage 3."),
        ("2004", ["1893"], "“2004” occurs in no passage; the reference “1893” in passage 2."),
        ("", ["1893"], "The reference “1893” occurs in passage 2."),
        ("2004", ["the Earl of Devon"], "“2004” occurs in no passage; the reference “the Earl of Devon” in no passage."),
        # The first reference that some passage says whole.
        ("2004", ["July 1893", "1893"], "“2004” occurs in no passage; the reference “1893” in passage 2."),
        # The words of the question are left out.
        ("Work on the lock began in 1893", [], "“began in 1893” occurs in passage 2."),
        ("", [], ""),
    ],
)  # fmt: skip
def test_where_answer_and_reference_occur(answer, references, sentence):
    """The page left the reader to search ten folded passages for the words of a wrong answer."""
    assert origins(answer, references, PASSAGES, "When did they begin work on the lock?") == sentence


def test_without_texts_nothing_is_said():
    assert origins("1995", ["1893"], {}) == ""


def test_many_passages_are_counted():
    passages = {str(rank): "They met in 1995." for rank in range(1, 8)} | {"8": "No year here."}
    assert origins("1995", [], passages) == "“1995” occurs in 7 of 8 passages."
    few = {rank: passages[rank] for rank in ("1", "2", "3", "8")}
    assert origins("1995", [], few) == "“1995” occurs in passages 1, 2 and 3."


def test_of_a_long_reference_what_is_said_of_it():
    reference = "Because Mary Moss had sold it to a company from Leeds"
    assert origins("2004", [reference], PASSAGES).endswith("the reference “Mary Moss had sold” in passage 3.")


def test_phrases_are_the_longest_that_a_passage_says():
    found = phrases("A fire destroyed the mill of Anna Lund in 1995", list(PASSAGES.values()))
    assert [(one.text, one.places) for one in found] == [
        ("fire destroyed the mill", (2,)), ("Anna Lund", ()), ("1995", (2,)),
    ]  # fmt: skip


def test_names_and_numbers_are_told_before_other_words():
    # The four words that passage 3 says in a row are neither; of three phrases two are told.
    said = origins("a fire destroyed the mill of Anna Lund in 1995", [], PASSAGES)
    assert said == "“Anna Lund” occurs in no passage; “1995” in passage 3."
    # Of two without a name or number the longer one; a single word is not told beside it.
    said = origins("fire destroyed the mill and men", [], PASSAGES)
    assert said == "“fire destroyed the mill” occurs in passage 3."
    assert origins("men", [], PASSAGES) == "“men” occurs in passage 1."


def test_numbers_are_compared_by_value_and_words_by_stem():
    (found,) = phrases("fifteen arches", ["The bridge has 15 arch spans."])
    assert (found.text, found.places) == ("fifteen arches", (0,))


def test_other_scripts():
    (found,) = phrases("郭守敬", ["通惠河的水源是郭守敬找到的。", "大运河"])
    assert found.places == (0,)


def test_an_answer_of_the_questions_own_words_is_read_whole():
    assert telling("the Suez Canal", "Suez Canal or Panama Canal?") == {"suez", "canal"}


def test_marks_join_to_the_text_and_the_first_kind_wins():
    text = "In 1893 and 1995,\nMary."
    pieces = marked(text, {"answer": telling("1995"), "reference": telling("1893 1995")})
    assert "".join(piece for _, piece in pieces) == text
    assert [(kind, piece) for kind, piece in pieces if kind] == [("reference", "1893"), ("answer", "1995")]


def test_a_snippet_is_where_most_of_the_words_that_matter_are():
    words = "The mill of the town burned. " * 20
    text = f"{words}Work on the lock began in 1893. {words}"
    wanted = {"reference": telling("1893"), "question": telling("When did work on the mill begin?")}
    shown = "".join(piece for _, piece in snippet(text, wanted, 120))
    assert "Work on the lock began in 1893" in shown and shown.startswith("… ") and shown.endswith(" …")
    assert len(shown) <= 120 + 4
    # A short text is whole, one without such words is shown from its beginning.
    assert snippet("Work began.", {}) == [("", "Work began.")]
    assert snippet(words, {}, 60)[0][1].startswith("The mill of the town burned.")


def test_a_snippet_shows_two_words_that_stand_together_not_the_first_of_them():
    text = f"Moss. {'It rained again. ' * 20}In 1893 Moss left. {'It rained again. ' * 20}"
    shown = "".join(piece for _, piece in snippet(text, {"reference": telling("1893 Moss")}, 40))
    assert "1893 Moss" in shown


def test_a_long_phrase_is_cut_to_sixty_characters():
    for given, shown in (("A" * 60, "A" * 60), ("A" * 61, "A" * 59 + "…")):
        assert origins("", [given], PASSAGES) == f"The reference “{shown}” occurs in no passage."


def test_a_snippet_at_either_end_of_a_text_is_cut_at_one_side():
    # 20 letters with eight on each side of the year: no word is cut, and the end of the text is shown.
    wanted = {"reference": {"#1893"}}
    assert snippet("a " * 200 + "opened in 1893 by her", wanted, 20) == [
        ("", "… in "), ("reference", "1893"), ("", " by her"),
    ]  # fmt: skip
    assert snippet("In 1893 it opened. " + "a " * 200, wanted, 20) == [
        ("", "In "), ("reference", "1893"), ("", " it opened. …"),
    ]  # fmt: skip
    assert snippet("", wanted) == []


def test_ideographs_are_twice_as_wide_as_letters():
    # Six letters wide is three ideographs; one that is left out is told, too.
    assert snippet("水火郭河海", {"answer": {"郭"}}, 6) == [("", "… 火"), ("answer", "郭"), ("", "河 …")]
    assert snippet("水火郭", {"answer": {"郭"}}, 6) == [("", "水火"), ("answer", "郭")]


def test_a_text_without_blanks_is_cut_anyway():
    shown = "".join(
        piece for _, piece in snippet("水" * 500 + "郭守敬" + "河" * 500, {"answer": telling("郭守敬")}, 60)
    )
    assert "郭守敬" in shown and len(shown) <= 64


def test_a_hundred_long_passages_take_no_time():
    passage = "The mill of the town burned in 1893 and again in 1995. " * 40
    begun = time.perf_counter()
    origins("x " * 3000 + "mill of the town " * 500, ["1893"], {str(i): f"{i} {passage}" for i in range(100)})
    assert time.perf_counter() - begun < 5
