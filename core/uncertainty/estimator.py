"""What an estimator of uncertainty declares, and when it has no value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.socket import REASON, Definition, by_name
from core.uncertainty.samples import Estimate, Samples

QUESTION, ANSWER = "question", "answer"

REASONS = by_name(
    Definition("not_measured", "Not measured", "This run lacks what the estimator reads.", REASON),
    Definition("one_sample", "One sample", "Fewer than two answers: nothing can agree or differ.", REASON),
    Definition("all_empty", "All empty", "No sample holds a word.", REASON),
    Definition("all_abstained", "No answer sampled",
        "Every sample is a refusal or empty: there is no answer to judge.", REASON),
    Definition("empty_answer", "Empty answer", "The answer holds no word.", REASON),
    Definition("abstained_answer", "Refusal", "The answer is a refusal: it claims nothing.", REASON),
    Definition("missing_values", "Missing values", "A value that the estimator needs is missing.", REASON),
)  # fmt: skip


_WHOLE = {"embeddings", "entailment"}  # fields of which no value may be missing


@dataclass(frozen=True, slots=True)
class Estimator:
    """One way to tell how uncertain an answer is.

    ``measure`` takes `Samples` that hold what it ``needs``, fields beside the texts. ``range``: of its
    values, n is the number of samples. ``rises_with`` says what a higher value means, ``level`` whether it
    judges the question (all samples) or the first answer. ``samples``: whether it needs two answers or more,
    as many calls as samples, shared by all that need them; ``extra_calls`` come on top. ``is_baseline``: it
    is trivial, and an estimator that does not beat it is not worth its cost.
    """

    name: str
    title: str
    meaning: str
    measure: Callable[[Samples], float]
    range: str
    paper: str = ""
    rises_with: str = "uncertainty"
    level: str = QUESTION
    needs: tuple[str, ...] = ()
    samples: bool = True
    extra_calls: int = 0
    is_baseline: bool = False

    @property
    def definition(self) -> Definition:
        """The entry of the glossary."""
        return Definition(
            self.name,
            self.title,
            self.meaning,
            range=self.range,
            direction=f"higher = more {self.rises_with}",
            undefined_when="what it needs was not measured, or there is no answer to judge",
            source=self.paper,
        )

    def calls(self, n_samples: int) -> int:
        """Return how many calls of the model it needs beside the answer itself."""
        return (n_samples if self.samples else 0) + self.extra_calls

    def estimate(self, samples: Samples) -> Estimate:
        """Return its value for one question; NaN with a reason where it is undefined."""
        reason = self._undefined(samples)
        value = math.nan if reason else float(self.measure(samples))
        return Estimate(value, reason or ("missing_values" if math.isnan(value) else None))

    def _undefined(self, samples: Samples) -> str | None:
        if any(getattr(samples, need) is None for need in self.needs):
            return "not_measured"
        # A failed check is no "they differ".
        if any(not np.isfinite(samples.array(need)).all() for need in _WHOLE & {*self.needs}):
            return "missing_values"
        # An answer is compared with at least one more text; a question needs two samples.
        texts = samples.texts if self.level == ANSWER else samples.sampled
        if not texts or (self.samples and len(texts) < 2):
            return "one_sample"
        if self.level == ANSWER and samples.status[0] != "answered":
            return f"{samples.status[0]}_answer"
        found = set(samples.sampled_status) if self.samples else {"answered"}
        if "answered" in found:
            return None
        return "all_abstained" if "abstained" in found else "all_empty"
