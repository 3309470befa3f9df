"""Confidence in a real browser: signals of a file, other weights, and the link that carries them."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.e2e.driving import PHONE, main_text, sideways, unfold, upload
from tests.e2e.running_app import settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def answers(place: str) -> str:
    """Forty answers of a place, every second one correct: the stated confidence knows, the others are the same for all."""
    return "".join(
        json.dumps(
            {
                "question": f"Which letter is number {i} in {place}?",
                "answer": "alpha" if i % 2 else "omega",
                "answers": ["alpha"],
                "similarity": 0.8,
                "lexical": 40,
                "llm_score": 0.9 if i % 2 else 0.1,
            }
        )
        + "\n"
        for i in range(40)
    )


def asked(page, name: str) -> str:
    return parse_qs(urlsplit(page.url).query).get(name, [""])[0]


@PHONE
def test_weights_that_were_tried_and_used_are_in_the_link(app, new_page, width, theme):
    page = new_page(width, 900, color_scheme=theme)
    upload(page, app, "answers.jsonl", answers(theme))  # a run that is not saved yet
    save = page.get_by_role("button", name="Save to my runs")
    save.click()
    save.wait_for(state="detached")  # the address names a run from the upload on, so it cannot tell
    run = asked(page, "run")
    page.goto(f"{app}/confidence?run={run}")
    settle(page)
    # 0.45 · 0.8 + 0.35 · 0.4 + 0.2 · 0.9 and · 0.1: 0.68 passes, 0.52 does not.
    unfold(page, "Try other signals and weights")
    assert "20 of 40 answers" in main_text(page) and "→" not in main_text(page)
    for name in ("similarity", "lexical score"):
        slider = page.get_by_role("slider", name=f"Weight of {name}")
        slider.focus()
        page.keyboard.press("Home")
        page.locator(f"input[aria-label='Weight of {name}'][value='0']").wait_for(state="attached")
        settle(page)
    # 0.9 and 0.1: the Brier score is 0.01.
    page.get_by_text("→ 0.01").wait_for()
    assert asked(page, "weights") == "" and sideways(page) == 0
    page.get_by_role("button", name="Use these weights").click()
    page.wait_for_url("**weights=**")
    settle(page)
    assert asked(page, "weights") == "llm=1" and "→" not in main_text(page)

    # The threshold is moved on the page that promises; both pages have one confidence.
    page.goto(f"{app}/conformal?run={run}&weights=llm%3D1")
    settle(page)
    assert "20 of 40 answers" in main_text(page) and "0 of 20 labelled" in main_text(page)
    threshold = page.get_by_test_id("stMain").get_by_role("slider", name="Confidence threshold")
    threshold.focus()
    page.keyboard.press("End")
    page.wait_for_url("**confidence_threshold=1**")
    settle(page)
    other = new_page(width, 900, color_scheme=theme)
    other.goto(page.url)
    settle(other)
    assert "0 of 40 answers" in main_text(other)
    # Both marks of the waterfall's last row: colour, icon and word of the band.
    other.goto(f"{app}/workbench?run={run}&weights=llm%3D1")
    settle(other)
    unfold(other, "Confidence")
    assert "▼ Low confidence" in main_text(other) and "does not pass" in main_text(other)
