"""What the samples of a run say of its answers, in sentences."""

from __future__ import annotations

from core.diagnosis import Finding
from core.uncertainty.analysis import UncertaintyAnalysis


def findings(analysis: UncertaintyAnalysis) -> tuple[Finding, ...]:
    """Return what is wrong, or worth knowing."""
    return ()
