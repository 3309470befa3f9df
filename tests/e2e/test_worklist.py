"""The worklist in a real browser: a filter is a link, a row is a way to the question, a review stays."""

from __future__ import annotations

import csv
import io
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.e2e.driving import sideways
from tests.e2e.running_app import settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def place(page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def search(page, words: str) -> None:
    box = page.get_by_label("Find", exact=True).first
    box.scroll_into_view_if_needed()
    box.fill(words)
    page.keyboard.press("Enter")
    page.wait_for_function("words => new URL(location).searchParams.get('words') === words", arg=words)
    settle(page)


def listed(page) -> str:
    return page.get_by_text(re.compile(r"reviewed · ")).first.inner_text()


def choose_row(page, row: int) -> None:
    """Click on the question of a row: the table is a drawing, so by its place."""
    table = page.locator("[data-testid='stDataFrame']").last
    table.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    box = table.bounding_box()
    page.mouse.click(box["x"] + 180, box["y"] + 35 * (row + 1) + 17)
    page.wait_for_url("**/workbench?**")
    settle(page)


def test_a_link_with_a_filter_opens_the_same_list_elsewhere(app, new_page):
    page = new_page(1280, 900)
    page.goto(app)
    settle(page)
    everything = listed(page)
    search(page, "the")
    found = listed(page)
    assert found != everything

    elsewhere = new_page(390, 900, color_scheme="dark")  # another context: nothing is shared but the link
    elsewhere.goto(page.url)
    settle(elsewhere)
    assert listed(elsewhere) == found and place(elsewhere) == place(page)

    choose_row(elsewhere, 1)
    opened = place(elsewhere)
    assert opened["words"] == "the" and opened["question"]
    status, note = (
        elsewhere.get_by_role("button", name="Flagged"),
        elsewhere.get_by_role("textbox", name="Note"),
    )
    status.or_(elsewhere.get_by_role("radio", name="Flagged")).first.click()
    settle(elsewhere)
    elsewhere.get_by_role("button", name="Note").click()
    note.fill("=look at this")
    note.blur()
    settle(elsewhere)

    # Back on the list: the filter is held, and the row that was chosen is not followed again.
    elsewhere.goto(f"{app}/?run={opened['run']}&words=the&status=flagged")
    settle(elsewhere)
    assert "workbench" not in elsewhere.url and "1 flagged" in listed(elsewhere)
    with elsewhere.expect_download() as download:
        elsewhere.get_by_role("button", name="with reviews (CSV)").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text("utf-8-sig"))))
    assert [(row["query_id"], row["note"]) for row in rows] == [(opened["question"], "'=look at this")]
    assert download.value.suggested_filename.endswith("-worklist.csv")
    assert sideways(elsewhere) <= 1
