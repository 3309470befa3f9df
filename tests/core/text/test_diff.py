import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.diff import MAX_WORDS, shorten_same, word_diff

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


SIX, SEVEN, EIGHT = "a b c d e f", "a b c d e f g", "a b c d e f g h"
CHANGE = ("removed", "a b c d e f g h i j k l m")


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        # Of what comes before a change the last words are kept, of what comes behind it the first.
        ([("same", SIX), CHANGE], [("same", "… e f"), CHANGE]),
        ([CHANGE, ("same", SIX)], [CHANGE, ("same", "a b …")]),
        ([CHANGE, ("same", EIGHT), CHANGE], [CHANGE, ("same", "a b … g h"), CHANGE]),
        # Where three words or fewer would be left out, none is.
        ([("same", "a b c d e"), CHANGE], [("same", "a b c d e"), CHANGE]),
        ([CHANGE, ("same", SEVEN), CHANGE], [CHANGE, ("same", SEVEN), CHANGE]),
        # Without a change there is nothing to be near to.
        ([("same", EIGHT)], [("same", EIGHT)]),
        ([], []),
    ],
)
def test_what_did_not_change_is_cut_to_the_words_next_to_a_change(pieces, expected):
    assert shorten_same(pieces, keep=2) == expected


def test_eight_words_are_kept_next_to_a_change():
    twelve = " ".join(map(str, range(12)))
    assert shorten_same([("same", twelve), CHANGE])[0] == ("same", "… 4 5 6 7 8 9 10 11")
    eleven = " ".join(map(str, range(11)))
    assert shorten_same([("same", eleven), CHANGE])[0] == ("same", eleven)
