"""What a model itself says of its answer: token probabilities, P(True), self-checks."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit


def perplexity(logprobs: ArrayLike) -> float:
    """Exponential of minus the mean log-probability of an answer's tokens.

    Parameters
    ----------
    logprobs : array_like of shape (n_tokens,)
        In nats.

    Returns
    -------
    float
        At least 1, higher = less certain; NaN without tokens.

    Examples
    --------
    >>> round(perplexity(np.log([0.5, 0.125])), 4)
    4.0
    """
    given = np.asarray(logprobs, dtype=np.float64)
    return float(np.exp(-given.mean())) if given.size else math.nan


def p_true(logprob_true: float, logprob_false: float) -> float:
    """Probability that the model calls its own answer true, of the two replies it may give.

    Of the log-probabilities of the replies "True" and "False". In [0, 1], higher = more confident; NaN where
    both are impossible. Kadavath et al. 2022, arXiv 2207.05221.

    Examples
    --------
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

    Examples
    --------
    >>> contradiction_rate([[1.0, 0.0], [math.nan, 0.5]])
    0.5
    """
    given = np.asarray(contradiction, dtype=np.float64)
    known = given[~np.isnan(given)]
    return float(known.mean()) if known.size else math.nan
