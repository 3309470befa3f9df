"""One question: its answer under each fix, and the stage at which the answer is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.losses.analysis import Losses
from core.losses.arms import ALONE
from core.losses.definitions import DEFINITIONS
from core.losses.ladder import LOST
from core.losses.outcomes import CORRECT
from core.rows import rows_of
from core.text.diff import shorten_same, word_diff
from core.text.display import visible
from ui import cached, questions, show
from ui.components import evidence
from ui.components.evidence.rows import AT_FIRST
from ui.plain import plain
from ui.sections import Part
from ui.sections.losses.states import SAME, arms_of, looks, state_of
from ui.state import session

_NEW = "new"  # a passage that the run's prompt did not have
_MEANINGS = {one.name: one.meaning for one in DEFINITIONS}


def part(query_id: str) -> Part:
    """Return the stage as a badge, where fixes were tried on the question."""
    found = cached.diagnosis()["losses"]
    stage = questions.row(query_id, "losses")["stage"]
    if not found.n_tried or not isinstance(stage, str):
        return Part()
    lost = stage in LOST
    return Part(
        badge=(
            found.title(stage),
            f":material/{'stairs' if lost else 'verified'}:",
            "orange" if lost else "green",
        )
    )


def draw(query_id: str) -> None:
    """Draw the stage in a sentence, and the answer under each arm as its difference to the run's."""
    found: Losses = cached.diagnosis()["losses"]
    stage = questions.row(query_id, "losses")["stage"]
    if isinstance(stage, str):
        meaning = found.outcome.words(_MEANINGS[stage])
        st.markdown(f"**{plain(found.title(stage), one_line=True)}.** {plain(meaning)}")
    else:
        st.markdown("This answer is not judged, so it is lost nowhere.")
    rows = rows_of(found.answers, query_id)
    if rows.empty:
        st.caption("No fix was tried on this question.")
        return
    arms = rows.set_index("arm")
    shown = [
        _row(found, arm, one, query_id)
        for arm in arms_of(found)
        if arm in arms.index
        for one in arms.loc[[arm]].sort_values("repeat").to_dict("records")
    ]
    evidence.draw(_data([one for one in shown if one is not None]), f"losses_{query_id}")
    _each_alone(found, rows[rows["arm"].eq(ALONE)], query_id)


def _data(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    answer = {"pieces": [], "notes": [], "legend": [], "elsewhere": [], "absent": ""}
    return {"answer": answer, "rows": rows, "at_first": AT_FIRST, "label": "Answers under each fix"}


def _row(found: Losses, arm: str, one: Mapping[str, Any], query_id: str) -> dict[str, Any] | None:
    """Return what the component shows of one arm; None where it had nothing to try."""
    state = state_of(one["state"], one["prompt"])
    if state is None:
        return None
    look = looks(found)[state]
    facts = [["", look.word], ["Passages", _passages(one["passages"], query_id)]]
    return {
        "rank": look.sign,
        "hint": look.word,
        "title": visible(found.titles.get(arm, arm)),
        "gold": False,
        "flags": [],
        "facts": facts,
        "claims": [],
        "bar": None,
        "snippet": [],
        "text": [],
        "change": _change(questions.row(query_id)["answer"], one["answer"], state),
    }


def _passages(ids: object, query_id: str) -> str:
    """Name the passages of a prompt by their numbers in that of the run."""
    own = rows_of(session().the_run.passages, query_id).sort_values(["slot", "retrieval_rank"], kind="stable")
    numbers = {str(name): str(i) for i, name in enumerate(own["passage_id"], start=1)}
    return ", ".join(numbers.get(str(name), _NEW) for name in (ids if isinstance(ids, (list, tuple)) else ()))


def _change(before: object, after: object, state: str) -> dict[str, Any] | None:
    if state == SAME:
        return {"said": "Nothing to change: not asked again.", "parts": []}
    if not isinstance(after, str):
        return {"said": "The model call failed.", "parts": []}
    given = before if isinstance(before, str) else ""
    if given == after:
        return {"said": "The same answer.", "parts": []}
    if not after.strip():
        return {"said": "An empty answer.", "parts": []}
    pieces = shorten_same(word_diff(given, after))
    return {"said": "", "parts": [[operation, visible(text)] for operation, text in pieces]}


def _each_alone(found: Losses, rows: pd.DataFrame, query_id: str) -> None:
    """Say which passages alone are sufficient, where each was asked with on its own."""
    if rows.empty:
        return
    enough = rows[rows["state"].eq(CORRECT)].sort_values("repeat")["passages"]
    names = ", ".join(_passages(ids, query_id) for ids in enough)
    show.sentence(
        f"Asked with each of {len(rows):,} passages alone: "
        + (
            f"{plain(found.outcome.good)} with passage {plain(names)}."
            if names
            else f"none gives a {found.outcome.good} answer."
        )
    )
