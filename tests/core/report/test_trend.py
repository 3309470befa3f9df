"""Runs of one data set over time, worked out on paper."""

import pandas as pd
import pytest

from core.charts.trend import trend_figure
from core.cli.app import main
from core.report.trend import asked_of, trends
from core.run import Run


def made(signs, created, name="Run", data="d1", **manifest):
    """One question per sign: + correct, - incorrect, . without a label."""
    queries = pd.DataFrame(
        {
            "query_id": [f"q{i}" for i in range(len(signs))],
            "question": [f"Question {i}?" for i in range(len(signs))],
            "answer": "A",
            "answer_status": "answered",
            "correct": pd.array([{"+": True, "-": False}.get(one) for one in signs], dtype="boolean"),
        }
    )
    facts = {"source": "live", "name": name, "created": created, "dataset": {"name": data}, **manifest}
    return Run.create(facts, queries=queries)


@pytest.fixture
def runs():
    return [
        made("++--.", "2026-03-01", "Third", model={"name": "large"}),
        made("+---", "2026-01-01", "First", model={"name": "small"}),
        made("+++-+++", "2026-02-01", "Second", model={"name": "small"}),
        made("++", "2026-01-05", "Other data", "d2"),
    ]


def test_runs_stand_in_time_over_the_questions_of_the_newest(runs):
    found = trends(map(asked_of, runs))
    assert [one.title for one in found] == ["d1", "d2"]
    points = found[0].points
    assert [(one.name, one.n_correct, one.n) for one in points] == [
        ("First", 1, 4),
        ("Second", 4, 5),
        ("Third", 2, 4),
    ]
    # Wilson's interval of 2 of 4: 0.5 +- 1.96 sqrt(1/16 + 3.84/64) / (1 + 3.84/4), on paper 0.15 to 0.85.
    assert points[2].interval == pytest.approx((0.150, 0.850), abs=0.001)
    assert points[2].text == "50 % (95 % interval 15–85 %, n = 4)"
    assert [one.changes for one in points] == ["", "", "Model: small → large"]


def test_no_label_is_no_share_and_simulations_stand_alone(runs):
    unlabelled = made("..", "2026-04-01", "Fourth")
    simulated = made("++", "2026-05-01", "Fifth", source="simulation")
    found = trends(map(asked_of, [*runs[:2], unlabelled, simulated]))
    assert [len(one.points) for one in found] == [1, 3]
    last = found[1].points[-1]
    assert last.share is None and last.text == "— (no shared question with a known outcome)"
    assert found[1].to_json()["runs"][-1]["interval"] is None


def test_the_figure_marks_changes_and_leads_to_the_comparison(runs):
    found = trends(map(asked_of, runs[:3]))[0]
    figure = trend_figure(found, lambda run_id: f"compare={run_id}")
    same, changed = figure.data
    assert (list(same.x), list(same.y)) == ([80.0, 25.0], [2, 3])  # the newest on top
    assert (list(changed.x), list(changed.y)) == ([50.0], [1])
    assert changed.customdata[0][0] == f"compare={found.points[2].run_id}"
    assert (
        "Model: small" in changed.customdata[0][1]
        and "50 % (95 % interval 15–85 %" in figure.layout.meta["alt"]
    )


def test_the_command_lists_them(runs, tmp_path, capsys):
    for run in runs:
        run.save(tmp_path / run.run_id)
    assert main(["trend", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "d1: 3 runs, 5 questions" in said and "    changed: Model: small → large" in said
    (tmp_path / "empty").mkdir()
    assert main(["trend", str(tmp_path / "empty")]) == 2
    assert "holds no saved run" in capsys.readouterr().err
    assert main(["trend", str(tmp_path / "missing")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_copies_of_one_run_stand_beside_it_and_other_data_alone(runs):
    found = trends(
        map(asked_of, [runs[0], runs[3], made("++--.", "2026-03-01", "Third", model={"name": "large"})])
    )
    assert [len(one.points) for one in found] == [2, 1]
