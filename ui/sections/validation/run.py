"""Validation in the whole run: how to validate, what the validators say, and what it changes."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from core.charts.validation.shared import UNLABELLED
from core.text.display import count, number, p_text, percent, share_interval
from core.validation.analysis import ValidationAnalysis
from core.validation.chain import ENABLE, is_on
from core.validation.definitions import METRICS, REASONS_OF_VALIDATORS
from core.validation.metrics import Share
from ui import cached, router, show, sources, step_form


def first() -> None:
    """Draw what validation does, and the form that starts it."""
    n = int(cached.diagnosis().run.queries["answer"].notna().sum())
    text = (
        "Each answer is checked without a model: does it cite its passages, are its words, numbers and "
        "dates in them, does it say so where it is not certain? An answer with a critical verdict is "
        f"replaced by a fallback.\n\n**{count(n, 'answer')}** of {{questions}} to check. The result is a new "
        "run beside this one; the answers stay as they are."
    )
    step_form.first("validation", "Not validated", text, "Validate answers", reads_passages=_reads_passages())


def again() -> None:
    """Draw the form for another validation of the same answers."""
    with step_form.folded("Validate again with other options"):
        step_form.on_loaded_run("validation", "Validate again", reads_passages=_reads_passages())


def _reads_passages() -> bool:
    """Tell whether there are passages to read; say where validation is switched off."""
    if not is_on():
        st.warning(f"{ENABLE} is off: nothing is validated.", icon=":material/toggle_off:")
    # Answers without any passage can be judged, too: they have no ground.
    return not cached.diagnosis().run.passages.empty


def found() -> ValidationAnalysis:
    """Return the analysis of the session's run at the current settings."""
    analysis: ValidationAnalysis = cached.diagnosis()["validation"]
    return analysis


def figures() -> None:
    """Draw whether the validators separate incorrect from correct answers, and what they object to."""
    analysis = found()
    frame = analysis.validators
    if (frame["wrong_flagged"] + frame["right_flagged"]).any():
        wrong, right = (int(frame[name].max()) for name in ("n_wrong", "n_right"))
        st.subheader("Which validators separate incorrect from correct answers?", anchor=False)
        st.caption(f"Compared on {count(wrong, 'incorrect answer')} and {count(right, 'correct one')}.")
        show.chart("validation", "flag_rates")
    else:
        st.subheader("What do the validators say?", anchor=False)
        if not analysis.stopped.n:
            st.info(f"{UNLABELLED} Reference answers would tell.", icon=":material/help:")
        show.chart("validation", "verdict_counts")
    if len(analysis.reasons):
        st.subheader("What do they object to?", anchor=False)
        show.chart("validation", "objection_reasons")


def validators() -> None:
    """Draw what each validator says of the answers, as a table."""
    analysis = found()
    frame = analysis.validators
    rows = frame.to_dict("records")
    shown = frame.assign(
        noted=[_noted(row) for row in rows],
        wrong=[_share(row, "wrong_flagged", "n_wrong", "recall") for row in rows],
        right=[_share(row, "right_flagged", "n_right", "false_positive_rate") for row in rows],
        by_chance=frame["wrong_by_chance"].where((frame["n_applied"] > 0) & (frame["n_wrong"] > 0)),
    )
    columns = {
        "validator": "Validator",
        "wrong": st.column_config.TextColumn("Incorrect", help="Objected to, with the 95 % interval"),
        "by_chance": show.numeric("By chance", "%.1f", "Incorrect ones that as many at random meet"),
        "right": st.column_config.TextColumn("Correct", help="Objected to, with the 95 % interval"),
        "p_value": show.numeric("p", "%.3f", "Fisher's exact test, two-sided, not corrected"),
        "noted": "Note",
        "n_applied": show.numeric("Applied", "localized", "Answers that the validator could check"),
        "n_passed": show.numeric("Passed", "localized"),
        "n_warning": show.numeric("Warnings", "localized", "The answer is shown as it is"),
        "n_critical": show.numeric("Critical", "localized", "A fallback is shown in place of the answer"),
    }
    show.table(shown, "What each validator says of the answers", columns, height="content")
    with st.container(horizontal=True):
        show.export("validators-csv", "Download validators (CSV)")
        show.export("verdicts-csv", "Download verdicts (CSV)")


def _noted(row: dict[str, Any]) -> str:
    """Say where a validator cannot be compared; "" where it can."""
    flagged, labelled = row["wrong_flagged"] + row["right_flagged"], row["n_wrong"] + row["n_right"]
    if not row["n_applied"]:
        return "never applies"
    if not labelled:
        return ""
    return "no objection" if not flagged else "objects to all" if flagged == labelled else ""


def _share(row: dict[str, Any], flagged: str, n: str, rate: str) -> str:
    if not row[n] or not row["n_applied"]:
        return ""
    return f"{row[flagged]:,} of {row[n]:,} ({percent(0, (row[f'{rate}_low'], row[f'{rate}_high']))})"


def reasons() -> None:
    """Draw how many answers each reason has, and whether they are the incorrect ones, as a table."""
    analysis = found()
    frame = analysis.reasons
    if frame.empty:
        return
    defined = [REASONS_OF_VALIDATORS[code] for code in frame["reason"]]
    shown = frame.assign(title=[one.title for one in defined], meaning=[one.meaning for one in defined])
    if not analysis.stopped.n:
        shown[["wrong_flagged", "right_flagged"]] = math.nan
    columns = {
        "title": show.wide("Reason", "medium"),
        "meaning": show.wide("Meaning"),
        "n": show.numeric("Answers", "localized"),
        "wrong_flagged": show.numeric("Incorrect", "localized"),
        "wrong_by_chance": show.numeric("By chance", "%.1f", "Incorrect ones that as many at random meet"),
        "right_flagged": show.numeric("Correct", "localized"),
        "validator": show.wide("Validator", "medium"),
    }  # fmt: skip
    show.table(shown, "Reasons of objections", columns, height="content")


def on_off() -> None:
    """Draw how many incorrect answers reach the user with validators and without, and what is lost."""
    analysis = found()
    stopped = analysis.stopped
    if not stopped.n:
        st.info(
            f"{UNLABELLED} How many incorrect answers validation keeps from the user is unknown: add "
            "`reference_answers` to the questions.",
            icon=":material/help:",
        )
        sources.link(router.DATA, "Upload a file", "upload", door="Upload")
        return
    if not stopped.n_flagged:
        st.markdown(
            f"**{_of(stopped.off)} labelled answers are incorrect.** Validation stops no labelled answer."
        )
        return
    difference, low, high = (
        number(100 * value, "{:+.0f}") for value in (stopped.on.rate - stopped.off.rate, *stopped.change)
    )
    show.sentence(
        f"**{_of(stopped.off)} labelled answers are incorrect; with validators on {stopped.on.count:,} still "
        f"reach the user:** {difference} percentage points (95 % interval {low} to {high})."
    )
    told = "" if math.isnan(stopped.p_value) else f" ({p_text(stopped.p_value)})"
    st.markdown(
        f"{_of(stopped.wrong)} incorrect answers stopped{_interval(stopped.wrong)}, "
        f"{number(stopped.expected, '{:.1f}')} by chance{told}. Price: {_of(stopped.right)} correct answers "
        f"lost{_interval(stopped.right)}."
    )
    st.caption(METRICS["stopped"].meaning)


def _of(share: Share) -> str:
    return f"{share.count:,} of {share.n:,}"


def _interval(share: Share) -> str:
    return f" ({share_interval(share.interval)})" if share.n else ""
