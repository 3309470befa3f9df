"""The meanings of a question's samples, the largest first, and which of them the baseline answer has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.arrays import Bools, Ints
from core.text.sentences import sentences
from core.uncertainty.clusters import THRESHOLDS
from core.uncertainty.samples import Samples
from core.uncertainty.similarity import content


class Meanings(NamedTuple):
    """Groups of samples.

    ``numbers``, (n,): the meaning of each sample, from 1, the largest first. ``baseline_size``: how many
    samples have the meaning of the baseline answer; 0 where none has.
    """

    numbers: Ints
    baseline_size: int

    @property
    def differs_by_chance(self) -> float:
        """Probability that the baseline is not of a most common meaning, if it were one more sample.

        Exact given the answers: of the samples and the baseline, each is as likely as any other to be the
        baseline. It is of a most common meaning of the others only where its own is the largest of all.
        """
        sizes = np.bincount(self.numbers)[1:]
        same = np.flatnonzero(sizes == self.baseline_size)[:1]
        sizes = np.append(sizes, 1) if not same.size else sizes + (np.arange(len(sizes)) == same)
        largest = sizes.max()
        return float(1 - largest / sizes.sum()) if (sizes == largest).sum() == 1 else 1.0


def meanings(samples: Samples) -> Meanings:
    """Group the samples by meaning, and find that of the baseline answer, their first text."""
    ids = samples.clusters("content")
    sizes = np.bincount(ids)
    numbers = np.empty(len(sizes), dtype=np.int64)
    numbers[np.argsort(-sizes, kind="stable")] = np.arange(1, len(sizes) + 1)
    return Meanings(numbers[ids], int(sizes[ids[_like_baseline(samples)]].max(initial=0)))


def _like_baseline(samples: Samples) -> Bools:
    """Return which samples the baseline says, in one of its sentences: it may say more than a sample does."""
    status = np.array(samples.sampled_status)
    if samples.status[0] != "answered":
        return np.asarray(status == samples.status[0])
    said = sentences(samples.texts[0])
    if samples.baseline and said == [samples.texts[0]]:  # as most answers are
        found = samples.likeness("content")[:1, 1:]
    else:
        found = content([*said, *samples.sampled], samples.question)[: len(said), len(said) :]
    return np.asarray((status == "answered") & (found >= THRESHOLDS["content"]).any(axis=0))
