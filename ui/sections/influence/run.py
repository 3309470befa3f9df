"""Influence in the whole run: verdicts, failure modes, every question, and checks against what is known."""

from __future__ import annotations

import streamlit as st

from core.influence.definitions import LABELS, MODES
from core.influence.recovery import recovery
from core.influence.reported import WHY, compare_reported
from core.text.display import count, number
from ui import cached, headlines, questions, show
from ui.state import session


def chance() -> None:
    """Say in one sentence what the threshold makes of random orders."""
    facts = {one.key: one.value for one in cached.numbers("influence")}
    share = facts["p_random_divergent"]
    if share is not None:
        weak, strong = ("divergent", "aligned") if share > 0.5 else ("aligned", "divergent")
        st.markdown(
            "**Chance baseline:** a random order of the passages falls below the threshold of "
            f"{number(facts['threshold'])} in **{number(100 * share, '{:.1f}')} %** of cases. Chance alone "
            f"mostly gives “{weak}”, so “{strong}” is the stronger evidence."
        )


def slope() -> None:
    """Draw the two orders of one chosen question."""
    chosen = questions.picker("influence_question", of="influence")
    if chosen is not None:
        show.chart("influence", "rank_slope", query_id=chosen)
        questions.link(chosen)


def modes() -> None:
    """Draw how often each failure mode occurs, of the questions that could show it, with chance and rule."""
    show.chart("influence", "failure_mode_counts")
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
    show.table(frame.assign(label_reason=why), "Questions with their metrics", _COLUMNS)
    show.csv("Download these questions (CSV)", frame, "questions", "influence_csv", session().run)


_COLUMNS = {
    "query_id": show.wide("Id", "small"),
    "question": show.wide("Question"),
    "label": "Label",
    "rho": show.numeric("ρ"),
    "influence_ndcg": show.numeric("nDCG by influence"),
    "ndcg_by_chance": show.numeric("nDCG by chance"),
    "label_reason": "Undefined because",
    "k": "k",
    "dominance": show.numeric("Dominance"),
    "entropy": show.numeric("Entropy (nats)"),
    "rank_biased_overlap": show.numeric("RBO"),
    "p_value": show.numeric("p", "%.3f"),
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
    frame = cached.once("reported", lambda d: compare_reported(d.run, d["influence"]))
    if frame.empty:
        return
    changed = frame[frame["changed"]]
    st.subheader("Reported vs recomputed", anchor=False)
    st.markdown(
        f"The file has a verdict for {count(len(frame), 'question')}; recomputed from its own scores, "
        f"**{count(len(changed), 'verdict changes', 'verdicts change')}**."
    )
    st.markdown("\n".join(f"- **{n:,}** — {WHY[c]}" for c, n in changed["cause"].value_counts().items()))
    show.chart("influence", "verdict_changes", frame)
    columns = {
        "query_id": "Id",
        "question": "Question",
        "reported_rho": show.numeric("ρ reported"),
        "reported_label": "Reported",
        "rho": show.numeric("ρ recomputed"),
        "label": "Recomputed",
        "n_ranks_changed": "Ranks that differ",
        "changed": "Changed",
        "why": "Why",
    }
    only = st.toggle("Only verdicts that change", value=True, key="reported_only_changed")
    show.table(changed if only else frame, "Reported and recomputed verdicts, one row per question", columns)


def planted() -> None:
    """Draw what a simulation planted against what the metrics found."""
    frame = cached.once("recovery", lambda d: recovery(d.run, d["influence"]))
    st.subheader("Ground truth vs recovered", anchor=False)
    st.markdown("The simulation knows the truth that it planted, so the metrics can be checked against it.")
    show.chart("influence", "recovery_chart", frame)
    columns = {
        "check": "Check",
        "value": show.numeric("Value"),
        "low": show.numeric("95 % from"),
        "high": show.numeric("to"),
        "n": "n",
        "meaning": "Meaning",
    }
    show.table(frame, "How well the metrics recover what was planted", columns)
