import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sources.fields import Unreadable, is_missing, literal, number_of, with_cells

LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.floats(allow_nan=False, allow_infinity=False), st.text(st.characters(codec="utf-8"), max_size=8))  # fmt: skip
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=3), max_leaves=12)  # fmt: skip


@given(
    st.lists(VALUES, max_size=4)
    | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), VALUES, max_size=4)
)
def test_what_python_or_json_print_comes_back(value):
    assert literal(repr(value)) == value
    assert literal(json.dumps(value)) == value


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=6), min_size=1, max_size=5))
def test_what_numpy_prints_comes_back(texts):
    assert literal("[" + "\n ".join(map(repr, texts)) + "]") == texts


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("('one',)", ["one"]),
        ("(1, (2, 3))", [1, [2, 3]]),
        ("[1. .5 -2e3]", [1.0, 0.5, -2000.0]),
        ("[nan, 'a', None, True]", [None, "a", None, True]),
        (r"['it\'s', '\x41\u00e9\U0001f600\n\\']", ["it's", "Aé😀\n\\"]),
        (r"['\ud800']", ["\ufffd"]),
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
    ],
)
def test_literals(cell, value):
    assert literal(cell) == value


@pytest.mark.parametrize(
    "cell",
    ["", "a", "['a', 'b", "[", "]", "[1+1]", "[1-1", "{'a'}", "[x]", "__import__('os')", "[lambda: 0]",
     "[" * 101 + "]" * 101, "(" * 9_000, "['a'] ['b']", "{'a': 1, 'a': 2}", "'" * 999, "[f'{1}']"],
)  # fmt: skip
def test_what_is_no_literal_is_refused(cell):
    with pytest.raises(ValueError):
        literal(cell)


@given(st.text(alphabet="[](){}'\",:\\ 01.-enaNoTruxf\n", max_size=80))
def test_any_text_is_a_value_or_a_value_error(cell):
    try:
        value = literal(cell)
    except ValueError as error:
        assert str(error)
    else:
        assert json.dumps(value, allow_nan=False)


def test_numbers_and_missing_cells():
    assert [number_of(c) for c in ("1", " -0.5 ", "1e3", "007", "1,5", "", "nan", "1e999", "x")] == [
        1, -0.5, 1000, None, None, None, None, None, None,
    ]  # fmt: skip
    assert [c for c in ("", " ", "NaN", "None", "null", "no", "0") if is_missing(c)] == [
        "",
        " ",
        "NaN",
        "None",
        "null",
    ]


def test_columns_are_read_as_lists_and_numbers():
    row = {
        "a": "['x']",
        "b": "[1] is a note",
        "c": "['cut off",
        "d": "nan",
        "e": "plain",
        "n": "2",
        "m": "none",
        "k": "2 s",
    }
    read = with_cells(row, ("a", "b", "c", "d", "e", "gone"), ("n", "m", "k"))
    assert read == {"a": ["x"], "b": "[1] is a note", "c": Unreadable("['cut off"), "d": None, "e": "plain", "n": 2, "m": None, "k": "2 s"}  # fmt: skip
    assert str(read["c"]) == "['cut off" and row["a"] == "['x']"
