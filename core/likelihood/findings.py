"""What fixed-answer scores find wrong: passages that mislead, and evidence that is ignored."""

from __future__ import annotations

from core.diagnosis import BAD, UNCLEAR, Finding
from core.likelihood.analysis import LikelihoodAnalysis
from core.likelihood.definitions import MODES
from core.stats import holm, poisson_binomial_tail, wilson_interval
from core.text.display import count, number, percent

_ALPHA = 0.05
_SAID = {
    "misleading": (
        "the passage that makes the incorrect answer likeliest makes the correct one less likely",
        ("incorrect answer", "incorrect answers"),
        "made_drop",
    ),
    "ignored": (
        "the answer does not rest on the passage that speaks most for the correct one",
        ("answer that is not correct", "answers that are not correct"),
        "needed_drop",
    ),
}


def findings(analysis: LikelihoodAnalysis) -> tuple[Finding, ...]:
    """Return how often a passage misled and evidence was ignored, where that occurs.

    Bad where more questions show it than the same drops dealt at random to their passages would (p at most
    0.05, adjusted for both); else it cannot be told from chance.
    """
    q = analysis.queries
    tested = [name for name in MODES if q[name].notna().any()]
    tails = [poisson_binomial_tail(q[f"{name}_by_chance"].dropna(), int(q[name].sum())) for name in tested]
    pairs = zip(tested, holm(tails), strict=True)
    return tuple(_finding(analysis, name, float(p)) for name, p in pairs if q[name].any())


def _finding(analysis: LikelihoodAnalysis, name: str, p_value: float) -> Finding:
    q = analysis.queries
    sentence, nouns, by = _SAID[name]
    shown = q[q[name].fillna(False)].sort_values(by, ascending=False, kind="stable")
    n, of = len(shown), int(q[name].notna().sum())
    expected = float(q[f"{name}_by_chance"].sum())
    interval = wilson_interval(n / of, of)
    beyond = p_value <= _ALPHA
    told = f"in {n:,} of {count(of, *nouns)} {sentence}"
    if analysis.passages["approximate"].any():
        told += " (by drops that are partly approximate)"
    return Finding(
        name,
        f"{told[:1].upper()}{told[1:]}; chance alone gives {number(expected, '{:.1f}')}.",
        n,
        of,
        interval,
        expected,
        p_value,
        "high" if beyond else "low",
        MODES[name].advice,
        tuple(shown["query_id"]),
        BAD if beyond else UNCLEAR,
        f"{told} ({percent(n / of, interval)}; {percent(expected / of)} by chance)" if beyond else "",
        "evidence",
    )
