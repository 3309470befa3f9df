"""Combined uncertainty in the whole run: what it is made of, which answers are reliable, what is missing."""

from __future__ import annotations

import streamlit as st

from core.confidence.combined import LAMBDAS, RELIABLE_ABOVE
from core.text.display import count, number
from ui import cached, headlines, questions, router, show, sources
from ui.plain import plain
from ui.sections.confidence import run

PARTS = {
    "retrieval_uncertainty": (
        "Retrieval",
        "Entropy of the retrieval scores: 1 where all passages score alike.",
    ),
    "sampling_uncertainty": ("Sampling", "1 − agreement of the answer with its samples."),
    "conformal_uncertainty": ("Conformal", "1 − confidence of the conformal score."),
}
_RULES = {
    "is_reliable": "Reliable: {}.** Their MC dropout confidence is above {:g}, and conformal prediction "
    "does not flag them.",
    "is_reliable_strict": "By the stricter rule: {}.** Their agreement with the samples is above {:g}, and "
    "conformal prediction does not flag them.",
}
_FROM = {"sampling_uncertainty": "uncertainty", "conformal_uncertainty": "conformal"}


def draw() -> None:
    """Draw the most uncertain answers with the parts, or which steps would give them."""
    frame = run.found().queries
    known = int(frame["combined_uncertainty"].notna().sum())
    if known:
        mean = number(float(frame["combined_uncertainty"].mean()))
        st.markdown(f"Mean combined uncertainty **{mean}** (n = {count(known, 'answer')}).")
    for rule, said in _RULES.items():
        k, n = run.found().reliable(rule)
        if n:
            st.markdown("**" + said.format(f"{k:,} of {count(n, 'answer')}", RELIABLE_ABOVE))
    if frame["mc_confidence"].isna().all() and frame["sampling_uncertainty"].notna().any():
        st.caption("MC dropout confidence is not measured: turn on *Measure embeddings too* in the settings.")
    _missing()
    if not known:
        return
    columns = {
        "question": show.wide("Question"),
        "combined_uncertainty": show.numeric(
            "Combined",
            about=" + ".join(
                f"{weight:g} · {title.lower()}"
                for weight, (title, _) in zip(LAMBDAS, PARTS.values(), strict=True)
            ),
        ),
        **{name: show.numeric(title, about=about) for name, (title, about) in PARTS.items()},
        "is_reliable": st.column_config.CheckboxColumn("Reliable", width="small"),
        "is_reliable_strict": st.column_config.CheckboxColumn("By the stricter rule", width="small"),
        "correct": st.column_config.CheckboxColumn("Correct", width="small"),
    }
    shown = frame.sort_values("combined_uncertainty", ascending=False, kind="stable", na_position="last")
    st.caption("The most uncertain first; choose a row to open its question.")
    questions.table(
        shown.reset_index(drop=True), "Combined uncertainty of each answer", columns, "confidence_combined"
    )


def _missing() -> None:
    """Say which parts no answer has, and which page has the step for each."""
    frame = run.found().queries
    for name, (title, _) in PARTS.items():
        if frame[name].notna().any():
            continue
        diagnostic = _FROM.get(name)
        if diagnostic is None:
            st.caption(f"{title}: no question has two passages with retrieval scores.")
            continue
        lacks = headlines.lacks(diagnostic)
        page = router.page_of(diagnostic)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"**{title} is missing.** {plain(lacks or 'No answer has a value.')}", width="content"
            )
            if page is not None:
                sources.link(page, plain(cached.diagnosis().diagnostic(diagnostic).title))
