"""One question in detail: the answer beside its evidence, then every diagnostic's own section."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core import diagnostics
from core.rows import rows_of
from core.socket import BAD
from core.sources.formats.writing import is_kept
from core.text.display import count
from core.worklist import title_of
from ui import cached, headlines, questions, router, sections, show, sources, whatif, worklist
from ui.components import evidence
from ui.components.evidence import rows
from ui.plain import plain
from ui.state import session


def draw(query_id: str) -> None:
    """Draw a question with everything known of it, and the worklist beside it; on a phone below it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _steps()
        worklist.review(query_id)
    worklist.unkept(query_id)
    main, beside = st.columns([3, 1], gap="medium")
    with main:
        parts = sections.parts(query_id)
        _question(query_id, parts)
        for sentence in (sentence for part in parts for sentence in part.says):
            st.markdown(sentence)
        _reported(query_id)
        whatif.draw(query_id)
        _every_section(query_id)
    with beside:
        worklist.narrow()


def _steps() -> None:
    """Draw the way to the questions before and after this one in the worklist, and where it stands there."""
    at, waiting = worklist.place(session().question), worklist.unreviewed()
    for label, key, icon, by in (("Previous", "K", "before", -1), ("Next", "J", "next", 1)):
        target = worklist.step(by)
        name, off = f"workbench_{label.lower()}", target is None
        show.button(label, f"navigate_{icon}", name, session().open, target, shortcut=key, disabled=off)
    about = "The next question of the list that you have not reviewed; a finding as filter makes it its list."
    opened = (session().open, waiting)
    show.button(
        "Next unreviewed", "skip_next", "workbench_unreviewed", *opened, disabled=waiting is None, help=about
    )
    among = f"of {len(worklist.ids()):,}" + (" (filtered)" if worklist.said() else "")
    place = "Not in the list" if at is None else f"{at + 1:,}"
    st.markdown(f"{place} {among}", width="content")


def _question(query_id: str, parts: Sequence[sections.Part]) -> None:
    """Draw the question, what was found of it, its answer with all passages, and the evidence for it."""
    run, raw = session().the_run, questions.row(query_id)
    st.subheader(plain(raw["question"], one_line=True) or "(no text)", anchor=False)
    _chips(query_id, parts)
    with st.container(border=True):
        found = rows_of(run.passages, query_id).sort_values("retrieval_rank", kind="stable")
        evidence.draw(rows.evidence(raw, found, parts))
        _lacking(found, parts)


def _chips(query_id: str, parts: Sequence[sections.Part]) -> None:
    """Draw whether the answer is correct, and what is wrong by the findings that name the question."""
    diagnosis = cached.diagnosis()
    badges = [part.badge for part in parts if part.badge is not None]
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        for label, icon, colour in badges:
            st.badge(label, icon=icon, color=colour)  # type: ignore[arg-type]
        drawn = {label for label, *_ in badges}
        for one in cached.findings():
            title = title_of(diagnosis, one)
            if one.tone == BAD and query_id in one.query_ids and title not in drawn:
                headlines.badge(one, title)


def _lacking(passages: pd.DataFrame, parts: Sequence[sections.Part]) -> None:
    """Say which texts the run does not have, so that nobody looks for them in the rows."""
    if passages.empty:
        st.info("No passages were retrieved for this question.", icon=":material/inbox:")
        return
    measured = any(row.get("bar") for part in parts for row in part.rows.values())
    if passages["text"].isna().all():
        st.caption("The run has no texts of these passages.")
    if measured and passages["ablated_answer"].isna().all():
        st.caption("The run has influences, but no answers without a passage: no difference to show.")


def _reported(query_id: str) -> None:
    """Draw what an imported file says of the question beyond its texts, as the file says it."""
    run = session().the_run
    frame = rows_of(run["reported"], query_id)
    frame = frame[~frame["name"].map(is_kept).astype(bool)]
    if frame.empty:
        return
    with st.expander(f"Values from the file ({count(len(frame), 'value')})"):
        st.caption("Shown as the file has them; not used in calculations.")
        number, text = show.numeric("Number", "%g"), show.wide("Text")
        columns = {"name": "Name", "by": "Source", "value": number, "text": text}
        show.table(frame, "Values that the file reports", columns)


def _every_section(query_id: str) -> None:
    """Fold what each diagnostic says of the question; say at the end why others say nothing."""
    lacking = []
    for one in diagnostics.DIAGNOSTICS:
        missing = headlines.lacks(one.name)
        if missing is not None:
            lacking.append(f"{plain(one.title)}: {plain(missing)}")
            continue
        with show.more(plain(one.title), f"workbench_{one.name}") as part:
            if part.open:
                sections.draw(one, query_id)
                if (page := router.page_of(one.name)) is not None:
                    sources.link(page, "Whole run")
    if lacking:
        st.caption("\\\n".join(lacking))
