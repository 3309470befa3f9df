import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sources.formats.records import Record, records_of, run_of
from core.sources.formats.writing import (
    apply,
    difference,
    is_kept,
    keep,
    keep_file,
    kept_file,
    with_kept,
)

WRITTEN = {"question": "Who?", "answer": "Ann.", "list": [{"id": "a"}, {"id": "b"}], "n": 1.0, "extra": []}
ORIGINAL = {
    "question": "Who?",
    "answer": ["Ann", "."],
    "list": [{"id": "a", "page": 3}, {}],
    "n": 1,
    "code": None,
}
RECORD = Record("one", "Who?")


def test_what_is_kept_comes_back_from_a_run():
    record = keep("some-format", RECORD, WRITTEN, ORIGINAL)
    (back,) = records_of(run_of([record], {"source": "upload"}))
    assert with_kept("some-format", back, WRITTEN) == ORIGINAL
    assert keep("some-format", RECORD, WRITTEN, dict(WRITTEN)) is RECORD


def test_each_format_reads_only_what_is_its_own():
    assert with_kept("other-format", keep("some-format", RECORD, WRITTEN, ORIGINAL), WRITTEN) == WRITTEN


def test_what_has_changed_since_is_written_as_it_is_now():
    record = keep("f", RECORD, WRITTEN, ORIGINAL)
    now = {**WRITTEN, "answer": "Bob.", "list": [{"id": "z"}], "extra": ["new"], "code": 7}
    assert with_kept("f", record, now) == {**now, "n": 1}
    fewer = {**WRITTEN, "list": [{"id": "a"}, {"id": "c"}]}
    assert with_kept("f", record, fewer)["list"] == [{"id": "a", "page": 3}, {"id": "c"}]


@pytest.mark.parametrize(
    "value",
    [None, 5, "{}", [1], True, {"in": 5}, {"new": [1], "gone": "x"}, {"is": 5}, {"n": 2, "in": {"0": 7}}],
)
def test_kept_of_a_wrong_type_changes_nothing(value):
    record = Record("one", "Who?", reported={("f:record", ""): value, ("f:file", ""): value})
    assert with_kept("f", record, WRITTEN) == WRITTEN
    assert with_kept("f", record, [1, 2]) == [1, 2]
    assert isinstance(kept_file([record], "f"), dict)


_SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=3)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)


@given(_VALUES, _VALUES)
def test_any_value_is_made_of_any_other(written, original):
    change = json.loads(json.dumps(difference(written, original)))
    assert json.dumps(apply(change, written), sort_keys=True) == json.dumps(original, sort_keys=True) or (
        apply(change, written) == original
    )
    assert difference(written, json.loads(json.dumps(written))) is None


def test_the_first_record_carries_what_the_file_says():
    records = keep_file([RECORD, Record("two", "What?")], "f", {"a": 1, "b": None, "c": {}})
    assert [("f:file", "") in r.reported for r in records] == [True, False]
    assert kept_file(reversed(records), "f") == {"a": 1}
    assert kept_file(records[1:], "f") == {}
    assert keep_file([], "f", {"a": 1}) == [] and keep_file([RECORD], "f", {"a": None}) == [RECORD]


def test_reserved_names():
    assert is_kept("rag-uncertainty:record")
    assert is_kept("ragchecker:file")
    assert not any(map(is_kept, ("record", "faithfulness", "a:b", "x:record:y", "File:file")))
