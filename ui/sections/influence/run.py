"""Influence in the whole run: verdicts, failure modes, every question, and checks against what is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.conditions import where
from core.influence.chance import chance_band
from core.influence.definitions import LABELS, MODES, ORDER_MODES
from core.influence.reported import WHY, compare_reported
from core.text.display import count, number
from ui import cached, headlines, questions, router, show, sources
from ui.state import settings


def measured() -> None:
    """Say what influence is where it is not measured by words, and how to get it where it is not known."""
    analysis = cached.diagnosis()["influence"]
    measure = analysis.measure
    if not measure.is_signed:
        return
    n = analysis.passages.dropna(subset="influence")["query_id"].nunique()
    estimated = int(analysis.run.passages["approximate_drop"].fillna(value=False).sum())
    st.info(
        f"**{measure.title}:** {measure.asks}{f', in {measure.unit}' if measure.unit else ''}. "
        f"Known for {n:,} of {count(len(analysis.queries), 'question')}."
        + ("" if n else f" {measure.reason.meaning}")
        + (
            f" Approximate, estimated by the quick screen: {count(estimated, 'value')}."
            if estimated and "approximate_drop" in measure.exported
            else ""
        ),
        icon=":material/query_stats:",
    )
    page = router.page_of(measure.step)
    if not n and page is not None:
        sources.link(page, headlines.diagnostic_of(measure.step).step.title, "query_stats")


def _drawn(title: str, text: str, name: str, *data: Any) -> None:
    """Draw a figure under its title; nothing where it has nothing to show for this run."""
    if cached.chart("influence", name, *data).data:
        st.subheader(title, anchor=False)
        show.sentence(text)
        show.chart("influence", name, *data)


def ranks() -> None:
    """Draw retrieval rank against influence rank, of all questions or of those with one label."""
    labels = cached.diagnosis()["influence"].defined["label"].value_counts()
    counts = {name: int(labels.get(name, 0)) for name in LABELS}
    if not sum(counts.values()):
        return
    st.subheader("Influence rank vs retrieval rank", anchor=False)
    st.markdown(
        "Blue cells hold more passages than random orders of the same influences would, red cells fewer. A "
        "model that follows the retriever makes the diagonal blue."
    )
    titles = {"": f"All ({sum(counts.values()):,})"} | {
        name: f"{name} ({n:,})" for name, n in counts.items() if name != "Undefined"
    }
    shown = show.choice("Questions", titles, "influence_shown")
    show.chart("influence", "rank_against_rank", label=shown or None)
    st.caption(_what_tau_does(counts, shown))


def _what_tau_does(counts: Mapping[str, int], shown: str) -> str:
    """Say what the threshold changes in the figure, and what it cannot."""
    tau = number(float(settings()["influence_threshold"]))
    split = (
        f"At τ = {tau}, {count(counts['Aligned'], 'question is', 'questions are')} aligned and "
        f"{counts['Divergent']:,} divergent"
    )
    if shown:
        return (
            f"{split}. Questions are aligned because they lie along the diagonal: in this view the surplus "
            "there follows from the choice and is no evidence."
        )
    if not counts["Aligned"] or not counts["Divergent"]:
        return f"{split}: only a τ between their values of ρ splits them. No cell of this view depends on τ."
    return f"{split}. τ moves this split and the lines; no cell of this view depends on it."


def by_rank() -> None:
    """Draw the mean influence at every place of the retriever's order."""
    text = (
        "Where the line leaves the band, passages at this rank are used more, or less, than chance explains."
    )
    _drawn("Influence by retrieval rank", text, "influence_by_rank")


def order_of_use() -> None:
    """Draw what the retriever puts first against what the model uses, by question."""
    text = "Above the diagonal the retriever does better than chance for that question."
    _drawn("Is the most used passage first?", text, "ndcg_against_chance")


def agreement() -> None:
    """Draw ρ of every question by label, with what chance makes of τ."""
    chance = _chance()
    if chance:
        _drawn("Rank agreement of every question", chance, "rho_histogram")


def _chance() -> str:
    """Say in one sentence what the threshold makes of random orders."""
    facts = {one.key: one.value for one in cached.numbers("influence")}
    share = facts["p_random_divergent"]
    if share is None:
        return ""
    weak, strong = ("divergent", "aligned") if share > 0.5 else ("aligned", "divergent")
    return (
        f"A random order falls below τ = {number(facts['threshold'])} in "
        f"**{number(100 * share, '{:.1f}')} %** of cases: chance alone mostly gives “{weak}”, so "
        f"“{strong}” is the stronger evidence."
    )


def spread() -> None:
    """Draw how concentrated the influence of each question is."""
    text = (
        "Top left, one passage carries the answer; bottom right, all do a little. The order of the passages "
        "plays no part, so there is no chance baseline."
    )
    _drawn("How concentrated the influence is", text, "entropy_dominance")


def modes() -> None:
    """Draw how often each failure mode occurs, of the questions that could show it, with chance and rule."""
    text = "Where chance can give a mode, only a bar that ends beyond its chance mark is a finding."
    _drawn("Failure modes", text, "failure_mode_counts")
    numbers = {one.key: one for one in cached.numbers("influence")}
    found = headlines.wrong_with("influence")
    with st.grid(3, min_column_width=250):
        for name, mode in MODES.items():
            one = numbers[f"n_{name}"]
            if one.of:
                facts = {"Rule": mode.meaning, "Chance baseline": one.note}
                condition = where("influence", "queries", **{name: True})
                by_chance = name in ORDER_MODES and name not in found
                advice = (
                    "No more than by chance: nothing to change."
                    if by_chance
                    else mode.advice
                    if one.value
                    else ""
                )
                show.definition(mode.title, advice, facts, f"{one.text} questions", condition)


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
    st.markdown("\n".join(f"- **{n:,}**: {WHY[c]}" for c, n in changed["cause"].value_counts().items()))
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
    alt = "Reported and recomputed verdicts; choosing a row opens its question"
    questions.table(changed if only else frame, alt, columns, "reported")


def method() -> None:
    """Draw where ρ falls for random orders, by number of passages."""
    tau = float(settings()["influence_threshold"])
    bands = [chance_band(k) for k in (3, 5, 8, 10, 15, 20)]
    rows = {
        "Passages k": [band.k for band in bands],
        "Middle 95 % of random ρ": [f"{number(b.low)} to {number(b.high)}" for b in bands],
        "Exceeded by 5 %": [number(b.q95) for b in bands],
        f"Below the threshold {number(tau)}": [number(100 * b.p_below(tau), "{:.1f} %") for b in bands],
        "Mean overlap (RBO) of random orders": [number(b.mean_rbo) for b in bands],
    }
    st.markdown("**Chance baseline**")
    alt = "Spread of rank agreement for random orders, by number of passages"
    st.dataframe(rows, hide_index=True, alt=alt)
