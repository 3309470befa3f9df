"""Validation in a real browser: validate, read what is stopped, and a rejected script that stays text."""

from __future__ import annotations

import re

import pytest

from tests.core.validation.validation_runs import BRIDGE, CASES, run_of
from tests.e2e.driving import WIDE, main_text, sideways, unfold
from tests.e2e.running_app import settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ANSWER = (
    "It was definitely Brunel in 1866. <script>document.title='owned'</script> [x](javascript:alert(1)) "
    "<img src=x onerror=alert(1)>"
)


@pytest.fixture(scope="module")
def run(app_runs):
    found = run_of({"evil": (ANSWER, BRIDGE), **CASES})
    found.save(app_runs / found.run_id)
    return found


def inert(page):
    assert page.locator("script, img[src='x'], a[href^='javascript']").and_(
        page.locator("[data-testid='stMain'] *")
    ).count() == 0  # fmt: skip
    assert page.title() != "owned"


@WIDE
def test_from_the_form_to_the_fallback_of_a_rejected_answer(app, new_page, run, width, theme):
    page = new_page(width=width, color_scheme=theme)
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.goto(f"{app}/validation?run={run.run_id}")
    settle(page)
    page.get_by_role("button", name="Validate answers").click()
    # The gravest answer is shown, with its marks as text.
    page.get_by_text("Answers with objections", exact=True).click(timeout=60_000)
    page.locator(".answer .claim").first.wait_for(timeout=60_000)
    settle(page)
    assert page.locator(".answer").inner_text().replace("◆4 ", "").replace("▲3 ", "") == ANSWER
    assert "The available sources do not support an answer to this question." in main_text(page)
    inert(page)
    assert sideways(page) <= 1
    # A mark says what is wrong with it.
    page.locator(".answer .claim", has_text="definitely").focus()
    page.get_by_role("tooltip").get_by_text("The answer claims to be certain").wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("Over time", exact=True).click()
    page.get_by_role("button", name="Add this run's answers (6)").click()
    page.get_by_text(re.compile("^[06] answers added")).wait_for(timeout=60_000)  # once in both looks
    settle(page)
    page.get_by_role("link", name="Open in the workbench").click()
    page.wait_for_url(re.compile("/workbench"))
    page.get_by_text("Stopped by validation").first.wait_for(timeout=60_000)
    settle(page)
    unfold(page, "Validation")
    page.get_by_text("Response metadata").wait_for(timeout=60_000)
    assert "Stopped by validation" in main_text(page)
    inert(page)
    assert sideways(page) <= 1
