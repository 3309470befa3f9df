"""The meanings of a question's samples, the largest first, and which of them the baseline answer has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.arrays import Ints
from core.uncertainty.clusters import ROUGE_THRESHOLD, greedy_clusters
from core.uncertainty.samples import Samples


class Meanings(NamedTuple):
    """Groups of samples.

    Attributes
    ----------
    numbers : ndarray of int, shape (n,)
        The meaning of each sample, from 1: the largest, then the next.
    baseline_size : int
        How many samples have the meaning of the baseline answer; 0 where none has.
    """

    numbers: Ints
    baseline_size: int


def meanings(samples: Samples) -> Meanings:
    """Group the samples by meaning, and find that of the baseline answer, their first text."""
    same = samples.similarity("rouge_l") >= ROUGE_THRESHOLD
    ids = greedy_clusters(same[1:, 1:])
    sizes = np.bincount(ids)
    numbers = np.empty(len(sizes), dtype=np.int64)
    numbers[np.argsort(-sizes, kind="stable")] = np.arange(1, len(sizes) + 1)
    like_baseline = np.flatnonzero(same[0, 1:])
    return Meanings(numbers[ids], int(sizes[ids[like_baseline]].max(initial=0)))
