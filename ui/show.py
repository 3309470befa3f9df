"""Small helpers that every page draws with: figures, cards, tables, empty states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import pandas as pd
import streamlit as st

from core.charts.theme import alt_text, has_doors
from core.report.exports import exporters
from core.run import Run
from core.socket import QuestionColumn
from core.spreadsheet import csv_bytes
from core.text.display import count, number
from ui import cached, doors, router, sources
from ui.figures import ready
from ui.plain import held, plain
from ui.state import session

ROWS_SHOWN = 1_000
_MIME = {".csv": "text/csv", ".json": "application/json", ".jsonl": "application/x-ndjson"}
MARKS = {
    "simulated": "Simulated data: these numbers come from the simulation, not from a language model.",
    "composed": "Composed for demonstration, no model run.",
}


def heading(title: str, caption: str) -> None:
    """Draw the page's title and its one-line purpose; data that no model gave are always labelled."""
    st.title(title, anchor=False)
    st.caption(caption)
    state = session()
    if state.problem:
        st.warning(plain(state.problem), icon=":material/link_off:")
    if state.run is not None and state.run.mark:
        st.info(MARKS[state.run.mark], icon=":material/science:")
    if state.run is not None and state.run.sampled_from is not None:
        _of_a_sample(state.run, state.run.sampled_from)


def _of_a_sample(run: Run, n_all: int) -> None:
    n = run.n_rows("queries")
    within = f"{100 * run.sampling_error:.1f} percentage points"
    st.info(
        f"A random sample of {n:,} of the run's {n_all:,} questions. A share of all questions differs from "
        f"the share shown here by at most {within} (95 %).",
        icon=":material/casino:",
    )
    about = (
        "The first time this takes minutes, and memory in proportion (5,000 questions took 0.8 GB); the "
        "results are kept."
    )
    button(f"Analyse all {n_all:,} questions", "select_all", "whole_run", sources.open_whole, help=about)


def needs_run() -> bool:
    """Tell whether a run is loaded; where none is, say what to do."""
    if session().run is not None:
        return True
    with st.container(border=True):
        st.subheader("No run is loaded", anchor=False)
        st.markdown(
            "Upload a file, ask a model about your own documents, or look around with simulated data."
        )
        with st.container(horizontal=True):
            sources.link(router.DATA, "Upload a file", "upload", door="Upload")
            sources.link(router.LIVE, "Start a live run", "play_circle")
            sources.link(router.DATA, "Simulate", "science", door="Simulation")
    return False


def chart(diagnostic: str, name: str, *data: Any, of: str = "", **arguments: Any) -> None:
    """Draw a diagnostic's figure; parameters as for `ui.cached.chart`."""
    figure(cached.chart(diagnostic, name, *data, of=of, **arguments), name)


# Without a mouse to hover with, the toolbar always shows, and on a phone it lies on the figure.
# A tap is a touch and then a click: taken for a double click, it would select nothing.
_CONFIG = {"displaylogo": False, "displayModeBar": False, "doubleClickDelay": 0}


def figure(fig: Any, key: str) -> None:
    """Draw a figure over the full width, with its description for those who cannot see it.

    A click on a mark with a door follows it.
    """
    fig = ready(fig)
    options: dict[str, Any] = {"on_select": "rerun", "selection_mode": "points"} if has_doors(fig) else {}
    event = st.plotly_chart(
        fig,
        width="stretch",
        key=key,
        config=_CONFIG,
        alt=alt_text(fig),
        **options,
    )
    if options:
        doors.follow(event, key)


