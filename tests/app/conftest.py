"""One small run with everything in it, hostile text included; every test starts with empty caches."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.components.v2.manifest_scanner import scan_component_manifests
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from core import diagnostics
from core.run import Run
from tests.app.remembered import Memory

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<script>alert(1)</script> [x](javascript:alert(1)) $x^2$ :smile: **b** # h"
MEMORY = Memory()
INSTALLED = cache(scan_component_manifests)  # which packages bring parts of pages: the same for every test
PAGES = {path.stem: f"pages/{path.name}" for path in sorted((ROOT / "pages").glob("*.py"))}


def make_run(name: str = "Small run", source: str = "live") -> Run:
    """Four questions with four passages each: ordered, inverted, inert, empty."""
    queries = pd.DataFrame(
        {
            "query_id": ["q1", "q2", "q3", "q4"],
            "question": ["Who designed the garden city?", HOSTILE, "An inert question?", "An empty one?"],
            "answer": ["Raymond Unwin in 1903", "alpha beta gamma delta", "forty", ""],
            "answer_status": ["answered", "answered", "answered", "empty"],
            "closed_book_answer": ["Ebenezer Howard", None, "forty", None],
            "reference_answers": [["Barry Parker"], ["alpha"], None, None],
        }
    )
    ablated = {
        "q1": ["Barry Parker", "Raymond Unwin", "Raymond Unwin in 1904", "Raymond Unwin in 1903"],
        "q2": ["alpha beta gamma delta", "alpha beta gamma", f"{HOSTILE} alpha", "nothing of it"],
        "q3": ["forty"] * 4,
        "q4": [""] * 4,
    }
    passages = pd.DataFrame(
        [
            {
                "query_id": query_id,
                "passage_id": f"{query_id}-p{i}",
                "title": f"{HOSTILE} {i}",
                "text": f"The garden city was designed in 1903.\n\n- {HOSTILE}\n    code",
                "retrieval_rank": i + 1,
                "retrieval_score": 9.5 - i,
                "ablated_answer": answer,
                "is_gold": i == 0,
            }
            for query_id, answers in ablated.items()
            for i, answer in enumerate(answers)
        ]
    )
    repeats = pd.DataFrame({"query_id": ["q1"], "repeat": [1], "answer": ["Raymond Unwin in 1903"]})
    return Run.create({"source": source, "name": name}, queries=queries, passages=passages, repeats=repeats)


@pytest.fixture(autouse=True)
def _remembered(monkeypatch):
    # Streamlit puts its script in this place, which processes that tests start would run.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    MEMORY.use(monkeypatch)
    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", INSTALLED)


@pytest.fixture
def small_run() -> Run:
    return make_run()


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    """Keep every test's runs, samples and completions to itself."""
    monkeypatch.setenv("LEADLINE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("LEADLINE_SAMPLES", str(tmp_path / "samples"))
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "cache"))
    st.cache_data.clear()
    st.cache_resource.clear()
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def recorded(tmp_path, small_run) -> Run:
    """Put the small run where the recorded sample run is looked for."""
    small_run.renamed("The recorded run").save(tmp_path / "samples" / "recorded_run")
    return small_run


@pytest.fixture(autouse=True)
def _warm_server(request, monkeypatch):
    """Let every run reach the frame, as on a server that has shown its first page.

    AppTest forgets between runs that the app announces its own pages; the guard then starts over,
    which costs the click of that run. Tests of the guard itself are called ``…cold…``.
    """
    if "cold" not in request.node.name:
        original = PagesManager.__init__

        def warm(self, *args, **kwargs):
            original(self, *args, **kwargs)
            PagesManager.uses_pages_directory = False

        monkeypatch.setattr(PagesManager, "__init__", warm)


@pytest.fixture
def open_app():
    """Open a page like a browser would: by its own link, with a query string; all of it is drawn, unless ``folded``."""

    def opened(page: str = "overview", folded: bool = False, **params: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "dashboard.py"), default_timeout=240)
        if not folded:
            more = ("influence_more", "uncertainty_more", "overview_chance")
            for key in (*more, *(f"workbench_{one.name}" for one in diagnostics.DIAGNOSTICS)):
                app.session_state[key] = True
        if page != "overview":
            app.switch_page(PAGES[page])
        for name, value in params.items():
            app.query_params[name] = value
        return app.run()

    return opened


@pytest.fixture
def texts():
    """Return everything a page says in words, to look for sentences in."""

    def said(app: AppTest) -> str:
        kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error", "success", "text")
        said = "\n".join(str(element.value) for kind in kinds for element in app.get(kind))
        return said.replace("\u00a0", " ")

    return said


@pytest.fixture
def healthy(texts):
    """Fail when a page raised, or told the user that something went wrong."""

    def check(app: AppTest) -> AppTest:
        assert not app.exception, app.exception
        assert "error id" not in texts(app), texts(app)
        return app

    return check
