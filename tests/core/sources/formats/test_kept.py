import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sources.formats.kept import Kept, as_id, first_kept, is_kept, keep, read_each, unique, with_file
from core.sources.formats.records import Record, records_of, run_of
from core.sources.question import FieldError
from core.sources.report import IssueLog


def record(**values):
    return Record("one", "Who?", reported=keep("some-format", "record", values))


def test_what_is_kept_comes_back_from_a_run_and_nothing_is_kept_of_nothing():
    values = {
        "n": 0,
        "flag": False,
        "list": [1, {"a": None}],
        "text": "[1]",
        "none": None,
        "empty": [],
        "pair": (1, 2),
    }
    (back,) = records_of(run_of([record(**values)], {"source": "upload"}))
    kept = Kept(back, "some-format")
    assert kept.values == {"n": 0, "flag": False, "list": [1, {"a": None}], "text": "[1]", "pair": [1, 2]}
    assert (kept.items("list", 2), kept.items("list", 3), kept.items("n")) == ([1, {"a": None}], None, None)
    assert (kept.text("text"), kept.text("n"), kept.mapping("list")) == ("[1]", None, {})
    assert keep("some-format", "record", {"a": None, "b": {}, "c": ""}) == {}
    assert not Kept(record(), "some-format")


def test_each_format_reads_only_what_is_its_own():
    assert not Kept(record(n=1), "other-format")


@pytest.mark.parametrize("value", [None, 5, "{}", [1], True])
def test_kept_of_a_wrong_type_reads_as_absent(value):
    assert not Kept(Record("one", "Who?", reported={("f:record", ""): value}), "f")


def test_too_deep_values_are_refused():
    deep = 5
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(FieldError, match="nested"):
        keep("f", "record", {"a": deep})
    log = IssueLog()
    assert with_file([Record("one", "Who?")], "f", {"a": deep}, log) == [Record("one", "Who?")]
    assert log.counts == {"error": 0, "warning": 1}


def test_the_first_record_carries_what_the_file_says():
    records = with_file([Record("one", "Who?"), Record("two", "What?")], "f", {"a": 1}, IssueLog())
    assert [bool(Kept(r, "f", "file")) for r in records] == [True, False]
    assert first_kept(reversed(records), "f").values == {"a": 1}
    assert first_kept(records[1:], "f") is None
    assert with_file([], "f", {"a": 1}, IssueLog()) == []


def test_reserved_names():
    assert is_kept("rag-uncertainty:record")
    assert is_kept("ragchecker:file")
    assert not any(map(is_kept, ("record", "faithfulness", "a:b", "x:record:y", "File:file")))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("a", "a"),
        (5, "5"),
        (0, "0"),
        (-1, "-1"),
        (True, None),
        (None, None),
        (" ", None),
        (1.5, None),
        ([], None),
    ],
)
def test_ids(value, wanted):
    assert as_id(value) == wanted


def test_ids_that_no_file_can_hold():
    assert [as_id(value) for value in ("\ud800", "x" * 1_001, 10**40)] == [None, None, None]


def test_names_are_made_to_differ():
    assert unique(["a", "a", None, "d3", "a (2)", "a"]) == ("a", "a (3)", "d3 (2)", "d3", "a (2)", "a (4)")
    assert unique([None, None], "q") == ("q1", "q2")


@given(st.lists(st.sampled_from(["a", "b", "a (2)", "d1", "d2", None]), max_size=12))
def test_names_differ_and_first_holders_keep_theirs(names):
    made = unique(names)
    assert len(set(made)) == len(names)
    for name in {name for name in names if name is not None}:
        assert made[names.index(name)] == name


def test_entries_are_read_or_put_aside():
    def read(number, entry):
        if entry < 0:
            raise FieldError("n", entry, "a number from 0")
        return Record(str(number), str(entry))

    log = IssueLog()
    records, rejected = read_each([(3, 1), (5, -1)], log, read)
    assert records == [Record("3", "1")]
    assert rejected == [(5, "n: expected a number from 0", -1)]
    assert [str(issue) for issue in log.listed()] == [
        "Row 5, column n: found '-1', expected a number from 0."
    ]
