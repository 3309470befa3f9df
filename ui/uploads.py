"""Uploading a file of another tool: parse, map columns where needed, report, show, sum up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core import diagnostics
from core.errors import InputError
from core.pipeline.steps import asks_questions
from core.run import Run
from core.socket import Finding
from core.sources.content import SUFFIXES
from core.sources.dataset import Dataset, read_dataset
from core.sources.formats import (
    FORMATS,
    IMPORT_FORMATS,
    INFLUENCE_CSV,
    MAPPED,
    SAMPLED,
    UnknownFormatError,
    import_file,
    n_asked_again,
)
from core.sources.formats.exported import check_questions
from core.sources.mapping import (
    MAPPABLE,
    check_mapping,
    examples,
    guess_columns,
    suggest_mapping,
    values_in,
)
from core.sources.templates import TEMPLATES, template_csv
from core.text.display import count
from core.text.matching import labelled
from ui import cached, library, people, router, show, sources
from ui.plain import plain, shortened
from ui.state import session
from ui.work import has_labels

ISSUES_SHOWN = 200
COLUMNS_SHOWN = 200
NONE = "— none —"
UPLOADED = "Upload questions"  # the way on the Live page that takes the questions of a file
RUN_LIVE = "Run live with these questions"
NO_TEXTS = "This file has no texts: claims, live runs and exports of passages are not offered."
LIMIT = "At most 400 MB and 5 million rows."
AUTO, INFLUENCE = "auto", INFLUENCE_CSV


def title_of(name: str) -> str:
    """Return the title of a file format."""
    return FORMATS[name].title if name in FORMATS else "Auto-detect" if name == AUTO else name


def door() -> None:
    """Draw the upload, and what came of it."""
    st.markdown(
        "Records of another tool, or a table of your own: answers with labels and confidences, claims "
        "× passages, sampled answers, or influences (one row per question and retrieved passage). The format "
        "is detected from field names. Ranks and verdicts that a file reports are compared with recomputed "
        "ones."
    )
    st.caption(
        "Read here: " + ", ".join(plain(title_of(name)) for name in IMPORT_FORMATS if name != AUTO) + "."
    )
    people.explain("review")
    left, right = st.columns([3, 1], vertical_alignment="top")
    off = not people.may("review")
    file = left.file_uploader("File", type=SUFFIXES, key="data_upload", help=LIMIT, disabled=off)
    with right:
        chosen = st.selectbox(
            "Read as",
            IMPORT_FORMATS,
            key="data_format",
            format_func=title_of,
            help="Choose a format if the file is misdetected.",
        )
        with st.popover("Templates", icon=":material/description:", width="stretch"):
            for kind, title in TEMPLATES.items():
                st.download_button(
                    title,
                    template_csv(kind),
                    f"{kind}-template.csv",
                    "text/csv",
                    on_click="ignore",
                    key=f"data_template_{kind}",
                )
    kept = session().upload
    asked = None if file is None else (file.file_id, chosen)
    # What an upload gave stays until the next one, also when the visitor has looked at other pages.
    if file is not None and kept.get("asked") != asked:
        kept.clear()
        kept.update(asked=asked, name=file.name, format=chosen)
        _read(file.getvalue(), None)
    if kept.get("error"):
        st.error(plain(kept["error"]), icon=":material/error:")
    if kept.get("columns"):
        _mapping_form(kept)
    if kept.get("dataset") is not None:
        _dataset(kept["dataset"])
    if kept.get("run") is not None:
        _loaded(kept)


def _read(data: bytes, mapping: dict[str, str] | None) -> None:
    """Import the file into the session; keep the error, and the columns where they need mapping."""
    people.require("review")
    kept = session().upload
    kept["error"] = None
    name, file_format = kept["name"], kept["format"]
    try:
        with st.spinner("Reading the file …"):
            imported = import_file(data, name, file_format, mapping)
    except InputError as error:
        kept["error"] = str(error)
        if "columns" not in kept:
            kept["dataset"] = _questions(data, name) if file_format == AUTO else None
            if kept["dataset"] is not None:
                kept["error"] = None
            elif columns := _columns_to_map(data, name, file_format):
                kept.update(columns=columns, data=data)
                if isinstance(error, UnknownFormatError):
                    kept["error"] = (
                        f"{name} has columns of no known meaning: say below which is which, or choose its "
                        "format above."
                    )
                _forget_choices()
        return
    run = library.owned(imported.run)
    kept.update(run=run, report=imported.report)
    kept.pop("columns", None)
    kept["data"] = data if n_asked_again(run) else None
    _show(run)
    st.rerun()


def _show(run: Run) -> None:
    """Show an uploaded run on every page; the same file may have been saved before."""
    sources.show_run(run, "upload", saved=library.find(run.run_id) is not None)


def _questions(data: bytes, name: str) -> Dataset | None:
    """Return the file as questions for a live run, where it is a data set."""
    try:
        return read_dataset(data, name)
    except InputError:
        return None


def _dataset(dataset: Dataset) -> None:
    st.success(
        f"**{plain(dataset.name)}** is a data set: {count(len(dataset.questions), 'question')}, to be asked "
        "of a model.",
        icon=":material/quiz:",
    )
    if st.button(RUN_LIVE, icon=":material/play_circle:", type="primary", key="data_live"):
        session().live.update(uploaded=dataset, file_id=None, problem=None)
        st.switch_page(router.LIVE, query_params=sources.address(questions=UPLOADED))
    report(dataset.report, "data")


def _columns_to_map(data: bytes, name: str, file_format: str) -> Mapping[str, Sequence[str]]:
    """Return the file's columns with their first values where naming some can help, else nothing."""
    try:
        columns = values_in(data, name, COLUMNS_SHOWN)
        check_questions(columns, name)
    except InputError:
        return {}
    if file_format not in (AUTO, INFLUENCE):
        return columns if FORMATS[file_format].fields else {}
    try:
        check_mapping(suggest_mapping(columns), columns, name)
    except InputError:
        return columns
    return {}


