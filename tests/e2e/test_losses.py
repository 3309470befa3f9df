"""From the ladder to the answers that are lost at one stage: a run with arms, opened and clicked in a browser."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest

from core.run import Run
from core.schema import TABLES, empty
from tests.e2e.driving import WIDE, main_text, sideways, unfold
from tests.e2e.running_app import ROOT, settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
LOST, MENDED = 20, 12  # of the questions with reference answers, the first; of these, by added gold
GOOD = dict.fromkeys(("gold_added", "gold_alone", "gold_sentences"), True)
# The middle of the bar of a row, in pixels of the screen.
BAR = """(figure, row) => {
  const plot = figure.querySelector('.js-plotly-plot'), {xaxis, yaxis} = plot._fullLayout;
  const box = plot.getBoundingClientRect(), bar = plot._fullData.find(
    trace => trace.type === 'bar' && [...trace.y].includes(row));
  const i = [...bar.y].indexOf(row);
  return {x: box.x + xaxis._offset + xaxis.d2p(bar.base[i] + bar.x[i] / 2),
          y: box.y + yaxis._offset + yaxis.d2p(row)};
}"""


@pytest.fixture(scope="module")
def run(app_runs):
    """The recorded facts, of which 20 answers are wrong, and 12 of those right once gold is added; the rest never."""
    recorded = Run.load(ROOT / "sample_data" / "recorded_run_facts")
    q = recorded.queries
    known = q[q["reference_answers"].notna()].reset_index(drop=True)
    right = {
        query_id: references[0]
        for query_id, references in known[["query_id", "reference_answers"]].itertuples(index=False)
    }
    lost = known["query_id"].head(LOST).tolist()
    answers = [
        "Nobody knows it" if query_id in lost else right.get(query_id, answer)
        for query_id, answer in q[["query_id", "answer"]].itertuples(index=False)
    ]
    rows = [
        {
            "query_id": query_id, "arm": arm, "repeat": 1, "prompt": "changed", "passages": ["new", "other"],
            "gold_by": "labelled", "answer_status": "answered",
            "answer": right[query_id]
            if query_id not in lost or (arm in GOOD and lost.index(query_id) < MENDED)
            else "Nobody knows it",
        }
        for query_id in known["query_id"]
        for arm in (*GOOD, "gold_first", "placebo")
    ]  # fmt: skip
    queries = q.assign(answer=answers, answer_status="answered", closed_book_answer=None)
    # The claims are those of the recorded answers.
    others = {name: empty(TABLES[name]) for name in ("claims", "support", "joint_support")}
    changed = {"run_id": "facts-with-arms", "name": "Facts with arms"}
    found = recorded.derive(changed, queries=queries, arms=pd.DataFrame(rows), **others)
    found.save(app_runs / found.run_id)
    return found


@WIDE
def test_a_bar_of_the_ladder_leads_to_its_questions_in_the_workbench(app, run, new_page, width, theme):
    touch = width < 768
    page = new_page(width, color_scheme=theme, has_touch=touch, is_mobile=touch)
    page.goto(f"{app}/losses?run={run.run_id}")
    settle(page)
    assert f"{LOST} answers that are not correct" in main_text(page)
    assert sideways(page) <= 0
    figure = page.locator("[data-testid='stPlotlyChart'][aria-label^='Where ']")
    figure.scroll_into_view_if_needed()
    figure.locator(".ytick text").first.wait_for()

    at = figure.evaluate(BAR, "Not retrieved")
    press = page.touchscreen.tap if touch else page.mouse.click
    press(at["x"], at["y"])
    page.wait_for_url("**where=**")
    settle(page)
    assert parse_qs(urlsplit(page.url).query)["where"] == ["losses.queries.stage:not%20retrieved"]
    assert f"{MENDED} of 119 questions match" in main_text(page)

    page.get_by_role("link", name="Read them in the workbench").click()
    page.wait_for_url(re.compile("/workbench"))
    settle(page)
    assert f"1 of {MENDED} (filtered)" in main_text(page)
    unfold(page, "Where answers are lost")
    # The answer under each arm, and what changes in it.
    shown = page.get_by_role("list", name="Answers under each fix")
    added = shown.locator("li", has_text="Gold added")
    added.wait_for()
    assert "✓" in added.inner_text() and "Passages new, new" in added.inner_text()
    assert "Nobody knows it" in added.locator(".del").inner_text() and added.locator(".ins").count()
    assert "✗" in shown.locator("li", has_text="Placebo").inner_text()
    assert sideways(page) <= 0
