"""Pages of the dashboard with many questions against the same pages with 50, each in turns.

A switch is a page that was seen before, from another page, in the same session: by AppTest, which runs the
script without a browser (in seconds of the processor), and by a click in Chromium's menu until the page can
be used. The first view of a run has its analyses, too. The runs are made of the recorded one
(`bench.tiled`). Of a run with more than 10,000 questions the pages show a random sample.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.browser import SCREEN, click, until_ready
from bench.lines import Line, Size, short
from bench.tiled import save_tiled
from core.run import RESULTS
from tests.e2e.running_app import CHROMIUM_FLAGS, find_chromium, running_app

ROOT = Path(__file__).resolve().parents[1]
FEW = 50
PAGES = ("overview", *sorted(path.stem for path in (ROOT / "pages").glob("*.py") if path.stem != "overview"))
_PATIENCE = 3_000  # seconds for the first view
_CHECKED = "no page says that something went wrong"


def lines(size: Size) -> Iterator[Line]:
    """Measure in one process, few questions and many in turns; then in one browser."""
    pages = size.pick(PAGES[:2], PAGES, PAGES)
    rounds = size.pick(1, 3, 3)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"LEADLINE_RUNS": f"{folder}/runs", "LEADLINE_CACHE": f"{folder}/cache"}
        runs = {
            n: _saved(n, folder) for n in (FEW, *size.pick((100,), (1_000,), (5_000, 100_000, 1_000_000)))
        }
        yield from _by_a_new_process(runs, "for the first time", first=True)
        yield from _by_a_new_process(runs, "again", first=False)
        for kept in Path(folder).glob(f"runs/*/{RESULTS}"):
            shutil.rmtree(kept)
        runs.pop(1_000_000, None)  # whose pages show as large a sample as those of 100,000
        yield from _by_app_test(runs, pages, rounds)
        if size is Size.FULL and find_chromium() is not None:
            yield from _by_chromium(runs, pages, rounds, Path(folder))


def _saved(n: int, folder: str) -> str:
    return save_tiled(n, Path(folder) / "runs" / str(n))


def _by_app_test(runs: dict[int, str], pages: tuple[str, ...], rounds: int) -> Iterator[Line]:
    _warm_server()
    visits = {n: _app(run) for n, run in runs.items()}
    yield from _compared("AppTest", visits, pages, rounds, time.process_time)


def _by_a_new_process(runs: dict[int, str], when: str, *, first: bool) -> Iterator[Line]:
    """Open the Overview of each run in a new process: first, or as it finds what the earlier one kept."""
    for n, run in runs.items():
        script = f"from bench.page_sizes import opened; print(*opened({run!r}))"
        found = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True, text=True, check=True, cwd=ROOT,
        )  # fmt: skip
        seconds, mib = map(float, found.stdout.split())
        yield Line.of(
            f"AppTest: the Overview of {n:,} questions, opened {when} by a new process",
            "no limit",
            [seconds],
            _CHECKED,
            unit="s",
            goal=15.0 if first else 2.0,
            less=True,
            note=f"{mib:,.0f} MiB at most; what the program itself takes to start is not counted",
        )


def opened(run: str) -> tuple[float, float]:
    """Return the seconds of the processor for the Overview, and the peak of this process in MiB."""
    _warm_server()
    _app("")("methods")
    seconds = _seconds(_app(run), "overview", time.process_time)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _app(run: str) -> Callable[[str], None]:
    """Return how to visit a page of a run in a session of its own."""
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(ROOT / "dashboard.py"), default_timeout=_PATIENCE)

    def visit(page: str) -> None:
        app.switch_page(f"pages/{page}.py")
        if run:
            app.query_params["run"] = run
        app.run()
        if app.exception or any("error id" in one.value for one in app.error):
            raise AssertionError(f"The page {page} failed.")

    return visit


def _warm_server() -> None:
    """Let every run reach the frame: AppTest forgets between runs that the app announces its own pages."""
    from streamlit.runtime.pages_manager import PagesManager

    original = PagesManager.__init__

    def warm(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        PagesManager.uses_pages_directory = False

    PagesManager.__init__ = warm


def _by_chromium(runs: dict[int, str], pages: tuple[str, ...], rounds: int, folder: Path) -> Iterator[Line]:
    from playwright.sync_api import sync_playwright

    with ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        address = stack.enter_context(running_app(folder / "runs", folder / "server.log"))
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
        visits = {n: _tab(browser, f"{address}/methods?run={run}") for n, run in runs.items()}
        yield from _compared("Chromium", visits, pages, rounds, time.perf_counter)
        browser.close()


def _tab(browser: Any, address: str) -> Callable[[str], None]:
    """Return how to visit a page of a run by the menu of a tab of its own."""
    page = browser.new_context(viewport=SCREEN).new_page()
    until_ready(page, lambda: page.goto(address), _PATIENCE)
    shown = ["methods"]

    def visit(name: str) -> None:
        if shown[0] != name:
            until_ready(page, lambda: click(page, name), _PATIENCE)
            shown[0] = name
        if page.get_by_text("error id").count():
            raise AssertionError(f"The page {name} failed.")

    return visit


def _compared(
    how: str,
    visits: dict[int, Callable[[str], None]],
    pages: tuple[str, ...],
    rounds: int,
    clock: Callable[[], float],
) -> Iterator[Line]:
    """Yield the first views of each run, and each page of the larger ones against that of the smallest."""
    for n, visit in visits.items():
        first = {page: _seconds(visit, page, clock) for page in pages}
        total, worst = sum(first.values()), sorted(first, key=lambda page: -first[page])[:4]
        yield Line.of(
            f"{how}: first view of all {len(pages)} pages, {n:,} questions, one after the other",
            "no limit",
            [total],
            _CHECKED,
            unit="s",
            note=f"of these {', '.join(f'{page} {short(first[page])} s' for page in worst)}",
        )
    for n in [n for n in visits if n != FEW]:
        for page in pages:
            other = "methods" if page == "data" else "data"
            found = []
            for turn in range(rounds):
                order = (FEW, n) if turn % 2 == 0 else (n, FEW)
                for one in order:
                    visits[one](other)
                found.append({one: _seconds(visits[one], page, clock) for one in order})
            yield Line.of(
                f"{how}: switch to {page}, {n:,} questions",
                f"{FEW} questions",
                [one[n] / one[FEW] for one in found],
                _CHECKED,
                floor=3,
                goal=1,
                less=True,
                note=f"{short(min(one[n] for one in found))} s at best",
            )


def _seconds(visit: Callable[[str], None], page: str, clock: Callable[[], float]) -> float:
    start = clock()
    visit(page)
    return clock() - start
