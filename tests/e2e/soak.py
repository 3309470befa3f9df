"""Many readers on one server for a while: how long a page takes, whether memory grows, whether one sees another's file.

``python tests/e2e/soak.py [--sessions 20] [--minutes 30] [--think 20]``: each session is a Chromium of its own that
goes from page to page by the menu and reads each for about ``--think`` seconds. Three of them do more: two upload a
file of their own again and again, and one has begun a live run that lasts all the time. Prints the time from click to
page, the memory of the server before and after, and its processor time. Readers bring processors of their own; here
they share those of the server, so the times are longer than theirs would be. Nothing is animated.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Error, sync_playwright  # noqa: E402

from tests.e2e.driving import connect, upload  # noqa: E402
from tests.e2e.running_app import (  # noqa: E402
    CHROMIUM_FLAGS,
    find_chromium,
    free_port,
    running_app,
    settle,
    still_context,
)
from tests.servers.chat_server import chat, chat_server  # noqa: E402

MARK = re.compile(r"marked-by-session-(\d+)")
TITLE = "() => document.querySelector(\"[data-testid='stMain'] h1\")?.innerText ?? ''"
ARRIVED = """before => {
  const title = document.querySelector("[data-testid='stMain'] h1")?.innerText;
  return title && title !== before
    && document.querySelector("[data-testid='stApp'][data-test-script-state='notRunning']")
    && !document.querySelector("[data-testid='stSkeleton'], [data-testid='stSpinner'], [data-stale='true']");
}"""
BROKEN = "[data-testid='stException'], [data-testid='stAlertContentError']"
EVERY = 10  # seconds between looks at the memory
TICKS = os.sysconf("SC_CLK_TCK")


class Soak:
    """What all sessions note."""

    def __init__(self, address: str, end: float, think: float, calls: str) -> None:
        self.address, self.end, self.think, self.calls = address, end, think, calls
        self.seconds: list[tuple[float, float]] = []  # when, how long
        self.n_wrong = 0
        self.uploads = Counter()
        self.reads = threading.Semaphore(0)  # one more for each session that has its first page

    def wrong(self, what: str) -> None:
        self.n_wrong += 1
        print(what, flush=True)

    def session(self, number: int) -> None:
        """Read pages until the end; whatever goes wrong is noted, and the reader comes again."""
        draw = random.Random(number)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
            context = still_context(browser, viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.set_default_timeout(120_000)
            begins = number == 0
            while time.monotonic() < self.end:
                try:
                    page.goto(self.address)
                    settle(page)
                    if begins:
                        self.begin_live_run(page)
                        begins = False
                    self.reads.release()
                    while time.monotonic() < self.end:
                        time.sleep(self.think * draw.uniform(0.5, 1.5))
                        if number in (1, 2) and draw.random() < 0.2:
                            self.upload(page, number)
                        self.switch(page, number, draw)
                except Error as error:
                    self.wrong(f"session {number}, on {page.url}: {error}")
                    self.reads.release()
            browser.close()

    def switch(self, page, number: int, draw: random.Random) -> None:
        links = page.get_by_test_id("stSidebar").get_by_test_id("stPageLink-NavLink")
        before = page.evaluate(TITLE)
        link = links.nth(draw.randrange(links.count()))
        name = link.inner_text().splitlines()[-1].strip()  # the icon's name comes first
        if name in before:
            return
        start = time.monotonic()
        link.click()
        try:
            page.wait_for_function(ARRIVED, arg=before)
        except Error:
            self.wrong(f"session {number}: from {before!r} by {name!r} it is on {page.url}")
            raise
        self.seconds.append((start, time.monotonic() - start))
        settle(page)
        for foreign in {*MARK.findall(page.content())} - {str(number)}:
            self.wrong(f"session {number} saw the file of session {foreign} on {page.url}")
        if page.locator(BROKEN).count():
            self.wrong(f"session {number}: {page.locator(BROKEN).first.inner_text()} on {page.url}")

    def upload(self, page, number: int) -> None:
        rows = "".join(
            f"marked-by-session-{number} q{q},a{q},{d},text {d},{d},{9 - d},{d / 9}\n"
            for q in range(200)
            for d in range(1, 9)
        )
        head = "query,baseline_answer,doc_id,passage,retrieval_rank,retrieval_score,influence_score\n"
        upload(page, self.address, f"{number}.csv", head + rows)
        self.uploads[number] += 1

    def begin_live_run(self, page) -> None:
        """Begin a run of so many calls that it does not end before the others do."""
        page.goto(f"{self.address}/live?questions=Upload+questions")
        settle(page)
        passages = [f"Passage {i}." for i in range(10)]
        lines = [
            json.dumps({"id": f"q{i}", "question": f"What is {i}?", "passages": passages})
            for i in range(5000)
        ]
        file = {"name": "live.jsonl", "mimeType": "text/plain", "buffer": "\n".join(lines).encode()}
        page.set_input_files("input[type='file']", file)
        many = page.get_by_role("spinbutton", name="How many")
        many.fill("5000")
        many.press("Enter")
        page.get_by_text("5,000 questions with passages as given").wait_for()
        settle(page)
        connect(page, "OpenAI-compatible server", self.calls)
        page.get_by_text("Extract and verify claims", exact=True).click()
        settle(page)
        page.get_by_role("button", name="Estimate cost").click()
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_test_id("stSidebar").get_by_text(re.compile("of [0-9,]+ calls")).wait_for()


def process_of(port: int) -> int:
    """Return the process that serves a port."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        words = path.read_bytes().split(b"\0") if path.exists() else []
        if b"streamlit" in words and str(port).encode() in words:
            return int(path.parent.name)
    raise RuntimeError("the server is not there")


