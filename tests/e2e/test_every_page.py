"""Every page is opened once, first by its own link, and everything that must hold on every page is looked at there.

It has a title and no error; no rule of axe-core is broken, light and wide or dark and narrow; it fits a phone; and
all its links arrive: at a page without an error and, where they filter, at questions that match. What each link
filters by, how many questions it says there are, and the question that it opens, are looked up in the run; of the
links of one kind one is followed. axe-core comes as a file inside the package axe-playwright-python, so no npm is
needed.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest

from core.diagnosis import Diagnosis
from core.run import Run
from core.worklist import Filter, select, worklist
from tests.e2e.conftest import watch
from tests.e2e.driving import GROUND, main_text, sideways
from tests.e2e.running_app import pages, settle, still_context
from ui import library

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
FILTERS = ("finding", "where", "label", "kind", "status")
ONE_OF = ("run", "door", "questions")  # of these each value is a kind of its own
PAGES = pages()
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# Two frames later a change of width is drawn.
PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
VIOLATIONS = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"], elementRef: true});
  const part = node => node.element?.closest(":not(button *)[data-testid]")?.dataset.testid;
  return found.violations
    .filter(one => ["serious", "critical"].includes(one.impact))
    .flatMap(one => one.nodes.map(node => `${one.id}: ${part(node)} ${node.html} ${node.failureSummary}`));
}"""
# Also what is folded; the menu over the sidebar lies in a layer of its own.
LINKS = """() => [...document.querySelectorAll(
  '[data-testid="stMain"] a[href], [data-testid="stSidebar"] a[href], [data-testid="stPopoverBody"] a[href]')]
  .map(link => [link.href, link.textContent])"""
# What is drawn only when it is opened: all of it at once.
UNFOLD = """() => {
  const closed = [...document.querySelectorAll("[data-testid='stExpander'] details:not([open])")]
    .filter(one => !one.querySelector("[data-testid='stElementContainer']"));
  closed.forEach(one => one.querySelector("summary").click());
  return closed.length;
}"""
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


class Visit(NamedTuple):
    """What was seen on a page: where, what was wrong there, how many titles, violated rules, pixels too wide on a
    phone, its links with their texts, and the anchors among them that are not on the page."""

    address: str
    problems: list[str]
    n_titles: int
    violations: list[str]
    too_wide: int
    links: list[tuple[str, str]]
    no_place: list[str]


def axe() -> str:
    """Return the script of axe-core; importing its package would need no more than its folder."""
    package = importlib.util.find_spec("axe_playwright_python")
    return (Path(package.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(browser):
    context = still_context(browser, viewport=WIDE)
    errors = []
    page = context.new_page()
    watch(page, errors)
    yield page
    context.close()
    assert not errors


@pytest.fixture(scope="module")
def visits(page, app):
    """Return what was seen on each page. Each is a new session: it is opened by its link."""
    return {name: visit(page, f"{app}/{path}", axe()) for name, path in PAGES.items()}


def visit(page, address: str, script: str) -> Visit:
    def broken(theme: str) -> list[str]:
        # A change of theme or width is drawn without a run of the script.
        page.wait_for_function(GROUND, arg=theme == "dark")
        page.evaluate(PAINTED)
        return [f"{theme}: {one}" for one in page.evaluate(VIOLATIONS)]

    # Colours depend on the theme and places on the width, so two of the four forms hold both.
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(WIDE)
    problems = arrived(page, address)
    n_titles = page.get_by_test_id("stMain").locator("h1").count()
    page.evaluate(script)
    violations = broken("light")
    if page.evaluate(UNFOLD):
        settle(page)
        assert not page.evaluate(UNFOLD)
    if not asked(address)[0]:
        page.get_by_role("button", name="Change data").click()
        page.locator("[data-testid='stPopoverBody'] a[href]").first.wait_for()
    links = [(link, text) for link, text in page.evaluate(LINKS)]
    page.keyboard.press("Escape")
    anchors = {anchor for link, _ in links if (anchor := asked(link)[1])}
    no_place = [one for one in anchors if not page.locator(f"[id='{one}']").count()]
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    violations += broken("dark")
    return Visit(address, problems, n_titles, violations, sideways(page), links, no_place)


@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_by_its_own_link_and_fits_a_phone(visits, name):
    seen = visits[name]
    assert (seen.problems, seen.n_titles, seen.no_place) == ([], 1, [])
    assert seen.too_wide <= 1


@pytest.mark.parametrize("name", PAGES)
def test_no_page_breaks_a_serious_rule(visits, name):
    assert not visits[name].violations


def test_every_link_of_every_page_arrives(app, page, visits):
    """Links led to the top of a page whose list was 5,000 pixels below, or to a list that the filter left empty."""
    run = Run.load(library.recorded().folder)
    diagnosis = Diagnosis(run)
    frame, ids = worklist(diagnosis), set(run.queries["query_id"])
    wrong, links = [], {}
    for seen in visits.values():
        for link, label in seen.links:
            if not link.startswith(app):
                wrong.append(f"{seen.address} leads away, to {link}")
                continue
            links.setdefault(kind(link, run.run_id), link)
            _, _, given = asked(link)
            if given.get("run", run.run_id) != run.run_id:
                continue
            if "question" in given and given["question"] not in ids:
                wrong.append(f"{seen.address} links to the question {given['question']!r}, not in the run")
            filters = {name: given[name] for name in FILTERS if name in given}
            listed, problems = select(diagnosis, frame, Filter(**filters), {})
            said = re.search(r"([\d,]+) (?:questions?|answers?)\b", label)
            promised = int(said[1].replace(",", "")) if filters and said else len(listed)
            if problems or listed.empty or promised != len(listed):
                wrong.append(
                    f"{seen.address}: {label!r} leads to {filters}: {len(listed)} questions, {problems}"
                )
    # Every page has a way to it, and every kind of filter and way to load data is among what is followed.
    assert {path for path, *_ in links} == {path.partition("?")[0] for path in PAGES.values()}
    asks = {name for _, *names in links for name in names}
    assert {("finding", ""), ("where", ""), ("question", "")} <= asks, asks
    assert {("door", name) for name in ("Upload", "Simulation", "Saved runs", "Export")} <= asks, asks
    page.set_viewport_size(WIDE)
    opened = {kind(seen.address, run.run_id) for seen in visits.values()}
    for link in (link for what, link in links.items() if what not in opened):
        wrong += [f"{link} {problem}" for problem in arrived(page, link)]
    assert not wrong, "\n".join(wrong)
