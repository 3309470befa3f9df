"""One question: whether its answer is flagged and why, and which sampled answers are in its set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from core.conformal.analysis import ConformalAnalysis
from core.conformal.definitions import CALIBRATION, FLAGGED, IN_LINE, LABELS, METRICS, OF_CORRECT
from core.conformal.promises import meanings_of
from core.rows import rows_of
from core.text.display import count, number, p_text, percent
from ui import cached, headlines, questions, show
from ui.plain import plain
from ui.sections import Part
from ui.sections.conformal import alarms


def part(query_id: str) -> Part:
    """Return the badge of a flagged answer, and why it is flagged."""
    found, row = _found(), questions.row(query_id, "conformal")
    if row["verdict"] != FLAGGED:
        return Part()
    return Part(
        badge=("Flagged", ":material/flag:", "orange"),
        says=(f"**Flagged:** {said(found, row)} Withhold it or send it to a person.",),
    )


def said(found: ConformalAnalysis, row: Any) -> str:
    """Say what the calibration makes of an answer that has a verdict."""
    n, threshold = found.threshold_of(row["kind"])
    of = count(n, "correct calibration answer")
    than = (
        f"the answer is less typical than {percent(1 - found.alpha)} of the correct ones"
        if row["verdict"] == FLAGGED
        else "the answer is as typical as correct ones are"
    )
    sign = "≤" if row["verdict"] == FLAGGED else ">"
    return (
        f"{than} ({p_text(row['p_value'])} {sign} α = {found.alpha:g}, against {of}; score "
        f"{number(row['score'])}, threshold {number(threshold)})."
    )


def draw(query_id: str) -> None:
    """Draw the verdict in a sentence, its numbers, and the set of sampled answers."""
    found, row = _found(), questions.row(query_id, "conformal")
    alarms.draw(found)
    role = LABELS[str(row["role"])]
    if row["role"] == CALIBRATION:
        st.markdown(f"**{role.title}.** {role.meaning} It has no verdict of its own.")
    elif row["verdict"] in (IN_LINE, FLAGGED):
        st.markdown(f"**{row['verdict']}:** {said(found, row)}")
    elif isinstance(row["reason"], str):
        st.info(
            f"**No verdict.** {plain(headlines.reason(row['reason']).meaning)} "
            f"{plain(found.coverages[OF_CORRECT].reason)}",
            icon=":material/do_not_disturb_on:",
        )
    if row["role"] != CALIBRATION:
        st.caption(f"{role.title}: {role.meaning}")
    _numbers(found, row)
    _set(found, query_id, row)


def _found() -> ConformalAnalysis:
    found: ConformalAnalysis = cached.diagnosis()["conformal"]
    return found


def _numbers(found: ConformalAnalysis, row: Any) -> None:
    title = plain(found.score.title) if found.score else "no score"
    n = f"n = {count(found.threshold_of(row['kind'])[0], 'correct calibration answer')}"
    passes = show.yes_or_no(row["answered"])
    certified = found.certificate.threshold
    through = (
        "no threshold is certified"
        if certified is None
        else f"{'at or above' if passes else 'below'} the certified {number(certified)}"
        if passes is not None
        else f"certified from {number(certified)} on"
    )
    show.cards(
        [
            ("Score", number(row["score"]), title, METRICS["score"].meaning),
            ("Conformal p", number(row["p_value"]), n, METRICS["p_value"].meaning),
            ("Confidence by score", number(row["confidence"]), through, METRICS["certified"].meaning),
        ]
    )


def _set(found: ConformalAnalysis, query_id: str, row: Any) -> None:
    """Draw the meanings among the samples, those in the set first."""
    if found.sets is None or row["role"] == CALIBRATION:
        return
    frame = _meanings(found, query_id)
    if frame.empty:
        return
    st.markdown("**Prediction set**")
    rule, n = found.sets.rule, int(frame["held"].sum())
    meant = f"{n:,} of {count(len(frame), 'sampled meaning')} {'is' if n == 1 else 'are'} in the set"
    if rule.reason:
        st.markdown(f"{meant}. Nothing is promised: {plain(rule.reason)}")
    else:
        st.markdown(
            f"{meant}. Over all questions, sets like this hold a correct answer with a probability of at "
            f"least {percent(1 - found.alpha)} (calibrated on {count(rule.n, 'question')})."
        )
    covers = show.yes_or_no(row["set_covers"])
    if covers is not None:
        st.caption(f"By the reference answer, the set {'holds a' if covers else 'holds no'} correct answer.")
    columns = {
        "set": show.wide("In the set", "small"),
        "answer": show.wide("Sampled answer"),
        "n": show.numeric("Samples", "localized", "Samples with this meaning"),
        "score": show.numeric("Rarity", about="1 − its share of the samples; in the set up to the threshold"),
    }
    show.table(frame, "Sampled meanings in and out of the set", columns)


def _meanings(found: ConformalAnalysis, query_id: str) -> pd.DataFrame:
    """Return one row per meaning of the samples of a question: an answer, its samples, its score."""
    assert found.sets is not None, "asked only where there are sets"
    samples = rows_of(cached.diagnosis()["uncertainty"].samples, query_id)
    samples = samples[samples["meaning"].notna()]
    if samples.empty:
        return pd.DataFrame(columns=["held"])
    own = meanings_of(samples["meaning"].astype(int), samples["status"] == "answered")
    first = samples.groupby("meaning", sort=True)["answer"].first()
    frame = pd.DataFrame({"answer": first.to_numpy(), "n": own.sizes, "score": own.scores})
    frame["held"] = found.sets.rule.holds(own.scores) & own.is_answer
    out = np.where(own.is_answer, "Out", "Refusal or empty: in no set")
    frame["set"] = np.where(frame["held"], "✓ In", out)
    return frame.sort_values(["held", "n"], ascending=False, kind="stable")
