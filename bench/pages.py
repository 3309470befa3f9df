"""Time from asking for a page of the dashboard until it can be used, in Chromium, on the recorded run.

A page can be used when the script has run, its main part is drawn (a heading, and every figure) and nothing
says that it is still running. The first visit of a fresh server (imports, analyses of the run) is printed
apart; the time of a page is the median of three visits in new browser sessions.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.running_app import CHROMIUM_FLAGS, find_chromium, pages, running_app

VISITS = 3
READY = """() => {
  const app = document.querySelector("[data-testid='stApp']");
  if (!app || app.dataset.testScriptState !== "notRunning") return false;
  if (document.querySelector("[data-testid='stSkeleton'], [data-testid='stAppSkeleton'], "
      + "[data-testid='stSpinner'], [data-stale='true']")) return false;
  const main = document.querySelector("[data-testid='stMain']");
  const plots = [...main.querySelectorAll("[data-testid='stPlotlyChart']")];
  return main.querySelector("h1") !== null && plots.every(one => one.querySelector(".main-svg"));
}"""


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
        sys.stdout.write(f"first visit of a fresh server  {_visit(browser, address):5.2f} s\n")
        for name, path in list(pages().items())[: 1 if smoke else None]:
            seconds = [_visit(browser, f"{address}/{path}") for _ in range(1 if smoke else VISITS)]
            each = ", ".join(f"{one:.2f}" for one in seconds)
            sys.stdout.write(f"{name:<30} {statistics.median(seconds):5.2f} s   ({each})\n")
        browser.close()


def _visit(browser, address: str) -> float:
    """Return the seconds from asking for a page to `READY`, in a session of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    started = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_function(READY, timeout=120_000)
    seconds = time.perf_counter() - started
    context.close()
    return seconds


if __name__ == "__main__":
    main()