def resident(pid: int) -> float:
    """Return the memory of a process in MiB."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and of those that ended under it."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:15])) / TICKS


def slow_answer(_: dict):
    time.sleep(1)  # as long as a model takes
    return chat("It is.")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--think", type=float, default=20)
    options = parser.parse_args()
    port = free_port()
    with tempfile.TemporaryDirectory() as made, chat_server(slow_answer) as calls:
        folder = Path(made)
        log = folder / "server.log"
        with running_app(folder / "runs", log, port=port, LEADLINE_CACHE=str(folder / "cache")) as address:
            server = process_of(port)
            start = time.monotonic()
            soak = Soak(address, start + 60 * options.minutes, options.think, f"{calls.address}/v1")
            threads = [threading.Thread(target=soak.session, args=(i,)) for i in range(options.sessions)]
            for thread in threads:
                thread.start()
                soak.reads.acquire(timeout=120)  # how long browsers take to start is not what is measured
            memory = []
            while any(thread.is_alive() for thread in threads):
                memory.append((time.monotonic() - start, resident(server)))
                time.sleep(EVERY)
            served = processor_seconds(server)
        text = log.read_text()
    # What was opened for the first time was computed and kept in the first third.
    third = 20 * options.minutes
    early = [mib for at, mib in memory if third <= at < 2 * third]
    late = [mib for at, mib in memory if at >= 2 * third]
    times = [took for at, took in soak.seconds if at - start >= third]
    cuts = quantiles(times, n=20, method="inclusive")
    print(
        f"{options.sessions} sessions, {options.minutes:g} minutes, {os.cpu_count()} cores, uploads {sum(soak.uploads.values())}"
    )
    print(
        f"a page after the first third: median {median(times):.2f} s, p95 {cuts[-1]:.2f} s, n = {len(times)}"
    )
    print(
        f"memory of the server: {median(early):.0f} MiB in the second third, {median(late):.0f} in the last"
    )
    print(f"live calls answered: {len(calls.requests('/chat/completions')):,}")
    print(f"processor time of the server: {served:.0f} s")
    print(f"errors in the server's log: {text.count('Traceback')}")
    print(f"what went wrong: {soak.n_wrong}")
    sys.exit(bool(soak.n_wrong))


if __name__ == "__main__":
    main()
