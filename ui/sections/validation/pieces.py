"""An answer with the spans that validators speak of, and their verdicts in words, as both views show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.charts.theme import SIGNS
from core.text.display import visible
from core.validation.definitions import REASONS_OF_VALIDATORS
from core.validation.types import Code, Severity, Verdict
from ui.components import evidence
from ui.components.evidence.rows import cut
from ui.plain import plain, shortened

_QUOTED = 200  # characters of a span in its note
# How a span looks: as claims of these states do.
_STATES = {Severity.CRITICAL: "unsupported", Severity.WARNING: "fragile", Severity.NONE: "irrelevant"}


def answer(text: str, verdicts: Sequence[Verdict], key: str) -> None:
    """Draw an answer as plain text, with the spans of verdicts marked and numbered as `lines` does."""
    evidence.draw(marked(text, verdicts), key)


def marked(text: str, verdicts: Sequence[Verdict]) -> dict[str, Any]:
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
            "title": title(one),
            "claim": [[visible(shortened(" … ".join(text[a:b] for a, b in one.spans), _QUOTED)), False]],
            "lines": [visible(one.sentence)],
        }
        for one in verdicts
    ]
    absent = "" if text.strip() else "The answer is empty."
    said = {"pieces": pieces, "notes": notes, "legend": [], "elsewhere": [], "absent": absent}
    return {"answer": said, "rows": [], "at_first": 0}


def lines(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a numbered list in Markdown: sign, reason, validator, severity, and the sentence."""
    return "\n".join(
        f"{place}. {_sign(one)} {_head(one)}: {plain(one.sentence, one_line=True)}"
        for place, one in enumerate(verdicts, start=1)
    )


def _head(one: Verdict) -> str:
    validator = plain(shortened(one.validator, 40), one_line=True)
    if one.passed is False:
        return f"**{title(one)}** ({one.severity}, {validator})"
    return f"{validator} {'passed' if one.passed else 'does not apply'}"


def title(one: Verdict) -> str:
    """Return the reason of a verdict in words."""
    if one.reason.code in REASONS_OF_VALIDATORS:
        return REASONS_OF_VALIDATORS[one.reason.code].title
    return "Uncertainty expressed" if one.reason.code is Code.UNCERTAINTY_EXPRESSED else "Passed"


def suggestions(said: Sequence[str]) -> None:
    """Draw what to add to the sources, where there is something."""
    if said:
        st.markdown("**Learning suggestions**")
        st.markdown("\n".join(f"- {plain(one, one_line=True)}" for one in said))


def _sign(one: Verdict) -> str:
    return SIGNS[_STATES[one.severity]]


def fallback(text: str, used: bool) -> None:
    """Draw what a user sees in place of an answer, or that it is the answer itself."""
    st.markdown("**What the user sees**")
    with st.container(border=True):
        if used:
            st.markdown(plain(text))
        else:
            st.markdown("The answer as it is: no verdict is critical.")
