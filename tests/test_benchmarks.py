"""The runner of bench/: lines, turns, what is kept, and the page that shows it."""

from __future__ import annotations

import json
import re
from concurrent.futures import Executor, Future

import numpy as np
import pytest

from bench import __main__ as runner
from bench import attribution, page
from bench.lines import Line, Size, in_turn, measured


def line(values=(3.0, 1.0, 2.5), **more):
    return Line.of("ours", "theirs", values, "all equal", **more)


def test_a_line_is_the_median_with_its_range():
    one = line()
    assert (one.value, one.low, one.high, one.n) == (2.5, 1.0, 3.0, 3)
    assert one.text == "2.50 × (1.00 to 3.00)"


@pytest.mark.parametrize(
    ("asked", "missed"),
    [
        ({}, ""),
        ({"floor": 2.5, "goal": 2.5}, ""),
        ({"floor": 2, "goal": 4}, "goal"),
        ({"floor": 3, "goal": 4}, "floor"),
        ({"floor": 3, "goal": 1, "less": True}, "goal"),
        ({"floor": 2, "goal": 1, "less": True}, "floor"),
        ({"floor": 3, "goal": 2.5, "less": True}, ""),
    ],
)
def test_what_a_line_misses(asked, missed):
    assert line(**asked).missed == missed


def test_two_sides_take_turns_and_who_begins_changes():
    said, now = [], [0.0]

    def side(name, seconds):
        def work(turn):
            said.append((name, turn))
            now[0] += seconds
            return f"{name}{turn}"

        return work

    rounds = list(in_turn(side("theirs", 6.0), side("ours", 2.0), 3, lambda: now[0]))
    assert rounds == [("theirs0", "ours0", 3.0), ("theirs1", "ours1", 3.0), ("theirs2", "ours2", 3.0)]
    assert said == [("theirs", 0), ("ours", 0), ("ours", 1), ("theirs", 1), ("theirs", 2), ("ours", 2)]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Keep results and the page in a folder of the test's own."""
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(page, "PAGE", tmp_path / "benchmarks.md")
    return tmp_path


def test_a_missed_floor_is_said_beside_the_ratio(kept):
    page.keep(
        "engine", Size.FULL, [line(floor=3, goal=4), line(floor=2), line((0.5,), less=True, floor=1)], 7.4
    )
    page.write()
    written = (kept / "benchmarks.md").read_text(encoding="utf-8")
    assert "| ours | theirs | 2.50 × (1.00 to 3.00) | 3 | 3 / 4: **floor missed** | all equal |" in written
    assert "| 3 | 2 / – | all equal |" in written
    assert "| 1 | at most 1 / – | all equal |" in written
    assert "## engine\n\nAnswers with each passage left out" in written
    assert re.search(r"`python -m bench engine`, 7 s, \d{4}-\d\d-\d\d; .*\d+ cores", written)


def test_every_headline_is_a_measured_ratio_and_leads_to_its_details():
    results = {name: json.loads((page.RESULTS / f"{name}.json").read_text()) for _, name, _ in page.HEADLINES}
    rows = page.headlines(results).splitlines()[4:]
    assert len(rows) == len(page.HEADLINES) and page.headlines({}).count("|\n") == 2
    # By hand, of the line that bench/results/metrics.json has.
    assert "| influence metrics of a million passages | groupby.apply | 191 × (154 to 203) | 5 | 100 / 200: **goal missed** | [metrics](#metrics) |" in rows  # fmt: skip


def test_a_quick_run_replaces_a_quick_one_but_no_full_one(kept):
    for size, value, expected in (
        (Size.QUICK, 1.0, 1.0),
        (Size.QUICK, 2.0, 2.0),
        (Size.FULL, 3.0, 3.0),
        (Size.QUICK, 4.0, 3.0),
        (Size.FULL, 5.0, 5.0),
    ):
        page.keep("speed", size, [line((value,))], 1.0)
        found = json.loads((kept / "results/speed.json").read_text(encoding="utf-8"))
        assert found["lines"][0]["value"] == expected


@pytest.fixture
def ran(kept, monkeypatch):
    """Measure in this process, with made-up lines; return what ran."""
    done = []

    class Here(Executor):
        def __init__(self, *_, **__):
            pass

        def submit(self, work, name, size):
            assert work is measured
            done.append((name, size))
            future = Future()
            if name == "metrics":
                future.set_exception(ValueError("The two sides agree on 3 of 4."))
            else:
                future.set_result([line()])
            return future

    monkeypatch.setattr(runner, "ProcessPoolExecutor", Here)
    return done


def test_a_measurement_that_fails_does_not_stop_the_others_and_is_told(ran, kept, capsys):
    assert runner.main(["metrics", "text", "--quick"]) == 1
    assert ran == [("metrics", Size.QUICK), ("text", Size.QUICK)]
    assert "metrics failed: ValueError: The two sides agree on 3 of 4." in capsys.readouterr().out
    assert [path.name for path in (kept / "results").iterdir()] == ["text.json"]
    assert "bench text --quick`" in (kept / "benchmarks.md").read_text(encoding="utf-8")


def test_a_smoke_test_keeps_nothing(ran, kept):
    assert runner.main(["--smoke", "text"]) == 0
    assert ran == [("text", Size.SMOKE)]
    assert not list(kept.iterdir())


def test_without_a_name_everything_is_measured(ran):
    runner.main([])
    assert ran == [(name, Size.FULL) for name in runner.names()]
    assert {"metrics", "text"} <= set(runner.names()) and "lines" not in runner.names()


def test_an_unknown_name_is_an_error_that_lists_the_names(capsys):
    with pytest.raises(SystemExit):
        runner.main(["nothing"])
    assert "nothing; there are" in capsys.readouterr().err


def test_the_page_is_that_of_the_kept_results():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run python -m bench.page"


def test_figures_in_the_document_on_attribution_are_those_that_were_measured():
    kept = json.loads((page.RESULTS / "attribution.json").read_text(encoding="utf-8"))
    lines = [Line(**one) for one in kept["lines"] if one["against"] == "held-out masks"]
    document = (page.PAGE.parent / "explanation/redundancy.md").read_text(encoding="utf-8")
    for one in lines:
        figure = f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"
        assert not one.name.startswith("LDS") or figure in document, one.name
    assert f"{lines[0].n} questions" in document


def test_the_measurements_of_attribution_are_of_the_masks_that_would_be_drawn_again():
    rows = attribution.recorded()
    masks = ["".join("01"[kept] for kept in mask) for mask in attribution.masks_of(10).astype(int)]
    assert len(rows) >= 30 and all(row["masks"] == masks for row in rows)
    assert len({row["question"] for row in rows}) == len(rows)
    assert all(len(row["logprobs"]) == len(masks) and max(row["logprobs"]) <= 0 for row in rows)


def test_methods_are_judged_on_masks_that_none_of_them_was_fitted_to():
    """Scores that add up: every method that sees enough of them predicts the rest without error."""
    masks = attribution.masks_of(10)
    row = {
        "masks": ["".join("01"[kept] for kept in mask) for mask in masks.astype(int)],
        "logprobs": (masks @ np.sqrt(np.arange(10)) - 100).tolist(),
        "n_tokens": 1,
    }
    found = attribution.judgements(row)
    assert found["leave one out, 11 masks"].lds == found["Banzhaf, 32 masks"].lds == 1
    used = set(row["masks"][:76])
    assert {one.n for one in found.values()} == {sum(one not in used for one in row["masks"][76:])}
    assert found["surrogate, 32 masks"] == found["Lasso of context-cite, 32 masks"]
