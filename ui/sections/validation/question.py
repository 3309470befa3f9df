"""One answer: whether it may be shown and why, its spans marked, and what a user sees in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.charts.theme import SIGNS
from core.text.display import count, number, visible
from core.validation.definitions import METRICS, REASONS_OF_VALIDATORS
from core.validation.fallback import served
from core.validation.types import Code, Severity, Verdict
from ui import cached, headlines, questions, show
from ui.components import evidence
from ui.components.evidence.rows import cut
from ui.plain import plain, shortened
from ui.sections import Part
from ui.sections.validation.run import found
from ui.state import session

_CHOICES = 200  # each is sent to the browser at every step
_QUOTED = 200  # characters of a span in its note
# How a span looks: as claims of these states do.
_STATES = {Severity.CRITICAL: "unsupported", Severity.WARNING: "fragile", Severity.NONE: "irrelevant"}


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
    run, row = session().the_run, questions.row(query_id, "validation")
    one = served(run, query_id)
    if one is None:
        headlines.why("validation", row["reason"])
        return
    outcome, context = one.outcome, one.outcome.context
    st.markdown("**Response metadata**")
    objections = count(len(outcome.failed), "objection") if outcome.failed else "no objection"
    state = "Stopped" if outcome.critical else "Passed" if outcome.passed else "Warning"
    start = f"{number(context.reasons[0].change)} for {context.reasons[0].sentence}"
    values = (
        ("Context score", "context_score", number(context.score), start),
        ("Validation", "passed", state, f"{objections} of {count(len(outcome.verdicts), 'validator')}"),
        ("Fallback", "fallback", "Used" if one.used_fallback else "Not used", f"language {outcome.lang}"),
    )
    show.cards([(title, value, basis, METRICS[name].meaning) for title, name, value, basis in values])
    steps = " · ".join(
        f"**{number(one.change, '{:+.2f}')}** {plain(one.sentence)}" for one in context.reasons
    )
    st.markdown(f"Context score {number(context.score)}: {steps}")
    if any(verdict.spans for verdict in outcome.verdicts):
        with st.container(border=True):
            _answer(one.original, outcome.verdicts, "validation_question")
    st.markdown(_lines(outcome.verdicts))
    if one.used_fallback:
        _fallback(one.text, used=True)
    _suggestions(outcome.learning_suggestions)
    with st.expander("validation_info (JSON)", icon=":material/data_object:"):
        st.json(dict(outcome.validation_info))


def failing() -> None:
    """Draw the choice of an answer, the gravest first, and what validation says of it."""
    run = session().the_run
    titles, n_failed = cached.once("failing answers", lambda d: _most_grave(d["validation"].queries))
    if not titles:
        st.info("No validator objects to an answer.", icon=":material/check_circle:")
        return
    about = "Stopped answers first, then by context score."
    chosen = show.menu("Answer", titles, f"validation_answer_{session().run_key}", about)
    if n_failed > len(titles):
        st.caption(f"The first {len(titles):,} of {count(n_failed, 'answer')} with objections.")
    one = served(run, chosen)
    assert one is not None, "an answer that failed was validated"
    st.markdown(f"**{questions.title(chosen, 300)}**")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.markdown("**Answer of the model**")
        with st.container(border=True):
            _answer(one.original, one.outcome.failed, "validation_answer")
        st.markdown(_lines(one.outcome.failed))
    with right:
        _fallback(one.text, one.used_fallback)
        _suggestions(one.outcome.learning_suggestions)
        questions.open_link(chosen)


def _most_grave(queries: pd.DataFrame) -> tuple[dict[str, str], int]:
    """Return the titles of the first answers with objections, by question, and how many there are."""
    failed = queries[queries["passed"].eq(False).fillna(False)].sort_values(
        ["critical", "context_score", "n_failed"], ascending=[False, True, False], kind="stable"
    )
    listed = failed.head(_CHOICES).set_index("query_id")
    titles = {
        str(row.Index): f"{place}. {'Stopped' if row.critical else 'Warning'} · {_reasons(row.reasons)} · "
        f"{visible(shortened(row.question, 70))}"
        for place, row in enumerate(listed.itertuples(), start=1)
    }
    return titles, len(failed)


def _reasons(codes: str) -> str:
    return ", ".join(REASONS_OF_VALIDATORS[code].title.lower() for code in codes.split(", "))


def _answer(text: str, verdicts: Sequence[Verdict], key: str) -> None:
    """Draw an answer as plain text, with the spans of verdicts marked and numbered as the list does."""
    evidence.draw(_marked(text, verdicts), key)


def _marked(text: str, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return the answer cut at the spans of its verdicts, as `ui.components.evidence` takes it."""
    pieces = [
        {
            "state": _STATES[verdicts[own[0]].severity] if own else "",
            "claims": list(own),
            "first": begins,
            "parts": [[visible(part), False]],
        }
        for part, own, begins in cut(text, [one.spans for one in verdicts])
    ]
    notes = [
        {
            "state": _STATES[one.severity],
            "sign": _sign(one),
            "title": _title(one),
            "claim": [[visible(shortened(" … ".join(text[a:b] for a, b in one.spans), _QUOTED)), False]],
            "lines": [visible(one.sentence)],
        }
        for one in verdicts
    ]
    absent = "" if text.strip() else "The answer is empty."
    said = {"pieces": pieces, "notes": notes, "legend": [], "elsewhere": [], "absent": absent}
    return {"answer": said, "rows": [], "at_first": 0}


def _lines(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a numbered list in Markdown: sign, reason, validator, severity, and the sentence."""
    return "\n".join(
        f"{place}. {_sign(one)} {_head(one)}: {plain(one.sentence, one_line=True)}"
        for place, one in enumerate(verdicts, start=1)
    )


def _head(one: Verdict) -> str:
    validator = plain(shortened(one.validator, 40), one_line=True)
    if one.passed is False:
        return f"**{_title(one)}** ({one.severity}, {validator})"
    return f"{validator} {'passed' if one.passed else 'does not apply'}"


def _title(one: Verdict) -> str:
    """Return the reason of a verdict in words."""
    if one.reason.code in REASONS_OF_VALIDATORS:
        return REASONS_OF_VALIDATORS[one.reason.code].title
    return "Uncertainty expressed" if one.reason.code is Code.UNCERTAINTY_EXPRESSED else "Passed"


def _suggestions(said: Sequence[str]) -> None:
    """Draw what to add to the sources, where there is something."""
    if said:
        st.markdown("**Learning suggestions**")
        st.markdown("\n".join(f"- {plain(one, one_line=True)}" for one in said))


def _sign(one: Verdict) -> str:
    return SIGNS[_STATES[one.severity]]


def _fallback(text: str, used: bool) -> None:
    """Draw what a user sees in place of an answer, or that it is the answer itself."""
    st.markdown("**What the user sees**")
    with st.container(border=True):
        if used:
            st.markdown(plain(text))
        else:
            st.markdown("The answer as it is: no verdict is critical.")
