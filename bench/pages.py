"""Time from asking for a page of the dashboard until it can be used, in Chromium, on the recorded run.

A page can be used when the script has run, its main part is drawn (a heading, and every figure) and nothing
says that it is still running. Three ways to a page, each the median of three visits: by a browser that never
saw the dashboard (it fetches Streamlit's own code first), by a reload or a link (a new session in a browser
that did), and by the menu. The first visit of a fresh server (imports, analyses of the run) is printed apart.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from bench.browser import READY, SCREEN, click, until_ready
from tests.e2e.running_app import CHROMIUM_FLAGS, find_chromium, pages, running_app

VISITS = 3


def main() -> None:
    """Print one line for each page: the median, and each visit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one visit of one page")
    smoke = parser.parse_args().smoke
    chromium = find_chromium()
    if chromium is None:
        sys.stdout.write("No Chromium found: install your system's chromium package.\n")
        return
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as temporary,
        sync_playwright() as playwright,
        running_app(Path(temporary), Path(temporary) / "server.log") as address,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        sys.stdout.write(f"first visit of a fresh server  {_first_visit(browser, address):5.2f} s\n")
        sys.stdout.write(f"{'median seconds':<20} {'new browser':>12} {'reload':>12} {'menu':>12}\n")
        visits = 1 if smoke else VISITS
        page = browser.new_context(viewport=SCREEN).new_page()
        for name, path in list(pages().items())[: 1 if smoke else None]:
            new = [_first_visit(browser, f"{address}/{path}") for _ in range(visits)]
            page.goto(f"{address}/{path}")
            again = [until_ready(page, page.reload) for _ in range(visits)]
            menu = [_by_menu(page, address, name) for _ in range(visits)]
            medians = "".join(f" {statistics.median(each):12.2f}" for each in (new, again, menu))
            sys.stdout.write(f"{name:<20}{medians}\n")
        browser.close()


def _first_visit(browser, address: str) -> float:
    """Return the seconds of a visit by a browser with nothing in its cache."""
    context = browser.new_context(viewport=SCREEN)
    page = context.new_page()
    seconds = until_ready(page, lambda: page.goto(address, wait_until="commit"))
    context.close()
    return seconds


def _by_menu(page, address: str, name: str) -> float:
    """Return the seconds of a click in the menu, coming from another page."""
    other = "" if name == "data" else "data"
    page.goto(f"{address}/{other}")
    page.wait_for_function(READY, timeout=120_000)
    return until_ready(page, lambda: click(page, name))


if __name__ == "__main__":
    main()
