"""The sampled answers to one question, with whatever else was measured of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.arrays import Bools, Floats, Ints
from core.text.abstention import answer_status
from core.text.overlap import by_outcome, rouge_l_matrix
from core.text.words import words
from core.uncertainty.clusters import (
    THRESHOLDS,
    both_ways,
    clusters_of_equals,
    greedy_clusters,
)
from core.uncertainty.similarity import content, cosine, jaccard


class Estimate(NamedTuple):
    """A value, NaN with a reason where it is undefined."""

    value: float
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class Samples:
    """The answers to one question; what was not measured is None.

    What was not measured is None. The first text is the one whose agreement with the others is asked; as
    ``baseline`` it was given at temperature 0 and is no sample itself, so measures of the question leave it
    out. The words of the ``question`` say nothing of an answer's meaning.

    One row per text: ``embeddings``, (n, d); ``entailment``, (n, n), the probability that text i, as an
    answer to the question, entails text j; ``logprobs``, the log-probability divided by the number of tokens.
    Of the first text: ``p_true`` and ``verbalised``, what the model says of it; ``contradiction``,
    (n_sentences, n_samples), the probability that a sample contradicts a sentence of it.
    """

    texts: Sequence[str]
    baseline: bool = False
    question: str = ""
    embeddings: ArrayLike | None = None
    entailment: ArrayLike | None = None
    logprobs: ArrayLike | None = None
    p_true: float | None = None
    verbalised: float | None = None
    contradiction: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Refuse arrays of another length than the texts."""
        for name in ("embeddings", "entailment", "logprobs"):
            given = getattr(self, name)
            if given is not None and len(np.asarray(given)) != len(self.texts):
                raise ValueError(f"{name} has {len(np.asarray(given))} rows for {len(self.texts)} texts")

    @property
    def sampled(self) -> Sequence[str]:
        """The samples, without a baseline."""
        return self.texts[int(self.baseline) :]

    @cached_property
    def status(self) -> list[str]:
        """Of each text: ``answered``, ``abstained`` or ``empty``."""
        return [answer_status(text) for text in self.texts]

    @property
    def sampled_status(self) -> list[str]:
        """Of each sample."""
        return self.status[int(self.baseline) :]

    def array(self, name: str) -> Floats:
        """Return a field as numbers."""
        return np.asarray(getattr(self, name), dtype=np.float64)

    def rows(self, name: str) -> Floats:
        """Return the rows of a field that belong to samples, without a baseline."""
        return self.array(name)[int(self.baseline) :]

    def similarity(self, kind: str) -> Floats:
        """Return how alike all texts are, shape (n, n).

        Two refusals are alike, however they are worded, and so are two empty answers; neither is like an
        answer.
        """
        if kind not in self._similarities:
            self._similarities[kind] = by_outcome(self.likeness(kind), self.status)
        return self._similarities[kind]

    def likeness(self, kind: str) -> Floats:
        """Return how alike all texts are as they are worded, refusals too, shape (n, n)."""
        if kind not in self._likenesses:
            self._likenesses[kind] = self._of_different(kind) if kind in _OF_TEXTS else _OF_REST[kind](self)
        return self._likenesses[kind]

    def _of_different(self, kind: str) -> Floats:
        """Compare each different text once: many samples are the same, word for word."""
        place = {text: i for i, text in enumerate(dict.fromkeys(self.texts))}
        # Equal texts without a word are not alike, so they cannot share a row.
        if len(place) == len(self.texts) or "empty" in self.status:
            return _OF_TEXTS[kind](self.texts, self.question)
        rows = np.array([place[text] for text in self.texts])
        return _OF_TEXTS[kind]([*place], self.question)[np.ix_(rows, rows)]

    def graph(self, kind: str) -> Floats:
        """Return how alike the samples are, without a baseline."""
        return self.similarity(kind)[int(self.baseline) :, int(self.baseline) :]

    def equivalent(self, rule: str) -> Bools:
        """Return which samples mean the same: the same words, alike enough, or entailed both ways."""
        if rule == "entailment":
            same = by_outcome(both_ways(self.array("entailment")).astype(float), self.status)
            return same[int(self.baseline) :, int(self.baseline) :] > 0
        if rule == "exact":
            ids = self.clusters("exact")
            return ids[:, None] == ids
        return self.graph(rule) >= THRESHOLDS[rule]

    def clusters(self, rule: str) -> Ints:
        """Return the group of each sample by a rule: the same words (``exact``) or as `equivalent` has it."""
        if rule not in self._clusters:
            self._clusters[rule] = (
                clusters_of_equals(
                    [
                        status if status != "answered" else tuple(words(text))
                        for status, text in zip(self.sampled_status, self.sampled, strict=True)
                    ]
                )
                if rule == "exact"
                else greedy_clusters(self.equivalent(rule))
            )
        return self._clusters[rule]

    @cached_property
    def _likenesses(self) -> dict[str, Floats]:
        return {}

    @cached_property
    def _similarities(self) -> dict[str, Floats]:
        return {}

    @cached_property
    def _clusters(self) -> dict[str, Ints]:
        return {}


def _mean_of_both(entailment: Floats) -> Floats:
    return np.asarray((entailment + entailment.T) / 2)


_OF_TEXTS: dict[str, Callable[[Sequence[str], str], Floats]] = {
    "jaccard": lambda texts, _: jaccard(texts),
    "rouge_l": lambda texts, _: np.nan_to_num(rouge_l_matrix(texts)),
    "content": content,
}
_OF_REST: dict[str, Callable[[Samples], Floats]] = {
    "cosine": lambda s: cosine(s.array("embeddings")),
    "entailment": lambda s: _mean_of_both(s.array("entailment")),
}
