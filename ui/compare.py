"""Two to four runs beside each other: which ones, their numbers, their set-ups, the questions they share."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import streamlit as st

from core.charts.compare import compare_figure as draw_compared
from core.errors import LeadlineError
from core.report.compare import LETTERS, Side, question_columns
from core.run import MANIFEST_FILE, Run
from core.text.display import count
from ui import cached, library, router, show, sources
from ui.cached import Comparison
from ui.plain import plain, shortened
from ui.state import session

CHOICES = 500  # as in `questions.picker`
_KEY = "side_runs"
_FILTERS = {"All": None, "Labels differ": "labels_differ", "Answers differ": "answers_differ"}


def choose() -> Comparison | None:
    """Draw the choice of runs, bound to the address; None where fewer than two are chosen."""
    offered = _offered()
    _follow_link(offered)
    chosen = st.multiselect(
        "Runs",
        list(offered),
        key=_KEY,
        format_func=lambda run_id: offered[run_id],
        max_selections=len(LETTERS),
        placeholder="Choose two to four runs",
    )
    session().compared = list(chosen)
    if list(chosen) != st.query_params.get_all("compare"):
        st.query_params["compare"] = list(chosen)
    runs = [opened for run_id in chosen if (opened := _open(run_id)) is not None]
    if len(runs) >= 2:
        return cached.comparison_of(runs)
    _what_to_do(offered)
    return None


def _offered() -> dict[str, str]:
    """Return the runs that can be chosen, by id: the loaded one, the saved ones, the ones of the app."""
    run = session().run
    names = {} if run is None else {run.run_id: f"{shortened(run.name, 60)} (loaded)"}
    for saved in library.saved_runs():
        when = saved.created[:16].replace("T", " ")
        names.setdefault(saved.run_id, f"{shortened(saved.name, 60)} · {when}")
    return names


def _follow_link(offered: dict[str, str]) -> None:
    """Put what the address names into the menu, if it is new; else what was chosen before."""
    state, asked = session(), st.query_params.get_all("compare")
    wanted = st.session_state.get(_KEY)
    if asked and asked != state.compared:
        wanted = asked
        missing = [run_id for run_id in asked if run_id not in offered]
        if missing:
            st.warning(
                f"The run {plain(shortened(missing[0], 40))} is not saved here, so it is left out: it was "
                "deleted, belongs to another machine, or was never saved.",
                icon=":material/link_off:",
            )
    elif wanted is None:
        wanted = list(offered)[:1] if state.compared is None else state.compared
    valid = [run_id for run_id in dict.fromkeys(wanted) if run_id in offered]
    st.session_state[_KEY] = valid[: len(LETTERS)]


def _open(run_id: str) -> tuple[str, Run] | None:
    state = session()
    if state.run is not None and state.run.run_id == run_id:
        return state.run_key, state.run
    saved = library.find(run_id)
    try:
        if saved is not None:
            stamp = (saved.folder / MANIFEST_FILE).stat().st_mtime_ns
            return f"{saved.folder} {stamp}", cached.saved_run(str(saved.folder), stamp)
    except (LeadlineError, OSError) as error:
        st.error(plain(error), icon=":material/error:")
    return None


def _what_to_do(offered: dict[str, str]) -> None:
    with st.container(border=True):
        st.markdown(
            "Choose at least two runs."
            if len(offered) > 1
            else "There is no second run yet. Ask another model the same questions, or load another run."
        )
        with st.container(horizontal=True):
            if session().run is not None:
                sources.continue_live("Ask the same questions of another model")
            sources.link(router.DATA, "Saved runs", "folder_open", door="Saved runs")


def numbers(comparison: Comparison) -> None:
    """Draw the headline numbers, one column a run, and what they do not say."""
    for mark, about in show.MARKS.items():
        marked = [side.letter for side in comparison.sides if side.run.mark == mark]
        if marked:
            st.info(f"**{', '.join(marked)}** · {about}", icon=":material/science:")
    show.table(comparison.headlines, "Headline numbers, one column for each run", height="content")
    st.caption(
        "Differences between runs are **not tested for significance** here. The interval of a mean says how "
        "far it could move with other questions of the same kind; it does not test one run against another. "
        "Only the questions that runs share are the same task."
    )


def figure(comparison: Comparison) -> None:
    """Draw one number of every question in every run; which one, the visitor chooses."""
    sides = comparison.sides
    values = {
        f"{column.title} ({name.replace('_', ' ')})": (
            column,
            [(side.run.name, side.diagnosis[name].queries[column.name]) for side in sides],
        )
        for name, column in question_columns(sides)
    }
    offered = {
        title: (column, runs)
        for title, (column, runs) in values.items()
        if column.pattern != "bool" and any(_has_numbers(found) for _, found in runs)
    }
    if not offered:
        st.caption("No diagnostic has a number for the questions of these runs.")
        return
    chosen = st.selectbox("Number", list(offered), key="side_number", persist_state="session")
    column, runs = offered[chosen if chosen in offered else next(iter(offered))]
    arrays = [(name, found.to_numpy(dtype=float, na_value=math.nan)) for name, found in runs]
    show.figure(draw_compared(arrays, column.title, column.bounds), "compare")


def _has_numbers(values: Any) -> bool:
    return bool(pd.api.types.is_numeric_dtype(values) and values.notna().any())


def setups(comparison: Comparison) -> None:
    """Draw the settings in which the runs differ."""
    if comparison.setups.empty:
        st.markdown("No differences in data, model, prompt and retriever.")
    else:
        show.table(comparison.setups, "Settings that differ, one column for each run", height="content")


def questions(comparison: Comparison) -> None:
    """Draw the questions that all runs share, in a table and one by one."""
    frame, sides = comparison.shared, comparison.sides
    held = ", ".join(f"{side.letter} has {len(side.run.queries):,}" for side in sides)
    st.caption(
        f"{count(len(frame), 'question')} with the same id and text in every run; {held}. "
        f"Labels differ in {int(frame['labels_differ'].sum()):,}, answers in "
        f"{int(frame['answers_differ'].sum()):,}."
    )
    if frame.empty:
        st.info(
            "These runs share no question, so no answers can be compared; their headline numbers belong to "
            "different tasks.",
            icon=":material/join_inner:",
        )
        return
    which = st.segmented_control(
        "Show", list(_FILTERS), default="All", required=True, key="side_filter", persist_state="session"
    )
    column = _FILTERS.get(which or "All")
    found = frame if column is None else frame[frame[column]]
    if found.empty:
        st.info("No shared question differs in this way.", icon=":material/check_circle:")
        return
    columns = {name: column for name, column in _columns(sides, found).items() if found[name].notna().any()}
    show.table(found, "Shared questions with the answers and numbers of every run", columns)
    _one_question(found, sides)


def _columns(sides: tuple[Side, ...], shared: Any) -> dict[str, Any]:
    config, letters = st.column_config, [side.letter for side in sides]
    columns: dict[str, Any] = {"question": config.TextColumn("Question", width="medium")}
    columns |= {f"answer_{x}": config.TextColumn(f"Answer {x}", width="medium") for x in letters}
    for _, one in question_columns(sides):
        for letter in letters:
            name = f"{one.name}_{letter}"
            columns[name] = show.column(one, f"{one.title} {letter}", shared[name])
    return columns


def _one_question(found: Any, sides: tuple[Side, ...]) -> None:
    labels = {
        str(query_id): shortened(text, 110) or str(query_id)
        for query_id, text in zip(found["query_id"].head(CHOICES), found["question"], strict=False)
    }
    if st.session_state.get("side_question") not in labels:
        st.session_state.pop("side_question", None)
    if len(found) > CHOICES:
        st.caption(f"The menu lists the first {CHOICES:,} of {len(found):,} questions.")
    query_id = st.selectbox(
        "Question", list(labels), key="side_question", format_func=labels.__getitem__, persist_state="session"
    )
    row = found[found["query_id"] == query_id].iloc[0]
    st.markdown(f"**{plain(row['question'])}**")
    with st.grid(2, min_column_width=260):
        for side in sides:
            with st.container(border=True, gap="xsmall", height="stretch"):
                _answer(side, row, str(query_id))


def _answer(side: Side, row: Any, query_id: str) -> None:
    letter = side.letter
    st.caption(f"**{plain(side.title, one_line=True)}**")
    show.quote(row[f"answer_{letter}"])
    own = [f"{one.title}: {one.text(row[f'{one.name}_{letter}'])}" for _, one in question_columns([side])]
    st.caption(plain(" · ".join(own)))
    state = session()
    loaded = state.run is not None and state.run.run_id == side.run.run_id
    st.page_link(
        router.WORKBENCH,
        label=f"Open {letter} in the workbench",
        icon=":material/arrow_forward:",
        query_params={**(state.link if loaded else {"run": side.run.run_id}), "question": query_id},
    )
