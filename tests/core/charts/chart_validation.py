"""Validated runs whose figures can be worked out on paper."""

from core.diagnosis import Diagnosis
from core.pipeline import fill
from core.validation.step import ValidationStep


def diagnosed(run):
    return Diagnosis(fill(run, ValidationStep(evidence_threshold=0.01)))


def validated(run):
    """The analysis of a run that the validators have checked."""
    return diagnosed(run)["validation"]
