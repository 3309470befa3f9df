"""Words around the headline numbers: what each rests on, and what to look at first."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.definitions import METRICS, MODES, UNDEFINED_REASONS
from core.influence.reported import WHY
from ui import cached, router, show, sources
from ui.plain import plain, shortened


def title_of(mode: str) -> str:
    """Return the title of a failure mode or of an undefined reason."""
    return MODES[mode].title if mode in MODES else mode.replace("_", " ").capitalize()


def numbers(s: dict[str, Any]) -> None:
    """Draw the headline numbers, each with how many questions it rests on."""
    n, defined = s["n_queries"], s["n_defined"]
    interval = s["rho_ci"]
    band = f"; 95 % interval {show.number(interval[0])} to {show.number(interval[1])}" if interval else ""
    silent = s["n_empty_answers"] + s["n_abstained"] + s["n_errors"]
    show.cards(
        [
            (
                "Mean ρ",
                show.number(s["mean_rho"]),
                f"on {defined:,} of {n:,} questions{band}",
                METRICS["rho"].meaning,
            ),
            (
                "Divergent",
                f"{s['n_divergent']:,} of {defined:,}",
                f"ρ below {show.number(s['threshold'])}; {s['n_undefined']:,} more without a ρ",
                "Questions where the model does not use the passages in the retriever's order.",
            ),
            (
                "Mean dominance",
                show.number(s["mean_dominance"]),
                f"on {s['n_dominance']:,} of {n:,} questions",
                METRICS["dominance"].meaning,
            ),
            (
                "Mean entropy",
                show.number(s["mean_entropy"]),
                f"nats, on {s['n_dominance']:,} of {n:,} questions",
                METRICS["entropy"].meaning,
            ),
            (
                "Right answers",
                f"{s['n_correct']:,} of {s['n_judged']:,}" if s["n_judged"] else "—",
                f"{s['n_judged']:,} of {n:,} could be judged"
                if s["n_judged"]
                else "no reference answers to judge by",
                "An answer is right when it contains a reference answer word for word.",
            ),
            (
                "No answer",
                f"{silent:,} of {n:,}",
                f"{s['n_empty_answers']:,} empty, {s['n_abstained']:,} abstained, {s['n_errors']:,} failed",
                "Baselines that are empty, say that they do not know, or could not be had.",
            ),
        ]
    )
    _claims(s)


def _claims(s: dict[str, Any]) -> None:
    """Draw what the passages support of the answers, or the way to find it out."""
    if s["n_claims"] is not None:
        show.cards(claim_cards(s))
    st.page_link(
        router.CLAIMS,
        label="Find the claims of the answers and check them against the passages"
        if s["n_claims"] is None
        else "Claims & evidence",
        icon=":material/fact_check:",
        query_params=sources.address(),
    )


def claim_cards(s: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the two headline numbers of claims, as `show.cards` draws them."""
    interval = s["grounding_ci"]
    band = f"; 95 % interval {show.number(interval[0])} to {show.number(interval[1])}" if interval else ""
    return [
        (
            "Grounding",
            show.number(s["mean_grounding"]),
            f"on {s['n_grounding']:,} of {show.count(s['n_queries'], 'answer')}{band}",
            METRICS["grounding"].meaning,
        ),
        (
            "Claim uncertainty U",
            show.number(s["mean_claim_uncertainty"]),
            f"on {s['n_claim_uncertainty']:,} of {show.count(s['n_queries'], 'answer')}",
            METRICS["claim_uncertainty"].meaning,
        ),
    ]


def chance(s: dict[str, Any]) -> None:
    """Say in one sentence what the threshold does to orders that mean nothing."""
    if s["p_random_divergent"] is None:
        st.markdown("No question has a ρ, so there is nothing to compare with chance.")
        return
    tau, share = show.number(s["threshold"]), show.number(100 * s["p_random_divergent"], "{:.1f}")
    weak, strong = ("divergent", "aligned") if s["p_random_divergent"] > 0.5 else ("aligned", "divergent")
    st.markdown(
        f"**What chance alone gives:** a random order of the passages falls below the threshold of {tau} in "
        f"**{share} %** of cases. So “{weak}” is what chance alone would mostly give; “{strong}” is the "
        f"stronger evidence.{_mean_against_chance(s)}"
    )


def _mean_against_chance(s: dict[str, Any]) -> str:
    """Say whether the run's mean rank agreement can be told from that of random orders, which is 0."""
    if s["rho_ci"] is None:
        return ""
    low, high = s["rho_ci"]
    if low > 0:
        return " The mean ρ of the run lies above 0, the mean of random orders: use follows retrieval."
    if high < 0:
        return " The mean ρ of the run lies below 0, the mean of random orders: use runs against retrieval."
    return (
        " The 95 % interval of the run's mean ρ includes 0, the mean of random orders: the order of use "
        "cannot be told from one that has nothing to do with retrieval."
    )


def undefined(s: dict[str, Any]) -> None:
    """List why questions have no rank agreement."""
    if s["undefined_reasons"]:
        with st.expander(f"Why {show.count(s['n_undefined'], 'question has', 'questions have')} no ρ"):
            lines = (
                f"- **{n:,} × {title_of(name).lower()}** — {UNDEFINED_REASONS[name].meaning}"
                for name, n in s["undefined_reasons"].items()
            )
            st.markdown("\n".join(lines))


def attention() -> None:
    """Draw the questions to look at first, each with its reason and a link."""
    rows = cached.attention()
    if rows.empty:
        st.markdown("Nothing stands out: no failure mode and no common reason for an undefined ρ.")
        return
    with st.grid(2, min_column_width=300):
        for row in rows.itertuples():
            with st.container(border=True, gap="xxsmall", height="stretch"):
                st.markdown(f"**{plain(shortened(row.question, 120), one_line=True) or '(no text)'}**")
                st.caption(f"**{title_of(row.mode)}** · {plain(row.reason)}")
                st.page_link(
                    router.INSPECTOR,
                    label="Open in the inspector",
                    icon=":material/arrow_forward:",
                    query_params=sources.address(question=str(row.query_id)),
                )


def reported() -> None:
    """Draw what an imported file says of itself against what its own numbers give."""
    frame = cached.comparison()
    if frame.empty:
        return
    changed = frame[frame["changed"]]
    st.subheader("Reported against recomputed", anchor=False)
    st.markdown(
        f"The file states a verdict for {show.count(len(frame), 'question')}; recomputed from its own "
        "scores, "
        f"**{show.count(len(changed), 'verdict changes', 'verdicts change')}**."
    )
    st.markdown("\n".join(f"- **{n:,}** — {WHY[c]}" for c, n in changed["cause"].value_counts().items()))
    show.figure(cached.chart("verdict_changes", frame), "verdict_changes")
    columns = {
        "query_id": "Id",
        "question": "Question",
        "reported_rho": st.column_config.NumberColumn("ρ reported", format="%.2f"),
        "reported_label": "Reported",
        "rho": st.column_config.NumberColumn("ρ recomputed", format="%.2f"),
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
    frame = cached.recovered()
    st.subheader("Planted against found", anchor=False)
    st.markdown("The simulation knows the truth it planted, so the metrics themselves can be checked here.")
    show.figure(cached.chart("recovery_chart", frame), "recovery")
    number = st.column_config.NumberColumn
    columns = {
        "check": "Check",
        "value": number("Value", format="%.2f"),
        "low": number("95 % from", format="%.2f"),
        "high": number("to", format="%.2f"),
        "n": "Rests on",
        "meaning": "Meaning",
    }
    show.table(frame, "How well the metrics recover what was planted", columns)