def button(label: str, icon: str, key: str, do: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Draw a button that calls ``do(*args)`` before the page is drawn again."""
    st.button(label, icon=f":material/{icon}:", key=key, on_click=do, args=args, **options)


def choice(label: str, titles: Mapping[Any, str], key: str, about: str | None = None) -> Any:
    """Draw a choice of a few things with their titles, at first the first; other pages keep it."""
    first = next(iter(titles))
    chosen = st.segmented_control(
        label, list(titles), default=first, required=True, key=key, persist_state="session", help=about,
        format_func=lambda one: titles.get(one, one),
    )  # fmt: skip
    return first if chosen is None else chosen


def menu(label: str, titles: Mapping[Any, str], key: str, about: str | None = None) -> Any:
    """Draw a menu of things with their titles; other pages keep what is chosen, while it is offered."""
    if st.session_state.get(key) not in titles:
        st.session_state.pop(key, None)
    title_of = titles.__getitem__
    return st.selectbox(
        label, list(titles), key=key, format_func=title_of, persist_state="session", help=about
    )


def more(what: str = "More figures", key: str | None = None) -> Any:
    """Return the closed container for what stands behind the two figures that a page opens with.

    With a ``key``, its ``open`` tells whether to draw what is in it: many figures take a second of a browser
    that nobody looks at.
    """
    return st.expander(what, icon=":material/unfold_more:", key=key, on_change="rerun" if key else "ignore")


def cards(values: Sequence[tuple[str, str, str, str]]) -> None:
    """Draw numbers: (label, value, its n and whatever else belongs to it, help)."""
    n = len(values)
    if not n:
        return
    with st.grid(n if n <= 4 else 3 if n <= 6 else 4, min_column_width=150):
        for label, value, basis, help_text in values:
            with st.container(border=True, height="stretch"):
                st.metric(label, value, help=help_text or None)
                if basis:
                    st.caption(basis)


def table(frame: pd.DataFrame, alt: str, columns: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """Draw at most 1,000 rows of a table; of the columns that are named, those with a value anywhere.

    Returns what `st.dataframe` does: the selection, where ``options`` ask for one.
    """
    if columns is not None:
        filled = [name for name in columns if _has_values(frame[name].head(ROWS_SHOWN))]
        options["column_order"] = filled or list(columns)
    shown, config = _with_minus(frame.head(ROWS_SHOWN), columns or {})
    event = st.dataframe(
        shown,
        hide_index=True,
        column_config=config,
        alt=alt,
        placeholder="—",
        **options,
    )
    if len(frame) > ROWS_SHOWN:
        st.caption(f"The first {ROWS_SHOWN:,} of {len(frame):,} rows; the download holds all of them.")
    return event


def _with_minus(frame: pd.DataFrame, columns: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Write negative numbers with the minus sign of the prose; the browser's own format has a hyphen."""
    config, patterns = dict(columns), {}
    for name, column in config.items():
        pattern = (column.get("type_config") or {}).get("format") if isinstance(column, Mapping) else None
        if pattern and pattern.startswith("%") and bool((frame[name] < 0).any()):
            patterns[name] = partial(number, pattern=f"{{:{pattern[1:]}}}")
            config[name] = {**column, "type_config": {**column["type_config"], "format": None}}
    return (frame.reset_index(drop=True).style.format(patterns) if patterns else frame), config


def _has_values(values: pd.Series) -> bool:
    return bool((values.notna() & (values.astype("str") != "")).any())


def numeric(title: str, pattern: str = "%.2f", about: str | None = None) -> Any:
    """Return a table's column of numbers."""
    return st.column_config.NumberColumn(title, format=pattern, help=about)


def wide(title: str, width: Literal["small", "medium", "large"] = "large", about: str | None = None) -> Any:
    """Return a table's column of text."""
    return st.column_config.TextColumn(title, width=width, help=about)


def column(one: QuestionColumn, title: str, values: pd.Series) -> Any:
    """Return how a table shows a diagnostic's column."""
    if one.is_list:
        shown = pd.Series(
            [each for cell in values.head(ROWS_SHOWN).dropna() for each in cell], dtype="float64"
        )
        # A setting may put another measure, with other bounds, into the same column.
        low, high = one.bounds if one.bounds and shown.dropna().between(*one.bounds).all() else (None, None)
        return st.column_config.BarChartColumn(title, y_min=low, y_max=high, width="small")
    if pd.api.types.is_bool_dtype(values):
        return st.column_config.CheckboxColumn(title, width="small")
    if pd.api.types.is_numeric_dtype(values):
        return st.column_config.NumberColumn(title, format=f"%{one.pattern[2:-1]}", width="small")
    return st.column_config.TextColumn(title, width="small")


def definition(
    title: str, meaning: str, facts: Mapping[str, str], found: str = "", condition: str = ""
) -> None:
    """Draw one entry of a glossary; facts that are empty are left out.

    ``found`` says how often it occurs; the questions that meet ``condition`` have a link.
    """
    with st.container(border=True, gap="xsmall", height="stretch"):
        st.markdown(f"**{plain(title)}**" + (f" · {found}" if found else ""))
        st.markdown(plain(meaning))
        lines = [f"{name}: {plain(fact)}" for name, fact in facts.items() if fact]
        st.caption("\\\n".join(lines))
        ids = cached.matching(condition) if condition else ()
        if ids:
            label = f"Read {count(len(ids), 'question')}"
            sources.link(router.WORKBENCH, label, where=condition, question=ids[0])


def sentence(markdown: str) -> None:
    """Draw a sentence of our own; between a number and its unit no line breaks."""
    st.markdown(held(markdown))


def quote(value: Any, absent: str = "none") -> None:
    """Draw a text of the data, or ``absent`` where there is none."""
    given = text(value)
    st.markdown(plain(given) if given.strip() else f"*{absent}*")


def text(value: Any) -> str:
    """Return a text of the data, "" where there is none."""
    return value if isinstance(value, str) else ""


def yes_or_no(value: Any) -> bool | None:
    """Read a nullable boolean; None where it is missing."""
    return None if value is None or value is pd.NA or value != value else bool(value)


def csv(label: str, frame: pd.DataFrame, name: str, key: str, run: Run | None = None) -> None:
    """Draw the button that downloads a table; one of a run says where the run comes from."""
    mark = "" if run is None else run.mark
    file = f"{name}-{mark}.csv" if mark else f"{name}.csv"
    download(label, lambda: csv_bytes(frame, None if run is None else run.data_source), file, key)


def download(label: str, write: Callable[[], bytes], file: str, key: str) -> None:
    """Draw the button that writes a file when it is pressed."""
    mime = _MIME.get(file[file.rfind(".") :], "application/octet-stream")
    st.download_button(label, write, file, mime, icon=":material/download:", on_click="ignore", key=key)


def export(name: str, label: str = "Download") -> str:
    """Draw the button that writes the session's run to a file; return the file's name."""
    run, found = session().the_run, exporters()[name]
    kind = found.name.removesuffix(found.ending[1:]).rstrip("-")
    parts = ["leadline", run.run_id, run.mark, kind]
    file = "-".join(filter(None, parts)) + found.ending
    download(label, cached.export(found.name), file, f"export_{name}")
    return file
