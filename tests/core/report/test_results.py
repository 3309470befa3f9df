"""A comparison and a report as Python gives them: the same as the command line says, and shown in a notebook."""

from __future__ import annotations

import html
import re

import plotly.graph_objects as go
import pytest

import core
from core.errors import InputError
from core.report import results
from core.report.compare import sides_of
from core.report.paired import comparison_text
from core.sources.simulation import simulate
from tests.core.report.test_paired import make_run

# By hand: of four shared questions one became correct, one stopped being it.
EARLIER, LATER = make_run("++--", name="<b>Before"), make_run("+-+-", name="After")


def test_a_comparison_says_what_the_command_line_says_and_shows_itself():
    found = core.compare(LATER, EARLIER)
    assert str(found) == comparison_text(sides_of([core.Diagnosis(EARLIER), core.Diagnosis(LATER)]))
    assert "1 question became correct, 1 stopped being correct" in " ".join(found.answer)
    assert found.worse["query_id"].tolist() == ["q1"]
    assert [one["name"] for one in found.to_json()["runs"]] == ["<b>Before", "After"]
    shown = found._repr_html_()
    assert html.escape(found.answer[0]) in shown and "B · After compared with A · &lt;b&gt;Before" in shown


def test_runs_without_a_question_in_common_are_refused():
    with pytest.raises(InputError, match="no question in common"):
        core.compare(simulate(), EARLIER)


def test_a_report_is_one_document_and_a_file_if_one_is_named(tmp_path):
    target = tmp_path / "report.html"
    found = LATER.report(target)
    assert target.read_text(encoding="utf-8") == found.html and found.path == target
    (document,) = re.findall(r'srcdoc="([^"]*)"', found._repr_html_())
    assert html.unescape(document) == found.html
    assert "After" in found.html


def test_a_report_that_is_not_written_says_where_it_should_have_been(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "report_html", lambda diagnosis: b"")
    assert LATER.report().path is None
    with pytest.raises(InputError, match=r"nowhere/report\.html cannot be written: No such file"):
        LATER.report(tmp_path / "nowhere/report.html")


def test_figures_are_reached_from_the_package():
    figure = core.charts.influence.rho_histogram(core.Diagnosis(LATER)["influence"])
    assert isinstance(figure, go.Figure) and set(core.charts.__all__) <= set(dir(core.charts))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        core.charts.nonsense  # noqa: B018
