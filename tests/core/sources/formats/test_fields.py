import pytest

from core.sources.formats.fields import MAX_TEXT, Fields, as_number
from core.sources.question import FieldError
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


def test_numbers():
    assert [as_number(v) for v in (1, 2.5, -0.0, False, None, "1", float("inf"))] == [
        1,
        2.5,
        0,
        None,
        None,
        None,
        None,
    ]
