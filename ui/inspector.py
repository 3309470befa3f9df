"""One question in detail: the answer, and each passage with what leaving it out changed."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from core.definitions import MODES, UNDEFINED_REASONS
from core.influence import chance_band
from core.text.stop_words import ENGLISH
from core.sources.formats.kept import is_kept
from core.text.diff import mark_words, word_diff
from ui import cached, questions, show
from ui.plain import plain, shortened, tinted
from ui.state import session

AT_FIRST = 15  # passages drawn before "show all"
STATUS = {
    "answered": "answered",
    "abstained": "abstained (says that it does not know)",
    "empty": "empty",
    "error": "failed",
}
_STYLE = {"same": None, "removed": "removed", "added": "added"}


def answer(query_id: str) -> None:
    """Draw the question, its answer, its numbers or why they are undefined."""
    raw, row = _raw(query_id), _row(query_id)
    with st.container(border=True):
        st.caption("Question")
        st.markdown(f"**{plain(raw['question'])}**")
        left, right = st.columns(2)
        with left:
            st.caption(f"Answer with all {row['k']} passages · {status(raw['answer_status'])}")
            quote(raw["answer"])
            if _text(raw["status_reason"]):
                st.caption(f"Reason given: {plain(shortened(raw['status_reason'], 300))}")
        with right:
            st.caption("Closed-book answer (no passages)")
            quote(raw["closed_book_answer"], "not asked")
            _references(raw, row)
    questions.claims_link(query_id)
    _agreement(row)
    for mode, definition in MODES.items():
        if row[mode]:
            st.markdown(f"- **{definition.title}** — {definition.rule} {definition.advice}")


def _agreement(row: Any) -> None:
    if _text(row["reason"]):
        reason = UNDEFINED_REASONS[row["reason"]].meaning
        st.info(f"**No ρ for this question.** {reason}", icon=":material/do_not_disturb_on:")
        return
    band = chance_band(int(row["k"]))
    noise = f"on {show.count(int(row['n_repeats']), 'repeat')}" if row["n_repeats"] else "no repeats were run"
    show.cards(
        [
            (
                "Rank agreement ρ",
                show.number(row["rho"]),
                f"{row['label']}; chance alone: {show.number(band.low)} to {show.number(band.high)}",
                "95 % of random orders fall in this range.",
            ),
            ("Dominance", show.number(row["dominance"]), "share of the strongest passage", ""),
            (
                "Entropy",
                show.number(row["entropy"]),
                f"nats; {show.number(row['entropy_normalised'])} of the maximum",
                "",
            ),
            (
                "Noise floor",
                show.number(row["noise_quantile"]),
                noise,
                "How far the answer moves when nothing is left out.",
            ),
        ]
    )


def reported(query_id: str) -> None:
    """Draw what an imported file says of the question beyond its texts, as the file says it."""
    frame = _run()["reported"]
    frame = frame[(frame["query_id"] == query_id) & ~frame["name"].map(is_kept).astype(bool)]
    if frame.empty:
        return
    with st.expander(f"What the file says ({show.count(len(frame), 'value')})"):
        st.caption("Values of the imported file. They are shown as they are and used for nothing.")
        columns = {
            "name": "Name",
            "by": "Said by",
            "value": st.column_config.NumberColumn("Number", format="%g"),
            "text": st.column_config.TextColumn("Text", width="large"),
        }
        show.table(frame, "Values that the file reports", columns, column_order=list(columns))


def _references(raw: Any, row: Any) -> None:
    references = raw["reference_answers"]
    if references is None or not len(references):
        return
    st.caption(f"Reference answers · this answer is {verdict(row['correct'])}")
    quote(" / ".join(str(reference) for reference in references))


def passages(query_id: str) -> None:
    """Draw the table of passages and, one by one, their text and what leaving them out changed."""
    analysed = cached.current_analysis().passages
    analysed = analysed[analysed["query_id"] == query_id].set_index("passage_id", drop=False)
    raw = _run().passages
    raw = raw[raw["query_id"] == query_id].set_index("passage_id", drop=False)
    if analysed.empty:
        st.info("No passages were retrieved for this question.", icon=":material/inbox:")
        return
    _table(analysed, raw)
    order = st.segmented_control(
        "Order",
        ["By retrieval", "By influence"],
        default="By retrieval",
        key="inspector_order",
        persist_state="session",
    )
    column = "influence_rank" if order == "By influence" else "retrieval_order"
    ids = list(analysed.sort_values(column, kind="stable")["passage_id"])
    if len(ids) > AT_FIRST and not st.toggle(f"Show all {len(ids)} passages", key="inspector_all"):
        ids = ids[:AT_FIRST]
    question = _raw(query_id)
    for position, passage_id in enumerate(ids):
        _passage(question, raw.loc[passage_id], analysed.loc[passage_id], opened=position == 0)


def _table(analysed: Any, raw: Any) -> None:
    frame = analysed.assign(
        title=raw["title"],
        flags=[", ".join(_flags(row)) for _, row in analysed.iterrows()],
    ).sort_values("retrieval_order", kind="stable")
    number = st.column_config.NumberColumn
    columns = {
        "retrieval_rank": number("Retrieval rank", format="%g"),
        "passage_id": "Id",
        "title": st.column_config.TextColumn("Title", width="medium"),
        "retrieval_score": number("Score", format="%.2f"),
        "influence": number("Influence", format="%.3f"),
        "influence_low": number("from", format="%.3f", help="Smallest influence over the repeated baselines"),
        "influence_high": number("to", format="%.3f", help="Largest influence over the repeated baselines"),
        "influence_rank": number("Influence rank", format="%g"),
        "rank_shift": number("Shift", format="%+g", help="Positive: used more than retrieved"),
        "above_noise": "Above noise",
        "is_gold": "Gold",
        "flags": "Failure modes",
    }
    present = [
        name for name in columns if frame[name].notna().any() and (frame[name].astype("str") != "").any()
    ]
    show.table(frame, "Passages of this question", columns, column_order=present)


def _passage(question: Any, raw: Any, row: Any, *, opened: bool) -> None:
    marks = [*(["gold"] if _bool(row["is_gold"]) else []), *_flags(row)]
    title = (
        shortened(raw["title"], 50) if _text(raw["title"]) else f"passage {shortened(raw['passage_id'], 30)}"
    )
    rank, influence = show.number(row["retrieval_rank"], "{:g}"), show.number(row["influence"])
    label = f"Rank {rank} · influence {influence} · {plain(title)}"
    with st.expander(label + (f" · **{', '.join(marks)}**" if marks else ""), expanded=opened):
        st.caption(_placing(row))
        text, diff = st.columns(2)
        with text:
            st.caption("Passage, with the question's words marked")
            body = _text(raw["text"])
            if body:
                pieces = mark_words(body, _text(question["question"]), ENGLISH)
                st.markdown(tinted(("term" if hit else None, piece) for hit, piece in pieces))
            else:
                st.markdown("*The data hold no text for this passage.*")
        with diff:
            st.caption("Answer without this passage, against the baseline (− removed, + added)")
            _difference(question, raw)


def _difference(question: Any, raw: Any) -> None:
    before, after = question["answer"], raw["ablated_answer"]
    if not isinstance(after, str):
        st.markdown("*The data hold no answer without this passage.*")
    elif not isinstance(before, str):
        st.markdown(plain(after))
    elif before == after:
        st.markdown("*Unchanged.*")
    else:
        st.markdown(tinted((_STYLE[operation], text) for operation, text in word_diff(before, after)))


def _placing(row: Any) -> str:
    low, high = row["influence_low"], row["influence_high"]
    interval = f" ({show.number(low)} to {show.number(high)} over repeats)" if low == low else ""
    known = {True: "above the noise floor", False: "within the noise band", None: "noise floor unknown"}
    noise = known[_bool(row["above_noise"])]
    return (
        f"Score {show.number(row['retrieval_score'])} · influence rank "
        f"{show.number(row['influence_rank'], '{:g}')} · "
        f"influence {show.number(row['influence'], '{:.3f}')}{interval}, {noise}"
    )


def _flags(row: Any) -> list[str]:
    return [mode.title for name, mode in MODES.items() if mode.per_passage and _bool(row[name])]


def quote(text: Any, absent: str = "none") -> None:
    """Draw a text of the data, or ``absent`` where there is none."""
    value = _text(text)
    st.markdown(plain(value) if value.strip() else f"*{absent}*")


def status(value: Any) -> str:
    """Return the status of an answer in words."""
    return STATUS.get(_text(value), "status unknown")


def verdict(correct: Any) -> str:
    """Return whether an answer is right, in words."""
    return {True: "right", False: "wrong", None: "not judged"}[_bool(correct)]


def _raw(query_id: str) -> Any:
    queries = _run().queries
    return queries[queries["query_id"] == query_id].iloc[0]


def _row(query_id: str) -> Any:
    queries = cached.current_analysis().queries
    return queries[queries["query_id"] == query_id].iloc[0]


def _run() -> Any:
    run = session().run
    assert run is not None
    return run


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _bool(value: Any) -> bool | None:
    """Read a nullable boolean; None where it is missing."""
    return None if value is None or value is pd.NA else bool(value)
