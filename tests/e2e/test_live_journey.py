"""What a file claims, from its upload to the verdicts that change; and a live run reloaded in the middle."""

from __future__ import annotations

import re

import pytest

from tests.app.polling import Gate
from tests.e2e.driving import WIDE, connect, main_text, published_shape, upload, wait_for_value
from tests.e2e.running_app import settle
from tests.servers.chat_server import chat, chat_server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
CHANGED = "24 of 43 reported verdicts change when recomputed: 16 empty baselines, 8 inert."


@WIDE
def test_upload_banner_and_the_verdicts_that_change(app, new_page, width, theme):
    page = new_page(width=width, color_scheme=theme)
    upload(page, app, "results.csv", published_shape())
    assert CHANGED in main_text(page)
    page.get_by_role("link", name="Open the overview").click()
    page.get_by_text("Imported file").wait_for()
    settle(page)
    assert CHANGED in main_text(page)
    page.get_by_role("link", name="Import report").click()
    page.get_by_text("Rows in the file").wait_for()
    settle(page)
    assert CHANGED in main_text(page)
    page.get_by_role("link", name="Verdicts that change").click()
    page.get_by_role("heading", name="Reported vs recomputed").wait_for()
    settle(page)
    assert "finding=influence.reported_verdicts" in page.url


def test_a_live_run_reloaded_in_the_middle(app, new_page):
    page = new_page()
    gate = Gate(lambda body: chat("In 1931"), calls=3)  # two are timed, one more is answered
    with chat_server(gate) as server:
        question = f"When did bridge {re.sub('[^0-9]', '', server.address)} open?"
        page.goto(f"{app}/live?questions=Type+a+question")
        settle(page)
        page.get_by_role("textbox", name="Question", exact=True).fill(question)
        page.get_by_role("textbox", name="Documents").fill(
            "It opened in 1931.\n---\nThe market.\n---\nThe quay."
        )
        page.get_by_role("textbox", name="Documents").press("Tab")
        settle(page)
        connect(page, "OpenAI-compatible server", f"{server.address}/v1")
        # Without claims, whose verifier takes seconds to load.
        page.get_by_text("Extract and verify claims", exact=True).click()
        settle(page)
        page.get_by_role("button", name="Estimate cost").click()
        page.get_by_role("button", name="Run", exact=True).wait_for()
        # The plan is where the button is.
        below = [
            page.get_by_role("button", name=name, exact=True).bounding_box()["y"]
            for name in ("Estimate cost", "Run")
        ]
        assert 0 < below[1] - below[0] < 1200
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_text("Baseline answer: In 1931").wait_for()
        page.reload()
        page.get_by_text("Baseline answer: In 1931").wait_for()
        settle(page)
        wait_for_value(page, "Question", question)
        wait_for_value(page, "Address of the server", f"{server.address}/v1")
        page.get_by_role("link", name="Methods").click()
        page.locator("[data-testid='stSidebar']").get_by_text("of 3 calls").wait_for()
        page.locator("[data-testid='stSidebar']").get_by_role("link", name="Show").click()
        gate.opened.set()
        page.get_by_text("Finished and saved: 1 question").first.wait_for()
