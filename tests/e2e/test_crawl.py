"""All links of all pages arrive: at a page without an error and, where they filter, at questions that match.

In Chromium every page is opened. What each of its links filters by, how many questions the link says there are, and
the question that it opens, are looked up in the run; of the links of one kind one is followed.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from core.diagnosis import Diagnosis
from core.run import Run
from core.worklist import Filter, select, worklist
from tests.e2e.driving import main_text
from tests.e2e.running_app import pages, settle
from ui import library

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
FILTERS = ("finding", "where", "label", "kind", "status")
ONE_OF = ("run", "door", "questions")  # of these each value is a kind of its own
# Also what is folded; the menu over the sidebar lies in a layer of its own.
LINKS = """() => [...document.querySelectorAll(
  '[data-testid="stMain"] a[href], [data-testid="stSidebar"] a[href], [data-testid="stPopoverBody"] a[href]')]
  .map(link => [link.href, link.textContent])"""
FAILED = "[data-testid='stException'], [data-testid='stAlertContentError']"
BROKEN = (
    "This run has no",
    "No question matches",
    "No finding",
    "leads nowhere",
    "is not saved here",
    "error id",
)
# How a page says how many questions a filter lists: the workbench, the Overview, the door of all others.
LISTED = {"workbench": r"of ([\d,]+) \(filtered\)", "": r"([\d,]+) of [\d,]+ questions? ·"}
DOOR = r"Read the ([\d,]+) questions? that match"


def asked(link: str) -> tuple[str, str, dict[str, str]]:
    """Return the path, anchor and parameters of a link."""
    parts = urlsplit(link)
    return parts.path.strip("/"), parts.fragment, dict(parse_qsl(parts.query))


def kind(link: str, first: str) -> tuple:
    """Return what a link asks of a page: the names of its parameters, but for the run that opens by itself, and for
    the question where the page does not show it."""
    path, _, given = asked(link)
    names = {name: value if name in ONE_OF else "" for name, value in given.items()}
    if names.get("run") == first:
        del names["run"]
    if path != "workbench":
        names.pop("question", None)
    return path, *sorted(names.items())


def arrived(page, link: str) -> list[str]:
    """Follow a link; return what is wrong where it leads."""
    path, _, given = asked(link)
    page.goto(link, timeout=120_000)
    if not any(name in given for name in FILTERS):
        settle(page, 240_000)  # the first page waits for all analyses
        text = main_text(page)
        return [f"says {one!r}" for one in BROKEN if one in text] + ["an error"] * page.locator(
            FAILED
        ).count()
    # The page itself was looked at without a filter: here it is enough to see what is listed.
    try:
        page.get_by_test_id("stMain").get_by_text(re.compile(LISTED.get(path, DOOR))).first.wait_for(
            timeout=60_000
        )
    except playwright.TimeoutError:
        return ["has no active filter that lists questions"]
    text = main_text(page)
    listed = re.search(LISTED.get(path, DOOR), text)
    return [f"says {one!r}" for one in BROKEN if one in text] + ["lists nothing"] * (listed[1] == "0")


def test_every_link_of_every_page_arrives(app, new_page):
    """Links led to the top of a page whose list was 5,000 pixels below, or to a list that the filter left empty."""
    page, links, wrong, seen = new_page(), {}, [], set()
    run = Run.load(library.recorded().folder)
    diagnosis = Diagnosis(run)
    frame, ids = worklist(diagnosis), set(run.queries["query_id"])
    for path in pages().values():
        here = f"{app}/{path}"
        wrong += [f"{here} {problem}" for problem in arrived(page, here)]
        seen.add(kind(here, run.run_id))
        if not path:
            page.get_by_role("button", name="Change data").click()
            page.locator("[data-testid='stPopoverBody'] a[href]").first.wait_for()
        for link, label in page.evaluate(LINKS):
            if not link.startswith(app):
                wrong.append(f"{here} leads away, to {link}")
                continue
            _, anchor, given = asked(link)
            filters = {name: given[name] for name in FILTERS if name in given}
            if anchor and not page.locator(f"[id='{anchor}']").count():
                wrong.append(f"{here} has no place {anchor}")
            if given.get("run", run.run_id) == run.run_id:
                if "question" in given and given["question"] not in ids:
                    wrong.append(
                        f"{here} links to the question {given['question']!r}, which is not in the run"
                    )
                listed, problems = select(diagnosis, frame, Filter(**filters), {})
                said = re.search(r"([\d,]+) (?:questions?|answers?)\b", label)
                promised = int(said[1].replace(",", "")) if filters and said else len(listed)
                if problems or listed.empty or promised != len(listed):
                    wrong.append(f"{here}: {label!r} leads to {filters}: {len(listed)} questions, {problems}")
            links.setdefault(kind(link, run.run_id), link)
    # Every page has a way to it, and every kind of filter and way to load data is among what is followed.
    assert {path for path, *_ in links} == {path.partition("?")[0] for path in pages().values()}
    asks = {name for _, *names in links for name in names}
    assert {("finding", ""), ("where", ""), ("question", "")} <= asks, asks
    assert {("door", name) for name in ("Upload", "Simulation", "Saved runs", "Export")} <= asks, asks
    for link in (link for what, link in links.items() if what not in seen):
        wrong += [f"{link} {problem}" for problem in arrived(page, link)]
    assert not wrong, "\n".join(wrong)