def _forget_choices() -> None:
    for key in [key for key in st.session_state if str(key).startswith("data_map_")]:
        del st.session_state[key]


def _mapping_form(kept: dict[str, Any]) -> None:
    columns, file_format = kept["columns"], kept["format"]
    st.subheader("Which column is which?", anchor=False)
    if file_format in (AUTO, INFLUENCE):
        st.markdown(
            "Choose a column for the question, and for what the file says of it: influences "
            "(or ablated answers) of passages, answers with labels and confidences, claims with their "
            "support, or samples."
        )
        about = MAPPED if file_format == AUTO else {name: one.meaning for name, one in MAPPABLE.items()}
        guessed = guess_columns(columns, {field: field for field in about})
        first = [field for field in about if field in _FIRST or field in guessed]
        chosen = _selects({field: about[field] for field in first}, columns, guessed)
        with st.expander("More columns"):
            more = {field: text for field, text in about.items() if field not in first}
            chosen |= _selects(more, columns, guessed)
    else:
        st.markdown(f"Choose the columns of this file for {plain(title_of(file_format))}.")
        own = FORMATS[file_format].fields
        chosen = _selects(dict.fromkeys(own, ""), columns, guess_columns(columns, own))
    if st.button("Read the file with these columns", type="primary", key="data_mapped"):
        _read(kept["data"], {field: column for field, column in chosen.items() if column != NONE})
        st.rerun()


def _selects(
    fields: Mapping[str, str],
    columns: Mapping[str, Sequence[str]],
    guessed: Mapping[str, tuple[str, str]],
) -> dict[str, str]:
    """Draw a menu of columns for each field (with its meaning), and values of the chosen one."""
    options, chosen = [NONE, *columns], {}
    with st.grid("auto", min_column_width=230):
        for field, meaning in fields.items():
            guess, how = guessed.get(field, (NONE, ""))
            label = field.replace("_", " ").capitalize()
            with st.container(gap="xsmall"):
                chosen[field] = st.selectbox(
                    label,
                    options,
                    options.index(guess),
                    key=f"data_map_{field}",
                    help=meaning or None,
                    persist_state="session",
                )
                if chosen[field] != NONE:
                    by = f"guessed from its {how}: " if chosen[field] == guess else ""
                    shown = " · ".join(shortened(value, 30) for value in examples(columns[chosen[field]]))
                    st.caption(plain(by + (shown or "no value"), one_line=True))
    return chosen


_FIRST = (
    "question", "answer", "correct", "confidence", "influence_score", "ablated_answer", "retrieval_rank",
    "passage_id", "text", "claim", "support", "sample",
)  # fmt: skip


