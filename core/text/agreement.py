"""How far an answer agrees with other answers to its question, refusals and empty ones among them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.text.abstention import answer_status
from core.text.overlap import rouge_l_matrix


class Agreement(NamedTuple):
    """A value in [0, 1], higher = more alike; NaN with a reason, a sentence, where it is undefined."""

    value: float
    reason: str = ""


def by_outcome(likeness: npt.NDArray[np.float64], status: Sequence[str]) -> npt.NDArray[np.float64]:
    """Set the likeness of texts of which at least one is no answer: 1 for equal outcomes, else 0.

    Two refusals are alike, however they are worded, and so are two empty answers; neither is like an answer.

    Parameters
    ----------
    likeness : ndarray of shape (n, n)
        Of the texts.
    status : sequence of str, length n
        Of each text: `core.text.abstention.answer_status`.

    Examples
    --------
    >>> by_outcome(np.full((3, 3), 0.5), ["answered", "abstained", "abstained"]).tolist()
    [[0.5, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    if set(status) <= {"answered"}:
        return likeness
    given = np.array(status)
    equal = given[:, None] == given
    both_answered = (given[:, None] == "answered") & equal
    return np.where(both_answered, likeness, equal)


def rouge_l_agreement(answer: str, samples: Sequence[str]) -> Agreement:
    """Mean ROUGE-L F1 of an answer to samples of answers to the same question.

    Parameters
    ----------
    answer : str
        The answer.
    samples : sequence of str
        What the model said to the same prompt when sampled.

    Returns
    -------
    Agreement
        A refusal or an empty text among the samples counts as unlike. Undefined for an answer that is one
        itself, and where no sample is an answer.

    Examples
    --------
    >>> rouge_l_agreement("the cat sat", ["the cat sat", "the cat ran", "I don't know"]).value
    0.5555555555555555
    >>> rouge_l_agreement("I don't know", ["Paris"]).reason
    'The answer is a refusal: it claims nothing.'
    """
    status = [answer_status(text) for text in (answer, *samples)]
    if status[0] != "answered":
        return Agreement(math.nan, _NO_ANSWER[status[0]])
    if "answered" not in status[1:]:
        return Agreement(math.nan, "No sample is an answer, so there is nothing to agree with.")
    likeness = by_outcome(np.nan_to_num(rouge_l_matrix((answer, *samples))), status)
    return Agreement(float(likeness[0, 1:].mean()))


_NO_ANSWER = {
    "abstained": "The answer is a refusal: it claims nothing.",
    "empty": "The answer holds no word.",
}
