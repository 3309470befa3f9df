import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text import passages, word_spans, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n", []),
        ("The quick-brown fox’s 3.5 km", ["the", "quick", "brown", "fox", "s", "3", "5", "km"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("snake_case", ["snake", "case"]),
        ("大运河全长1794公里", ["大", "运", "河", "全", "长", "1794", "公", "里"]),
        ("Vịnh Hạ Long", ["vịnh", "hạ", "long"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Привет, мир!", ["привет", "мир"]),
        ("iPhone的价格", ["iphone", "的", "价", "格"]),
    ],
)
def test_words_in_any_script(text, expected):
    assert words(text) == [unicodedata.normalize("NFC", w) for w in expected]


def test_composed_and_decomposed_accents_are_the_same_words():
    text = "Hạ Long là kỳ quan"
    assert words(unicodedata.normalize("NFD", text)) == words(unicodedata.normalize("NFC", text))


def test_passages_have_exactly_the_size_asked_and_keep_offsets():
    text = "“" + " ".join(f"word{i}," for i in range(250)) + "”"
    found = passages(text, 100)
    assert [len(words(p.text)) for p in found] == [100, 100, 50]
    assert passages(text) == found  # a hundred words unless told otherwise
    assert all(text[p.start : p.end] == p.text for p in found)
    assert found[0].text.startswith("“word0,") and found[1].text.startswith("word100")
    assert found[2].text.endswith("word249,”")


def test_chinese_passages_are_cut_by_ideograph():
    text = "大运河连接南北。" * 40  # 7 ideographs each
    found = passages(text, 100)
    assert [len(words(p.text)) for p in found] == [100, 100, 80]


def test_passages_of_nothing_and_bad_size():
    assert passages(" …!? ") == []
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        passages("a b", 0)


@given(st.text(), st.integers(1, 9))
def test_no_word_is_lost_or_split_between_passages(text, size):
    found = passages(text, size)
    assert [w for p in found for w in words(p.text)] == words(text)
    assert all(len(words(p.text)) == size for p in found[:-1])
    assert all(text[p.start : p.end] == p.text == p.text.strip() for p in found)


@given(st.text())
def test_spans_match_words(text):
    spans = word_spans(text)
    assert len(spans) == len(words(text))
    assert all(a < b for a, b in spans) and all(x[1] <= y[0] for x, y in pairwise(spans))
