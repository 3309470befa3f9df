"""Failure modes: which questions show them, and how often chance alone would."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import comb

from core.arrays import Bools, Floats, Ints
from core.influence.definitions import MODES, ORDER_MODES, PER_PASSAGE
from core.influence.measured import closed_book_agreement
from core.run import Run
from core.stats import poisson_binomial_interval, poisson_binomial_tail, wilson_interval
from core.text.display import percent
from core.text.matching import is_correct

PARAMETRIC_F1 = 0.9
OVER_RELIANCE = 0.8
_FIRST = 3  # retrieved or used; the last are as many
_MIN_K = {  # with fewer, the first three and the last three overlap; no order of three is rare enough
    "ignored_top_hit": 2 * _FIRST,
    "buried_evidence": 2 * _FIRST,
    "inverted": 4,
}
_COLUMNS = ["name", "n", "of", "low", "high", "expected", "expected_low", "expected_high", "p_value"]


def mark_modes(run: Run, q: pd.DataFrame, p: pd.DataFrame, group: Ints, one_by_one: bool) -> None:
    """Add one boolean column per failure mode to the questions and, where it applies, the passages.

    Each mode that depends on the order also gets a column ``<mode>_by_chance``: the probability that the same
    influences, dealt to the question's passages at random, show it; NaN where the question cannot be tested.
    ``q`` and ``p`` as in `core.influence.analysis.InfluenceAnalysis`; ``group`` is the question of each
    passage. Which answers are inert is known only where influence tells what leaving out one passage does.
    """
    n, k = len(q), q["k"].to_numpy()
    usable = {mode: (q["reason"].isna() & (q["k"] >= least)).to_numpy() for mode, least in _MIN_K.items()}
    order, rank = p["retrieval_order"].to_numpy(), p["influence_rank"].to_numpy()
    last = k[group] - _FIRST + 1
    for mode, retrieved, used in (
        # Strictly below k − 3 others: of passages that tie with most, none is ignored more than the others.
        ("ignored_top_hit", order <= _FIRST, p["best_influence_rank"].to_numpy() >= last),
        ("buried_evidence", order >= last, rank <= _FIRST),
    ):
        p[mode] = usable[mode][group] & retrieved & used
        by_chance = _meet_by_chance(k, np.bincount(group, retrieved, n), np.bincount(group, used, n))
        q[f"{mode}_by_chance"] = np.where(usable[mode], by_chance, np.nan)
    q["inverted_by_chance"] = q["inverted_by_chance"].where(usable["inverted"])
    p["harmful_passage"] = _harmful(run, q, group)
    inert = (q["reason"] == "inert").to_numpy(dtype=bool) & one_by_one
    parametric = closed_book_agreement(run) >= PARAMETRIC_F1
    n_gold, n_found = _gold(run, group)
    rules: dict[str, Bools] = {
        "over_reliance": q["dominance"].to_numpy() >= OVER_RELIANCE,
        "inverted": usable["inverted"] & (q["rho"] < q["inverted_below"] - 1e-9).to_numpy(),
        "inert": inert,
        "parametric": parametric,
        # Without a closed-book call an inert answer may be either; it is not called redundant.
        "redundant": inert & ~parametric & run.queries["closed_book_answer"].notna().to_numpy(),
        "missed_evidence": n_gold > n_found,
    }
    for name in MODES:
        q[name] = np.bincount(group, p[name], n) > 0 if name in PER_PASSAGE else rules[name]
    q["n_modes"] = q[list(MODES)].sum(axis=1)


def _meet_by_chance(k: Ints, n_one: NDArray[Any], n_other: NDArray[Any]) -> Floats:
    """Probability that a random choice of n_one among k passages meets a set of n_other: hypergeometric."""
    with np.errstate(invalid="ignore"):
        return np.asarray(1 - comb(k - n_other, n_one) / comb(k, n_one))


def _harmful(run: Run, q: pd.DataFrame, group: Ints) -> Bools:
    wrong = (~q["correct"].fillna(True)).to_numpy(dtype=bool)
    references = run.queries["reference_answers"].to_list()
    questions = run.queries["question"].to_list()
    baselines = run.queries["answer"].to_list()
    ablated = run.passages["ablated_answer"].to_list()
    result = np.zeros(len(ablated), dtype=bool)
    for row in np.flatnonzero(wrong[group]):
        answer, question = ablated[row], group[row]
        if isinstance(answer, str) and answer != baselines[question]:  # that one is known to be wrong
            result[row] = is_correct(answer, references[question], questions[question]) is True
    return result


@dataclass(frozen=True, slots=True)
class AgainstPlacebo:
    """How often leaving out one passage makes an incorrect answer correct, against the placebo.

    ``fixed`` of ``tries`` prompts without a passage do, and ``by_placebo`` of ``n`` with a change that fixes
    nothing, of the same n questions. ``p_value``, one-sided: where both change an answer as easily, which of
    a question's tries succeed is chance, and so is the number of placebos among them (exact, given the
    successes of every question). 0 questions and NaN where no placebo was tried.
    """

    n: int
    by_placebo: int
    tries: int
    fixed: int
    p_value: float

    @property
    def text(self) -> str:
        """Both shares, for people."""
        return (
            f"{percent(self.fixed / self.tries)} of {self.tries:,} tries do, and "
            f"{percent(self.by_placebo / self.n)} of {self.n:,} with the placebo"
        )


def against_placebo(
    run: Run, q: pd.DataFrame, p: pd.DataFrame, group: Ints, by_placebo: pd.Series | None
) -> AgainstPlacebo:
    """Compare leaving passages out with the placebo; ``q`` and ``p`` as `mark_modes` leaves them."""
    placebo = q["query_id"].map(by_placebo if by_placebo is not None else {}).astype("boolean")
    tries = np.bincount(group, run.passages["ablated_answer"].notna(), len(q))
    asked = (q["correct"].eq(False) & placebo.notna()).fillna(False).to_numpy(dtype=bool) & (tries > 0)
    fixed, k = np.bincount(group, p["harmful_passage"], len(q))[asked], tries[asked]
    right = placebo[asked].to_numpy(dtype=bool)
    n, successes = len(k), int(right.sum())
    # As few placebos or fewer among the successes: as many failures or more.
    p_value = poisson_binomial_tail(1 - (fixed + right) / (k + 1), n - successes) if n else math.nan
    return AgainstPlacebo(n, successes, int(k.sum()), int(fixed.sum()), p_value)


def _gold(run: Run, group: Ints) -> tuple[Floats, Ints]:
    """Return how many gold passages each question has, NaN where not counted, and how many were retrieved."""
    n_gold = run.queries["n_gold"].to_numpy(dtype=np.float64, na_value=np.nan)
    gold = run.passages["is_gold"].fillna(False).to_numpy(dtype=bool)
    return n_gold, np.bincount(group, gold, n_gold.size).astype(np.int64)


def _left_out(run: Run, q: pd.DataFrame) -> pd.Series:
    """Tell which questions have an answer without one of their passages."""
    asked = run.passages.loc[run.passages["ablated_answer"].notna(), "query_id"]
    return q["query_id"].isin(asked)


def testable_counts(run: Run, q: pd.DataFrame, group: Ints, one_by_one: bool) -> dict[str, int]:
    """Count, for each mode, the questions whose data could show it; see `mark_modes`."""
    answered = q["answer_status"] == "answered"
    closed_book = run.queries["closed_book_answer"].notna()
    # Inert needs every influence; a constant that is not 0 has been tested too.
    measured = q["reason"].isna() | q["reason"].isin(["inert", "all_equal", "no_retrieval_order"])
    measured &= one_by_one
    n_gold, n_found = _gold(run, group)
    masks = {
        **{name: q[f"{name}_by_chance"].notna() for name in ORDER_MODES},
        "over_reliance": q["dominance"].notna(),
        "inert": measured,
        "parametric": closed_book & answered,
        "redundant": closed_book & measured,
        "harmful_passage": q["correct"].notna() & _left_out(run, q),
        # More found than there are is a wrong count, which says nothing of what was missed.
        "missed_evidence": n_found <= n_gold,
    }
    return {name: int(masks[name].sum()) for name in MODES}


def mode_counts(q: pd.DataFrame, tested: Mapping[str, int]) -> pd.DataFrame:
    """Count every failure mode, and test those that depend on the order against chance.

    ``q`` as `mark_modes` leaves it; ``tested`` counts the questions that could show each mode. One row per
    mode: ``name, n, of``; ``low, high``, the 95 % interval of the share; ``expected``, the count that random
    orders of the same influences give, with its middle 95 %, ``expected_low`` and ``expected_high``;
    ``p_value`` of a count at least as high. The last four are NaN where chance cannot produce the mode, or
    none could be tested.
    """
    rows = []
    for name in MODES:
        n, of = int(q[name].sum()), tested[name]
        row = [name, n, of, *(wilson_interval(n / of, of) if of else (math.nan, math.nan)), *[math.nan] * 4]
        if name in ORDER_MODES and of:
            chance = q[f"{name}_by_chance"].dropna().to_numpy()
            row[5:] = [chance.sum(), *poisson_binomial_interval(chance), poisson_binomial_tail(chance, n)]
        rows.append(row)
    return pd.DataFrame(rows, columns=_COLUMNS)
