"""In which language a text is, and what languages are called; the letters are counted by hand."""

import pytest

from core.errors import InputError
from core.text.language import language, language_named


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("en", "en"), ("EN", "en"), ("vi", "vi"), ("zh", "zh-Hans"), ("zh-hans", "zh-Hans"), ("zh_CN", "zh-Hans"),
        ("zh-Hant", "zh-Hant"), ("ZH_tw", "zh-Hant"),
    ],
)  # fmt: skip
def test_a_language_by_its_name(name, expected):
    assert language_named(name) == expected


@pytest.mark.parametrize("name", ["de", "", None, "zh-HK"])
def test_another_language_is_refused_with_the_list(name):
    with pytest.raises(InputError) as error:
        language_named(name, "language")
    assert str(error.value) == (
        f"language must be one of en, vi, zh-Hans, zh-Hant, zh, zh-CN, zh-TW, got {name!r}."
    )


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        # As many ideographs as other words, or more.
        ("Paris 北", None, "zh-Hans"),
        ("Ulm Bonn 東", None, "en"),
        ("Ulm 東京", None, "zh-Hant"),
        # Seven Latin letters tell nothing, so the other text does.
        ("Ulm Bonn 12", "Ai xây cầu?", "vi"),
        ("Ulm Bonn 12", None, "en"),
        ("12", "誰造的？", "zh-Hant"),
        ("", None, "en"),
        ("ngày 5", None, "vi"),
        # Only the beginning of a text is looked at.
        ("1" * 499 + "北", None, "zh-Hans"),
        ("1" * 500 + "北", None, "en"),
    ],
)
def test_the_language_of_a_text(text, other, expected):
    assert language(text, other) == expected
