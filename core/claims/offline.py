"""The verifier that is always there: no download, no language model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
from scipy.special import expit

from core.claims.checks import CHECKS
from core.claims.features import FEATURES, Group, PairFeatures, pair_features
from core.claims.types import Floats
from core.claims.vectors import VectorMemory
from core.llm.embeddings import Embedder

_WEIGHTS = "offline_weights.json"


@dataclass(frozen=True, slots=True)
class OfflineWeights:
    """The logistic model of the offline verifier, as ``bench/fit_claims.py`` fitted it.

    Attributes
    ----------
    features : tuple of str
        Names from `core.claims.features.FEATURES`, or of a check: 0 contradicts, 1 agrees, 0.5 neither.
    means, scales, weights : tuple of float
        Of each feature: it is centred and scaled, then weighted.
    intercept : float
        On the scale of log-odds.
    cap : float
        Highest probability where one of ``capping`` contradicts the claim.
    capping : tuple of str
        Names from `core.claims.checks.CHECKS`.
    """

    features: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float
    cap: float
    capping: tuple[str, ...]

    def probabilities(self, measured: PairFeatures) -> Floats:
        """Return the probability of support, shape (n_claims, n_passages); NaN where nothing was measured."""
        values = np.stack([_column(measured, name) for name in self.features], axis=-1)
        scaled = (values - np.array(self.means)) / np.array(self.scales)
        found = expit(scaled @ np.array(self.weights) + self.intercept)
        hard = measured.checks[..., [list(CHECKS).index(name) for name in self.capping]]
        return np.where((hard == 0).any(axis=-1), np.minimum(found, self.cap), found)


def _column(measured: PairFeatures, name: str) -> Floats:
    if name in FEATURES:
        return measured.values[..., FEATURES.index(name)]
    found = measured.checks[..., list(CHECKS).index(name)]
    return np.where(np.isnan(found), 0.5, found)


@lru_cache(maxsize=1)
def packaged_weights() -> OfflineWeights:
    """Return the weights that come with the project."""
    record = json.loads(files(__package__).joinpath(_WEIGHTS).read_text(encoding="utf-8"))
    return OfflineWeights(
        features=tuple(record["features"]),
        means=tuple(record["means"]),
        scales=tuple(record["scales"]),
        weights=tuple(record["weights"]),
        intercept=record["intercept"],
        cap=record["cap"],
        capping=tuple(record["capping"]),
    )


class OfflineVerifier:
    """Likeness of claim and passage, word by word and as a whole, and a few hard checks.

    Parameters
    ----------
    embedder : Embedder, optional
        None is the packaged all-MiniLM-L6-v2, which the weights were fitted to: with another one the order of
        the probabilities means more than their size. See `core.claims.vectors.VectorMemory` for what is used
        of it.
    weights : OfflineWeights, optional
        By default those that come with the project.

    Notes
    -----
    Probability = logistic(weights · features): how well each token of the claim is matched, in its context,
    by the best sentence and by the whole passage (``sentence_match``, ``passage_match``); which of its
    neighbouring content words the passage has (``bigrams``); how alike claim and passage are as wholes
    (``passage_cosine``); whether the passage has its names (``names``). All weights are 0 or above, so that
    more likeness never makes a claim less supported. Where numbers, dates, negation or opposites contradict
    the claim (`core.claims.checks`) the probability is at most ``cap``, below one half, however alike the
    words are.

    It measures whether a passage *speaks about* what the claim says, which is weak evidence of whether it
    *bears it out*: the figures stand in ``offline_weights.json`` and are printed by ``bench/claims.py``. For
    hard claims use `core.claims.judge.JudgeVerifier` or `core.claims.nli.NLIVerifier`. The packaged model was
    trained on English; elsewhere it finds shared words rather than shared meaning.

    Cost: no LLM calls. Every distinct text is read once by the embedding model.
    """

    name = "offline"

    def __init__(self, embedder: Embedder | None = None, weights: OfflineWeights | None = None) -> None:
        self._memory = VectorMemory(embedder)
        self._weights = weights or packaged_weights()

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> Floats:
        """Return the probability that each passage supports each claim.

        Returns
        -------
        ndarray of float64, shape (n_claims, n_passages)
            In (0, 1); NaN where the claim or the passage has no word.

        Examples
        --------
        >>> verifier = OfflineVerifier()
        >>> claim = "The canal was opened in 1914."
        >>> M = verifier.support([claim], ["It opened in 1914.", "It opened in 1931."])
        >>> bool(M[0, 0] > M[0, 1])
        True
        """
        return self.support_many([(claims, passages)])[0]

    def support_many(self, groups: Sequence[Group]) -> list[Floats]:
        """Return `support` for many (claims, passages), say all answers of a run, read together."""
        return [self._weights.probabilities(measured) for measured in self.measure(groups)]

    def measure(self, groups: Sequence[Group]) -> list[PairFeatures]:
        """Return what the probabilities rest on: features, checks, and the best sentence of each passage."""
        return pair_features(groups, self._memory)


@lru_cache(maxsize=1)
def default_verifier() -> OfflineVerifier:
    """Return the one offline verifier of this process, so that texts are read once."""
    return OfflineVerifier()
