"""What became of an answer under an arm, as a sign and a word: never by colour alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from core.losses.analysis import Losses
from core.losses.arms import ALONE, AS_IT_IS
from core.losses.ladder import NONE, UNCHANGED
from core.losses.outcomes import ABSTAINED, CORRECT, EMPTY, FAILED, INCORRECT, UNJUDGED

SAME = "same prompt"  # there was nothing to change, so nothing was asked
_LOOKS = {
    CORRECT: ("✓", "green"),
    INCORRECT: ("✗", "red"),
    ABSTAINED: ("○", "orange"),
    EMPTY: ("∅", "orange"),
    FAILED: ("!", "violet"),
    UNJUDGED: ("?", "gray"),
    SAME: ("=", "gray"),
}


class Look(NamedTuple):
    """A sign, a word and a colour that stand for a state."""

    sign: str
    word: str
    colour: str

    def __str__(self) -> str:
        return f"{self.sign} {self.word}"


def looks(losses: Losses) -> dict[str, Look]:
    """Return how every state is shown, in the words of what is counted."""
    return {
        state: Look(sign, losses.outcome.words(state), colour) for state, (sign, colour) in _LOOKS.items()
    }


def state_of(state: object, prompt: str) -> str | None:
    """Return the state to show of an arm's row; None where the arm has nothing to try on the question."""
    if isinstance(state, str):
        return state
    return {UNCHANGED: SAME, NONE: None}.get(prompt, UNJUDGED)


def arms_of(losses: Losses) -> Sequence[str]:
    """Return the arms that have a column or a row of their own, in their order."""
    tried = {*losses.answers["arm"]} - {ALONE, AS_IT_IS}
    return [arm for arm in (*losses.titles, *sorted(tried - {*losses.titles})) if arm in tried]


def by_question(losses: Losses) -> pd.DataFrame:
    """Return one row per question: ``query_id, question, stage``, the state *as it is* and under each arm."""
    shown, q = looks(losses), losses.queries
    frame = q[["query_id", "question"]].assign(
        stage=[None if pd.isna(stage) else losses.title(stage) for stage in q["stage"]],
        as_it_is=[str(shown[state]) for state in q["state"]],
    )
    for arm, states in _columns(losses):
        frame[arm] = [None if state is None else str(shown[state]) for state in states]
    return frame


def _columns(losses: Losses) -> Iterator[tuple[str, list[str | None]]]:
    ids = losses.queries["query_id"]
    for arm in arms_of(losses):
        own = losses.answers[losses.answers["arm"].eq(arm) & losses.answers["repeat"].eq(1)]
        found = {
            query_id: state_of(state, prompt)
            for query_id, state, prompt in own[["query_id", "state", "prompt"]].itertuples(index=False)
        }
        yield f"arm {arm}", [found.get(query_id) for query_id in ids]
