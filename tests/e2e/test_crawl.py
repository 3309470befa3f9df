"""All links of all pages arrive: at a page without an error and, where they filter, at questions that match.

In Chromium every page is opened, and of the links of one form (a page, and the kinds of its filters) one is followed;
what each of them filters by, and the question that it opens, is looked up in the run.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from core.diagnosis import Diagnosis
from core.run import Run
from core.worklist import Filter, select, worklist
from tests.e2e.driving import main_text
from tests.e2e.running_app import ROOT, pages, settle

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
FILTERS = ("finding", "where", "label", "kind", "status")
LINKS = """() => [...document.querySelectorAll('[data-testid="stMain"] a[href], [data-testid="stSidebar"] a[href]')]
  .map(link => link.href)"""
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


def kind(link: str) -> tuple:
    """Return what a link asks of a page, but for the question and what its filters name."""
    path, _, given = asked(link)
    filters = tuple(name for name in FILTERS if name in given)
    return (path, filters, *(given.get(name) for name in ("run", "door", "questions")))


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
    run = Run.load(ROOT / "sample_data" / "recorded_run")
    diagnosis = Diagnosis(run)
    frame, ids = worklist(diagnosis), set(run.queries["query_id"])
    for path in pages().values():
        here = f"{app}/{path}"
        wrong += [f"{here} {problem}" for problem in arrived(page, here)]
        seen.add(kind(here)[:2])
        for link in page.evaluate(LINKS):
            if not link.startswith(app):
                wrong.append(f"{here} leads away, to {link}")
                continue
            _, anchor, given = asked(link)
            filters = {name: given[name] for name in FILTERS if name in given}
            if anchor and not page.locator(f"[id='{anchor}']").count():
                wrong.append(f"{here} has no place {anchor}")
            if given.get("question", run.queries["query_id"].iloc[0]) not in ids:
                wrong.append(f"{here} links to the question {given['question']!r}, which is not in the run")
            if filters and given["run"] == run.run_id:
                listed, problems = select(diagnosis, frame, Filter(**filters), {})
                if problems or listed.empty:
                    wrong.append(
                        f"{here} links to {filters}, which lists {len(listed)} questions: {problems}"
                    )
            links.setdefault(kind(link), link)
    # The pages themselves were looked at; a question was looked up.
    followed = [
        link for what, link in links.items() if what[:2] not in seen or what[2] not in (None, run.run_id)
    ]
    assert len(links) > 15 and len(followed) > 6, links
    for link in followed:
        wrong += [f"{link} {problem}" for problem in arrived(page, link)]
    assert not wrong, "\n".join(wrong)
