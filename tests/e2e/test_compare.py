"""The journey "compare the two recorded runs": the answer, the marks, the table, the way to the workbench."""

from __future__ import annotations

import pytest

from core.diagnosis import Diagnosis
from core.report.compare import sides_of
from core.report.paired import answer, pairs_of
from core.run import Run
from tests.e2e.driving import PHONE, main_text, sideways
from tests.e2e.running_app import ROOT, settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def recorded():
    return [Run.load(ROOT / "sample_data" / name) for name in ("recorded_run", "recorded_run_short")]


@pytest.fixture(scope="module")
def sentences(recorded):
    return answer(pairs_of(sides_of([Diagnosis(run) for run in recorded]))[0])


@PHONE
def test_the_two_recorded_runs_are_compared(app, new_page, recorded, sentences, width, theme):
    page = new_page(width, color_scheme=theme)
    page.goto(f"{app}/compare?" + "&".join(f"compare={run.run_id}" for run in recorded))
    settle(page)
    main = page.get_by_test_id("stMain")
    for sentence in sentences:
        assert sentence in main_text(page)
    assert sideways(page) <= 1
    marks = main.locator(".scatterlayer .point")
    marks.first.wait_for(state="attached", timeout=60_000)
    assert marks.count() >= 2
    # From a question that both runs have to the workbench, in the run that was asked for.
    link = main.get_by_role("link", name="Open B in the workbench")
    link.scroll_into_view_if_needed()
    link.click()
    page.wait_for_url("**/workbench?**", timeout=60_000)
    settle(page)
    assert f"run={recorded[1].run_id}" in page.url and "question=" in page.url
    # Back, with what was chosen.
    page.go_back()
    page.get_by_text("Question by question").wait_for(timeout=60_000)
    settle(page)
    assert all(run.run_id in page.url for run in recorded)
