"""Uploading a file of another tool: parse, map columns where needed, report, show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.errors import InputError
from core.sources.content import SUFFIXES, read_content
from core.sources.formats import FORMATS, IMPORT_FORMATS, INFLUENCE_CSV, import_file
from core.sources.influence_csv import MAPPABLE, suggest_mapping, template_csv
from core.sources.mapping import check_mapping
from core.sources.table import read_table
from ui import router, show, sources
from ui.plain import plain
from ui.state import session

ISSUES_SHOWN = 200
COLUMNS_SHOWN = 200
NONE = "— none —"
LIMIT = "At most 400 MB and 5 million rows."
AUTO, INFLUENCE = "auto", INFLUENCE_CSV
_TITLES = {AUTO: "Auto-detect", INFLUENCE: "Influence CSV"}


def title_of(name: str) -> str:
    """Return the title of a file format."""
    return FORMATS[name].title if name in FORMATS else _TITLES.get(name, name)


def door() -> None:
    """Draw the upload, and what came of it."""
    st.markdown(
        "Records of another tool, or a CSV of influences (one row per question and retrieved passage); also "
        "gzipped. The format is detected from field names. Ranks and verdicts that a file "
        "reports are compared with recomputed ones."
    )
    st.caption(
        "Read here: " + ", ".join(plain(title_of(name)) for name in IMPORT_FORMATS if name != AUTO) + "."
    )
    left, right = st.columns([3, 1], vertical_alignment="top")
    file = left.file_uploader("File", type=SUFFIXES, key="data_upload", help=LIMIT)
    with right:
        chosen = st.selectbox(
            "Read as",
            IMPORT_FORMATS,
            key="data_format",
            format_func=title_of,
            help="Choose a format if the file is misdetected.",
        )
        st.download_button(
            "Influence template",
            template_csv(),
            "influence-template.csv",
            "text/csv",
            icon=":material/description:",
            on_click="ignore",
            key="data_template",
        )
    kept = session().upload
    if file is None:
        return
    asked = (file.file_id, chosen)
    if kept.get("asked") != asked:
        kept.clear()
        kept["asked"] = asked
        _read(file, chosen, None)
    if kept.get("error"):
        st.error(plain(kept["error"]), icon=":material/error:")
    if kept.get("columns"):
        _mapping_form(file, kept)
    if kept.get("report") is not None:
        _loaded(kept)


def _read(file: Any, file_format: str, mapping: dict[str, str] | None) -> None:
    """Import the file into the session; keep the error, and the columns where they need mapping."""
    kept = session().upload
    kept.update(error=None, report=None)
    data = file.getvalue()
    try:
        with st.spinner("Reading the file …"):
            imported = import_file(data, file.name, file_format, mapping)
    except InputError as error:
        kept["error"] = str(error)
        if "columns" not in kept:
            kept["columns"] = _columns_to_map(data, file.name, file_format)
        return
    kept.update(report=imported.report, format=imported.run.manifest["dataset"]["format"])
    kept.pop("columns", None)
    sources.show_run(imported.run, "upload", report=imported.report)
    st.rerun()


def _columns_to_map(data: bytes, name: str, file_format: str) -> list[str]:
    """Return the file's columns where naming some of them can help, else nothing."""
    try:
        if file_format not in (AUTO, INFLUENCE):
            return read_content(data, name).keys(COLUMNS_SHOWN) if FORMATS[file_format].fields else []
        columns = [str(column) for column in read_table(data, name).frame.columns]
    except InputError:
        return []
    try:
        check_mapping(suggest_mapping(columns), columns, name)
    except InputError:
        return columns
    return []


def _mapping_form(file: Any, kept: dict[str, Any]) -> None:
    columns, file_format = kept["columns"], kept["asked"][1]
    st.subheader("Which column is which?", anchor=False)
    with st.form("data_mapping"):
        if file_format in (AUTO, INFLUENCE):
            st.markdown(
                "For influences, choose a column for the question and for the influence (or the ablated "
                "answers); the rest is optional. For another kind of file, choose its format above."
            )
            chosen = _influence_selects(columns)
        else:
            st.markdown(f"Choose the columns of this file for {plain(title_of(file_format))}.")
            own = FORMATS[file_format].fields
            present = {field: name for field, name in own.items() if name in columns}
            chosen = _selects(dict.fromkeys(own, ""), columns, present)
        if st.form_submit_button("Read the file with these columns", type="primary"):
            mapping = {field: column for field, column in chosen.items() if column and column != NONE}
            _read(file, INFLUENCE if file_format == AUTO else file_format, mapping)
            st.rerun()


def _influence_selects(columns: list[str]) -> dict[str, str]:
    suggested = suggest_mapping(columns)
    about = {field: column.meaning for field, column in MAPPABLE.items()}
    chosen = _selects({field: about[field] for field in _FIRST}, columns, suggested)
    with st.expander("More columns"):
        more = {field: text for field, text in about.items() if field not in _FIRST}
        return chosen | _selects(more, columns, suggested)


def _selects(fields: Mapping[str, str], columns: list[str], suggested: Mapping[str, str]) -> dict[str, str]:
    """Draw a menu of columns for each field; ``fields`` says what they mean."""
    options, chosen = [NONE, *columns], {}
    with st.grid("auto", min_column_width=230):
        for field, meaning in fields.items():
            index = options.index(suggested[field]) if field in suggested else 0
            label = field.replace("_", " ").capitalize()
            chosen[field] = st.selectbox(label, options, index, key=f"data_map_{field}", help=meaning or None)
    return chosen


_FIRST = ("question", "influence_score", "ablated_answer", "answer", "retrieval_rank", "passage_id")


def _loaded(kept: Mapping[str, Any]) -> None:
    state, validation = session(), kept["report"]
    st.success(
        f"Read as **{plain(title_of(kept['format']))}**. The file is loaded and shown on every page.",
        icon=":material/check_circle:",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        sources.link(router.OVERVIEW, "Open the overview", "monitoring")
        # The report says where a live run would bring what the file lacks.
        if any("continue live" in line for line in validation.missing):
            about = "Ask a model the same questions with the same passages, to see which ones it uses."
            sources.continue_live("Continue live", about)
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
        with st.expander("What this file allows", expanded=key == "data"):
            for line in validation.enables:
                st.markdown(f":material/check: {plain(line)}")
            for line in validation.missing:
                st.markdown(f":material/remove: {plain(line)}")
    issues = validation.to_frame()
    if len(issues):
        st.markdown("**Problems**")
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
            show.csv("Download the list", issues, "problems", f"{key}_issues")
        if len(validation.rejected):
            show.csv("Download the rows left out", validation.rejected, "rejected-rows", f"{key}_rejected")
