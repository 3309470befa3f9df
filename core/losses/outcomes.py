"""What became of an answer: correct, incorrect, abstained …; the answers of all arms are judged alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from core.arrays import Floats
from core.text.matching import is_correct_again
from core.text.words import known_words

CORRECT, INCORRECT, ABSTAINED, EMPTY, FAILED, UNJUDGED = STATES = (
    "correct", "incorrect", "abstained", "empty", "failed", "not judged",
)  # fmt: skip
SUPPORTED_FROM = 0.5  # support that the weakest claim of an answer must have


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is counted, and its words on screen."""

    name: str
    good: str
    bad: str

    def words(self, text: str) -> str:
        """Return a text of correct and incorrect answers in the words of this outcome."""
        for word, own in ((INCORRECT, self.bad), (CORRECT, self.good)):
            text = text.replace(word, own).replace(word.capitalize(), own.capitalize())
        return text


BY_REFERENCES = Outcome("correct", "correct", "incorrect")
BY_CLAIMS = Outcome("supported", "supported", "not fully supported")


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges all answers to one question by its reference answers, and by the label of one of them.

    A person's label is of one answer, and of every answer in the same words. Where it contradicts the
    comparison with the references, that comparison cannot be trusted on this question: answers in other words
    are then not judged.
    """

    question: str
    references: tuple[str, ...]
    labelled: str | None = None
    label: bool | None = None

    def state(self, answer: str | None, status: str | None) -> str:
        """Return one of `STATES`."""
        is_labelled = None not in (answer, self.labelled) and known_words(str(answer)) == known_words(
            str(self.labelled)
        )
        if status in (ABSTAINED, EMPTY):
            return CORRECT if is_labelled and self.label else status
        if status != "answered" or answer is None:
            return FAILED
        found: bool | None
        if self.label is not None and self.labelled is not None:
            if is_labelled:
                found = self.label
            else:
                # An abstention says no reference: who calls it incorrect agrees.
                agrees = bool(is_correct_again(self.labelled, self.references, self.question)) == self.label
                found = is_correct_again(answer, self.references, self.question) if agrees else None
        else:
            found = is_correct_again(answer, self.references, self.question)
        return UNJUDGED if found is None else CORRECT if found else INCORRECT


def judge_of(query: Mapping[str, Any]) -> Judge:
    """Return the judge of a question by its row of the table ``queries``."""
    label, answer = query["correct"], query["answer"]
    return Judge(
        str(query["question"]),
        tuple(query["reference_answers"] or ()),
        answer if isinstance(answer, str) else None,
        None if pd.isna(label) else bool(label),
    )


def state_by_claims(status: str | None, support: float | None) -> str:
    """Return one of `STATES` for an answer whose weakest claim has this support, None where unknown."""
    if status in (ABSTAINED, EMPTY):
        return str(status)
    if status != "answered":
        return FAILED
    if support is None or np.isnan(support):
        return UNJUDGED
    return CORRECT if support >= SUPPORTED_FROM else INCORRECT


def success(states: ArrayLike | Sequence[object]) -> Floats:
    """Return 1 for correct, 0 for incorrect, abstained or empty, NaN for what is not known, (n,)."""
    given = np.asarray(states, dtype=object)
    found = np.full(given.shape, np.nan)
    found[given == CORRECT] = 1.0
    found[np.isin(given.astype(str), (INCORRECT, ABSTAINED, EMPTY))] = 0.0
    return found
