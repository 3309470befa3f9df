"""The methods page, generated from definitions and schema so that nothing is written twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from core import diagnostics
from core.schema import TABLES
from core.socket import Definition
from ui import sections, show
from ui.plain import plain

TABLES_AT = "tables"


def contents() -> None:
    """Draw a link to each part of the page: it is long."""
    parts = {one.name: one.title for one in diagnostics.DIAGNOSTICS} | {TABLES_AT: "Tables and columns"}
    st.markdown(" · ".join(f"[{plain(title)}](#{_anchor(name)})" for name, title in parts.items()))


def _anchor(name: str) -> str:
    return f"methods-{name.replace('_', '-')}"


def every_diagnostic() -> None:
    """Draw, for each diagnostic, how it works and what its words mean."""
    for diagnostic in diagnostics.DIAGNOSTICS:
        st.subheader(plain(diagnostic.title), anchor=_anchor(diagnostic.name))
        st.caption(plain(diagnostic.question))
        about = Path(sections.__file__).parent / diagnostic.name / "method.md"
        if about.is_file():
            st.markdown(about.read_text(encoding="utf-8"))
        own = sections.of(diagnostic.name)
        if hasattr(own, "method"):
            own.method()
        for kind in dict.fromkeys(found.kind for found in diagnostic.definitions):
            st.markdown(f"**{plain(kind)}**")
            _definitions([found for found in diagnostic.definitions if found.kind == kind])


def _definitions(found: Sequence[Definition]) -> None:
    """Draw boxes where there is more to say than what the words mean, else a list."""
    if any(one.formula or one.advice or one.range for one in found):
        with st.grid(2, min_column_width=280):
            for one in found:
                facts = {
                    "Computed as": one.formula,
                    "Range": f"{one.range} {one.unit}".strip(),
                    "Direction": one.direction,
                    "Undefined when": one.undefined_when,
                    "What to do": one.advice,
                    "Source": one.source,
                }
                show.definition(one.title, one.meaning, facts)
    else:
        st.markdown("\n".join(f"- **{plain(one.title)}** — {plain(one.meaning)}" for one in found))


def tables() -> None:
    """Draw the columns of one chosen table of a run."""
    st.subheader("Tables and columns", anchor=_anchor(TABLES_AT))
    name = st.selectbox(
        "Table", list(TABLES), key="methods_table", format_func=lambda t: f"{t}: {TABLES[t].meaning}"
    )
    columns = TABLES[name].columns
    rows = {
        "Column": [c.name + (" (required)" if c.required else "") for c in columns],
        "Type": [f"{c.type}, {c.unit}" if c.unit else c.type for c in columns],
        "Meaning": [c.meaning for c in columns],
        "Also read from": [", ".join(c.aliases) for c in columns],
    }
    st.dataframe(rows, hide_index=True, alt=f"Columns of the table {name}")
