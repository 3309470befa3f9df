"""Measures of answers and of groups of them: words, embeddings, entropies, what a model says of itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, expit

from core.arrays import Floats, Ints
from core.text.words import known_words
from core.uncertainty.similarity import unit

Variant = Literal["mean_squared", "mean_distance", "std_distance"]


def lexical_diversity(texts: Sequence[str]) -> float:
    """Share of different words among all words of the samples: types / tokens.

    In (0, 1], higher = more varied; it falls with the length and number of samples, so compare equal numbers
    only. NaN without a word.

    >>> lexical_diversity(["Paris", "Paris", "in Paris"])
    0.5
    """
    found = [word for text in texts for word in known_words(text)]
    return len(set(found)) / len(found) if found else math.nan


def distinct_answers(texts: Sequence[str]) -> int:
    """Return how many different sequences of words the samples are: case and punctuation do not count.

    >>> distinct_answers(["Paris", "paris.", "Rome"])
    2
    """
    return len({known_words(text) for text in texts})


def answer_length(text: str) -> int:
    """Return the number of words.

    >>> answer_length("in Paris")
    2
    """
    return len(known_words(text))


def centroid_distances(embeddings: ArrayLike) -> Floats:
    """Distance of every embedding, at length 1, from the mean of all, shape (..., n)."""
    rows = unit(embeddings)
    if not rows.shape[-2]:
        return np.empty(rows.shape[:-1])
    return np.asarray(np.linalg.norm(rows - rows.mean(axis=-2, keepdims=True), axis=-1))


def embedding_variance(embeddings: ArrayLike, variant: Variant = "mean_squared") -> Any:
    """Spread of the samples about their centroid.

    ``embeddings``, (..., n, d), are brought to length 1. ``variant``: mean of the squared distances to the
    centroid; of the distances; or their standard deviation, which is 0 for any two answers and for any that
    are equally far apart, so do not rely on it. In [0, 1], higher = less agreement; NaN without samples.

    >>> opposite = [[1.0, 0.0], [-1.0, 0.0]]
    >>> [float(embedding_variance(opposite, v)) for v in ("mean_squared", "mean_distance", "std_distance")]
    [1.0, 1.0, 0.0]
    """
    distance = centroid_distances(embeddings)
    if not distance.size:
        return _undefined(distance)
    if variant == "std_distance":
        return distance.std(axis=-1)
    return np.minimum(1.0, (distance if variant == "mean_distance" else distance**2).mean(axis=-1))


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


def number_of_semantic_sets(cluster_ids: ArrayLike) -> Any:
    """Return how many different meanings the samples have; ``cluster_ids``, (..., n).

    >>> int(number_of_semantic_sets([0, 1, 0, 2]))
    3
    """
    groups = _groups(cluster_ids)
    return np.bincount(groups.question, minlength=math.prod(groups.shape)).reshape(groups.shape)[()]


def discrete_semantic_entropy(cluster_ids: ArrayLike) -> Any:
    """Entropy of the share of samples in each group (Farquhar et al. 2024).

    ``cluster_ids``, (..., n): the group of each sample. In [0, ln n], higher = more meanings, more evenly.
    NaN without samples.

    >>> round(float(discrete_semantic_entropy([0, 0, 1, 1])), 4)
    0.6931
    """
    groups = _groups(cluster_ids)

    def entropy(size: Floats) -> Floats:
        return np.asarray(entr(size / size.sum(axis=-1, keepdims=True)).sum(axis=-1))

    return _by_number(groups, groups.size.astype(np.float64), entropy)


def semantic_entropy(cluster_ids: ArrayLike, logprobs: ArrayLike) -> Any:
    """Entropy over groups weighted by the probability of their answers (Rao-Blackwellised).

    ``cluster_ids`` and ``logprobs``, (..., n): the group of each sample, and its log-probability divided by
    its number of tokens, in nats. In [0, ln n], higher = less certain; NaN without samples or where a
    log-probability is missing. Kuhn, Gal, Farquhar 2023, arXiv 2302.09664; Farquhar et al. 2024, Nature 630.

    Three to one in probability:

    >>> round(float(semantic_entropy([0, 1], [math.log(0.3), math.log(0.1)])), 4)
    0.5623
    """
    groups, mass = _log_masses(cluster_ids, logprobs)

    def entropy(logs: Floats) -> Floats:
        return np.asarray(entr(np.exp(logs - _log_sum(logs)[:, None])).sum(axis=-1))

    return _by_number(groups, mass, entropy)


def kuhn_entropy(cluster_ids: ArrayLike, logprobs: ArrayLike) -> Any:
    """Mean over groups of minus the log of their summed probability, not normalised.

    The variant of TruthTorchLM, whose figures were published under the name semantic entropy; takes what
    `semantic_entropy` does. Any number, also below 0, as the sampled probabilities of a group may sum to more
    than 1; higher = less certain; NaN likewise.

    >>> round(float(kuhn_entropy([0, 1], [math.log(0.3), math.log(0.1)])), 4)
    1.7533
    """
    groups, mass = _log_masses(cluster_ids, logprobs)
    return _by_number(groups, mass, lambda logs: -logs.mean(axis=-1))


class _Groups(NamedTuple):
    """Samples in the order of their groups, of all questions in a row.

    ``order`` of the samples; of each group its ``question``, where it ``start`` and its ``size``.
    """

    shape: tuple[int, ...]  # of the result
    order: Ints
    question: Ints
    start: Ints
    size: Ints


def _groups(cluster_ids: ArrayLike) -> _Groups:
    """Return the groups of each question, by their ids."""
    ids = np.asarray(cluster_ids)
    n = ids.shape[-1]
    rows = ids.reshape(-1, n) if n else ids.reshape(math.prod(ids.shape[:-1]), 0)
    order = np.argsort(rows, axis=-1, kind="stable")
    ranked = np.take_along_axis(rows, order, axis=-1)
    opens = np.ones(ranked.shape, dtype=bool)
    opens[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    start = np.flatnonzero(opens)
    flat = (order + n * np.arange(len(rows))[:, None]).ravel()
    return _Groups(ids.shape[:-1], flat, start // max(1, n), start, np.diff(np.append(start, flat.size)))


def _log_masses(cluster_ids: ArrayLike, logprobs: ArrayLike) -> tuple[_Groups, Floats]:
    """Return the groups, and the log of the summed probability of each."""
    ids, given = np.asarray(cluster_ids), np.asarray(logprobs, dtype=np.float64)
    if ids.shape != given.shape:
        raise ValueError(f"groups and log-probabilities differ in shape: {ids.shape} and {given.shape}")
    groups = _groups(ids)
    logs, mass = given.ravel()[groups.order], np.empty(len(groups.size))
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN and infinity have no mass that can be used
        for size in np.unique(groups.size):
            chosen = groups.size == size
            mass[chosen] = _log_sum(logs[groups.start[chosen][:, None] + np.arange(size)])
    return groups, mass


def _by_number(groups: _Groups, values: Floats, measure: Callable[[Floats], Floats]) -> Any:
    """Measure the values of each question's groups, all questions with equally many at once.

    A row of values for each question; NaN without groups, or where a value is not finite. Padding the rows
    to one length would change the last digit of the sums.
    """
    found = np.full(math.prod(groups.shape), math.nan)
    number = np.bincount(groups.question, minlength=found.size)
    first = np.cumsum(number) - number
    for n in np.unique(number[number > 0]):
        chosen = np.flatnonzero(number == n)
        rows = values[first[chosen][:, None] + np.arange(n)]
        usable = np.isfinite(rows).all(axis=-1)
        found[chosen[usable]] = measure(rows[usable])
    return found.reshape(groups.shape)[()]  # of one question a number


def _log_sum(logs: Floats) -> Floats:
    """Return of each row what scipy's `logsumexp` does, whose checks cost several times that."""
    if logs.shape[-1] == 1:
        return logs[:, 0] + 0.0
    top = logs.max(axis=-1, keepdims=True)
    largest = logs == top
    n = largest.sum(axis=-1)
    rest = np.exp(np.where(largest, -np.inf, logs) - top).sum(axis=-1)
    return np.asarray(np.log1p(rest / n) + np.log(n) + top[:, 0])


def _undefined(rows: Floats) -> Any:
    return np.full(rows.shape[:-1], math.nan)[()]


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
