"""The report as a file in a real browser without a network: it asks for nothing, fits a phone, and prints."""

from __future__ import annotations

import pytest

from core.answers.diagnostic import ANSWERS
from core.attribution.diagnostic import ATTRIBUTION
from core.diagnosis import Diagnosis
from core.influence.diagnostic import INFLUENCE
from core.losses.diagnostic import LOSSES
from core.report.page import report_html
from core.run import Run
from tests.e2e.running_app import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    runs = [Run.load(ROOT / "sample_data" / name) for name in ("recorded_run", "recorded_run_short")]
    # What the others draw is made of the same marks; all of them take a minute.
    shown = [Diagnosis(run, diagnostics=[ANSWERS, LOSSES, ATTRIBUTION, INFLUENCE]) for run in runs]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_bytes(report_html(*shown))
    return path


def test_it_opens_from_the_disk_without_a_network(browser, report):
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    page, asked, errors = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(report.as_uri())
    for width, theme in ((1280, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        # Folded parts too.
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        ground, ink = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('svg text')).fill]"
        )
        light = [sum(int(part) for part in color.strip("rgb()").split(",")) > 384 for color in (ground, ink)]
        assert light == ([True, False] if theme == "light" else [False, True])
        # Figures are drawn, and their letters are large enough to be read.
        box = page.locator("figure svg text").first.bounding_box()
        assert page.locator("figure > svg").count() >= 4 and box["height"] >= 10
    assert page.evaluate("document.querySelector('.verdict').innerText").startswith("Run B is")
    assert asked == [report.as_uri()] and errors == []
    # On paper folded parts are open.
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = false)")
    page.emulate_media(media="print")
    assert page.locator("details .text").first.bounding_box()["height"] > 10
    assert page.pdf().startswith(b"%PDF")
    # No script runs, whatever the file would hold.
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">')")
    assert page.evaluate("window.ran === undefined") and "Content Security Policy" in errors[0]
    context.close()
