"""Words of the answers: diversity, and the trivial baselines that every estimator must beat."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.text.overlap import rouge_l_matrix
from core.text.words import words


def lexical_diversity(texts: Sequence[str]) -> float:
    """Share of different words among all words of the samples: types / tokens.

    In (0, 1], higher = more varied; it falls with the length and number of samples, so compare equal numbers
    only. NaN without a word.

    Examples
    --------
    >>> lexical_diversity(["Paris", "Paris", "in Paris"])
    0.5
    """
    found = [word for text in texts for word in words(text)]
    return len(set(found)) / len(found) if found else math.nan


def mean_pairwise_rouge(texts: Sequence[str]) -> float:
    """Mean ROUGE-L F1 of every two samples.

    In [0, 1], higher = more agreement. Two samples without a word have no ROUGE-L and are left out as a pair;
    NaN without a pair.

    Examples
    --------
    >>> round(mean_pairwise_rouge(["St Petersburg", "Petersburg", "Moscow"]), 4)
    0.2222
    """
    pairs = rouge_l_matrix(texts)[np.triu_indices(len(texts), 1)]
    known = pairs[~np.isnan(pairs)]
    return float(known.mean()) if known.size else math.nan


def distinct_answers(texts: Sequence[str]) -> int:
    """Return how many different sequences of words the samples are: case and punctuation do not count.

    Examples
    --------
    >>> distinct_answers(["Paris", "paris.", "Rome"])
    2
    """
    return len({tuple(words(text)) for text in texts})


def answer_length(text: str) -> int:
    """Return the number of words.

    Examples
    --------
    >>> answer_length("in Paris")
    2
    """
    return len(words(text))
