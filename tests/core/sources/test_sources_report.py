import pandas as pd

from core.sources.report import MAX_LISTED, Issue, IssueLog, ValidationReport, counted, shorten


def test_an_issue_reads_as_a_sentence():
    issue = Issue(5, "rank", "abc", "a number")
    assert str(issue) == "Row 5, column rank: found 'abc', expected a number."
    assert str(Issue(None, None, "x", "y")) == "Found 'x', expected y."


def test_the_list_is_capped_and_the_count_is_not():
    log = IssueLog()
    log.add_many(range(2, 3002), "a", ["x"] * 3000, "y", "warning")
    log.add(5000, "b", "late", "an error is listed however late")
    log.count_more(7)
    report = ValidationReport(
        9000, 8992, log.listed(), pd.DataFrame(), n_issues=log.n_issues, n_errors=log.counts["error"]
    )
    assert (report.n_issues, report.n_errors, report.n_warnings, report.n_rejected) == (3008, 8, 3000, 8)
    assert len(report.issues) == MAX_LISTED == len(report.to_frame())
    assert report.issues[-1].column == "b"
    assert [issue.row for issue in report.issues] == sorted(issue.row for issue in report.issues)
    assert log.first_error.row == 5000


def test_frame_of_no_issues_has_the_columns():
    frame = ValidationReport(0, 0, (), pd.DataFrame()).to_frame()
    assert list(frame.columns) == ["row", "column", "value", "expected", "severity"]
    assert frame.empty


def test_values_are_shortened_and_can_always_be_shown():
    assert len(shorten("x" * 1000)) == 80
    assert shorten("\ud800") == "\ufffd"
    assert shorten("a\r\nb\u2028c") == "a b c"
    nested = []
    for _ in range(100_000):
        nested = [nested]
    assert shorten(nested) == "(nested too deeply)"
    while nested:  # taken apart by hand: freeing it in one go would recurse as deeply
        nested = nested.pop()


def test_counted():
    assert [counted(n, "row") for n in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]
