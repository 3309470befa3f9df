"""All links of all pages arrive: at a page without an error and, where they filter, at questions that match.

A link is followed once for what it asks of a page: links that differ only in the question they open are read here,
and one of them is followed.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from core.run import Run
from tests.e2e.driving import main_text
from tests.e2e.running_app import ROOT, pages, settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
FILTERS = ("finding", "where", "label", "kind", "status")
LINKS = "() => [...document.querySelectorAll('[data-testid=\"stMain\"] a[href], [data-testid=\"stSidebar\"] a[href]')]" \
    ".map(link => link.href)"  # fmt: skip
# What is folded away has links too.
UNFOLD = "() => document.querySelectorAll('[data-testid=\"stExpander\"] details:not([open]) > summary')" \
    ".forEach(one => one.click())"  # fmt: skip
FAILED = "[data-testid='stException'], [data-testid='stAlertContentError']"
BROKEN = ("This run has no", "No question matches", "No finding", "leads nowhere", "is not saved here")


def asked(link: str) -> tuple[str, str, dict[str, str]]:
    """Return the path, anchor and parameters of a link."""
    parts = urlsplit(link)
    return parts.path.strip("/"), parts.fragment, dict(parse_qsl(parts.query))


def kind(link: str) -> tuple:
    """Return what tells a link from the others: all but the question, whose id is read here."""
    path, anchor, given = asked(link)
    return (
        path,
        anchor,
        "question" in given,
        *((name, given.get(name)) for name in (*FILTERS, "run", "sim", "door")),
    )


def problems(page, link: str) -> list[str]:
    """Return what is wrong with the page that a link leads to."""
    path, anchor, given = asked(link)
    text = main_text(page)
    found = [f"says {sentence!r}" for sentence in BROKEN if sentence in text]
    found += ["shows an error"] * (page.locator(FAILED).count() > 0)
    if anchor and not page.locator(f"[id='{anchor}']").count():
        found.append("has no such place")
    if any(name in given for name in FILTERS):
        listed = re.search(r"of ([\d,]+) \(filtered\)", text) if path == "workbench" else \
            re.search(r"([\d,]+) of [\d,]+ questions?\b", text) if not path else \
            re.search(r"Read the ([\d,]+) questions? that match", text)  # fmt: skip
        if not listed or listed[1] == "0":
            found.append("has no filter, or lists nothing")
    return found


@pytest.mark.parametrize("data", ["", pytest.param("sim=queries:12", marks=pytest.mark.slow)])
def test_every_link_of_every_page_arrives(app, new_page, data):
    """Links led to the top of a page whose list was 5,000 pixels below, or to a list that the filter left empty."""
    page, waiting, wrong = new_page(), {}, []
    ids = set(Run.load(ROOT / "sample_data" / "recorded_run").queries["query_id"])
    followed = set()

    def read(link):
        """Collect the links of the page that is open, and look at it."""
        page.evaluate(UNFOLD)
        settle(page)
        wrong.extend(f"{link} {problem}" for problem in problems(page, link))
        for href in page.evaluate(LINKS):
            if urlsplit(href).hostname != "localhost":
                continue
            question = asked(href)[2].get("question")
            if not data and question is not None and question not in ids:
                wrong.append(f"{link} links to the question {question!r}, which is not in the run")
            waiting.setdefault(kind(href), href)

    for path in pages().values():
        link = f"{app}/{path}" + (("&" if "?" in path else "?") + data if data else "")
        page.goto(link)
        settle(page)
        followed.add(kind(link))
        read(link)
    for what, link in waiting.items():
        if what not in followed:
            page.goto(link)
            settle(page)
            wrong.extend(f"{link} {problem}" for problem in problems(page, link))
    assert len(waiting) > 40
    assert not wrong, "\n".join(wrong)
