import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.diff import MAX_WORDS, word_diff

WORDS = st.text(alphabet=st.sampled_from("ab 运\n.é"), max_size=30)


def joined(pieces, *kept):
    return "".join(text for operation, text in pieces if operation in kept)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", []),
        ("same", "same", [("same", "same")]),
        ("", "new", [("added", "new")]),
        ("old", "", [("removed", "old")]),
        ("a b c", "a c", [("same", "a "), ("removed", "b "), ("same", "c")]),
        ("old words, here", "new", [("removed", "old words, here"), ("added", "new")]),
        ("x a b y", "x c d y", [("same", "x "), ("removed", "a b"), ("added", "c d"), ("same", " y")]),
        ("大运河", "大河", [("same", "大"), ("removed", "运"), ("same", "河")]),
        # A shared sign between two changes joins them; one at either end does not.
        ("a, b", "c, d", [("removed", "a, b"), ("added", "c, d")]),
        ("(old", "(new", [("same", "("), ("removed", "old"), ("added", "new")]),
        ("old.", "new.", [("removed", "old"), ("added", "new"), ("same", ".")]),
    ],
)
def test_pieces_by_hand(before, after, expected):
    assert word_diff(before, after) == expected


@given(WORDS, WORDS)
def test_pieces_rebuild_both_texts(before, after):
    pieces = word_diff(before, after)
    assert joined(pieces, "same", "removed") == before
    assert joined(pieces, "same", "added") == after
    assert all(text for _, text in pieces)


def test_very_long_texts_are_not_compared_word_by_word():
    before, after = "x " * (MAX_WORDS + 1), "y"
    assert word_diff(before, after) == [("removed", before), ("added", after)]
