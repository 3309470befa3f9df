"""What people do, in a real browser against a real server."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.driving import choose, main_text, published_shape, sidebar_text, upload
from tests.e2e.running_app import settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
HOSTILE = "<script>document.title='owned'</script> [x](javascript:alert(1)) $x^2$ :smile: <img src=x onerror=alert(1)>"


def test_text_from_a_file_is_shown_as_it_is(app, new_page):
    page = new_page()
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    row = HOSTILE.replace('"', '""')
    body = "".join(
        f'"{row}","=cmd|calc {row}",{d},"{row} # heading",{d},{10 - d},{d / 10}\n' for d in range(1, 7)
    )
    head = "query,baseline_answer,doc_id,passage,retrieval_rank,retrieval_score,influence_score\n"
    upload(page, app, "hostile.csv", head + body)
    for path in ("", "influence", "workbench"):
        page.get_by_role("link", name={"": "Overview", "influence": "Influence vs retrieval",
                                       "workbench": "Workbench"}[path]).first.click()  # fmt: skip
        settle(page)
        main = page.locator("[data-testid='stMain']")
        assert main.locator("script, img[src='x'], a[href^='javascript']").count() == 0
        assert page.title() != "owned" and not dialogs
    shown = main_text(page)
    assert "<script>document.title='owned'</script>" in shown
    assert "$x^2$" in shown and ":smile:" in shown and "[x](javascript:alert(1))" in shown


@pytest.mark.model
def test_a_live_run_of_one_question_with_the_embedded_model(app, new_page):
    page = new_page()
    page.goto(f"{app}/live")
    settle(page)
    page.get_by_text("Type a question", exact=True).click()
    page.get_by_role("textbox", name="Question", exact=True).fill("When did the harbour bridge open?")
    page.get_by_role("textbox", name="Documents").fill(
        "The harbour bridge of Pellhaven opened in 1931.\n---\nThe lighthouse was built in 1884 of grey granite.\n---\n"
        "The fish market is held every Tuesday beside the old quay."
    )
    page.get_by_role("textbox", name="Reference answer (optional)").fill("1931")
    page.get_by_role("textbox", name="Reference answer (optional)").press("Tab")
    settle(page)
    page.get_by_role("button", name="Estimate cost").click()
    page.get_by_role("button", name="Run", exact=True).wait_for(timeout=180_000)
    settle(page)
    assert "Calls to make" in main_text(page)
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("Finished and saved: 1 question").first.wait_for(timeout=300_000)
    settle(page)
    job_link = page.url
    page.get_by_role("link", name="Workbench").last.click()
    page.locator(".row").first.wait_for(timeout=60_000)
    settle(page)
    assert "When did the harbour bridge open?" in main_text(page)
    # The run was saved: its link works in a session that never saw the job.
    shared = re.search(r"run=([^&]+)", page.url)
    assert shared, page.url
    other = new_page()
    other.goto(f"{app}/?run={shared.group(1)}")
    settle(other)
    assert "1 question" in sidebar_text(other)
    # And a reload of the job's page still shows it.
    page.goto(job_link)
    settle(page)
    page.get_by_text("Finished and saved: 1 question").first.wait_for(timeout=60_000)


def test_links_survive_reload_and_sharing(app, new_page):
    page = new_page()
    page.goto(f"{app}/influence?sim=queries:20,seed:5&influence_threshold=0.3")
    settle(page)
    first = main_text(page)
    assert "20 questions" in sidebar_text(page) and "0.30" in sidebar_text(page)
    page.reload()
    settle(page)
    assert main_text(page) == first
    other = new_page()
    other.goto(page.url)
    settle(other)
    assert main_text(other) == first


def test_two_sessions_do_not_see_each_other(app, new_page):
    mine, yours = new_page(), new_page()
    upload(mine, app, "mine.csv", published_shape())
    yours.goto(f"{app}/influence?sim=queries:20,seed:9&influence_threshold=0.4")
    settle(yours)
    mine.get_by_role("link", name="Overview").first.click()
    settle(mine)
    assert "24 of 43 reported" in main_text(mine) and "0.40" not in sidebar_text(mine)
    assert "20 questions" in sidebar_text(yours) and "0.40" in sidebar_text(yours)
    assert "of 43" not in main_text(yours)


@pytest.mark.slow
def test_two_hundred_megabytes_in_the_browser_get_one_clear_sentence(app, new_page, tmp_path):
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        for _ in range(200):
            file.write(b"only one column here\n" * (2**20 // 21))
    page = new_page()
    page.goto(f"{app}/data?door=Upload")
    settle(page)
    page.set_input_files("input[type='file']", large)
    alert = page.locator("[data-testid='stAlertContentError']")
    alert.wait_for(timeout=180_000)
    assert "column" in alert.inner_text()
    # The page is alive: a good file follows.
    upload(page, app, "good.csv", published_shape())


def test_a_broken_file_is_one_sentence_and_the_page_lives(app, new_page):
    page = new_page()
    page.goto(f"{app}/data?door=Upload")
    settle(page)
    for name, content in (
        ("empty.csv", b""),
        ("picture.csv", b"\x89PNG\r\n\x1a\n" + bytes(200)),
        ("one.csv", b"a\n1\n"),
    ):
        page.set_input_files("input[type='file']", {"name": name, "mimeType": "text/csv", "buffer": content})
        alert = page.locator("[data-testid='stAlertContentError']")
        alert.filter(has_text=name).wait_for(timeout=30_000)
        settle(page)
        assert "Traceback" not in main_text(page)
        assert page.locator("[data-testid='stException']").count() == 0


def test_an_export_for_another_tool_is_downloaded(app, new_page):
    page = new_page()
    page.goto(f"{app}/data?door=Export&sim=queries:12,seed:3")
    settle(page)
    choose(page, "Format", "RAGChecker JSON (.json)")
    page.get_by_text("Not restored when this file is imported again").wait_for(timeout=30_000)
    settle(page)
    with page.expect_download(timeout=60_000) as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename.endswith("-simulated-ragchecker.json")
    content = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert len(content["results"]) == 12 and "simulated" in json.dumps(content)
