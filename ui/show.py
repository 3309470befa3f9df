"""Small helpers that every page draws with: figures, cards, tables, empty states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.charts import alt_text
from ui import router
from ui.plain import plain
from ui.state import session

ROWS_SHOWN = 1_000
SIMULATED = "Simulated data: these numbers come from the simulation, not from a language model."


def heading(title: str, caption: str) -> None:
    """Draw the page's title and its one-line purpose; simulated data are always labelled."""
    st.title(title, anchor=False)
    st.caption(caption)
    state = session()
    if state.problem:
        st.warning(plain(state.problem), icon=":material/link_off:")
    if state.run is not None and state.run.simulated:
        st.info(SIMULATED, icon=":material/science:")


def needs_run() -> bool:
    """Tell whether a run is loaded; where none is, say what to do."""
    if session().run is not None:
        return True
    with st.container(border=True):
        st.subheader("No run is loaded", anchor=False)
        st.markdown(
            "Load one, and this page fills: upload an influence CSV, ask a model about your own "
            "documents, or look around with simulated data."
        )
        with st.container(horizontal=True):
            st.page_link(
                router.DATA, label="Upload a file", icon=":material/upload:", query_params={"door": "Upload"}
            )
            st.page_link(router.LIVE, label="Start a live run", icon=":material/play_circle:")
            st.page_link(
                router.DATA, label="Simulate", icon=":material/science:", query_params={"door": "Simulation"}
            )
    return False


def figure(fig: Any, key: str) -> None:
    """Draw a figure over the full width, with its description for those who cannot see it."""
    st.plotly_chart(
        fig,
        width="stretch",
        key=key,
        config={"displaylogo": False, "displayModeBar": "hover"},
        alt=alt_text(fig),
    )


def cards(values: list[tuple[str, str, str, str]]) -> None:
    """Draw headline numbers: (label, value, what it rests on, help)."""
    with st.grid(3 if len(values) == 6 else len(values), min_column_width=150):
        for label, value, rests_on, help_text in values:
            with st.container(border=True, height="stretch"):
                st.metric(label, value, help=help_text)
                st.caption(rests_on)


def table(frame: Any, alt: str, columns: Mapping[str, Any] | None = None, **options: Any) -> None:
    """Draw at most 1,000 rows of a table; say so when there are more."""
    st.dataframe(
        frame.head(ROWS_SHOWN),
        hide_index=True,
        column_config=columns or {},
        alt=alt,
        placeholder="—",
        **options,
    )
    if len(frame) > ROWS_SHOWN:
        st.caption(f"The first {ROWS_SHOWN:,} of {len(frame):,} rows; the download holds all of them.")


def definition(title: str, meaning: str, facts: Mapping[str, str], count: str = "") -> None:
    """Draw one entry of a glossary; facts that are empty are left out."""
    with st.container(border=True, gap="xsmall", height="stretch"):
        st.markdown(f"**{plain(title)}**" + (f" · {count}" if count else ""))
        st.markdown(plain(meaning))
        lines = [f"{name}: {plain(fact)}" for name, fact in facts.items() if fact]
        st.caption("\\\n".join(lines))


def number(value: float | None, pattern: str = "{:.2f}") -> str:
    """Format a number; a value that does not exist shows as a dash, never as 0."""
    return "—" if value is None or value != value else pattern.format(value).replace("-", "−")


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 question``, ``2 questions``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
