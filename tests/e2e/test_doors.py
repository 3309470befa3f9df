"""Marks of figures that lead to questions: clicked with a mouse, and tapped on a phone."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.e2e.running_app import settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
PHONE = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True}
# The text colours of a figure, and the page behind it, as the browser has them.
COLOURS = """figure => {
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const texts = figure.querySelectorAll('.xtick text, .ytick text, .xtitle, .ytitle, .legendtext, .cbaxis text');
  return {texts: [...texts].map(one => rgb(getComputedStyle(one).fill)),
          page: rgb(getComputedStyle(document.querySelector("[data-testid='stApp']")).backgroundColor)};
}"""
# The middle of the cell of retrieval rank 10 and influence rank 1, and what its mark says.
CELL = """figure => {
  const plot = figure.querySelector('.js-plotly-plot'), {xaxis, yaxis} = plot._fullLayout;
  const box = plot.getBoundingClientRect();
  const squares = plot.data.find(trace => trace.type === 'scatter' && trace.marker.symbol === 'square');
  return {x: box.x + xaxis._offset + xaxis.d2p(10), y: box.y + yaxis._offset + yaxis.d2p(1),
          says: squares.customdata[9][1]};
}"""


def luminance(colour):
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    "device",
    [{"width": 1280, "color_scheme": "light"}, {**PHONE, "color_scheme": "dark"}],
    ids=["1280 light", "390 dark"],
)
def test_a_cell_of_the_rank_plot_filters_the_worklist(app, new_page, device):
    page = new_page(**device)
    page.goto(f"{app}/influence?sim=queries:12")
    settle(page)
    figure = page.locator("[data-testid='stPlotlyChart'][aria-label^='Influence rank against']")
    figure.scroll_into_view_if_needed()
    figure.locator(".cbaxis text").first.wait_for()

    colours = figure.evaluate(COLOURS)
    assert len(colours["texts"]) > 10
    assert min(contrast(text, colours["page"]) for text in colours["texts"]) >= 4.5
    assert page.locator(".modebar").count() == 0
    assert not figure.evaluate("figure => figure.querySelector('.js-plotly-plot')._fullLayout.dragmode")

    cell = figure.evaluate(CELL)
    n = int(re.search(r"(\d+) questions?, ties included", cell["says"]).group(1))
    press = page.touchscreen.tap if device.get("has_touch") else page.mouse.click
    press(cell["x"], cell["y"])
    page.wait_for_url("**where=**")
    settle(page)
    (where,) = parse_qs(urlsplit(page.url).query)["where"]
    assert where.startswith("influence.passages.retrieval_order:10,best_influence_rank:..2")
    said = page.locator("[data-testid='stMain']").inner_text()
    assert f"{n} of 12 questions" in said
