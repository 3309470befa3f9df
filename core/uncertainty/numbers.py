"""The headline numbers of sampling."""

from __future__ import annotations

from core.diagnosis import Number
from core.uncertainty.analysis import UncertaintyAnalysis


def numbers(analysis: UncertaintyAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers; without a value where nothing was sampled."""
    return ()
