"""One question: whether its answer may be shown, why, and what a serving program would return with it."""

from __future__ import annotations

import streamlit as st

from core.text.display import count, number
from core.validation.definitions import METRICS
from core.validation.fallback import served
from core.validation.types import Severity
from ui import headlines, questions, show
from ui.plain import plain
from ui.sections import Part
from ui.sections.validation import pieces
from ui.sections.validation.run import found
from ui.state import session


def part(query_id: str) -> Part:
    """Return the badge of an answer with objections; of one that is stopped, why."""
    outcome = found().outcomes.get(query_id)
    if outcome is None or not outcome.failed:
        return Part()
    if not outcome.critical:
        return Part(badge=("Objections", ":material/rule:", "orange"))
    grave = [one for one in outcome.failed if one.severity is Severity.CRITICAL]
    why = " ".join(plain(one.sentence, one_line=True) for one in grave)
    return Part(
        badge=("Stopped", ":material/block:", "red"),
        says=(f"**Stopped by validation:** {why} The user sees a fallback.",),
    )


def draw(query_id: str) -> None:
    """Draw the response metadata of an answer, or why there are none."""
    run, row = session().run, questions.row(query_id, "validation")
    assert run is not None, "the workbench is drawn only when a run is there"
    one = served(run, query_id)
    if one is None:
        reason = row["reason"]
        if isinstance(reason, str):
            st.info(
                plain(headlines.reason(reason, "validation").meaning), icon=":material/do_not_disturb_on:"
            )
        return
    outcome, context = one.outcome, one.outcome.context
    st.markdown("**Response metadata**")
    objections = count(len(outcome.failed), "objection") if outcome.failed else "no objection"
    state = "Stopped" if outcome.critical else "Passed" if outcome.passed else "Warning"
    show.cards(
        [
            (
                "Context score",
                number(context.score),
                f"{number(context.reasons[0].change)} for {context.reasons[0].sentence}",
                METRICS["context_score"].meaning,
            ),
            (
                "Validation",
                state,
                f"{objections} of {count(len(outcome.verdicts), 'validator')}",
                METRICS["passed"].meaning,
            ),
            (
                "Fallback",
                "Used" if one.used_fallback else "Not used",
                f"language {outcome.lang}",
                METRICS["fallback"].meaning,
            ),
        ]
    )
    steps = " · ".join(
        f"**{number(one.change, '{:+.2f}')}** {plain(one.sentence)}" for one in context.reasons
    )
    st.markdown(f"Context score {number(context.score)}: {steps}")
    if any(verdict.spans for verdict in outcome.verdicts):
        with st.container(border=True):
            pieces.answer(one.original, outcome.verdicts, "validation_question")
    st.markdown(pieces.lines(outcome.verdicts))
    if one.used_fallback:
        pieces.fallback(one.text, used=True)
    pieces.suggestions(outcome.learning_suggestions)
    with st.expander("validation_info (JSON)", icon=":material/data_object:"):
        st.json(dict(outcome.validation_info))
