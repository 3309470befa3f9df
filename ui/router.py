"""The pages, and a guard that lets every page be opened directly."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path

import streamlit as st
from streamlit.navigation.page import Page

from core import diagnostics
from core.errors import LeadlineError
from core.socket import TRUST, WHY
from ui import library
from ui.plain import plain

_ACTIVE = "_router_active"
_LOG = logging.getLogger("leadline")

OVERVIEW, WORKBENCH, COMPARE = "pages/overview.py", "pages/workbench.py", "pages/compare.py"
SIGNALS = "pages/signals.py"
LIVE, DATA, METHODS = "pages/live.py", "pages/data.py", "pages/methods.py"
_TITLES = {WHY: "Why these answers", TRUST: "Which to trust"}
# Pages that no diagnostic has: path, title, icon; the diagnostics' own stand first in their group.
_GROUPS = {
    "Read the run": (
        (OVERVIEW, "Overview", "monitoring"),
        (WORKBENCH, "Workbench", "search"),
        (COMPARE, "Compare", "compare"),
    ),
    _TITLES[WHY]: (),
    _TITLES[TRUST]: ((SIGNALS, "Signal agreement", "grid_on"),),
    "Data": (
        (LIVE, "Live run", "play_circle"),
        (DATA, "Data", "database"),
        (METHODS, "Methods and glossary", "menu_book"),
    ),
}


def page_of(diagnostic: str) -> str | None:
    """Return the page of a diagnostic (or of that name), if it has one of its own."""
    page = f"pages/{diagnostic}.py"
    return page if (library.ROOT / page).is_file() else None


def menu() -> dict[str, list[tuple[Page, str]]]:
    """Return the pages by section, in the order of the menu, each with its icon.

    A page that had an icon of its own would make the browser fetch it from elsewhere, for its tab.
    """
    found: dict[str, list[tuple[Page, str]]] = {group: [] for group in _GROUPS}
    for one in diagnostics.DIAGNOSTICS:
        if (page := page_of(one.name)) is not None:
            found[_TITLES[one.group]].append((st.Page(page, title=one.title), one.icon))
    for group, members in _GROUPS.items():
        found[group] += [
            (st.Page(path, title=title, default=path == OVERVIEW), f":material/{icon}:")
            for path, title, icon in members
        ]
    return found


def shows_all(page: Page) -> bool:
    """Tell whether a page shows what all diagnostics say, so that all their settings act on it."""
    return page.url_path in {Path(path).stem for path in (WORKBENCH, COMPARE, SIGNALS)} or page.url_path == ""


def chosen(pages: dict[str, list[tuple[Page, str]]]) -> Page:
    """Announce the pages and return the one that the address names; the menu is drawn by `ui.sources`."""
    return st.navigation([page for members in pages.values() for page, _ in members], position="hidden")


def run(page: Page) -> None:
    """Run the chosen page; whatever goes wrong is told in one sentence."""
    st.session_state[_ACTIVE] = True
    try:
        page.run()
    except LeadlineError as error:
        st.error(plain(error), icon=":material/error:")
    except Exception as error:
        number = secrets.token_hex(4)
        _LOG.exception("Page %s failed (error id %s)", page.title, number)
        # Without the path: it is the server's, and the reader may sit elsewhere.
        what = (
            f"The server could not use one of its files or folders ({error.strerror.lower()})"
            if isinstance(error, OSError) and error.strerror
            else "Something went wrong on this page"
        )
        st.error(
            f"{what}. The details are in the server's log under error id {number}; "
            "the rest of the app still works.",
            icon=":material/error:",
        )
    finally:
        st.session_state[_ACTIVE] = False


def require_entrypoint() -> None:
    """Make sure the frame runs; the first line of every page.

    A fresh server that is asked for ``/workbench`` would run that page's file alone. Announcing
    the pages and starting over makes it run the frame first; the address is kept.
    """
    if not st.session_state.get(_ACTIVE):
        chosen(menu())
        st.rerun()
