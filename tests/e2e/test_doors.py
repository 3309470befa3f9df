"""Marks of figures that lead to questions: clicked with a mouse, and tapped on a phone."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.e2e.driving import BOTH, main_text
from tests.e2e.running_app import settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
# The text colours of a figure, and the page behind it, as the browser has them.
COLOURS = """figure => {
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const texts = figure.querySelectorAll('.xtick text, .ytick text, .xtitle, .ytitle, .legendtext, .cbaxis text');
  return {texts: [...texts].map(one => rgb(getComputedStyle(one).fill)),
          page: rgb(getComputedStyle(document.querySelector("[data-testid='stApp']")).backgroundColor)};
}"""
# The middle of a cell that holds a question and no other mark, and what its own mark leads to and says.
CELL = """figure => {
  const plot = figure.querySelector('.js-plotly-plot'), {xaxis, yaxis} = plot._fullLayout;
  const box = plot.getBoundingClientRect(), traces = plot._fullData.filter(trace => trace.type === 'scatter');
  const squares = traces.find(trace => trace.marker.symbol === 'square');
  const marks = traces.filter(trace => trace !== squares).flatMap(
    trace => [...trace.x].map((x, i) => [x, trace.y[i]]));
  const clear = i => marks.every(([x, y]) => Math.hypot(x - squares.x[i], y - squares.y[i]) > 1.5);
  const i = squares.customdata.findIndex(([door], i) => door && clear(i));
  return {x: box.x + xaxis._offset + xaxis.d2p(squares.x[i]), y: box.y + yaxis._offset + yaxis.d2p(squares.y[i]),
          door: squares.customdata[i][0], says: squares.customdata[i][1]};
}"""


def luminance(colour):
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


# All four forms: the colours of a figure are settled when it is first drawn.
@BOTH
def test_a_cell_of_the_rank_plot_filters_the_worklist(app, new_page, width, theme):
    touch = width < 768
    page = new_page(width, color_scheme=theme, has_touch=touch, is_mobile=touch)
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
    press = page.touchscreen.tap if touch else page.mouse.click
    press(cell["x"], cell["y"])
    page.wait_for_url("**where=**")
    settle(page)
    (where,) = parse_qs(urlsplit(page.url).query)["where"]
    assert [where] == parse_qs(cell["door"])["where"]
    assert f"{n} of 12 questions" in main_text(page)
