"""Figures of *attribution*: how far bars can be read, the scores of one answer, and places in the prompt."""

from core.charts.attribution.readable import lds_histogram
from core.charts.attribution.scores import passage_scores
from core.charts.attribution.slots import slot_effects

__all__ = ["lds_histogram", "passage_scores", "slot_effects"]
