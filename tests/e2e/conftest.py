"""One server and one browser for all end-to-end tests: one process of pytest runs them (tests/conftest.py)."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import pytest

from core.files import user_cache_dir
from tests.e2e.running_app import CHROMIUM_FLAGS, find_chromium, running_app, still_context


# While Playwright runs, its event loop runs in this thread, where tests outside of this package must not find it.
@pytest.fixture(scope="package")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    path = find_chromium()
    if path is None:
        if os.environ.get("LEADLINE_REQUIRE_BROWSER"):
            pytest.fail("No Chromium found, and LEADLINE_REQUIRE_BROWSER is set.")
        pytest.skip("No Chromium found: install your system's chromium package to run the browser tests.")
    with sync_api.sync_playwright() as playwright:
        # No page stays long enough for what a compiler that makes scripts faster takes.
        flags = [*CHROMIUM_FLAGS, "--js-flags=--no-opt,--no-maglev"]
        chromium = playwright.chromium.launch(executable_path=path, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def app_runs(tmp_path_factory):
    """The folder of saved runs of `app`; a run that a test puts there has an id of its own."""
    folder = tmp_path_factory.mktemp("app") / "runs"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def app(app_runs):
    cache, models = app_runs.parent / "cache", user_cache_dir() / "models"
    # The packaged model is converted once on a machine, not again for these tests.
    models.mkdir(parents=True, exist_ok=True)
    cache.mkdir()
    (cache / "models").symlink_to(models)
    with running_app(app_runs, cache.with_name("server.log"), LEADLINE_CACHE=str(cache)) as address:
        yield address


def elsewhere(url):
    """Return the address if it is not one of this machine: Streamlit would fetch icons of tabs, for one."""
    return [] if urlsplit(url).hostname in (None, "localhost", "127.0.0.1") else [url]


def missing(answer):
    """Return the address where nothing is, unless Streamlit's browser code only asks whether the server is there: it
    asks a page's own address before it asks the root."""
    probe = answer.url.endswith(("/_stcore/health", "/_stcore/host-config"))
    return [f"{answer.status}: {answer.url}"] if answer.status >= 400 and not probe else []


def watch(page, errors: list[str]) -> None:
    """Note any error of a script, where a page asks another host, and what it asks for that is missing."""
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: errors.extend(elsewhere(request.url)))
    page.on("response", lambda answer: errors.extend(missing(answer)))


@pytest.fixture(scope="package")
def contexts(browser):
    """The first, second … contexts that tests ask for, by what they ask: what the app's code is made of is fetched and
    compiled once in each. The app itself keeps nothing in a browser."""
    return {}


@pytest.fixture
def new_page(browser, contexts):
    """Open pages in sessions of their own, which share no context; fail on any error of a script, where a page
    asks another host, and where it meets nothing."""
    used, errors = [], []

    def open_page(width=1280, height=900, **options):
        options["viewport"] = {"width": width, "height": height}
        wanted = len(used), repr(sorted(options.items()))
        if wanted not in contexts:
            contexts[wanted] = still_context(browser, **options)
        used.append(contexts[wanted])
        page = used[-1].new_page()
        page.set_default_timeout(90_000)  # a busy machine is no failure
        watch(page, errors)
        return page

    yield open_page
    for context in used:
        for page in context.pages:
            page.close()
        context.clear_cookies()
    assert not errors
