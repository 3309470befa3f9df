"""Logistic models fitted to development data, and the records that come with the project."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from core.claims.types import Floats


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


@cache
def packaged_record(verifier: str) -> dict[str, Any]:
    """Return the weights of a verifier as they come with the project, and what they were fitted to."""
    text = files(__package__).joinpath(f"{verifier}_weights.json").read_text(encoding="utf-8")
    record: dict[str, Any] = json.loads(text)
    return record


def packaged_figures(verifier: str) -> Mapping[str, Mapping[str, float]]:
    """Return how well the packaged weights do on the development data, each measure with its interval."""
    figures: dict[str, dict[str, float]] = packaged_record(verifier)["cross_validated"]
    return MappingProxyType({title: MappingProxyType(found) for title, found in figures.items()})
