"""The fallback holds nothing of the rejected answer, in any language, whatever that answer says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.language import LANGUAGES
from core.text.words import words
from core.validation import FallbackHandler, Wording, default_chain, validate
from core.validation.fallback import shares_words

HANDLER = FallbackHandler()
SURE = "Brunel definitely built it."
QUESTIONS = {"en": "Who built it?", "vi": "Ai xây cầu?", "zh-Hans": "谁造的？", "zh-Hant": "誰造的？"}


def rejected(answer, lang="en", guard=None):
    outcome = validate(QUESTIONS[lang], answer, [], lang, chain=default_chain(guard=guard))
    assert outcome.critical
    return outcome


def fives(text):
    """Every five consecutive words, ideographs one by one: without the code under test."""
    found = words(text)
    return {tuple(found[i : i + 5]) for i in range(len(found) - 4)}


OWN = {lang: HANDLER.text("", rejected(SURE, lang)) for lang in LANGUAGES}
PIECES = st.sampled_from(
    [word for text in OWN.values() for word in text.split()] + list("".join(OWN.values()))
)
NEAR = st.lists(PIECES, max_size=40).map(" ".join) | st.lists(PIECES, max_size=60).map("".join)
CUT = st.builds(
    lambda text, a, b: text[min(a, b) : max(a, b)].upper(),
    st.sampled_from([*OWN.values()]),
    st.integers(0, 120),
    st.integers(0, 120),
)


@given(st.text() | NEAR | CUT, st.sampled_from(LANGUAGES))
def test_no_five_words_of_the_rejected_answer(answer, lang):
    text = HANDLER.text(answer, rejected(SURE, lang))
    assert text.strip()
    assert not fives(text) & fives(answer)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_an_answer_that_quotes_the_fallback_gets_another(lang):
    text = HANDLER.text(OWN[lang], rejected(SURE, lang))
    assert 0 < len(words(text)) < 5


def test_what_the_answer_does_not_quote_stays():
    why, advice = OWN["en"].split(". ", 1)
    assert HANDLER.text(why, rejected(SURE)) == advice
    assert HANDLER.text(advice, rejected(SURE)) == why + "."


def test_script_and_case_do_not_hide_a_quotation():
    assert shares_words("現有資料不足", "现有资料不足")
    assert shares_words("It was BUILT by Brunel", "it was built by brunel")
    assert not shares_words("one two three four", "one two three four")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_it_is_in_the_language_of_the_question(lang):
    assert HANDLER.serve(SURE, validate(QUESTIONS[lang], SURE, [])).text == OWN[lang]
    assert len(set(OWN.values())) == 4


def test_the_language_can_be_chosen():
    assert HANDLER.text(SURE, rejected(SURE), "vi") == OWN["vi"]


def test_the_original_stays_beside_and_the_use_is_noted():
    answer = "<script>alert(1)</script> Brunel definitely built it."
    outcome = rejected(answer)
    served = HANDLER.serve(answer, outcome)
    assert (served.original, served.used_fallback) == (answer, True)
    assert "<" not in served.text and "Brunel" not in served.text
    assert served.outcome.validation_info["used_fallback"] is True
    assert outcome.validation_info["used_fallback"] is False
    assert served.outcome.verdicts == outcome.verdicts


@pytest.mark.parametrize(
    ("answer", "passages"),
    [
        ("I don't know.", []),
        ("Ada Unwin designed it [1].", ["Ada Unwin designed it."]),
        ("Ada Unwin designed it.", ["Ada Unwin designed it."]),  # a missing citation alone is a warning
    ],
)
def test_what_is_not_critical_is_served_as_it_is(answer, passages):
    outcome = validate("Who?", answer, passages)
    served = HANDLER.serve(answer, outcome)
    assert (served.text, served.used_fallback, served.outcome) == (answer, False, outcome)


def test_it_says_why():
    assert "sources do not support" in OWN["en"]
    assert HANDLER.text("", rejected("")).startswith("No answer came back.")
    refused = HANDLER.text(SURE, rejected(SURE, guard=lambda question, answer: False))
    assert refused.startswith("This question cannot be answered here.")


def test_a_product_has_its_own_words():
    own = FallbackHandler({"en": Wording("Nothing found.", "Not allowed.", "Nothing.", "Call us.")})
    assert own.text(SURE, rejected(SURE)) == "Nothing found. Call us."
    assert own.text(SURE, rejected(SURE, "vi")) == OWN["vi"]
    assert own.text("nothing found call us please", rejected(SURE)) == "Nothing found. Call us."
    quoted = FallbackHandler({"en": Wording(SURE + " It is old.", "", "", "Call us.")})
    assert quoted.text(SURE + " It is old.", rejected(SURE)) == "Call us."
