"""The pages, and a guard that lets every page be opened directly."""

from __future__ import annotations

import logging
import secrets

import streamlit as st
from streamlit.navigation.page import Page

from core.errors import LeadlineError
from ui.plain import plain

_ACTIVE = "_router_active"
_LOG = logging.getLogger("leadline")

OVERVIEW, INFLUENCE, INSPECTOR = "pages/overview.py", "pages/influence.py", "pages/inspector.py"
CLAIMS, SIDE_BY_SIDE = "pages/claims.py", "pages/side_by_side.py"
LIVE, DATA, METHODS = "pages/live.py", "pages/data.py", "pages/methods.py"


def build_pages() -> dict[str, list[Page]]:
    """Return the pages by section, in the order of the menu."""
    return {
        "Diagnose": [
            st.Page(
                OVERVIEW,
                title="Overview",
                icon=":material/monitoring:",
                default=True,
                help="Headline numbers of the run and what to look at first.",
            ),
            st.Page(
                INFLUENCE,
                title="Influence vs retrieval",
                icon=":material/swap_vert:",
                help="Does the model use the passages in the order the retriever gave them?",
            ),
            st.Page(
                CLAIMS,
                title="Claims & evidence",
                icon=":material/fact_check:",
                help="What each answer claims, and which passages support it.",
            ),
            st.Page(
                INSPECTOR,
                title="Question inspector",
                icon=":material/search:",
                help="One question: answer, passages, and what leaving each passage out changed.",
            ),
            st.Page(
                SIDE_BY_SIDE,
                title="Side by side",
                icon=":material/compare:",
                help="Two to four runs: their numbers, their set-ups, and the questions they share.",
            ),
        ],
        "Get data": [
            st.Page(
                LIVE,
                title="Live run",
                icon=":material/play_circle:",
                help="Ask a model about your documents and measure which passages it used.",
            ),
            st.Page(
                DATA,
                title="Data",
                icon=":material/database:",
                help="Upload a file, simulate, open saved runs, export.",
            ),
        ],
        "Read": [
            st.Page(
                METHODS,
                title="Methods and glossary",
                icon=":material/menu_book:",
                help="What every number means, how it is computed, and its limits.",
            ),
        ],
    }


def run(page: Page) -> None:
    """Run the chosen page; whatever goes wrong is told in one sentence."""
    st.session_state[_ACTIVE] = True
    try:
        page.run()
    except LeadlineError as error:
        st.error(plain(error), icon=":material/error:")
    except Exception:
        number = secrets.token_hex(4)
        _LOG.exception("Page %s failed (error id %s)", page.title, number)
        st.error(
            "Something went wrong on this page. The details are in the server's log under error id "
            f"{number}; "
            "the rest of the app still works.",
            icon=":material/error:",
        )
    finally:
        st.session_state[_ACTIVE] = False


def require_entrypoint() -> None:
    """Make sure the frame runs; the first line of every page.

    A fresh server that is asked for ``/inspector`` would run that page's file alone. Announcing
    the pages and starting over makes it run the frame first; the address is kept.
    """
    if not st.session_state.get(_ACTIVE):
        st.navigation(build_pages())
        st.rerun()
