"""The what-if bench in a real browser: switch off, drag, edit, ask, see the noise, reload; try on all, compare."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.app.conftest import HOSTILE, make_run
from tests.e2e.driving import connect, main_text, sideways, unfold
from tests.e2e.running_app import settle
from tests.servers.chat_server import chat, chat_server

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def bench(app, app_runs):
    run = make_run()
    run.save(app_runs / run.run_id)
    return f"{app}/workbench?run={run.run_id}&question=q1"


def answer(body):
    """Say what only an edited passage says, else what the run says."""
    return chat("Barry Parker" if "Edited" in json.dumps(body["messages"]) else "Raymond Unwin in 1903")


def change(page):
    """The change that the address names."""
    return json.loads(parse_qs(urlsplit(page.url).query)["change"][0])


def order(page):
    return page.locator(".prompt .row").evaluate_all("rows => rows.map((row) => row.id_)")


def until_in_address(page, part):
    page.wait_for_function("part => decodeURIComponent(location.search).includes(part)", arg=part)
    settle(page)


def test_from_a_changed_prompt_to_a_run_that_compare_opens(bench, new_page):
    page = new_page()
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    with chat_server(answer) as server:
        page.goto(bench)
        settle(page)
        unfold(page, "Try a change")
        rows = page.locator(".prompt .row")
        rows.first.wait_for()
        # A title that is HTML and Markdown is shown as it is.
        assert rows.nth(0).locator(".title").inner_text() == f"{HOSTILE} 0"
        # Switch the last passage off.
        rows.nth(3).get_by_role("checkbox").uncheck()
        until_in_address(page, '"keep"')
        assert change(page)["keep"] == ["q1-p0", "q1-p1", "q1-p2"]
        # Drag the first one below the second, with the mouse; then bring it back with the keyboard.
        rows.nth(0).evaluate("row => row.scrollIntoView({ block: 'center' })")
        start, end = rows.nth(0).locator(".handle").bounding_box(), rows.nth(1).bounding_box()
        page.mouse.move(start["x"] + 4, start["y"] + 4)
        page.mouse.down()
        page.mouse.move(start["x"] + 4, end["y"] + end["height"] - 4, steps=8)
        page.mouse.up()
        until_in_address(page, '"order"')
        assert order(page) == change(page)["order"] == ["q1-p1", "q1-p0", "q1-p2", "q1-p3"]
        rows.nth(1).get_by_role("button", name="Move up").focus()
        page.keyboard.press("Enter")
        page.wait_for_function("() => !decodeURIComponent(location.search).includes('\"order\"')")
        settle(page)
        assert order(page) == ["q1-p0", "q1-p1", "q1-p2", "q1-p3"]
        # Edit a passage.
        rows.nth(1).get_by_role("button", name="Edit").click()
        page.locator(".prompt textarea").fill("Edited <b>here</b>.")
        page.get_by_role("button", name="Use this text").click()
        until_in_address(page, '"edits"')
        assert rows.nth(1).locator(".text").inner_text() == "Edited <b>here</b>."
        # A reload has it all.
        page.reload()
        rows.first.wait_for()
        settle(page)
        assert rows.nth(1).locator(".text").inner_text() == "Edited <b>here</b>."
        assert not rows.nth(3).get_by_role("checkbox").is_checked()
        # Ask, and see what noise does.
        connect(page, "OpenAI-compatible server", f"{server.address}/v1")
        page.get_by_role("button", name="Ask again", exact=True).last.click()
        page.get_by_text("repeats of the changed prompt").first.wait_for(timeout=120_000)
        settle(page)
        assert "0 of 3 repeats of the run's own prompt give this answer too." in main_text(page)
        assert "3 of 3 repeats of the changed prompt give this answer again." in main_text(page)
        assert "Correct: 4 of 4 answers to the changed prompt, 0 of 4 to the run's own." in main_text(page)
        assert sideways(page) == 0
        # The same for all questions.
        first = page.get_by_role("spinbutton", name="At most passages")
        first.fill("2")
        first.press("Enter")
        settle(page)
        page.get_by_role("button", name="Try on all 4").click()
        page.get_by_role("link", name="Compare the runs").wait_for(timeout=120_000)
        settle(page)
        assert "At most 2 passages: of 2 questions that are judged" in main_text(page)
        page.get_by_role("link", name="Compare the runs").click()
        page.wait_for_url("**/compare?**")
        page.get_by_text("at most 2 passages").first.wait_for(timeout=60_000)
        settle(page)
        assert len(parse_qs(urlsplit(page.url).query)["compare"]) == 3


def test_the_list_of_passages_fits_a_phone(bench, new_page):
    page = new_page(width=390, color_scheme="dark")
    page.goto(bench)
    settle(page)
    unfold(page, "Try a change")
    page.locator(".prompt .row").first.wait_for()
    settle(page)
    assert sideways(page) == 0
