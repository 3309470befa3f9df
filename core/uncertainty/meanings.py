"""The meanings of a question's samples, the largest first, and which of them the baseline answer has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.arrays import Bools, Floats, Ints
from core.text.sentences import sentences
from core.uncertainty.clusters import THRESHOLDS
from core.uncertainty.samples import Batch, Samples, batches


class Meanings(NamedTuple):
    """Groups of the samples of many questions.

    ``numbers``, (questions, n): the meaning of each sample, from 1, the largest first. ``sizes``, (questions,
    n): of each meaning, 0 beyond the last. ``baseline_size``, (questions,): how many samples have the meaning
    of the baseline answer; 0 where none has.
    """

    numbers: Ints
    sizes: Ints
    baseline_size: Ints

    @property
    def differs_by_chance(self) -> Floats:
        """Probability that the baseline is not of a most common meaning, if it were one more sample.

        Exact given the answers: of the samples and the baseline, each is as likely as any other to be the
        baseline. It is of a most common meaning of the others only where its own is the largest of all.
        """
        # One more of the baseline's own meaning, or a meaning of its own.
        sizes = np.pad(self.sizes, [(0, 0), (0, 1)])
        own = np.argmax(sizes == self.baseline_size[:, None], axis=1)
        sizes[np.arange(len(sizes)), own] += 1
        largest = sizes.max(axis=1)
        alone = (sizes == largest[:, None]).sum(axis=1) == 1
        return np.where(alone, 1 - largest / sizes.sum(axis=1), 1.0)


def meanings(batch: Batch) -> Meanings:
    """Group the samples by meaning, and find that of the baseline answer, their first text."""
    ids = batch.clusters("content")
    row, every = np.arange(len(ids))[:, None], np.arange(batch.n_samples)
    sizes = (ids[:, :, None] == every).sum(axis=1)
    order = np.argsort(-sizes, axis=1, kind="stable")
    numbers = np.empty_like(order)
    numbers[row, order] = every + 1
    own_size = np.take_along_axis(sizes, ids, axis=1)
    largest_like_it = np.where(_like_baseline(batch), own_size, 0).max(axis=1, initial=0)
    return Meanings(np.take_along_axis(numbers, ids, axis=1), sizes[row, order], largest_like_it)


def _like_baseline(batch: Batch) -> Bools:
    """Return which samples the baseline says, in one of its sentences: it may say more than a sample does."""
    status = batch.status[:, batch.start :]
    found = batch.likeness("content")[:, 0, batch.start :] >= THRESHOLDS["content"]
    several = {
        i: said for i, one in enumerate(batch.questions) if (said := _sentences(one, batch.status[i, 0]))
    }
    apart = [
        Samples([*said, *batch.questions[i].sampled], question=batch.questions[i].question)
        for i, said in several.items()
    ]
    places = np.array([*several], dtype=np.int64)
    for at, one in batches(apart):
        n_said = one.n_texts - batch.n_samples
        like = one.likeness("content")[:, :n_said, n_said:] >= THRESHOLDS["content"]
        found[places[at]] = like.any(axis=1)
    answered = batch.status[:, :1] == "answered"
    return np.asarray(np.where(answered, (status == "answered") & found, status == batch.status[:, :1]))


def _sentences(samples: Samples, status: str) -> list[str]:
    """Return the sentences of an answer that is not one as it is; none of what is no answer."""
    if status != "answered":
        return []
    said = sentences(samples.texts[0])
    return [] if said == [samples.texts[0]] and samples.baseline else said
