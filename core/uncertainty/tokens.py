"""What a model itself says of its answer: token probabilities, P(True), a stated confidence, self-checks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import regex
from numpy.typing import ArrayLike
from scipy.special import entr, expit

# A comma is read as a decimal mark before one or two digits only: "1,000" is no confidence.
_NUMBER = regex.compile(
    r"(?<![\d.,])(\d+(?:\.\d+|,\d{1,2})?)(?![.,]?\d)\s*(?:(%|percent\b)|/\s*(\d+))?", regex.IGNORECASE
)


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


def mean_token_entropy(distributions: Sequence[ArrayLike]) -> float:
    """Mean entropy of the next token, in nats.

    Parameters
    ----------
    distributions : sequence of array_like
        For every token of the answer the log-probabilities of the tokens that could stand there. Where only
        the most likely ones are known, the rest counts as one token, so the value is a lower bound.

    Returns
    -------
    float
        At least 0, higher = less certain; NaN without tokens.

    Examples
    --------
    >>> round(mean_token_entropy([np.log([0.5, 0.5]), np.log([0.5])]), 4)
    0.6931
    """
    found = []
    for logprobs in distributions:
        p = np.exp(np.asarray(logprobs, dtype=np.float64))
        found.append(float(entr(p).sum() + entr(max(0.0, 1.0 - float(p.sum())))))
    return float(np.mean(found)) if found else math.nan


def p_true(logprob_true: float, logprob_false: float) -> float:
    """Probability that the model calls its own answer true, of the two replies it may give.

    Parameters
    ----------
    logprob_true, logprob_false : float
        Log-probabilities of the replies "True" and "False".

    Returns
    -------
    float
        In [0, 1], higher = more confident; NaN where both are impossible.

    References
    ----------
    Kadavath et al. 2022, arXiv 2207.05221.

    Examples
    --------
    >>> round(p_true(math.log(0.6), math.log(0.2)), 4)
    0.75
    """
    if logprob_true == logprob_false == -math.inf:
        return math.nan
    return float(expit(logprob_true - logprob_false))


def verbalised_confidence(reply: str, scale: float = 100.0) -> float:
    """Read the confidence that a model states in words.

    Parameters
    ----------
    reply : str
        What the model replied when asked for a number.
    scale : float
        The number that means certain. A percent sign, "8/10" and a decimal like 0.9 or 1.0 speak for
        themselves.

    Returns
    -------
    float
        In [0, 1], higher = more confident; NaN where the reply holds no such number, or several that differ.

    References
    ----------
    Tian et al. 2023, arXiv 2305.14975.

    Examples
    --------
    >>> [verbalised_confidence(text) for text in ("I am 85% sure.", "8/10", "0.9", "70", "no idea")]
    [0.85, 0.8, 0.9, 0.7, nan]
    """
    marked, bare = set(), set()
    for number, percent, whole in _NUMBER.findall(reply):
        value = float(number.replace(",", "."))
        if percent or whole:
            marked.add(value / (100.0 if percent else float(whole) or math.nan))
        else:
            is_share = value <= 1 and not number.isdigit()
            bare.add(value if is_share else value / scale)
    found = marked or bare
    value = found.pop() if len(found) == 1 else math.nan
    return value if 0 <= value <= 1 else math.nan


def contradiction_rate(contradiction: ArrayLike) -> float:
    """Mean probability that a sample contradicts a sentence of the answer.

    Parameters
    ----------
    contradiction : array_like of shape (n_sentences, n_samples)
        Probabilities, or 0 and 1; NaN where the check failed, which is left out.

    Returns
    -------
    float
        In [0, 1], higher = the samples contradict the answer; NaN where nothing was checked.

    References
    ----------
    Manakul, Liusie, Gales 2023, arXiv 2303.08896.

    Examples
    --------
    >>> contradiction_rate([[1.0, 0.0], [math.nan, 0.5]])
    0.5
    """
    given = np.asarray(contradiction, dtype=np.float64)
    known = given[~np.isnan(given)]
    return float(known.mean()) if known.size else math.nan
