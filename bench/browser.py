"""The dashboard in Chromium: when a page can be used, and how long it takes until it can."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SCREEN = {"width": 1280, "height": 900}
# The script has run, the main part is drawn (a heading, every figure), and nothing says that it still runs.
READY = """() => {
  const app = document.querySelector("[data-testid='stApp']");
  if (!app || app.dataset.testScriptState !== "notRunning") return false;
  if (document.querySelector("[data-testid='stSkeleton'], [data-testid='stAppSkeleton'], "
      + "[data-testid='stSpinner'], [data-stale='true']")) return false;
  const main = document.querySelector("[data-testid='stMain']");
  const plots = [...main.querySelectorAll("[data-testid='stPlotlyChart']")];
  return main.querySelector("h1") !== null && plots.every(one => one.querySelector(".main-svg"));
}"""


def until_ready(page: Any, go: Callable[[], object], timeout: float = 120) -> float:
    """Return the seconds from going to a page until it is ready."""
    started = time.perf_counter()
    go()
    page.wait_for_function(READY, timeout=1000 * timeout)
    return time.perf_counter() - started


def click(page: Any, name: str) -> None:
    """Go to another page by the menu, until its heading is there."""
    before = page.locator("h1").first.inner_text()
    place = "" if name == "overview" else name
    page.locator(f"[data-testid='stSidebar'] a[href^='{place}?']").first.click()
    page.wait_for_function("old => document.querySelector('h1')?.innerText !== old", arg=before)
