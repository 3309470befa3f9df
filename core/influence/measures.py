"""How influence is measured: a line for each measure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from core.socket import REASON, Definition

ROUGE, LOGPROB, SURROGATE, SHAPLEY = "rouge", "logprob", "surrogate", "shapley"


@dataclass(frozen=True, slots=True)
class Measure:
    """One way to measure influence.

    ``title``, ``asks`` (which question it answers) and ``formula`` are for people; one value is called
    ``noun`` and has the ``unit``, in an analysis that of the run. ``columns`` hold the values and, if there
    are any, the ends of their intervals, in the passages of the run or of the analysis *attribution*
    (``reads_attribution``); without columns influence follows from the answers. ``exported``: columns of the
    CSV, each with what it is made of. Where ``step`` did not measure it, ``reason`` says what to do, and
    ``gap`` what is missing.

    ``bounds`` of the values: of either sign but for words. Only words have a noise floor; ``noise`` says why
    others have none. ``one_by_one``: whether it says what leaving out a single passage does.
    ``is_predicted``: whether *attribution* judges how well it predicts.
    """

    name: str
    title: str
    asks: str
    noun: str
    formula: str
    columns: tuple[str, ...]
    exported: Mapping[str, str]
    step: str
    reason: Definition
    gap: str
    noise: str = ""
    unit: str = ""
    bounds: tuple[float, float] = (-math.inf, math.inf)
    one_by_one: bool = False
    reads_attribution: bool = False
    is_predicted: bool = False

    @property
    def is_signed(self) -> bool:
        """Whether a passage may speak against the answer: then it has no share of the influence."""
        return self.bounds[0] < 0

    @property
    def in_unit(self) -> str:
        """Its unit behind a number, with a space before it."""
        return f" {self.unit}" if self.unit else ""

    @property
    def heading(self) -> str:
        """What one value is called, with a capital."""
        return self.noun[:1].upper() + self.noun[1:]


_OF_SUBSETS = "its values have intervals instead"


def _ends(name: str) -> Mapping[str, str]:
    return {name: "influence", f"{name}_low": "influence_low", f"{name}_high": "influence_high"}


_LINES = (
    Measure(
        ROUGE, "Words of the answer",
        "leaving one out: how much the words of the answer change without one passage",
        "influence", "1 − ROUGE-L F1(baseline, ablated)", (),
        {"rouge_l": "rouge_l", "influence_score": "influence"}, "influence",
        Definition("no_ablations", "No ablations",
            "The passages were never left out one by one: no influence is known.", REASON,
            advice="Leave each passage out once: load the questions on the Live page and run the influence "
            "step."),
        "not every passage was left out once", bounds=(0.0, 1.0), one_by_one=True,
    ),
    Measure(
        LOGPROB, "Log-probability, one left out",
        "leaving one out: how much less likely the given answer becomes without one passage",
        "influence", "log p(baseline | all) − log p(baseline | without it)", ("logprob_drop",),
        {"logprob_drop": "influence", "approximate_drop": "approximate_drop"}, "likelihood",
        Definition("not_scored", "Not scored", "Not scored: run the step likelihood.", REASON,
            advice="Page Answer likelihood, or on the command line: analyze … --steps likelihood."),
        "not every passage was left out once", "a fixed answer has none", "nats", one_by_one=True,
    ),
    Measure(
        SURROGATE, "Random subsets (surrogate)",
        "what removing passages does: how much the answer loses without a passage, whichever others are left",
        "surrogate score", "weight of the passage in a sparse linear model of random subsets",
        ("score", "low", "high"), _ends("surrogate"), "attribution",
        Definition("no_subsets", "No subsets",
            "No random subsets of the passages were measured: run the step attribution.", REASON,
            advice="Page Attribution, or on the command line: analyze … --steps attribution."),
        "no random subsets were measured", _OF_SUBSETS, reads_attribution=True, is_predicted=True,
    ),
    Measure(
        SHAPLEY, "Shapley values",
        "who shares the credit: a passage's part of what all passages together add to the answer",
        "Shapley value", "mean contribution when passages arrive in random order",
        ("shapley", "shapley_low", "shapley_high"), _ends("shapley"), "attribution",
        Definition("no_shapley", "No Shapley values",
            "Shapley values were not measured: run the step attribution with --shapley.", REASON,
            advice="Page Attribution with Shapley values on, or on the command line: analyze … --steps "
            "attribution --shapley."),
        "no Shapley values were measured", _OF_SUBSETS, reads_attribution=True,
    ),
)  # fmt: skip
MEASURES: Mapping[str, Measure] = MappingProxyType({one.name: one for one in _LINES})
