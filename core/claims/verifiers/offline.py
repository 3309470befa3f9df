"""The verifier that needs no download and no language model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from core.claims.types import ClaimGroup, Floats
from core.claims.verifiers.checks import CHECKS
from core.claims.verifiers.features import FEATURES, PairFeatures, TokenReader, VectorMemory, pair_features


@dataclass(frozen=True, slots=True)
class LogisticWeights:
    """A logistic model of a few features; the scripts in ``bench/`` fit it."""

    features: Sequence[str]
    means: Sequence[float]  # each feature is centred and scaled, then weighted
    scales: Sequence[float]
    weights: Sequence[float]
    intercept: float  # log-odds

    def logistic(self, values: ArrayLike) -> Floats:
        """Return the probability for each row of features, which are the last axis."""
        scaled = (np.asarray(values, dtype=np.float64) - np.array(self.means)) / np.array(self.scales)
        return np.asarray(expit(scaled @ np.array(self.weights) + self.intercept))


Weights = TypeVar("Weights", bound=LogisticWeights)


@cache
def _record(verifier: str) -> dict[str, Any]:
    text = files(__package__).joinpath(f"{verifier}_weights.json").read_text(encoding="utf-8")
    record: dict[str, Any] = json.loads(text)
    return record


def packaged_weights(kind: type[Weights], verifier: str) -> Weights:
    """Return the weights of a verifier that come with the project."""
    return kind(**{field.name: _record(verifier)[field.name] for field in fields(kind)})


def packaged_figures(verifier: str) -> Mapping[str, Mapping[str, float]]:
    """Return how well the packaged weights of ``offline`` or ``gain`` do on the development data.

    Measure to ``value``, ``low`` and ``high`` (95 %), cross-validated by question: 0.5 is a coin, 1 perfect.
    """
    figures: dict[str, dict[str, float]] = _record(verifier)["cross_validated"]
    return MappingProxyType({title: MappingProxyType(found) for title, found in figures.items()})


@dataclass(frozen=True, slots=True)
class OfflineWeights(LogisticWeights):
    """The model of the offline verifier on `FEATURES`, as ``bench/fit_claims.py`` fitted it."""

    cap: float  # highest probability where a check contradicts the claim; below a half
    floors: Mapping[str, float]  # lowest probability where the check of that name agrees, none contradicts

    def probabilities(self, measured: PairFeatures) -> Floats:
        """Return the probability of support, shape (n_claims, n_passages); NaN where nothing was measured."""
        found = self.logistic(measured.values[..., [FEATURES.index(name) for name in self.features]])
        for name, floor in self.floors.items():
            agrees = measured.checks[..., list(CHECKS).index(name)] == 1
            found = np.where(agrees, np.maximum(found, floor), found)
        return np.where((measured.checks == 0).any(axis=-1), np.minimum(found, self.cap), found)


class OfflineVerifier:
    """Similarity of claim and passage, word by word and as a whole, and a few hard checks; no LLM calls.

    ``embedder`` is by default the packaged all-MiniLM-L6-v2, which the weights were fitted to: with another
    one the order of the probabilities means more than their size.

    Notes
    -----
    Probability = logistic(weights · features): how alike the claim and its best sentence are as wholes
    (``sentence_cosine``), and how well each token of the claim is matched, in its context, somewhere in the
    passage (``passage_match``). No weight is below 0: more similarity never makes a claim less supported.
    Where numbers, dates, names, negation, opposites or the value asked for contradict the claim
    (`core.claims.verifiers.checks`) the probability is at most ``cap``, below one half; what a passage says
    word for word has at least its floor. A bare value behind its question is supported only where the passage
    has the value near the sentence that is like the question; without its question it stays just below one
    half. Yes or no is never supported.

    It measures whether a passage is *about* what the claim says, which is weak evidence of whether it
    *supports* it (`packaged_figures`; docs/how-to/verifier.md). For hard claims use `JudgeVerifier` or
    `NLIVerifier`.
    """

    name = "offline"

    def __init__(self, embedder: TokenReader | None = None, weights: OfflineWeights | None = None) -> None:
        self._memory = VectorMemory(embedder)
        self._weights = weights or packaged_weights(OfflineWeights, "offline")

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> Floats:
        """Return the probability that each passage supports each claim; NaN where one has no word.

        >>> verifier = OfflineVerifier()
        >>> claim = "The canal was opened in 1914."
        >>> M = verifier.support([claim], ["It opened in 1914.", "It opened in 1931."])
        >>> bool(M[0, 0] > M[0, 1])
        True
        """
        return self.support_many([(claims, passages)])[0]

    def support_many(self, groups: Sequence[ClaimGroup]) -> list[Floats]:
        """Return `support` for many (claims, passages), say all answers of a run, read together."""
        return [self._weights.probabilities(measured) for measured in self.measure(groups)]

    def measure(self, groups: Sequence[ClaimGroup]) -> list[PairFeatures]:
        """Return what the probabilities are made of: features, checks, the best sentence of each passage."""
        return pair_features(groups, self._memory)


@lru_cache(maxsize=1)
def default_verifier() -> OfflineVerifier:
    """Return the one offline verifier of this process, so that texts are read once."""
    return OfflineVerifier()
