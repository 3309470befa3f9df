"""What the samples of a run say of its answers, in sentences."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.diagnosis import BAD, GOOD, UNCLEAR, Finding
from core.stats import poisson_binomial_tail, wilson_interval
from core.text.display import count, number, part, percent
from core.uncertainty.analysis import UncertaintyAnalysis
from core.uncertainty.conditions import ADDED, WITHOUT
from core.uncertainty.definitions import FAILS, FINDINGS, QUADRANTS, STABLE, UNDEFINED, UNSTABLE
from core.uncertainty.grounding import quadrant_counts

STABLE_UNGROUNDED = list(QUADRANTS)[1]
_ALPHA = 0.05
_MUCH, _MOST = 0.2, 0.5
_SURER = {
    ADDED: ("surer_with_unrelated", "With unrelated passages added"),
    WITHOUT: ("surer_without_support", "Without the supporting passages"),
}


def findings(analysis: UncertaintyAnalysis) -> tuple[Finding, ...]:
    """Return what is wrong with the answers, and which estimators fail the context test.

    Chance cannot make an answer unstable: its samples are what the model says. Where the baseline differs
    from most samples, chance is what one more sample in its place would give; where a stable answer is
    ungrounded, what the share of ungrounded answers in the run would give; where an estimator falls, half of
    the questions in which it moves.
    """
    q = analysis.queries
    return (*_unstable(q), *_disagreeing(q), *_ungrounded(q), *_surer(analysis))


def _unstable(queries: pd.DataFrame) -> list[Finding]:
    judged = queries[queries["stability"] != UNDEFINED]
    shown = judged[judged["stability"] == UNSTABLE].sort_values("meaning_share", kind="stable")
    n, of, n_stable = len(shown), len(judged), int((judged["stability"] == STABLE).sum())
    if not of:
        return []
    low, high = interval = wilson_interval(n / of, of)
    severity = "high" if low > _MOST else "medium" if low > _MUCH else "low"
    tone = BAD if severity != "low" else GOOD if high < _MUCH else UNCLEAR
    same = wilson_interval(n_stable / of, of)
    clause = (
        f"the answers to {part(n_stable, of, 'question')} stay the same when asked again "
        f"({percent(n_stable / of, same)})"
        if tone == GOOD
        else f"asked again, the model says too many different things in {part(n, of, 'question')} "
        f"({percent(n / of, interval)})"
    )
    return [
        Finding(
            "unstable_answer",
            f"In {n:,} of {count(of, 'question')} the answer changes with sampling: no meaning holds half of "
            "the samples.",
            n, of, interval, severity=severity, advice=FINDINGS["unstable_answer"].advice if n else "",
            query_ids=tuple(shown["query_id"]), tone=tone, clause=clause,
        )
    ]  # fmt: skip


def _disagreeing(queries: pd.DataFrame) -> list[Finding]:
    judged, expected = comparable(queries)
    shown = judged[~judged["baseline_in_largest"].astype(bool)].sort_values(
        "meaning_share", ascending=False, kind="stable"
    )
    n, of = len(shown), len(judged)
    if not n:
        return []
    interval, p_value = wilson_interval(n / of, of), poisson_binomial_tail(expected, n)
    told, by_chance = p_value <= _ALPHA, float(expected.sum())
    return [
        Finding(
            "baseline_disagrees",
            f"In {n:,} of {count(of, 'question')} the answer is not what most samples say; another sample in "
            f"its place would give {number(by_chance, '{:.1f}')}.",
            n, of, interval, by_chance, p_value,
            severity=("high" if interval[0] > _MOST else "medium") if told else "low",
            advice=FINDINGS["baseline_disagrees"].advice if told else "", query_ids=tuple(shown["query_id"]),
            tone=BAD if told else UNCLEAR,
            clause=f"the answer shown is not what the model mostly says in {part(n, of, 'question')} "
            f"({percent(n / of, interval)}; {percent(by_chance / of)} by chance)" if told else "",
        )
    ]  # fmt: skip


def comparable(queries: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """Return the questions with an answer and samples, and how likely a sample is no common one."""
    judged = queries[queries["baseline_in_largest"].notna() & queries["meaning_share"].notna()]
    return judged, 1 - judged["meaning_share"]


def _ungrounded(queries: pd.DataFrame) -> list[Finding]:
    found = quadrant_counts(queries["quadrant"]).set_index("quadrant")
    n, of = int(found["n"][STABLE_UNGROUNDED]), int(found["n"][:2].sum())
    if not n:
        return []
    shown = queries[queries["quadrant"] == STABLE_UNGROUNDED].sort_values("grounding", kind="stable")
    interval, by_chance = wilson_interval(n / of, of), float(found["expected"][STABLE_UNGROUNDED])
    severity = "high" if interval[0] > _MUCH else "medium" if n / of > _MUCH else "low"
    return [
        Finding(
            "stable_ungrounded",
            f"{n:,} of {count(of, 'stable answer')} {'is' if n == 1 else 'are'} mostly ungrounded: fewer "
            "than half of the claims have a supporting passage.",
            n, of, interval, by_chance, severity=severity,
            advice=FINDINGS["stable_ungrounded"].advice, query_ids=tuple(shown["query_id"]),
            clause=f"{part(n, of, 'stable answer')} {'has' if n == 1 else 'have'} mostly claims without a "
            f"supporting passage ({percent(n / of, interval)}; {percent(by_chance / of)} by chance)",
        )
    ]  # fmt: skip


def _surer(analysis: UncertaintyAnalysis) -> list[Finding]:
    """Return the conditions under which an estimator falls that should not, by the clearest one."""
    found, context = [], analysis.context
    failing = context.compared[context.compared["outcome"] == FAILS]
    for condition, (name, words) in _SURER.items():
        failed = failing[failing["condition"] == condition].sort_values(
            ["is_baseline", "p_value"], kind="stable"
        )
        if failed.empty:
            continue
        worst, others = failed.iloc[0], len(failed) - 1
        n, of = int(worst["n_falling"]), int(worst["n"])
        by_chance = (n + int(worst["n_rising"])) / 2
        change = context.change(condition, worst["name"])
        shown = [context.query_ids[i] for i in np.argsort(change, kind="stable") if change[i] < 0]
        interval = wilson_interval(n / of, of)
        low, high = number(worst["low"]), number(worst["high"])
        ends = "" if np.isnan(worst["low"]) else f", 95 % interval {low} to {high}"
        more = (
            f"; {count(others, 'more estimator')} {'does' if others == 1 else 'do'} the same"
            if others
            else ""
        )
        found.append(
            Finding(
                name,
                f"{words} the model sounds surer: uncertainty falls in {n:,} of {count(of, 'question')} "
                f"({worst['title']}: mean change {number(worst['mean'])}{ends}){more}.",
                n, of, interval, by_chance, float(worst["p_value"]), severity="medium",
                advice=FINDINGS[name].advice, query_ids=tuple(shown),
                clause=f"{words[0].lower()}{words[1:]} the model sounds surer in {part(n, of, 'question')} "
                f"({percent(n / of, interval)}; {percent(by_chance / of)} by chance)",
            )
        )  # fmt: skip
    return found
