"""Two runs over the same questions: every number in pairs, tested against chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from core.report.compare import Side, question_columns, shared_questions
from core.socket import QuestionColumn
from core.stats import holm, paired_interval, paired_permutation_test
from core.text.display import DASH, number, p_text

ALPHA = 0.05
BETTER, WORSE, HIGHER, LOWER, SAME = "better", "worse", "higher", "lower", "same"
# A sign beside each word, so that no meaning hangs on colour; up is the better or the higher.
SIGNS = {BETTER: "▲", HIGHER: "▲", WORSE: "▼", LOWER: "▼", SAME: "="}
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Difference:
    """One number in two runs, over the shared questions that have it in both.

    ``letters`` are those of the two runs; differences are the second minus the first. ``rows`` has one row
    per question with a value in both: ``query_id, question, a, b, difference, change``. ``interval`` is the
    95 % interval of the mean difference, NaN where there is none; ``p_value`` that of the sign-flip test,
    adjusted (Holm) for all numbers compared. ``moved_by_passages``: the runs have different numbers of
    passages and that alone moves this number.
    """

    diagnostic: str
    column: QuestionColumn
    letters: tuple[str, str]
    rows: pd.DataFrame
    interval: tuple[float, float]
    p_value: float
    moved_by_passages: bool = False

    @property
    def key(self) -> str:
        """What tells it from the other numbers, in links too."""
        return f"{self.diagnostic}.{self.column.name}"

    @property
    def n(self) -> int:
        """Questions with the number in both runs."""
        return len(self.rows)

    @property
    def means(self) -> tuple[float, float]:
        """Mean in the first run and in the second, over the same questions."""
        return float(self.rows["a"].mean()), float(self.rows["b"].mean())

    @property
    def mean(self) -> float:
        """Mean difference."""
        return float(self.rows["difference"].mean())

    @property
    def words(self) -> tuple[str, str]:
        """What a change up and a change down is called: better or worse, where one of them is."""
        up_is = self.column.higher_is
        return {"better": (BETTER, WORSE), "worse": (WORSE, BETTER)}.get(up_is, (HIGHER, LOWER))

    @property
    def counts(self) -> dict[str, int]:
        """Number of questions by change, the three words always there."""
        found = self.rows["change"].value_counts()
        words = sorted(self.words, key=[BETTER, HIGHER, WORSE, LOWER].index)
        return {word: int(found.get(word, 0)) for word in (*words, SAME)}

    @property
    def n_changed(self) -> int:
        """Questions whose value differs."""
        return self.n - self.counts[SAME]

    @property
    def is_clear(self) -> bool:
        """Whether chance alone is a poor explanation of the difference."""
        return self.p_value < ALPHA

    def shown(self, value: float, signed: bool = False) -> str:
        """Return a mean, or with ``signed`` a difference of means, for people."""
        pattern = self.column.pattern if "." in self.column.pattern else "{:.2f}"
        if self.column.pattern == "bool":
            value, pattern = 100 * value, "{:.0f}" if signed else "{:.0f} %"
        text = number(value, pattern.replace("{:", "{:+") if signed else pattern)
        return text if any(digit in text for digit in "123456789") else text.lstrip("+")

    @property
    def range_text(self) -> str:
        """The interval for people, or a dash."""
        low, high = self.interval
        return DASH if low != low else f"{self.shown(low, True)} to {self.shown(high, True)}"

    @property
    def p_text(self) -> str:
        """The p-value for people."""
        return p_text(self.p_value)


@dataclass(frozen=True, slots=True)
class RunPair:
    """The first run of a comparison and one of the others.

    ``shared`` is as `core.report.compare.shared_questions` returns it; ``differences`` holds every number
    that some shared question has in both runs.
    """

    sides: tuple[Side, Side]
    shared: pd.DataFrame
    differences: tuple[Difference, ...]


def pairs_of(sides: Sequence[Side]) -> tuple[RunPair, ...]:
    """Compare the first run with each of the others, question by question, in this order.

    p-values are adjusted for all numbers of all pairs together.
    """
    found = [(side, shared_questions([sides[0], side])) for side in sides[1:]]
    raw = [[one for one in _differences((sides[0], side), shared) if one.n] for side, shared in found]
    adjusted = iter(holm([one.p_value for each in raw for one in each]).tolist())
    return tuple(
        RunPair((sides[0], side), shared, tuple(replace(one, p_value=next(adjusted)) for one in each))
        for (side, shared), each in zip(found, raw, strict=True)
    )


def _differences(sides: tuple[Side, Side], shared: pd.DataFrame) -> list[Difference]:
    letters = (sides[0].letter, sides[1].letter)
    unequal = len({_passages_each(side) for side in sides}) > 1
    silent = {
        one.name for side in sides for one in side.diagnosis.diagnostics if one.lacks(side.run) is not None
    }
    return [
        _difference(name, column, letters, shared, unequal and column.by_passages)
        for name, column in question_columns(sides)
        if name not in silent
        and not column.is_secondary
        and all(pd.api.types.is_numeric_dtype(shared[f"{column.name}_{letter}"]) for letter in letters)
    ]


def _passages_each(side: Side) -> float:
    """Return how many passages a question of the run has, on average."""
    return len(side.run.passages) / max(1, len(side.run.queries))


def _difference(
    diagnostic: str, column: QuestionColumn, letters: tuple[str, str], shared: pd.DataFrame, moved: bool
) -> Difference:
    a, b = (shared[f"{column.name}_{letter}"].astype("Float64").astype("float64") for letter in letters)
    rows = shared[["query_id", "question"]].assign(a=a, b=b, difference=b - a)
    rows = rows[rows["difference"].notna()].reset_index(drop=True)
    found = Difference(diagnostic, column, letters, rows, (float("nan"),) * 2, float("nan"), moved)
    up, down = found.words
    rows["change"] = [SAME if abs(d) < _SAME else up if d > 0 else down for d in rows["difference"]]
    return replace(
        found,
        interval=paired_interval(rows["a"], rows["b"], share=column.pattern == "bool"),
        p_value=paired_permutation_test(rows["a"], rows["b"]),
    )
