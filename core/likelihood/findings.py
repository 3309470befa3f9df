"""What fixed-answer scores find wrong: passages that mislead, and evidence that is ignored."""

from __future__ import annotations

from dataclasses import replace

from core.likelihood.analysis import LikelihoodAnalysis
from core.likelihood.definitions import MODES
from core.severity import LOSS, WRONG, graded
from core.socket import UNCLEAR, Finding
from core.stats import poisson_binomial_tail, wilson_interval
from core.text.display import count, number, percent

_SAID = {
    "misleading": (
        "the passage that raises the incorrect answer most makes the correct one less likely",
        ("incorrect answer", "incorrect answers"),
        "made_drop",
        WRONG,
        "with a misleading passage",
    ),
    "ignored": (
        "the passage that raises the correct answer most does not make the given answer likelier",
        ("answer that is not correct", "answers that are not correct"),
        "needed_drop",
        LOSS,
        "with ignored evidence",
    ),
}


def findings(analysis: LikelihoodAnalysis) -> tuple[Finding, ...]:
    """Return how often a passage misled and evidence was ignored.

    Bad where more questions show it than the same drops dealt at random to their passages would.
    """
    return tuple(_finding(analysis, name) for name in MODES if analysis.queries[name].notna().any())


def _finding(analysis: LikelihoodAnalysis, name: str) -> Finding:
    q = analysis.queries
    sentence, nouns, by, harm, reads = _SAID[name]
    shown = q[q[name].fillna(False)].sort_values(by, ascending=False, kind="stable")
    n, of, chances = len(shown), int(q[name].notna().sum()), q[f"{name}_by_chance"].dropna()
    expected, interval = float(chances.sum()), wilson_interval(n / of, of)
    told = f"in {n:,} of {count(of, *nouns)} {sentence}"
    if analysis.passages["approximate"].any():
        told += " (by drops that are partly approximate)"
    found = Finding(
        name,
        f"{told[:1].upper()}{told[1:]} (chance baseline: {number(expected, '{:.1f}')}).",
        n, of, interval, expected, poisson_binomial_tail(chances, n),
        severity=graded(harm, interval), query_ids=tuple(shown["query_id"]), topic="evidence", reads=reads,
    )  # fmt: skip
    return replace(
        found,
        advice=MODES[name].advice,
        clause=f"{told} ({percent(n / of, interval)}; {percent(expected / of)} by chance)",
        fix="passages:fewer",
        otherwise=replace(found, tone=UNCLEAR) if n else None,
    )
