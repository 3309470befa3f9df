import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.strict import MAX_DEPTH, JsonReader, NotJson, clean, finite, is_clean, json_value, read_json


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0), (2.5, 2.5), (-0.0, 0.0), (np.float32(0.25), 0.25), (np.int64(3), 3.0),
        (True, None), (None, None), ("1", None), (b"1", None), ([1], None), (math.nan, None), (math.inf, None),
        (10**400, None), (np.float64("nan"), None), ({}, None),
    ],
)  # fmt: skip
def test_finite_numbers(value, number):
    assert finite(value) == number and isinstance(finite(value), float | None)


def test_half_surrogate_pairs_are_replaced():
    assert clean("a\ud800b\udc00 😀") == "a\ufffdb\ufffd 😀"
    assert [is_clean(text) for text in ("😀", "\ud83d", "")] == [True, False, True]


@given(st.text())
def test_a_clean_text_can_be_encoded(text):
    assert is_clean(clean(text)) and clean(text).encode().decode() == clean(text)
    assert clean(text) == text or not is_clean(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the name 'c' comes twice"),
        ("[NaN]", "NaN is not JSON"),
        ("[1e999]", "too large"),
        ("9" * 400, "too large"),
        ('["\\ud800"]', "half a surrogate pair"),
        ('["\ud800"]', "half a surrogate pair"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested deeper than 100"),
        ("[" * 100_000, "nested too deeply"),
        ("[1] [2]", "Extra data"),
        ("", "Expecting value"),
    ],
)
def test_what_must_not_be_used_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        read_json(text)


def test_as_deep_as_may_be_is_read():
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read_json(text) == json.loads(text)


def test_half_a_pair_is_refused_at_the_start_of_a_text_too():
    assert JsonReader().parse_start('["\\ud83d\\ude00"] and more') == (["\U0001f600"], 16)
    with pytest.raises(NotJson, match="half a surrogate pair"):
        JsonReader().parse_start('["\\ud800"] and more')


def test_what_can_be_mended_is_mended_and_counted():
    reader = JsonReader(repair=True)
    assert reader.read('{"a": [NaN, -Infinity, 1e999, 2], "b": "x\\udfff", "\\ud800": 1}') == {
        "a": [None, None, None, 2],
        "b": "x\ufffd",
        "\ufffd": 1,
    }
    assert (reader.n_missing, reader.n_replaced, len(reader.notes())) == (3, 2, 2)
    for text in ('{"a": 1, "a": 2}', "[" * 101 + "]" * 101):
        with pytest.raises(NotJson):
            reader.read(text)


def test_parts_of_a_text_are_checked_on_their_own():
    reader = JsonReader()
    bad, good = reader.parse('[{"a": NaN}, {"a": 1}]')
    assert reader.checked(good) == {"a": 1}
    with pytest.raises(NotJson, match="NaN"):
        reader.checked(bad)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(_JSON, st.booleans())
def test_good_json_is_read_as_it_was_written(value, repair):
    text = json.dumps(value)
    assert read_json(text, repair=repair) == value


def test_what_is_no_number_is_null_and_never_zero():
    nan = float("nan")
    odd = {
        "a": nan,
        2: (np.float64("inf"), np.array([1.5, nan])),
        "c": [np.int64(3), True, None, {4}],
        "d": -nan,
    }
    wanted = {"a": None, "2": [None, [1.5, None]], "c": [3, True, None, "{4}"], "d": None}
    assert json_value(odd) == wanted
    assert json_value(odd)["c"][1] is True
