"""The browser of a calibration store: what is in it, what is added to it, what is left out."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pandas as pd
import streamlit as st

from core.calibration.in_use import in_use, kept_method
from core.calibration.store import exists
from core.conformal import CalibrationStore, cases_of
from core.errors import InputError
from core.text.display import count
from ui import cached, files, people, show
from ui.plain import plain
from ui.sections.conformal import run as page
from ui.state import session

USUAL = "calibration"


def draw() -> None:
    """Draw the store's name, what it holds, and what can be done with it."""
    st.markdown(
        "A store of the scores of labelled questions, to calibrate new answers with. It holds scores of one "
        "score, model, prompt and retriever only."
    )
    try:
        path = files.choose(files.STORES, "Store", "conformal_file", USUAL)
        if path is None:
            return
        _add(path)
        if exists(path) or files.is_there(path):
            _browse(path)
        else:
            st.info("There is no such store yet: adding makes it.", icon=":material/inbox:")
    except InputError as error:
        st.error(plain(error), icon=":material/error:")


def _add(path: Path) -> None:
    """Draw the button that adds the labelled questions of the run, and say how many are new."""
    key, learned = session().kept.get("confidence_learned", ("", None))
    method = learned.method if learned is not None and key == session().run_key else None
    if page.found().score is None:
        st.caption("This run has no labelled question with a score: nothing can be added.")
        return
    cases, own = cached.once(f"calibration cases {method}", lambda d: cases_of(d, method))
    if not cases:
        st.caption("This run has no labelled question with a score: nothing can be added.")
        return
    if method is not None:
        st.caption(
            "By the weights and the map learned on the page Confidence, without the questions that taught."
        )
    label = f"Add this run's labelled questions ({len(cases):,})"
    people.explain("review")
    off = not people.may("review")
    if not st.button(label, icon=":material/playlist_add:", key="conformal_add", disabled=off):
        return
    people.require("review")
    with closing(CalibrationStore(path, own)) as store:
        n = store.add(cases, own, method=kept_method(in_use(cached.diagnosis(), method)))
    there = len(cases) - n
    known = f" {count(there, 'question was', 'questions were')} there already and stayed." if there else ""
    st.success(f"{count(n, 'score')} added.{known}", icon=":material/check:")


def _browse(path: Path) -> None:
    """Draw what the store holds, where it comes from, and what leaves rows out."""
    with closing(CalibrationStore(path)) as store:
        frame = store.frame()
        if frame.empty:
            st.info("The store is empty.", icon=":material/inbox:")
            return
        _origin(store)
        left_out = frame["excluded"].notna()
        st.markdown(
            f"**{count(len(frame), 'score')}**, {int(left_out.sum()):,} of them excluded; "
            f"{int((frame['correct'] == True).sum()):,} of correct answers, "  # noqa: E712
            f"{int(frame['correct'].isna().sum()):,} not judged."
        )
        columns = {
            "question": show.wide("Question"),
            "prediction": show.wide("Answer", "medium"),
            "nonconformity_score": show.numeric("Score", "%.3f", "High = less typical"),
            "correct": st.column_config.CheckboxColumn("Correct", width="small"),
            "excluded": show.wide("Excluded because", "medium"),
            "kind": show.wide("Group", "small"),
            "timestamp": show.wide("Stored", "medium"),
        }
        event = show.table(
            frame, "Scores in the calibration store", columns,
            key=f"conformal_rows {path.stem}", on_select="rerun", selection_mode="multi-row",
        )  # fmt: skip
        if people.may("review"):
            _mark(store, frame, event["selection"]["rows"])
    show.csv("Download all rows (CSV)", frame, "calibration-store", "conformal_file_csv")


def _origin(store: CalibrationStore) -> None:
    """Say what identifies the scores; why they are of no use where they are mixed."""
    try:
        own = store.provenance
    except InputError as error:
        st.error(plain(error), icon=":material/error:")
        return
    if own is not None:
        parts = {"Score": own.score, "Model": own.model, "Prompt": own.prompt, "Retriever": own.retriever}
        st.caption(" · ".join(f"{title}: {plain(part, one_line=True)}" for title, part in parts.items()))


def _mark(store: CalibrationStore, frame: pd.DataFrame, places: list[int]) -> None:
    """Draw what leaves the chosen rows out of the calibration, or uses them again."""
    ids = [int(frame["id"].iloc[place]) for place in places if place < len(frame)]
    if not ids:
        st.caption("Choose rows to exclude them or to use them again.")
        return
    st.caption(
        "Exclude what is wrong without a look at its score: a false reference answer, a question of another "
        "kind. Leaving out rows because of their score, or because the answer is odd, breaks the promise."
    )
    reason = st.text_input(
        "Reason", key="conformal_reason", max_chars=500, placeholder="Wrong reference answer"
    )
    with st.container(horizontal=True):
        rows = count(len(ids), "row")
        if st.button(f"Exclude {rows}", icon=":material/block:", key="conformal_exclude"):
            store.exclude(ids, reason)
            st.rerun()
        if st.button(f"Use {rows} again", icon=":material/undo:", key="conformal_include"):
            store.include(ids)
            st.rerun()
