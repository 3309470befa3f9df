"""The sampled answers to one question, with whatever else was measured of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.arrays import Bools, Floats, Ints
from core.text.abstention import answer_status
from core.text.overlap import by_outcome, rouge_l_of_each
from core.text.words import known_words
from core.uncertainty.clusters import (
    THRESHOLDS,
    both_ways,
    clusters_of_equals,
    greedy_clusters,
)
from core.uncertainty.similarity import content_of_each, cosine, jaccard_of_each


@dataclass(frozen=True, eq=False)
class Samples:
    """The answers to one question; what was not measured is None.

    The first text is the one whose agreement with the others is asked; as
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

    def rows(self, name: str) -> Floats:
        """Return the rows of a field that belong to samples, without a baseline."""
        return np.asarray(self._alone.rows(name)[0])

    def similarity(self, kind: str) -> Floats:
        """Return how alike all texts are, shape (n, n); see `Batch`."""
        return np.asarray(self._alone.similarity(kind)[0])

    def likeness(self, kind: str) -> Floats:
        """Return how alike all texts are as they are worded, refusals too, shape (n, n)."""
        return np.asarray(self._alone.likeness(kind)[0])

    def graph(self, kind: str) -> Floats:
        """Return how alike the samples are, without a baseline."""
        return np.asarray(self._alone.graph(kind)[0])

    def clusters(self, rule: str) -> Ints:
        """Return the group of each sample by a rule, see `Batch.equivalent`."""
        return np.asarray(self._alone.clusters(rule)[0])

    @cached_property
    def _alone(self) -> Batch:
        return Batch((self,))


class Batch:
    """Questions that are measured together.

    All have equally many texts, a baseline or none, and the same fields. Arrays have a row per question.
    """

    def __init__(self, questions: Sequence[Samples]) -> None:
        self.questions = questions
        self.start = int(questions[0].baseline)  # where the samples begin
        self.n_texts = len(questions[0].texts)
        self.n_samples = self.n_texts - self.start
        self._found: dict[tuple[str, str], Any] = {}

    @cached_property
    def status(self) -> NDArray[np.str_]:
        """Of each text: ``answered``, ``abstained`` or ``empty``, shape (questions, n)."""
        found = [answer_status(text) for one in self.questions for text in one.texts]
        return np.array(found, dtype="<U9").reshape(len(self.questions), self.n_texts)

    def array(self, name: str) -> Floats:
        """Return a field as numbers."""
        return np.array([getattr(one, name) for one in self.questions], dtype=np.float64)

    def rows(self, name: str) -> Floats:
        """Return the rows of a field that belong to samples, without a baseline."""
        return self.array(name)[:, self.start :]

    def similarity(self, kind: str) -> Floats:
        """Return how alike all texts are, shape (questions, n, n).

        Two refusals are alike, however they are worded, and so are two empty answers; neither is like an
        answer.
        """
        return self._once("similarity", kind, lambda: by_outcome(self.likeness(kind), self.status))

    def likeness(self, kind: str) -> Floats:
        """Return how alike all texts are as they are worded, refusals too, shape (questions, n, n)."""
        return self._once("likeness", kind, lambda: _LIKENESS[kind](self))

    def graph(self, kind: str) -> Floats:
        """Return how alike the samples are, without a baseline."""
        return self.similarity(kind)[:, self.start :, self.start :]

    def equivalent(self, rule: str) -> Bools:
        """Return which samples mean the same: the same words, alike enough, or entailed both ways."""
        if rule == "entailment":
            same = by_outcome(both_ways(self.array("entailment")).astype(float), self.status)
            return same[:, self.start :, self.start :] > 0
        if rule == "exact":
            ids = self.clusters("exact")
            return ids[:, :, None] == ids[:, None, :]
        return self.graph(rule) >= THRESHOLDS[rule]

    def clusters(self, rule: str) -> Ints:
        """Return the group of each sample by a rule: the same words (``exact``) or as `equivalent` has it."""
        of = self._same_words if rule == "exact" else lambda: greedy_clusters(self.equivalent(rule))
        return self._once("clusters", rule, of)

    def _same_words(self) -> Ints:
        status = self.status[:, self.start :].tolist()
        found = [
            clusters_of_equals(
                [
                    known_words(text) if state == "answered" else state
                    for state, text in zip(states, one.sampled, strict=True)
                ]
            )
            for states, one in zip(status, self.questions, strict=True)
        ]
        return np.array(found, dtype=np.int64).reshape(len(self.questions), self.n_samples)

    def _once(self, name: str, kind: str, compute: Callable[[], Any]) -> Any:
        if (name, kind) not in self._found:
            self._found[name, kind] = compute()
        return self._found[name, kind]


def batches(questions: Sequence[Samples]) -> Iterator[tuple[Ints, Batch]]:
    """Yield questions that can be measured together, and where they are among all."""
    places: dict[Hashable, list[int]] = {}
    for i, one in enumerate(questions):
        fields = tuple(_measured(one, name) for name in _FIELDS)
        places.setdefault((len(one.texts), one.baseline, fields), []).append(i)
    for found in places.values():
        for start in range(0, len(found), _TOGETHER):
            some = found[start : start + _TOGETHER]
            yield np.array(some, dtype=np.int64), Batch([questions[i] for i in some])


def _measured(samples: Samples, name: str) -> Hashable:
    """Return what questions of one batch share: the shape of a field, and whether values are missing."""
    given = getattr(samples, name)
    if given is None or name not in WHOLE:
        return given is None
    values = np.asarray(given, dtype=np.float64)
    return (values.shape, bool(np.isfinite(values).all()))


WHOLE = ("embeddings", "entailment")  # fields of which no value may be missing
_FIELDS = (*WHOLE, "logprobs", "p_true", "verbalised", "contradiction")
_TOGETHER = 500  # questions: enough that arrays pay off, and little memory
_LIKENESS: dict[str, Callable[[Batch], Floats]] = {
    "jaccard": lambda batch: jaccard_of_each([one.texts for one in batch.questions]),
    "rouge_l": lambda batch: np.nan_to_num(rouge_l_of_each([one.texts for one in batch.questions])),
    "content": lambda batch: content_of_each(
        [one.texts for one in batch.questions], [one.question for one in batch.questions]
    ),
    "cosine": lambda batch: cosine(batch.array("embeddings")),
    "entailment": lambda batch: _mean_of_both(batch.array("entailment")),
}


def _mean_of_both(entailment: Floats) -> Floats:
    return np.asarray((entailment + np.swapaxes(entailment, -1, -2)) / 2)