def banner() -> None:
    """Say on the Overview what an imported run's file claims and its numbers do not give."""
    run = session().run
    if run is None or run.manifest["source"] != "upload":
        return
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**Imported file:** {plain(_headline(run))}")
        with st.container(horizontal=True):
            _proof()
            if _is_latest(run):
                sources.link(router.DATA, "Import report", "fact_check", door="Upload")


def _changes() -> Finding | None:
    """Return the finding that reported verdicts change when they are recomputed."""
    return next((one for one in cached.findings() if one.name == "reported_verdicts"), None)


def _headline(run: Run) -> str:
    """Say what matters most of an imported run: verdicts that change, rows that were left out."""
    found, file = _changes(), run.manifest.get("dataset") or {}
    rows, rejected = int(file.get("rows", 0)), int(file.get("rejected", 0))
    used = f"{rejected:,} of {rows:,} rows were left out." if rejected else f"All {rows:,} rows were used."
    return f"{found.sentence} {used}" if found is not None else used


def _proof() -> None:
    """Draw the link to the verdicts that change."""
    found = _changes()
    page = None if found is None else router.page_of(found.diagnostic)
    if found is not None and page is not None:
        sources.link(page, "Verdicts that change", "rule", finding=f"{found.diagnostic}.{found.name}")


def _is_latest(run: Run) -> bool:
    latest = session().upload.get("run")
    return latest is not None and latest.run_id == run.run_id


def has_texts(run: Run) -> bool:
    """Tell whether a passage of the run has a text."""
    return any(text.strip() for text in run.passages["text"].dropna())


def _loaded(kept: Mapping[str, Any]) -> None:
    run, validation, shown = kept["run"], kept["report"], session().run
    title = plain(title_of(run.manifest["dataset"]["format"]))
    if shown is None or not _is_latest(shown):
        st.info(f"**{plain(run.name)}** was read as {title}. Another run is shown now.")
        st.button(
            "Show this file again", icon=":material/visibility:", key="data_show", on_click=_show, args=(run,)
        )
        report(validation, "data")
        return
    ignored = validation.ignored
    (st.warning if _changes() or validation.n_rejected or ignored else st.success)(
        f"**{plain(_headline(run))}**" + (f" {count(len(ignored), 'column')} not used." if ignored else ""),
        icon=":material/fact_check:",
    )
    _samples(kept)
    with st.container(horizontal=True, vertical_alignment="center"):
        _proof()
        sources.link(router.OVERVIEW, "Open the overview", "monitoring")
        # The report says where a live run would bring what the file lacks.
        if any("continue live" in line for line in validation.missing):
            about = "Ask a model the same questions with the same passages, to see which ones it uses."
            sources.continue_live(RUN_LIVE, about)
        sources.save_button("data_save")
    st.caption(f"Read as {title}. The file is loaded and shown on every page.")
    if has_texts(run):
        _next(run)
    else:
        st.caption(NO_TEXTS)
    report(validation, "data")


def _samples(kept: Mapping[str, Any]) -> None:
    """Ask whether answers to the same question are samples, and read the file so where they are."""
    if not (n := n_asked_again(kept["run"])) or kept.get("data") is None:
        return
    st.warning(
        f"{count(n, 'question comes', 'questions come')} with several answers. Were they sampled "
        "from one model?",
        icon=":material/help:",
    )
    if st.button("Yes, they are samples", icon=":material/casino:", key="data_samples"):
        session().upload["format"] = SAMPLED
        _read(kept["data"], None)


def _next(run: Run) -> None:
    """Draw links to what can be found out of the answers at once: steps that ask no model."""
    n_labelled = int(labelled(run.queries).sum())
    refused = int((run.queries["answer_status"] == "abstained").sum())
    for one in diagnostics.DIAGNOSTICS:
        step, page = one.step, router.page_of(one.name)
        if step is None or page is None or asks_questions(step) or one.lacks(run) is None:
            continue
        if not step().needs_llm and has_labels(step, n_labelled):
            sources.link(page, f"{step.title} (no model needed)", one.icon.split("/")[-1].strip(":"))
    if refused:
        st.caption(f"{count(refused, 'answer declines', 'answers decline')} to answer.")


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
        titles = {"row": "Row", "column": "Column", "value": "Found", "expected": "Expected"}
        titles["severity"] = "Kind"
        shown, alt = issues.head(ISSUES_SHOWN), "Problems found in the file"
        st.dataframe(shown, hide_index=True, alt=alt, column_config=titles)
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
