"""What the samples of a run say of its answers, in sentences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from core.severity import LOSS, WRONG, Harm, graded
from core.socket import BAD, GOOD, UNCLEAR, Finding
from core.stats import poisson_binomial_tail, wilson_interval
from core.text.display import count, number, part, percent
from core.uncertainty.analysis import UncertaintyAnalysis
from core.uncertainty.conditions import ADDED, WITHOUT
from core.uncertainty.context import ContextTest
from core.uncertainty.definitions import FAILS, FINDINGS, QUADRANTS, STABLE, UNDEFINED, UNSTABLE
from core.uncertainty.grounding import quadrant_counts

STABLE_UNGROUNDED = list(QUADRANTS)[1]
_FALLS = {
    ADDED: ("surer_with_unrelated", "with unrelated passages added"),
    WITHOUT: ("surer_without_support", "without the supporting passages"),
}


def findings(analysis: UncertaintyAnalysis) -> tuple[Finding, ...]:
    """Return what is wrong with the answers, and which estimators fail the context test.

    Chance cannot make an answer unstable: its samples are what the model says. Where the baseline differs
    from most samples, chance is that it were one more sample; where stable answers are ungrounded, that
    stability had nothing to do with grounding; where an estimator falls, half of the questions in which it
    moves.
    """
    q = analysis.queries
    return (*_unstable(q), *_disagreeing(q), *_ungrounded(q), *_falling(analysis.context))


def _unstable(queries: pd.DataFrame) -> list[Finding]:
    judged = queries[queries["stability"] != UNDEFINED]
    shown = judged[judged["stability"] == UNSTABLE].sort_values("meaning_share", kind="stable")
    n, of, n_stable = len(shown), len(judged), int((judged["stability"] == STABLE).sum())
    if not of:
        return []
    interval, severity = wilson_interval(n / of, of), graded(LOSS, wilson_interval(n / of, of))
    tone = BAD if severity != "low" else GOOD if interval[1] < (LOSS.medium or 0.0) else UNCLEAR
    same = percent(n_stable / of, wilson_interval(n_stable / of, of))
    clause = (
        f"the answers to {part(n_stable, of, 'question')} stay the same when asked again ({same})"
        if tone == GOOD
        else f"asked again, the model gives no majority answer to {part(n, of, 'question')} "
        f"({percent(n / of, interval)})"
    )
    return [
        Finding(
            "unstable_answer",
            f"In {n:,} of {count(of, 'question')} the answer changes with sampling: no meaning reaches half "
            "of the samples.",
            n, of, interval, severity=severity,
            advice=FINDINGS["unstable_answer"].advice if n and tone != GOOD else "",
            query_ids=tuple(shown["query_id"]), tone=tone, clause=clause,
            reads="with an unstable answer",
        )
    ]  # fmt: skip


def _disagreeing(queries: pd.DataFrame) -> list[Finding]:
    judged = comparable(queries)
    shown = judged[~judged["baseline_in_largest"].astype(bool)].sort_values(
        "meaning_share", ascending=False, kind="stable"
    )
    n, of, chances = len(shown), len(judged), judged["differs_by_chance"]
    if not of:
        return []
    found = Finding(
        "baseline_disagrees",
        f"In {n:,} of {count(of, 'question')} the answer is not what most samples say; a randomly chosen "
        f"sample would disagree with the majority in about {number(chances.sum(), '{:.1f}')}.",
        n, of, wilson_interval(n / of, of), float(chances.sum()), poisson_binomial_tail(chances, n),
        query_ids=tuple(shown["query_id"]), label="Samples disagree",
        reads="where most samples say something else",
    )  # fmt: skip
    told = _tested(found, LOSS, f"the answer shown is not what most samples say in {part(n, of, 'question')}")
    # No more than by chance is what is expected of an answer at temperature 0.
    return [told if n > chances.sum() else replace(told, otherwise=None)]


def comparable(queries: pd.DataFrame) -> pd.DataFrame:
    """Return the questions with an answer and samples: it can be what most of them say, or not."""
    return queries[queries["baseline_in_largest"].notna() & queries["meaning_share"].notna()]


def _ungrounded(queries: pd.DataFrame) -> list[Finding]:
    from scipy.stats import hypergeom

    found = quadrant_counts(queries["quadrant"]).set_index("quadrant")
    (_, n), (_, n_other) = found["n"].to_numpy().reshape(2, 2).tolist()
    of, total = int(found["n"][:2].sum()), int(found["n"].sum())
    if not of:
        return []
    shown = queries[queries["quadrant"] == STABLE_UNGROUNDED].sort_values("grounding", kind="stable")
    ungrounded = Finding(
        "stable_ungrounded",
        f"{n:,} of {count(of, 'stable answer')} {'is' if n == 1 else 'are'} mostly ungrounded (fewer than "
        "half of the claims have a supporting passage)"
        + (f", against {n_other:,} of {total - of:,} of the others." if total > of else "."),
        n, of, wilson_interval(n / of, of), float(found["expected"][STABLE_UNGROUNDED]),
        float(hypergeom.sf(n - 1, total, n + n_other, of)), query_ids=tuple(shown["query_id"]),
        reads="with a stable but mostly ungrounded answer",
    )  # fmt: skip
    verb = "has" if n == 1 else "have"
    clause = f"{part(n, of, 'stable answer')} {verb} mostly claims without a supporting passage"
    return [_tested(ungrounded, WRONG, clause)]


def _falling(context: ContextTest) -> list[Finding]:
    """Return for each condition the estimator that falls most clearly where it should not.

    It stands for all that were tested with it: its p-value is adjusted for them. The trivial baselines are
    nobody's signal, and are left out.
    """
    found = []
    for condition, (name, words) in _FALLS.items():
        tests = context.compared
        tests = tests[(tests["condition"] == condition) & ~tests["is_baseline"] & (tests["mean"] < 0)]
        if tests.empty:
            continue
        worst = tests.sort_values("p_value", kind="stable").iloc[0]
        others = int((tests["outcome"] == FAILS).sum()) - 1
        n, of = int(worst["n_falling"]), int(worst["n"])
        change = context.change(condition, worst["name"])
        ends = (
            ""
            if np.isnan(worst["low"])
            else f", 95 % interval {number(worst['low'])} to {number(worst['high'])}"
        )
        more = f"; {count(others, 'more estimator')} {'does' if others == 1 else 'do'} the same"
        one = Finding(
            name,
            f"{words.capitalize()}, reported uncertainty falls in {n:,} of {count(of, 'question')} "
            f"({worst['title']}: mean change {number(worst['mean'])}{ends}){more if others > 0 else ''}.",
            n, of, wilson_interval(n / of, of), (n + int(worst["n_rising"])) / 2, float(worst["p_value"]),
            query_ids=tuple(context.query_ids[i] for i in np.argsort(change, kind="stable") if change[i] < 0),
            fix="signal:replace", reads="where reported uncertainty falls",
        )  # fmt: skip
        clause = f"{words}, reported uncertainty falls in {part(n, of, 'question')}"
        found.append(replace(_tested(one, LOSS, clause), otherwise=None))
    return found


def _tested(found: Finding, harm: Harm, clause: str) -> Finding:
    """Return a finding of more than by chance; where chance explains the count it is told without advice."""
    return replace(
        found,
        severity=graded(harm, found.interval or (0.0, 1.0)),
        advice=FINDINGS[found.name].advice,
        clause=f"{clause} ({percent(found.n / found.of, found.interval)}; "
        f"{percent((found.expected_by_chance or 0.0) / found.of)} by chance)",
        otherwise=replace(found, tone=UNCLEAR) if found.n else None,
    )
