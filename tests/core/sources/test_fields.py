import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sources.fields import MAX_TEXT, FieldError, Fields, as_id, read_each, unique
from core.sources.report import IssueLog


def fields(record, path=""):
    return Fields(record, 7, IssueLog(), path)


def test_the_first_name_that_is_there_is_read_and_the_others_are_left():
    f = fields({"a": None, "b": "x", "c": "y", "d": None, "e": 0})
    assert f.text("a", "b", "c") == "x"
    assert f.rest() == {"c": "y", "e": 0}
    assert f.present("gone", "d") is None and f.present("e") == "e"
    assert f.rest() == {"c": "y"}


def test_values_of_the_right_type():
    f = fields({"t": "", "l": ["a", ""], "one": "a", "n": 3, "m": {"k": 1}, "i": [1, "x"]})
    assert (f.text("t"), f.texts("l"), f.texts("one"), f.number("n")) == ("", ("a", ""), ("a",), 3.0)
    assert (f.mapping("m"), f.items("i"), f.required_items("l")) == ({"k": 1}, [1, "x"], ["a", ""])
    assert f.log.n_issues == 0
    assert (f.text("no"), f.texts("no"), f.number("no"), f.mapping("no"), f.items("no")) == (
        None,
        (),
        None,
        {},
        (),
    )


@pytest.mark.parametrize(
    ("read", "value"),
    [
        ("text", 5), ("text", ["a"]), ("text", "x" * (MAX_TEXT + 1)), ("text", "\ud800"),
        ("texts", {}), ("texts", ["a", None]), ("texts", ["a"] * 10_001),
        ("number", "5"), ("number", True), ("number", float("nan")), ("number", 10**400),
        ("items", "x"), ("items", {}), ("mapping", []),
    ],
)  # fmt: skip
def test_an_optional_value_of_another_type_is_a_warning(read, value):
    f = fields({"x": value}, "tasks[3].")
    assert getattr(f, read)("x") in (None, (), {})
    issue = f.log.listed()[0]
    assert (issue.row, issue.column, issue.severity) == (7, "tasks[3].x", "warning")


@pytest.mark.parametrize("value", [None, 5, "", "  ", ["a"], "\ud800", "x" * (MAX_TEXT + 1)])
def test_a_required_text_is_one(value):
    with pytest.raises(FieldError) as caught:
        fields({"x": value}, "a.").required_text("gone", "x")
    assert caught.value.field in ("a.x", "a.gone") and caught.value.expected
    assert fields({"x": " q "}).required_text("x") == " q "


def test_a_required_list_and_a_record_are_what_they_must_be():
    with pytest.raises(FieldError, match="a list"):
        fields({"x": "y"}).required_items("x")
    with pytest.raises(FieldError, match="a list"):
        fields({}).required_items("x")
    with pytest.raises(FieldError, match="named fields") as caught:
        fields([1], "tasks[0].")
    assert caught.value.field == "tasks[0]"


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
        return number, entry

    log = IssueLog()
    records, rejected = read_each([(3, 1), (5, -1)], log, read)
    assert records == [(3, 1)]
    assert rejected == [(5, "n: expected a number from 0", -1)]
    assert [str(issue) for issue in log.listed()] == [
        "Row 5, column n: found '-1', expected a number from 0."
    ]
