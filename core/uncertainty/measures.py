"""Measures of answers and of groups of them: words, embeddings, entropies, what a model says of itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, expit

from core.arrays import Floats
from core.text.words import words
from core.uncertainty.similarity import unit

Variant = Literal["mean_squared", "mean_distance", "std_distance"]


def lexical_diversity(texts: Sequence[str]) -> float:
    """Share of different words among all words of the samples: types / tokens.

    In (0, 1], higher = more varied; it falls with the length and number of samples, so compare equal numbers
    only. NaN without a word.

    >>> lexical_diversity(["Paris", "Paris", "in Paris"])
    0.5
    """
    found = [word for text in texts for word in words(text)]
    return len(set(found)) / len(found) if found else math.nan


def distinct_answers(texts: Sequence[str]) -> int:
    """Return how many different sequences of words the samples are: case and punctuation do not count.

    >>> distinct_answers(["Paris", "paris.", "Rome"])
    2
    """
    return len({tuple(words(text)) for text in texts})


def answer_length(text: str) -> int:
    """Return the number of words.

    >>> answer_length("in Paris")
    2
    """
    return len(words(text))


def centroid_distances(embeddings: ArrayLike) -> Floats:
    """Distance of every embedding, at length 1, from the mean of all, shape (n,)."""
    rows = unit(embeddings)
    return np.linalg.norm(rows - rows.mean(axis=0), axis=1) if len(rows) else np.empty(0)


def embedding_variance(embeddings: ArrayLike, variant: Variant = "mean_squared") -> float:
    """Spread of the samples about their centroid.

    ``embeddings``, (n, d), are brought to length 1. ``variant``: mean of the squared distances to the
    centroid; of the distances; or their standard deviation, which is 0 for any two answers and for any that
    are equally far apart, so do not rely on it. In [0, 1], higher = less agreement; NaN without samples.

    >>> opposite = [[1.0, 0.0], [-1.0, 0.0]]
    >>> [embedding_variance(opposite, v) for v in ("mean_squared", "mean_distance", "std_distance")]
    [1.0, 1.0, 0.0]
    """
    distance = centroid_distances(embeddings)
    if not distance.size:
        return math.nan
    if variant == "std_distance":
        return float(distance.std())
    return float(min(1.0, (distance if variant == "mean_distance" else distance**2).mean()))


def consensus(embeddings: ArrayLike) -> int:
    """Return the row of the sample nearest the centroid, the first of equals.

    ValueError without samples.

    >>> consensus([[0.0, 1.0], [1.0, 0.0], [1.0, 0.1]])
    2
    """
    distance = centroid_distances(embeddings)
    if not distance.size:
        raise ValueError("no samples were given; a consensus needs at least one")
    # Equal answers may differ in the last digits of their embeddings.
    return int(np.argmax(distance <= distance.min() + 1e-9))


def number_of_semantic_sets(cluster_ids: ArrayLike) -> int:
    """Return how many different meanings the samples have.

    >>> number_of_semantic_sets([0, 1, 0, 2])
    3
    """
    return int(np.unique(np.asarray(cluster_ids)).size)


def discrete_semantic_entropy(cluster_ids: ArrayLike) -> float:
    """Entropy of the share of samples in each group (Farquhar et al. 2024).

    ``cluster_ids``, (n,): the group of each sample. In [0, ln n], higher = more meanings, more evenly. NaN
    without samples.

    >>> round(discrete_semantic_entropy([0, 0, 1, 1]), 4)
    0.6931
    """
    _, size = np.unique(np.asarray(cluster_ids), return_counts=True)
    return float(entr(size / size.sum()).sum()) if size.size else math.nan


def semantic_entropy(cluster_ids: ArrayLike, logprobs: ArrayLike) -> float:
    """Entropy over groups weighted by the probability of their answers (Rao-Blackwellised).

    ``cluster_ids`` and ``logprobs``, (n,): the group of each sample, and its log-probability divided by its
    number of tokens, in nats. In [0, ln n], higher = less certain; NaN without samples or where a
    log-probability is missing. Kuhn, Gal, Farquhar 2023, arXiv 2302.09664; Farquhar et al. 2024, Nature 630.

    Three to one in probability:

    >>> round(semantic_entropy([0, 1], [math.log(0.3), math.log(0.1)]), 4)
    0.5623
    """
    mass = _log_mass(cluster_ids, logprobs)
    return float(entr(np.exp(mass - _log_sum(mass))).sum()) if _usable(mass) else math.nan


def kuhn_entropy(cluster_ids: ArrayLike, logprobs: ArrayLike) -> float:
    """Mean over groups of minus the log of their summed probability, not normalised.

    The variant of TruthTorchLM, whose figures were published under the name semantic entropy; takes what
    `semantic_entropy` does. Any number, also below 0, as the sampled probabilities of a group may sum to more
    than 1; higher = less certain; NaN likewise.

    >>> round(kuhn_entropy([0, 1], [math.log(0.3), math.log(0.1)]), 4)
    1.7533
    """
    mass = _log_mass(cluster_ids, logprobs)
    return float(-mass.mean()) if _usable(mass) else math.nan


def _log_mass(cluster_ids: ArrayLike, logprobs: ArrayLike) -> Floats:
    """Return the log of the summed probability of each group."""
    ids, given = np.asarray(cluster_ids), np.asarray(logprobs, dtype=np.float64)
    if ids.shape != given.shape:
        raise ValueError(f"groups and log-probabilities differ in shape: {ids.shape} and {given.shape}")
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN and infinity have no mass that can be used
        return np.array([_log_sum(given[ids == number]) for number in np.unique(ids)])


def _log_sum(logs: Floats) -> np.float64:
    """Return what scipy's `logsumexp` does, whose checks cost several times that."""
    if len(logs) == 1:
        return np.float64(logs[0] + 0.0)
    largest = logs == logs.max()
    n, top = largest.sum(), logs.max()
    return np.log1p(np.exp(np.where(largest, -np.inf, logs) - top).sum() / n) + np.log(n) + top


def _usable(mass: Floats) -> bool:
    return bool(mass.size and np.isfinite(mass).all())


def p_true(logprob_true: float, logprob_false: float) -> float:
    """Probability that the model calls its own answer true, of the two replies it may give.

    Of the log-probabilities of the replies "True" and "False". In [0, 1], higher = more confident; NaN where
    both are impossible. Kadavath et al. 2022, arXiv 2207.05221.

    >>> round(p_true(math.log(0.6), math.log(0.2)), 4)
    0.75
    """
    if logprob_true == logprob_false == -math.inf:
        return math.nan
    return float(expit(logprob_true - logprob_false))


def contradiction_rate(contradiction: ArrayLike) -> float:
    """Mean probability that a sample contradicts a sentence of the answer.

    ``contradiction``, (n_sentences, n_samples): probabilities, or 0 and 1; NaN where the check failed, which
    is left out. In [0, 1], higher = the samples contradict the answer; NaN where nothing was checked.
    Manakul, Liusie, Gales 2023, arXiv 2303.08896.

    >>> contradiction_rate([[1.0, 0.0], [math.nan, 0.5]])
    0.5
    """
    given = np.asarray(contradiction, dtype=np.float64)
    known = given[~np.isnan(given)]
    return float(known.mean()) if known.size else math.nan
