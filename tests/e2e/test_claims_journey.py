"""Claims & evidence in a real browser: find claims, read an answer by pointer, keyboard and finger."""

from __future__ import annotations

import re

import pytest

from core.run import Run
from core.schema import TABLES, empty
from tests.app.claims_runs import ANSWER, claims_run
from tests.e2e.running_app import ROOT, running_app, settle

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def runs():
    """Return the run made by hand, and some recorded questions as if nobody had looked for claims in them."""
    recorded = Run.load(ROOT / "sample_data" / "recorded_run")
    ids = recorded.queries["query_id"].head(12)
    tables = {name: frame[frame["query_id"].isin(ids)] for name, frame in recorded.tables.items()}
    without = {name: empty(TABLES[name]) for name in ("claims", "support", "joint_support")}
    return claims_run(), recorded.derive({"name": "Without claims", "steps": {}}, **tables | without)


@pytest.fixture(scope="module")
def claims_app(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims")
    for run in runs:
        run.save(folder / "runs" / run.run_id)
    with running_app(folder / "runs", folder / "server.log", LEADLINE_CACHE=str(folder / "cache")) as address:
        yield address


def main_text(page) -> str:
    return page.locator("[data-testid='stMain']").inner_text().replace("\u2060", "")


def open_answer(page, app, run):
    page.goto(f"{app}/claims?run={run.run_id}&question=q1")
    page.locator(".answer .claim").first.wait_for(timeout=60_000)
    settle(page)


def test_claims_are_found_offline_and_a_reload_keeps_the_job(claims_app, runs, new_page):
    page = new_page()
    page.goto(f"{claims_app}/claims?run={runs[1].run_id}")
    page.get_by_text("12 answers to check").wait_for(timeout=60_000)
    settle(page)
    page.get_by_role("button", name="Extract and verify claims").click()
    page.get_by_role("button", name="Cancel").wait_for(timeout=30_000)
    link = page.url
    assert re.search(r"[?&]job=[\w-]{20,}", link)
    page.reload()
    page.get_by_role("button", name="Cancel").wait_for(timeout=30_000)
    assert page.url == link
    page.get_by_text("Finished and saved").wait_for(timeout=300_000)
    settle(page)
    text = main_text(page)
    assert "weak on hard claims" in text and "Unsupported claims to read first" in text
    assert f"run={runs[1].run_id}" not in page.url
    # The link that was there while the job ran shows its result in another session.
    other = new_page()
    other.goto(link)
    other.get_by_text("Finished and saved").wait_for(timeout=60_000)
    settle(other)
    assert "Unsupported claims to read first" in main_text(other)
    # From a claim to its answer, in the same session.
    page.get_by_role("link", name="Read the answer").nth(1).click()
    page.wait_for_url(re.compile("question="))
    settle(page)
    assert page.locator(".answer .claim.unsupported").count() >= 1


def test_a_claim_tells_what_it_rests_on_to_pointer_and_keyboard(claims_app, runs, new_page):
    page = new_page()
    open_answer(page, claims_app, runs[0])
    claims, note = page.locator(".answer .claim"), page.locator(".note")
    assert not note.is_visible()
    claims.nth(0).hover()
    note.wait_for()
    said = note.inner_text()
    # c0 and c1 begin at the same place; the piece belongs to the first and tells of both.
    assert "Well supported" in said and "Fragile" in said and "best support 0.90" in said
    assert "Closest passage 1 (Letchworth)" in said
    assert "well supported" in claims.nth(0).locator(".sign").get_attribute("aria-label")
    page.mouse.move(5, 5)
    note.wait_for(state="hidden")
    claims.nth(0).focus()
    note.wait_for()
    page.keyboard.press("Tab")
    page.wait_for_function(
        "() => { const find = (root) => root.querySelector('.note') || [...root.querySelectorAll('*')]"
        ".map((e) => e.shadowRoot && find(e.shadowRoot)).find(Boolean);"
        " return !find(document).innerText.includes('Well supported'); }"
    )
    page.keyboard.press("Escape")
    note.wait_for(state="hidden")
    assert page.evaluate("document.activeElement !== document.body")
    box_is_inside = (
        "(e) => { const b = e.getBoundingClientRect(); return b.left >= 0 && b.right <= innerWidth; }"
    )
    claims.last.hover()
    note.wait_for()
    assert note.evaluate(box_is_inside)


def test_a_claim_tells_what_it_rests_on_to_a_finger(claims_app, runs, new_page):
    page = new_page(width=390, height=844, has_touch=True, is_mobile=True)
    open_answer(page, claims_app, runs[0])
    page.locator(".answer .claim").nth(1).tap()
    page.locator(".note").wait_for()
    assert "Fragile" in page.locator(".note").inner_text()
    page.wait_for_timeout(600)  # it stays
    assert page.locator(".note").is_visible()
    page.get_by_text("One answer", exact=True).tap()
    page.locator(".note").wait_for(state="hidden")
    wide = page.evaluate(
        "() => { const m = document.querySelector(\"[data-testid='stMain']\");"
        " return [m.scrollWidth - m.clientWidth, document.documentElement.scrollWidth - innerWidth]; }"
    )
    assert max(wide) <= 1, wide


def test_the_heat_map_is_toggled(claims_app, runs, new_page):
    page = new_page()
    open_answer(page, claims_app, runs[0])
    drawn, expect = page.locator(".js-plotly-plot").first, playwright.expect
    expect(drawn).to_contain_text("probability 0.5: supports")
    page.get_by_role("radio", name="Leave-one-out effect").click()
    expect(drawn).to_contain_text("gone")
    page.get_by_role("radio", name="Both").click()
    expect(drawn).to_contain_text("without it")


def test_hostile_claims_execute_nothing_and_are_shown_as_they_are(claims_app, runs, new_page):
    page = new_page()
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    open_answer(page, claims_app, runs[0])
    shown = page.locator(".answer").inner_text()
    assert "<img src=x onerror=alert(1)> **b** $x^2$" in shown
    # Nothing is lost: beside the signs of the claims and of two controls, it is the answer.
    letters = ANSWER.replace("\u202e", "").replace("\u202c", "")
    assert "".join(re.findall(r"\w+", shown)) == "".join(re.findall(r"\w+", letters))
    for claim in page.locator(".answer .claim").all():
        claim.hover()
        page.locator(".note").wait_for()
    assert page.locator(".answer img, .note img, .legend img").count() == 0
    assert page.locator("[data-testid='stMain'] img[src='x']").count() == 0
    assert not dialogs
