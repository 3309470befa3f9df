"""The diagnostic *likelihood*: which passage made the answer, and which the correct one would need."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd

from core.analyses import Analyses
from core.likelihood.analysis import GoldShare, LikelihoodAnalysis, analyse_likelihood
from core.likelihood.definitions import DEFINITIONS, METRICS, MODES
from core.likelihood.step import LikelihoodStep
from core.rows import once_for
from core.severity import LOSS, WRONG, graded
from core.socket import REASON, UNCLEAR, Diagnostic, Finding, Need, Number, QuestionColumn
from core.stats import poisson_binomial_tail, wilson_interval
from core.text.display import count, number, percent

_CARDS = ("gold_by_answer", "gold_by_reference")  # by drops
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


def numbers(analysis: LikelihoodAnalysis) -> tuple[Number, ...]:
    """Return how many answers are scored, and how often each measure puts a gold passage first."""
    q = analysis.queries
    note = "partly approximate" if analysis.passages["approximate"].any() else ""
    return (
        Number("n_scored", "Answers scored", int(q["reason"].isna().sum()), of=len(q), define="n_scored",
            place="row"),
        *_screen(analysis),
        *(replace(_number(one), note=note if one.measure in _CARDS else "") for one in analysis.gold),
        *(replace(_mode(analysis, name), note=note) for name in MODES),
        Number("likelihood_reasons", "Answer not scored", _counts(q["reason"]), define=REASON, place="row"),
        Number("reference_likelihood_reasons", "Reference not scored", _counts(q["reference_reason"]),
            define=REASON, place="row"),
    )  # fmt: skip


def _screen(analysis: LikelihoodAnalysis) -> tuple[Number, ...]:
    """Return how much is only estimated, and how far the estimates are off."""
    found, scored = analysis.agreement, int(analysis.passages["drop"].notna().sum())
    off, order = (METRICS[name] for name in ("screen_off", "screen_order"))
    apart, share = (None if math.isnan(value) else value for value in (found.apart, found.same_order))
    known = not math.isnan(found.apart_interval[0])
    return (
        Number("n_approximate", METRICS["n_approximate"].title, int(analysis.passages["approximate"].sum()),
            of=scored, noun="passage", define="n_approximate", place="row"),
        Number(off.name, off.title, apart, n=found.n, noun="passage", define=off.name, place="row",
            interval=found.apart_interval if known else None),
        Number(order.name, order.title, share, n=found.n_pairs, noun="pair", define=order.name, is_share=True,
            place="row", interval=None if share is None else found.order_interval,
            chance=None if share is None else 0.5),
    )  # fmt: skip


def _number(one: GoldShare) -> Number:
    known = one.n > 0
    return Number(
        one.measure, METRICS[one.measure].title, one.mean if known else None, n=one.n,
        interval=None if math.isnan(one.low) else (one.low, one.high), define=one.measure,
        chance=one.chance if known else None, is_share=True, place="card" if one.measure in _CARDS else "row",
    )  # fmt: skip


def _mode(analysis: LikelihoodAnalysis, name: str) -> Number:
    values = analysis.queries[name].dropna()
    chance = float(analysis.queries[f"{name}_by_chance"].sum()) if len(values) else None
    return Number(
        f"n_{name}", MODES[name].title, int(values.sum()), of=len(values), define=name, chance=chance,
        cases=f"queries.{name}:True", place="card",
    )  # fmt: skip


def _counts(reasons: pd.Series) -> dict[str, int]:
    return {str(reason): int(n) for reason, n in reasons.value_counts().items()}


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
        fix="distractors:remove" if name == "misleading" else "reader:improve",
        otherwise=replace(found, tone=UNCLEAR) if n else None,
    )


def _analyse(diagnosis: Analyses) -> LikelihoodAnalysis:
    def analysed(_: pd.DataFrame) -> LikelihoodAnalysis:
        by_words = diagnosis.at({**diagnosis.settings, "influence": "rouge"})["influence"]
        rouge, correct = by_words.passages["influence"].to_numpy(), diagnosis["answers"].queries["correct"]
        return analyse_likelihood(diagnosis.run, rouge, correct)

    # No setting changes it.
    found: LikelihoodAnalysis = once_for(diagnosis.run.passages, "likelihood", analysed)
    return found


LIKELIHOOD = Diagnostic(
    name="likelihood",
    title="Answer likelihood",
    question="Which passage makes the given answer likelier, and which the correct one?",
    analyse=_analyse,
    numbers=numbers,
    findings=findings,
    finds=tuple(MODES),
    reads=("answers", "influence"),
    needs=(
        Need(
            "passages",
            "Not scored: run the step likelihood with a model that can read a given answer.",
            "logprob_drop",
        ),
    ),
    figures=("answer_against_reference",),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("made_drop", "Largest drop of the answer", is_secondary=True),
        QuestionColumn("needed_drop", "Largest drop of the reference", needs_labels=True, is_secondary=True),
    ),
    step=LikelihoodStep,
    icon=":material/query_stats:",
)
