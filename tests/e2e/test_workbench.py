"""The main journey in a real browser: verdict, proof, workbench, next, mark reviewed, export."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from core.run import Run
from core.schema import TABLES, empty
from tests.app.claims_runs import ANSWER, claims_run
from tests.e2e.driving import BOTH, main_text, sideways, unfold
from tests.e2e.running_app import ROOT, settle

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def runs(app_runs):
    """Return the run made by hand, and some recorded questions as if nobody had looked for claims in them."""
    recorded = Run.load(ROOT / "sample_data" / "recorded_run")
    ids = recorded.queries["query_id"].head(4)
    tables = {name: frame[frame["query_id"].isin(ids)] for name, frame in recorded.tables.items()}
    without = {name: empty(TABLES[name]) for name in ("claims", "support", "joint_support")}
    changed = {"run_id": "without-claims", "name": "Without claims", "steps": {}}
    found = claims_run(), recorded.derive(changed, **tables | without)
    for run in found:
        run.save(app_runs / run.run_id)
    return found


def open_answer(page, app, run):
    page.goto(f"{app}/workbench?run={run.run_id}&question=q1")
    page.locator(".answer .claim").first.wait_for(timeout=60_000)
    settle(page)


def question_of(page) -> str:
    return re.search(r"[?&]question=([^&]+)", page.url).group(1)


@BOTH
def test_from_the_verdict_to_a_reviewed_question_and_its_export(app, new_page, width, theme):
    page = new_page(width=width, color_scheme=theme)
    page.goto(f"{app}/")
    settle(page)
    # Verdict: its first clause leads to its proof.
    page.locator("[data-testid='stMain'] a[href*='finding=']:visible").first.click()
    page.wait_for_url(re.compile("finding="))
    settle(page)
    # Proof: its questions are what the workbench walks through; findings without a page open it at once.
    if "/workbench" not in page.url:
        if width < 768:
            page.get_by_test_id("stExpandSidebarButton").click()
        page.get_by_role("link", name="Workbench").first.click()
    assert "finding=" in page.url
    page.locator(".row").first.wait_for(timeout=60_000)
    settle(page)
    first = question_of(page)
    # Next, by key; but not while a note is being written.
    page.keyboard.press("j")
    page.wait_for_function("first => !location.search.includes('question=' + first + '&')"
                           " && !location.search.endsWith('question=' + first)", arg=first)  # fmt: skip
    settle(page)
    second = question_of(page)
    page.get_by_role("button", name="Note").click()
    note = page.get_by_role("textbox", name="Note")
    note.fill("")
    note.press_sequentially(wanted := f"jk: look at the query, {width} {theme}")
    note.press("Control+Enter")
    settle(page)
    assert question_of(page) == second and note.input_value() == wanted
    page.keyboard.press("Escape")
    page.get_by_role("radio", name="Reviewed").click()
    settle(page)
    # Export: status and note are in it.
    page.goto(f"{app}/?run={re.search(r'run=([^&]+)', page.url).group(1)}")
    settle(page)
    with page.expect_download(timeout=60_000) as download:
        page.get_by_role("button", name=re.compile("^Download these")).click()
    content = Path(download.value.path()).read_text(encoding="utf-8-sig")
    rows = {row["query_id"]: row for row in csv.DictReader(io.StringIO(content))}
    assert (rows[second]["status"], rows[second]["note"]) == ("reviewed", wanted)
    assert rows[first]["status"] != "reviewed"


def test_claims_are_found_offline_and_a_reload_keeps_the_job(app, runs, new_page):
    page = new_page()
    page.goto(f"{app}/claims?run={runs[1].run_id}")
    page.get_by_text("4 answers to check").wait_for(timeout=60_000)
    settle(page)
    page.get_by_role("button", name="Extract and verify claims").click()
    page.get_by_test_id("stMain").get_by_role("button", name="Cancel").wait_for(timeout=30_000)
    link = page.url
    assert re.search(r"[?&]job=[\w-]{20,}", link)
    page.reload()
    page.get_by_test_id("stMain").get_by_role("button", name="Cancel").wait_for(timeout=30_000)
    assert page.url == link
    page.get_by_text("Finished and saved").first.wait_for(timeout=300_000)
    settle(page)
    text = main_text(page)
    assert "weak on hard claims" in text and "Claims against passages" in text
    assert f"run={runs[1].run_id}" not in page.url
    # The link that was there while the job ran shows its result in another session.
    other = new_page()
    other.goto(link)
    other.get_by_text("Finished and saved").first.wait_for(timeout=60_000)
    settle(other)
    assert "Claims against passages" in main_text(other)
    # From a claim to its answer, in the same session.
    page.locator("[data-testid='stMain'] a[href*='question=']:visible").first.click()
    page.locator(".answer .claim").first.wait_for(timeout=60_000)


def test_a_claim_and_its_passages_light_each_other(app, runs, new_page):
    page = new_page()
    open_answer(page, app, runs[0])
    claims, rows, note = page.locator(".answer .claim"), page.locator(".row"), page.locator(".note")
    assert not note.is_visible() and page.locator(".lit").count() == 0
    claims.nth(0).hover()
    note.wait_for()
    said = note.inner_text()
    # c0 and c1 begin at the same place; the piece belongs to the first and tells of both.
    assert "Well supported" in said and "Fragile" in said and "best support 0.90" in said
    assert "Closest passage 1 (Letchworth)" in said
    assert page.locator(".row.lit").count() == 2
    page.mouse.move(5, 5)
    note.wait_for(state="hidden")
    assert page.locator(".lit").count() == 0
    # The keyboard reaches the same, and Escape ends it.
    claims.nth(1).focus()
    note.wait_for()
    assert page.locator(".row.lit").count() == 1 and "Fragile" in note.inner_text()
    page.keyboard.press("Escape")
    note.wait_for(state="hidden")
    # The reverse: the second passage supports c0, and c4 together with the first.
    rows.nth(1).locator("button").focus()
    assert rows.nth(1).get_attribute("class") == "row lit"
    assert claims.nth(0).get_attribute("class").endswith("lit")
    assert "lit" in page.locator(".elsewhere .claim").nth(1).get_attribute("class")
    assert "lit" not in claims.nth(1).get_attribute("class")
    page.keyboard.press("Escape")
    rows.nth(0).hover()
    page.locator(".row.lit").wait_for()
    assert "lit" in claims.nth(1).get_attribute("class")
    # The snippet shows it, or all of it is asked for.
    assert "Unwin planned Letchworth." in rows.nth(0).inner_text()


def test_a_finger_lights_a_claim_and_nothing_is_wider_than_the_phone(app, runs, new_page):
    page = new_page(width=390, height=844, has_touch=True, is_mobile=True, color_scheme="dark")
    open_answer(page, app, runs[0])
    page.locator(".answer .claim").nth(1).tap()
    page.locator(".note").wait_for()
    assert "Fragile" in page.locator(".note").inner_text() and page.locator(".row.lit").count() == 1
    page.wait_for_timeout(600)  # it stays
    assert page.locator(".note").is_visible()
    box = page.locator(".note").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    page.get_by_role("heading", level=3).first.tap()
    page.locator(".note").wait_for(state="hidden")
    assert sideways(page) <= 1


def test_the_heat_map_is_toggled(app, runs, new_page):
    page = new_page()
    open_answer(page, app, runs[0])
    unfold(page, "Claims & evidence")
    drawn, expect = page.locator(".js-plotly-plot:visible").first, playwright.expect
    expect(drawn).to_contain_text("probability 0.5: supports")
    page.get_by_role("radio", name="Leave-one-out effect").click()
    expect(drawn).to_contain_text("gone")
    page.get_by_role("radio", name="Both").click()
    expect(drawn).to_contain_text("without it")


def test_hostile_texts_execute_nothing_and_are_shown_as_they_are(app, runs, new_page):
    page = new_page()
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    open_answer(page, app, runs[0])
    shown = page.locator(".answer").inner_text()
    assert "<img src=x onerror=alert(1)> **b** $x^2$" in shown
    # Nothing is lost: beside the numbers of the claims and two controls, it is the answer.
    letters = ANSWER.replace("\u202e", "").replace("\u202c", "")
    assert re.findall(r"[^\W\d]+", shown) == re.findall(r"[^\W\d]+", letters)
    for claim in page.locator(".answer .claim").all():
        claim.hover()
        page.locator(".note").wait_for()
    for summary in page.locator(".row summary").all():
        summary.click()
    assert page.locator(".bench img, .note img, .bench script").count() == 0
    assert page.locator("[data-testid='stMain'] img[src='x']").count() == 0
    assert not dialogs
