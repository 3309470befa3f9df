"""From how far bars can be read to one answer's bars: a simulated run, opened and clicked in a browser."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from core.sources.simulation import simulate
from tests.e2e.driving import PHONE, main_text, sideways, unfold
from tests.e2e.running_app import settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
# The middle of the highest bar, in pixels of the screen.
BAR = """figure => {
  const plot = figure.querySelector('.js-plotly-plot'), {xaxis, yaxis} = plot._fullLayout;
  const box = plot.getBoundingClientRect(), bar = plot._fullData.find(trace => trace.type === 'bar');
  const y = [...bar.y], i = y.indexOf(Math.max(...y));
  return {x: box.x + xaxis._offset + xaxis.d2p(bar.x[i]), y: box.y + yaxis._offset + yaxis.d2p(y[i] / 2), n: y[i]};
}"""


@pytest.fixture(scope="module")
def run(app_runs):
    found = simulate()
    found.save(app_runs / found.run_id)
    return found


@PHONE
def test_a_bar_leads_to_the_answers_whose_bars_can_be_read(app, run, new_page, width, theme):
    touch = width < 768
    page = new_page(width, color_scheme=theme, has_touch=touch, is_mobile=touch)
    page.goto(f"{app}/attribution?run={run.run_id}")
    settle(page)
    assert "Passages that belong together" in main_text(page)
    assert sideways(page) <= 0
    figure = page.locator("[data-testid='stPlotlyChart'][aria-label^='Histogram of the LDS']")
    figure.scroll_into_view_if_needed()
    figure.locator(".ytick text").first.wait_for()

    at = figure.evaluate(BAR)
    press = page.touchscreen.tap if touch else page.mouse.click
    press(at["x"], at["y"])
    page.wait_for_url("**where=**")
    settle(page)
    (condition,) = parse_qs(urlsplit(page.url).query)["where"]
    assert condition == "attribution.queries.lds:0.9..,reading:can%20be%20read"
    assert f"{at['n']} of {len(run.queries)} questions match" in main_text(page)

    page.get_by_role("link", name="Read them in the workbench").click()
    page.wait_for_url(re.compile("/workbench"))
    settle(page)
    unfold(page, "Attribution")
    page.locator("[data-testid='stPlotlyChart'][aria-label^='Scores of 10 passages']").wait_for()
    assert "held-out subsets" in main_text(page)
    assert sideways(page) <= 0
