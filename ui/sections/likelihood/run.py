"""Fixed-answer scores of the whole run: how to get them, and what they say."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.likelihood.definitions import METRICS
from core.text.display import count
from ui import cached, questions, show, step_form


def first() -> None:
    """Draw what is to be decided before a run has scores."""
    text = (
        "The model reads the answers to **{questions}** with all passages and without each, and the first "
        "reference answers where there are any. Nothing is generated. The result is a new run; this one "
        "stays as it is."
    )
    step_form.first("likelihood", "Not scored", text, "Score answers")


def again() -> None:
    """Draw the form that scores the same answers with another model."""
    with step_form.folded("Score again with another model", "query_stats"):
        step_form.on_loaded_run("likelihood", "Score again")


def approximate() -> None:
    """Say how many drops are estimates and how far these were off, where any are."""
    analysis = cached.diagnosis()["likelihood"]
    n = int(analysis.passages["approximate"].sum())
    if n:
        of = f"{n:,} of {count(len(analysis.passages), 'drop')}"
        found = analysis.agreement
        checked = f"On {found}." if found.n else "None of the others was checked."
        st.warning(f"Approximate, estimated by the quick screen: {of}. {checked}", icon=":material/science:")


def evidence() -> None:
    """Draw each passage by what it does to the answer and to the reference, where both are known."""
    if not cached.chart("likelihood", "answer_against_reference").data:
        st.caption("No passage has both drops: score answers that have a reference answer.")
        return
    st.markdown(
        "Bottom right: the passage raises the given answer and lowers the correct one. Top left: it raises "
        "the correct answer, but not the given one. 0.69 nats double a probability."
    )
    titles = {"": "All answers", "yes": "Correct", "no": "Not correct"}
    shown = show.choice("Answers", titles, "likelihood_shown")
    correct = shown == "yes" if shown else None
    show.chart("likelihood", "answer_against_reference", correct=correct)


def more() -> None:
    """Draw the questions to read, and how often each measure puts a gold passage first, against chance."""
    with show.more("More tables"):
        _first_passages()
        _gold()


def _first_passages() -> None:
    q = cached.diagnosis()["likelihood"].queries
    rows = q[q["made_by"].notna() | q["needed"].notna()]
    columns = {
        "query_id": "Id",
        "question": show.wide("Question", "medium"),
        "correct": "Correct",
        "made_by": "Raises the answer most",
        "made_drop": show.numeric("by (nats)"),
        "needed": "Raises the reference most",
        "needed_drop": show.numeric("by (nats)"),
        "misleading": "Misleading",
        "ignored": "Ignored",
    }
    alt = "The passage that raises each answer most, and that of the reference; choosing a row opens it"
    questions.table(rows, alt, columns, "likelihood_passages")


def _gold() -> None:
    st.markdown("**Which measure finds the gold passage?**")
    shares = pd.DataFrame([one for one in cached.diagnosis()["likelihood"].gold if one.n])
    if shares.empty:
        st.caption("No gold passage is known among the passages of this run.")
        return
    st.markdown("Compare each value with its chance baseline. Ties share the first place.")
    shares["measure"] = [METRICS[name].title for name in shares["measure"]]
    columns = {
        "measure": "Measure",
        "mean": show.numeric("Gold comes first"),
        "low": show.numeric("95 % from"),
        "high": show.numeric("to"),
        "chance": show.numeric("By chance"),
        "n": show.numeric("n", "localized"),
        "beyond": show.numeric("Beyond the retriever"),
        "beyond_low": show.numeric("from"),
        "beyond_high": show.numeric("to "),
    }
    show.table(shares, "How often each measure puts a gold passage first", columns)
