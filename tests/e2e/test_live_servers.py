"""Live runs through real servers, two runs side by side, and a file of another tool continued live."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.driving import choose, connect, main_text, wait_for_value
from tests.e2e.running_app import running_app, settle
from tests.servers.ollama_server import MODEL, ollama_server

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
KEY = "sk-configured-0123456789abcdef"
QUESTIONS = [
    {
        "id": "bridge",
        "question": "When did the harbour bridge of Pellhaven open?",
        "passages": [
            "The harbour bridge of Pellhaven opened in 1931.",
            "The fish market is held on Tuesday.",
        ],
        "answers": ["1931"],
    },
    {
        "id": "lighthouse",
        "question": "What is the lighthouse built of?",
        "passages": ["The lighthouse was built in 1884 of grey granite.", "The quay is of oak."],
        "answers": ["granite"],
    },
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="module")
def app(folder, llama):
    """An app whose operator has configured a server and a key, with a cache that no earlier test filled."""
    settings = {
        "LEADLINE_CACHE": str(folder / "cache"),
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{llama}/v1",
    }
    with running_app(folder / "runs", folder / "server.log", **settings) as address:
        yield address


def plan_and_run(page, n="2 questions"):
    page.get_by_role("button", name="Estimate cost").click()
    page.get_by_role("button", name="Run", exact=True).wait_for(timeout=180_000)
    settle(page)
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text(f"Finished and saved: {n}").first.wait_for(timeout=180_000)
    settle(page)


def live_run(page, app, back_end, address, model):
    """Upload the questions, choose the server and its model, plan, run; return the run's id."""
    page.goto(f"{app}/live?questions=Upload+questions")
    settle(page)
    content = "\n".join(map(json.dumps, QUESTIONS)).encode()
    page.set_input_files(
        "input[type='file']", {"name": "town.jsonl", "mimeType": "text/plain", "buffer": content}
    )
    page.get_by_text("2 questions with passages as given").wait_for(timeout=60_000)
    settle(page)
    connect(page, back_end, address)
    choose(page, "Model", model)
    # Without claims: the other file here is asked with them.
    page.get_by_text("Extract and verify claims", exact=True).click()
    settle(page)
    plan_and_run(page)
    return re.search(r"[?&]run=([^&]+)", page.url).group(1)


def test_two_servers_and_their_runs_side_by_side(app, new_page, llama, folder):
    page = new_page()
    first = live_run(page, app, "OpenAI-compatible server", f"{llama}/v1", "smollm2-135m")
    with ollama_server(llama) as ollama:
        second = live_run(page, app, "Ollama", ollama.address, MODEL)
        assert ollama.chats
    page.goto(f"{app}/compare?compare={first}&compare={second}")
    settle(page)
    text = main_text(page)
    assert "2 questions with the same id and text in both runs; A has 2, B has 2" in text
    # The same weights: what one back end answers, the other answers too; so all have to be asked for.
    page.get_by_test_id("stMain").get_by_text("All", exact=True).click()
    settle(page)
    cards = page.locator("[data-testid='stMain']").get_by_role("link", name="in the workbench")
    assert cards.count() == 2
    page.get_by_role("link", name="Open B in the workbench").click()
    page.locator(".row").first.wait_for(timeout=60_000)
    settle(page)
    assert f"run={second}" in page.url and "question=bridge" in page.url
    assert "When did the harbour bridge of Pellhaven open?" in main_text(page)
    # Back by the menu: the choice is still there.
    page.get_by_role("link", name="Compare").first.click()
    page.get_by_role("heading", name="Shared questions").wait_for(timeout=60_000)
    settle(page)
    assert page.url.count("compare=") == 2
    # The key went to its server, and nowhere else.
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 9
    assert not [file for file in files if KEY.encode() in file.read_bytes()]
    assert KEY not in page.content()


def test_records_of_another_tool_are_continued_live(app, new_page, llama):
    page = new_page()
    page.goto(f"{app}/data?door=Upload")
    settle(page)
    records = [
        {
            "user_input": q["question"],
            "retrieved_contexts": q["passages"],
            "response": q["answers"][0],
            "reference": q["answers"][0],
            "faithfulness": 1.0,
        }
        for q in QUESTIONS[:1]
    ]
    content = "\n".join(map(json.dumps, records)).encode()
    page.set_input_files(
        "input[type='file']", {"name": "ragas.jsonl", "mimeType": "text/plain", "buffer": content}
    )
    page.get_by_text("The file is loaded and shown on every page.").wait_for(timeout=60_000)
    settle(page)
    assert "Read as ragas evaluation data" in main_text(page)
    page.get_by_role("link", name="Run live with these questions").click()
    page.get_by_text("1 question with passages as given").wait_for(timeout=60_000)
    settle(page)
    assert "Continue live" in main_text(page)
    connect(page, "OpenAI-compatible server", f"{llama}/v1")
    plan_and_run(page, "1 question")
    page.get_by_role("link", name="Overview").last.click()
    page.get_by_text(re.compile(r"^All findings \(")).wait_for(timeout=60_000)
    settle(page)
    assert "of 1 " in main_text(page)


def test_what_is_typed_stays_when_the_back_end_changes(app, new_page):
    page = new_page()
    page.goto(f"{app}/live?questions=Type+a+question")
    settle(page)
    page.get_by_role("textbox", name="Question", exact=True).fill("Which bridge?")
    page.get_by_role("textbox", name="Documents").fill("One.\n---\nTwo.")
    page.get_by_role("textbox", name="Documents").press("Tab")
    settle(page)
    choose(page, "Back end", "OpenAI-compatible server")
    field = page.get_by_role("textbox", name="Address of the server")
    field.fill("http://127.0.0.1:9/v1")
    field.press("Tab")
    page.get_by_text("No server answers at").wait_for(timeout=60_000)
    settle(page)
    page.get_by_role("textbox", name="Model").fill("my-model")
    choose(page, "Back end", "Embedded, on this machine")
    choose(page, "Back end", "OpenAI-compatible server")
    wait_for_value(page, "Model", "my-model")
    wait_for_value(page, "Address of the server", "http://127.0.0.1:9/v1")
    wait_for_value(page, "Question", "Which bridge?")
