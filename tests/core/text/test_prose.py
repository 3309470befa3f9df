"""Citations, code, certainty and the language of a text."""

from __future__ import annotations

import unicodedata

import pytest

from core.text.abstention import certainty, claims_nothing
from core.text.language import language
from core.text.numbers import numbers
from core.text.prose import citations, prose, without_code
from core.text.quantities import Quantity, in_kind

CITED = [
    ("so [1]", [(1,)]),
    ("so [1, 3]", [(1, 3)]),
    ("so [2-4]", [(2, 3, 4)]),
    ("so [^2]", [(2,)]),
    ("so【3†lines 5-9】", [(3,)]),
    ("这样【2】。", [(2,)]),
    ("so (passage 2)", [(2,)]),
    ("so [Source: 4]", [(4,)]),
    ("theo (đoạn văn 2)", [(2,)]),
    ("如此（來源3）", [(3,)]),
    ("It is so.²", [(2,)]),
    ("written¹²", [(12,)]),
    ("so (Smith 2020)", [()]),
    ("so (Smith et al., 2020; see", []),
    ("so (Smith and Jones, 2020b, p. 12)", [()]),
    ("see https://example.org/a.", [()]),
    ("so [1] (Lee 1999)", [(1,), ()]),
    ("an area of 5 km²", []),
    ("x² + y³", []),
    ("(May 2020)", []),
    ("(born 1920)", []),
    ("(2020)", []),
    ("[not a citation]", []),
]


@pytest.mark.parametrize(("text", "found"), CITED)
def test_citations_are_found_in_the_usual_styles(text, found):
    assert [cited.numbers for cited in citations(text)] == found


def test_an_address_ends_before_its_stop():
    text = "See https://example.org/a_(b)?x=1."
    ((span, _),) = citations(text)
    assert text[slice(*span)] == "https://example.org/a_(b)?x=1"


CODE = [
    ("a `b[1]` c", "a        c"),
    ("a\n```\nx = 1\n```\nb", "a\n   \n     \n   \nb"),
    ("a\n~~~py\nx\n~~~", "a\n     \n \n   "),
    ("a\n```\nopen", "a\n   \n    "),
    ("a `b", "a `b"),
    ("````\n```\n````\nb", "    \n   \n    \nb"),
]


@pytest.mark.parametrize(("text", "left"), CODE)
def test_code_is_blanked_in_its_place(text, left):
    assert without_code(text) == left


def test_prose_has_no_list_numbers_and_no_citations():
    assert prose("1. Two [3]\n2) Three") == "   Two    \n   Three"


@pytest.mark.parametrize(
    "text",
    ["`" * 50_000, "```" * 20_000, "~~~" * 20_000, "可能不一定" * 10_000, "is" + " " * 50_000 + "sure"],
)
def test_hostile_texts_take_no_time(text):
    assert len(prose(text)) == len(text)
    certainty(text)


SURE = [
    "It is certain that he did.",
    "I'm sure of it.",
    "It is beyond any doubt.",
    "100 % correct.",
    "毋庸置疑",
    "Đương nhiên là vậy.",
]
DOUBTS = [
    "It is not certain.",
    "He didn't definitely do it.",
    "It is not beyond doubt.",
    "並不一定",
    "Không nhất định.",
    "Unlikely.",
]
NEITHER = [
    "A certain man.", "Make sure to go.", "100% of it.", "绝对值是3", "一定程度上", "尽可能", "不可能", "May 1 is a day.",
    "the might of Rome", "It could not be him.",
]  # fmt: skip


@pytest.mark.parametrize("text", SURE)
def test_words_of_certainty(text):
    assert certainty(text).certain and not certainty(text).hedges


@pytest.mark.parametrize("text", DOUBTS)
def test_denied_certainty_and_hedges(text):
    assert certainty(text).hedges and not certainty(text).certain


@pytest.mark.parametrize("text", NEITHER)
def test_words_that_only_look_like_them(text):
    assert certainty(text) == ((), ())


def test_spans_are_those_of_the_text_as_given():
    text = unicodedata.normalize("NFD", "Ông ấy chắc chắn đúng.")
    ((start, end),) = certainty(text).certain
    assert unicodedata.normalize("NFC", text[start:end]) == "chắc chắn"


def test_an_abstention_that_goes_on_claims_something():
    assert claims_nothing("Tôi không biết.") and claims_nothing("我不知道。")
    assert not claims_nothing("我不確定，但是魯班。") and not claims_nothing(
        "Tôi không chắc, nhưng là ông Eiffel."
    )


LANGUAGES = [
    ("Ai la nguoi da xay dung cay cau nay?", "vi"),
    ("Who was the engineer of this bridge?", "en"),
    ("Wer hat diese Brücke gebaut?", "en"),
    ("北京", "zh-Hans"),
    ("臺北", "zh-Hant"),
    ("Lǐ Chūn 設計了這座橋", "zh-Hant"),
    ("The Zhaozhou Bridge (赵州桥) is old", "en"),
    (unicodedata.normalize("NFD", "Cầu ở đâu?"), "vi"),
    ("15?", "en"),
    ("", "en"),
]


@pytest.mark.parametrize(("text", "expected"), LANGUAGES)
def test_the_language_of_a_text(text, expected):
    assert language(text) == expected


def test_another_text_decides_where_one_is_too_short():
    assert language("15?", "Cầu ở đâu?") == "vi" and language("誰？", "Where?") == "zh-Hant"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("no number at all", []),
        ("a thousand", [1000]),
        ("the twelfth", [12]),
        ("half a dozen", [6]),
        ("TEN", [10]),
    ],
)
def test_english_numbers_are_still_seen(text, values):
    assert [number.values[0] for number in numbers(text)] == values


def test_degrees_are_converted_and_nothing_else():
    assert in_kind(Quantity((100.0,), "celsius", False), "fahrenheit").values == (212.0,)
    assert in_kind(Quantity((1.0,), "mass", False), "length") is None
