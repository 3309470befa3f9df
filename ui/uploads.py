"""Uploading an influence file: parse, map columns where needed, report, show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st

from core.errors import InputError
from core.report.exports import csv_bytes
from core.sources.influence_csv import MAPPABLE, read_influence_csv, suggest_mapping, template_csv
from core.sources.mapping import check_mapping
from core.sources.table import read_table
from ui import router, sources
from ui.plain import plain
from ui.state import session

ISSUES_SHOWN = 200
NONE = "— none —"
LIMIT = "At most 400 MB and 5 million rows."


def door() -> None:
    """Draw the upload door."""
    st.markdown(
        "An influence file has one row per question and retrieved passage: CSV, semicolons or tabs, "
        "also gzipped. "
        "What the file says of its own ranks and verdicts is compared with what is recomputed."
    )
    st.download_button(
        "Download a template",
        template_csv(),
        "influence-template.csv",
        "text/csv",
        icon=":material/description:",
        on_click="ignore",
        key="data_template",
    )
    file = st.file_uploader("Influence file", type=["csv", "tsv", "txt", "gz"], key="data_upload", help=LIMIT)
    kept = session().upload
    if file is None:
        return
    if kept.get("file_id") != file.file_id:
        kept.clear()
        kept["file_id"] = file.file_id
        _read(file, None)
    if kept.get("error"):
        st.error(plain(kept["error"]), icon=":material/error:")
    if kept.get("columns"):
        _mapping_form(file, kept)
    if kept.get("report") is not None:
        _loaded(kept["report"])


def _read(file: Any, mapping: dict[str, str] | None) -> None:
    """Import the file into the session; keep the error, and the columns where they need mapping."""
    kept = session().upload
    kept.update(error=None, report=None)
    data = file.getvalue()
    try:
        with st.spinner("Reading the file …"):
            imported = read_influence_csv(data, file.name, mapping)
    except InputError as error:
        kept["error"] = str(error)
        if "columns" not in kept:
            kept["columns"] = _columns_to_map(data, file.name)
        return
    kept["report"] = imported.report
    kept.pop("columns", None)
    sources.show_run(imported.run, "upload", report=imported.report)
    st.rerun()


def _columns_to_map(data: bytes, name: str) -> list[str]:
    """Return the file's columns when it is a table whose columns are not recognised, else nothing."""
    try:
        columns = [str(column) for column in read_table(data, name).frame.columns]
    except InputError:
        return []
    try:
        check_mapping(suggest_mapping(columns), columns, name)
    except InputError:
        return columns
    return []


def _mapping_form(file: Any, kept: dict[str, Any]) -> None:
    columns = kept["columns"]
    suggested = suggest_mapping(columns)
    st.subheader("Which column is which?", anchor=False)
    st.markdown(
        "Choose a column for the question and for the influence (or the ablated answers); the rest is "
        "optional."
    )
    with st.form("data_mapping"):
        chosen = _selects(_FIRST, columns, suggested)
        with st.expander("More columns"):
            chosen |= _selects([f for f in MAPPABLE if f not in _FIRST], columns, suggested)
        if st.form_submit_button("Read the file with these columns", type="primary"):
            _read(file, {field: column for field, column in chosen.items() if column and column != NONE})
            st.rerun()


def _selects(fields: Iterable[str], columns: list[str], suggested: Mapping[str, str]) -> dict[str, str]:
    options, chosen = [NONE, *columns], {}
    with st.grid("auto", min_column_width=230):
        for field in fields:
            index = options.index(suggested[field]) if field in suggested else 0
            label = field.replace("_", " ").capitalize()
            chosen[field] = st.selectbox(
                label, options, index, key=f"data_map_{field}", help=MAPPABLE[field].meaning
            )
    return chosen


_FIRST = ("question", "influence_score", "ablated_answer", "answer", "retrieval_rank", "passage_id")


def _loaded(validation: Any) -> None:
    state = session()
    st.success("The file is loaded and shown on every page.", icon=":material/check_circle:")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(
            router.OVERVIEW,
            label="Open the overview",
            icon=":material/monitoring:",
            query_params=sources.address(),
        )
        if not state.saved:
            st.button(
                "Save to my runs",
                icon=":material/save:",
                key="data_save",
                on_click=sources.save_current,
                help="The file is kept in this tab only; a saved run can be shared by its link.",
            )
    report(validation, "data")


def report(validation: Any, key: str) -> None:
    """Draw what was kept, what was not, and why; good rows are never dropped silently."""
    with st.grid(4, min_column_width=140):
        st.metric("Rows in the file", f"{validation.n_rows:,}", border=True)
        st.metric("Used", f"{validation.n_kept:,}", border=True)
        st.metric("Left out", f"{validation.n_rejected:,}", border=True)
        st.metric("Warnings", f"{validation.n_warnings:,}", border=True)
    for note in validation.notes:
        st.caption(plain(note))
    if validation.enables or validation.missing:
        with st.expander("What this file allows"):
            for line in validation.enables:
                st.markdown(f":material/check: {plain(line)}")
            for line in validation.missing:
                st.markdown(f":material/remove: {plain(line)}")
    issues = validation.to_frame()
    if len(issues):
        st.markdown("**What was found wrong**")
        st.dataframe(
            issues.head(ISSUES_SHOWN),
            hide_index=True,
            alt="Problems found in the file",
            column_config={
                "row": "Row",
                "column": "Column",
                "value": "Found",
                "expected": "Expected",
                "severity": "Kind",
            },
        )
        if validation.n_issues > ISSUES_SHOWN:
            st.caption(
                f"{ISSUES_SHOWN:,} of {validation.n_issues:,} problems; the download lists the first "
                f"{len(issues):,}."
            )
    with st.container(horizontal=True):
        if len(issues):
            st.download_button(
                "Download the list",
                csv_bytes(issues),
                "problems.csv",
                "text/csv",
                icon=":material/download:",
                on_click="ignore",
                key=f"{key}_issues",
            )
        if len(validation.rejected):
            st.download_button(
                "Download the rows left out",
                csv_bytes(validation.rejected),
                "rejected-rows.csv",
                "text/csv",
                icon=":material/download:",
                on_click="ignore",
                key=f"{key}_rejected",
            )
