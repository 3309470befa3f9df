"""Influence in the whole run: verdicts, failure modes, every question, and checks against what is known."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.diagnosis import Diagnosis
from core.influence.definitions import LABELS, MODES
from core.influence.recovery import recovery
from core.influence.reported import WHY, compare_reported
from core.text.display import count, number
from ui import cached, headlines, questions, show
from ui.plain import shortened
from ui.state import session

_SIGNS = {"Aligned": "●", "Divergent": "▲", "Undefined": "○"}


def chart(name: str) -> None:
    """Draw a figure of the whole run."""
    show.figure(cached.chart("influence", name), name)


def chance() -> None:
    """Say in one sentence what the threshold makes of orders that mean nothing."""
    facts = _facts()
    share = facts["p_random_divergent"]
    if share is None:
        st.markdown("No question has a ρ, so there is nothing to compare with chance.")
        return
    tau = number(facts["threshold"])
    weak, strong = ("divergent", "aligned") if share > 0.5 else ("aligned", "divergent")
    st.markdown(
        f"**Chance baseline:** a random order of the passages falls below the threshold of {tau} in "
        f"**{number(100 * share, '{:.1f}')} %** of cases. Chance alone mostly gives “{weak}”, so “{strong}” "
        f"is the stronger evidence.{_mean_against_chance(facts['rho_ci'])}"
    )


def _mean_against_chance(interval: list[float] | None) -> str:
    """Say whether the run's mean rank agreement can be told from that of random orders, which is 0."""
    if interval is None:
        return ""
    low, high = interval
    if low > 0:
        return " The mean ρ is above 0, the mean of random orders: on average use follows retrieval."
    if high < 0:
        return " The mean ρ is below 0, the mean of random orders: on average use runs against retrieval."
    return (
        " The 95 % interval of the mean ρ includes 0, the mean of random orders. That does not show that use "
        "and retrieval are unrelated: ρ cannot see, for example, that both ends of the list are used most."
    )


def _facts() -> dict[str, Any]:
    return {one.key: one.value for one in cached.numbers("influence")}


def slope() -> None:
    """Draw the two orders of one chosen question."""
    chosen = questions.picker("influence_question", labels_of=_labels)
    if chosen is not None:
        show.figure(cached.chart("influence", "rank_slope", query_id=chosen), "slope")
        questions.link(chosen)


def _labels(frame: Any) -> dict[str, str]:
    labels = cached.diagnosis()["influence"].queries.set_index("query_id")["label"]
    return {
        str(i): f"{_SIGNS[labels[i]]} {shortened(text, 110) or i} · {labels[i].lower()}"
        for i, text in zip(frame["query_id"], frame["question"], strict=True)
    }


def modes() -> None:
    """Draw how often each failure mode occurs, of the questions that could show it, with chance and rule."""
    chart("failure_mode_counts")
    numbers = {one.key: one for one in cached.numbers("influence")}
    with st.grid(3, min_column_width=250):
        for name, mode in MODES.items():
            one = numbers[f"n_{name}"]
            found = f"{one.text} questions" if one.of else "not tested"
            facts = {"Rule": mode.meaning, "Chance baseline": one.note}
            show.definition(mode.title, mode.advice, facts, found)


def table() -> None:
    """Draw the table of questions with its filters and download."""
    frame = cached.diagnosis()["influence"].queries
    left, right = st.columns(2)
    labels = left.multiselect(
        "Label", LABELS, key="influence_labels", persist_state="session", placeholder="All labels"
    )
    chosen = right.multiselect(
        "Failure mode",
        list(MODES),
        key="influence_modes",
        persist_state="session",
        format_func=lambda name: MODES[name].title,
        placeholder="All, with or without",
    )
    if labels:
        frame = frame[frame["label"].isin(labels)]
    if chosen:
        frame = frame[frame[chosen].any(axis=1)]
    st.caption(count(len(frame), "question"))
    why = frame["label_reason"].map(lambda name: headlines.reason(name).title, na_action="ignore")
    show.table(
        frame.assign(label_reason=why), "Questions with their metrics", _COLUMNS, column_order=[*_COLUMNS]
    )
    show.csv("Download these questions (CSV)", frame, "questions", "influence_csv", session().run)


_number = st.column_config.NumberColumn
_COLUMNS: dict[str, Any] = {
    "query_id": st.column_config.TextColumn("Id", width="small"),
    "question": st.column_config.TextColumn("Question", width="large"),
    "label": "Label",
    "rho": _number("ρ", format="%.2f"),
    "influence_ndcg": _number("nDCG by influence", format="%.2f"),
    "ndcg_by_chance": _number("nDCG by chance", format="%.2f"),
    "label_reason": "Undefined because",
    "k": "k",
    "dominance": _number("Dominance", format="%.2f"),
    "entropy": _number("Entropy (nats)", format="%.2f"),
    "rank_biased_overlap": _number("RBO", format="%.2f"),
    "p_value": _number("p", format="%.3f"),
    "answer_status": "Answer",
    "correct": "Correct",
    "n_modes": "Failure modes",
}


def checks() -> None:
    """Draw what the file reports against what was recomputed, and what was planted against what was found."""
    reported()
    run = session().run
    if run is not None and run.simulated:
        planted()


def reported() -> None:
    """Draw what an imported file says of itself against what its own numbers give."""
    frame = cached.once("reported", _reported)
    if frame.empty:
        return
    changed = frame[frame["changed"]]
    st.subheader("Reported vs recomputed", anchor=False)
    st.markdown(
        f"The file has a verdict for {count(len(frame), 'question')}; recomputed from its own scores, "
        f"**{count(len(changed), 'verdict changes', 'verdicts change')}**."
    )
    st.markdown("\n".join(f"- **{n:,}** — {WHY[c]}" for c, n in changed["cause"].value_counts().items()))
    show.figure(cached.chart("influence", "verdict_changes", frame, of="reported"), "verdict_changes")
    columns = {
        "query_id": "Id",
        "question": "Question",
        "reported_rho": _number("ρ reported", format="%.2f"),
        "reported_label": "Reported",
        "rho": _number("ρ recomputed", format="%.2f"),
        "label": "Recomputed",
        "n_ranks_changed": "Ranks that differ",
        "changed": "Changed",
        "cause": None,
        "why": "Why",
    }
    only = st.toggle("Only verdicts that change", value=True, key="reported_only_changed")
    show.table(changed if only else frame, "Reported and recomputed verdicts, one row per question", columns)


def planted() -> None:
    """Draw what a simulation planted against what the metrics found."""
    frame = cached.once("recovery", _recovered)
    st.subheader("Ground truth vs recovered", anchor=False)
    st.markdown("The simulation knows the truth that it planted, so the metrics can be checked against it.")
    show.figure(cached.chart("influence", "recovery_chart", frame, of="recovery"), "recovery")
    columns = {
        "check": "Check",
        "value": _number("Value", format="%.2f"),
        "low": _number("95 % from", format="%.2f"),
        "high": _number("to", format="%.2f"),
        "n": "n",
        "meaning": "Meaning",
    }
    show.table(frame, "How well the metrics recover what was planted", columns)


def _reported(diagnosis: Diagnosis) -> Any:
    return compare_reported(diagnosis.run, diagnosis["influence"])


def _recovered(diagnosis: Diagnosis) -> Any:
    return recovery(diagnosis.run, diagnosis["influence"])
