"""Every signal of a run against every other: which agree, and which separate correct from incorrect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from core.arrays import Floats, Ints
from core.diagnosis import Diagnosis
from core.report.text import NAMED_AT_MOST, named
from core.signals import Signal, signals_of
from core.spreadsheet import csv_bytes
from core.stats import FEWEST_APART, FEWEST_CASES, Correlation, correlations, holm, n_apart
from core.text.display import DASH, count, number, p_text
from core.text.strict import json_value

ALPHA = 0.05
SPEARMAN, PEARSON = "Spearman", "Pearson"
KINDS = (SPEARMAN, PEARSON)
_FEWEST = 3  # questions with a value, without which a signal is not listed
NOT_TRUTH = "Correlation is agreement, not truth: signals that agree can be wrong together."
METHOD = (
    "Spearman compares the order of the questions (ties share their mean rank), Pearson the values "
    "themselves; with a signal of 0 and 1, such as whether the answer is correct, Pearson's is the "
    "point-biserial correlation. Each pair: the questions that have both. 95 % intervals: Fisher's z, for "
    "Spearman with the standard error of Bonett and Wright. p: permutation test, or Student's t where there "
    "are many questions, adjusted (Holm) for all pairs."
)


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A correlation with its 95 % interval, and its p-value, adjusted for all pairs; NaN where undefined."""

    value: float
    low: float
    high: float
    p_value: float

    @property
    def is_clear(self) -> bool:
        """Whether chance alone is a poor explanation of it."""
        return self.p_value < ALPHA

    @property
    def range_text(self) -> str:
        """The interval for people, or a dash."""
        return DASH if self.low != self.low else f"{number(self.low)} to {number(self.high)}"

    @property
    def p_text(self) -> str:
        """The p-value for people."""
        return DASH if self.p_value != self.p_value else p_text(self.p_value)

    @property
    def text(self) -> str:
        """All of it for people."""
        return f"{number(self.value)} ({self.range_text}), {self.p_text}"


@dataclass(frozen=True, slots=True)
class SignalPair:
    """Two signals over the ``n`` questions that have both; ``reason`` says why nothing is known of them."""

    first: Signal
    second: Signal
    n: int
    coefficients: dict[str, Coefficient]
    reason: str = ""

    def __getitem__(self, kind: str) -> Coefficient:
        """Return the coefficient of one kind."""
        return self.coefficients[kind]

    @property
    def of_outcome(self) -> bool:
        """Whether one of the two says if the answer is correct."""
        return self.first.is_outcome or self.second.is_outcome

    @property
    def expected(self) -> int:
        """The sign that the directions of the two let expect; 0 where one has none."""
        return self.first.way * self.second.way

    def is_contrary(self, kind: str) -> bool:
        """Whether the correlation has, beyond chance, the other sign than expected."""
        return self[kind].is_clear and self[kind].value * self.expected < 0

    @property
    def expected_text(self) -> str:
        """The expected sign and why, for people; "" where none is expected."""
        if not self.expected:
            return ""
        ways = [f"higher {one.title} is {one.higher_is}" for one in (self.first, self.second)]
        return f"{'positive' if self.expected > 0 else 'negative'} expected: {ways[0]}, {ways[1]}"


@dataclass(frozen=True, slots=True)
class SignalAgreement:
    """The signals of a run and their correlations, in pairs.

    ``left_out`` has title and reason of what the run could have and has not. ``pairs`` are in the order of
    the signals, each with all later ones.
    """

    signals: tuple[Signal, ...]
    left_out: tuple[tuple[str, str], ...]
    pairs: tuple[SignalPair, ...]
    n_questions: int

    @property
    def outcome(self) -> Signal | None:
        """The signal that says whether the answer is correct, if it is known."""
        return next((one for one in self.signals if one.is_outcome), None)

    @property
    def tested(self) -> tuple[SignalPair, ...]:
        """The pairs that have coefficients."""
        return tuple(pair for pair in self.pairs if not pair.reason)

    def clear(self, kind: str) -> tuple[SignalPair, ...]:
        """Return the pairs whose correlation can be told from chance, the strongest first."""
        found = [pair for pair in self.tested if pair[kind].is_clear]
        return tuple(sorted(found, key=lambda pair: -abs(pair[kind].value)))


def signal_agreement(diagnosis: Diagnosis) -> SignalAgreement:
    """Correlate every signal of a run with every other; p-values are adjusted (Holm), each kind by itself.

    Signals are the numbers per question of its diagnostics (`QuestionColumn`), whether the answer is correct,
    and the columns of the run's table of confidence signals; each needs three values that are not all equal.

    >>> from core.run import Run
    >>> found = signal_agreement(Diagnosis(Run.load("sample_data/recorded_run")))
    >>> len(found.pairs) == len(found.signals) * (len(found.signals) - 1) // 2
    True
    """
    reasons = [(one, _lacking(one)) for one in signals_of(diagnosis)]
    signals = tuple(one for one, reason in reasons if not reason)
    left_out = tuple((one.title, reason) for one, reason in reasons if reason)
    return SignalAgreement(signals, left_out, _pairs(signals), len(diagnosis.run.queries))


def _lacking(signal: Signal) -> str:
    """Return why a signal is not listed, or ""."""
    if signal.n < _FEWEST:
        return f"{count(signal.n, 'question')} with a value; {_FEWEST} are needed"
    return "" if n_apart(signal.rounded) else f"{signal.text(signal.known[0])} in all {signal.n:,} questions"


def _pairs(signals: Sequence[Signal]) -> tuple[SignalPair, ...]:
    if len(signals) < 2:
        return ()
    data = np.column_stack([one.rounded for one in signals])
    upper = np.triu_indices(len(signals), 1)
    # Enough draws that the smallest p-value stays below 0.05 when it is adjusted for all pairs.
    found = correlations(data, max(9_999, 50 * len(upper[0])))
    kinds = {SPEARMAN: _adjusted(found.spearman, upper), PEARSON: _adjusted(found.pearson, upper)}
    pairs = []
    for i, j in zip(*(end.tolist() for end in upper), strict=True):
        n = int(found.n[i, j])
        values = {kind: Coefficient(*(float(part[i, j]) for part in one)) for kind, one in kinds.items()}
        pair = SignalPair(signals[i], signals[j], n, values)
        unknown = values[SPEARMAN].value != values[SPEARMAN].value
        pairs.append(replace(pair, reason=_undefined(pair, data[:, [i, j]])) if unknown else pair)
    return tuple(pairs)


def _adjusted(found: Correlation, upper: tuple[Ints, ...]) -> Correlation:
    adjusted = found.p_value.copy()
    adjusted[upper] = holm(found.p_value[upper])
    return found._replace(p_value=adjusted)


def _undefined(pair: SignalPair, values: Floats) -> str:
    if pair.n < FEWEST_CASES:
        have = "has" if pair.n == 1 else "have"
        return f"{count(pair.n, 'question')} {have} both, {FEWEST_CASES} are needed"
    shared = values[~np.isnan(values).any(axis=1)]
    apart = [n_apart(column) for column in shared.T]
    signal, least = (pair.first, apart[0]) if apart[0] < FEWEST_APART else (pair.second, apart[1])
    if not least:
        return f"{signal.title} has one value in all {pair.n:,} questions"
    return f"{signal.title} has one value in all but {least:,} of {count(pair.n, 'question')}"


def pairs_table(agreement: SignalAgreement) -> pd.DataFrame:
    """Return one row per pair of signals, in their order.

    Columns: ``first, second, n, spearman, spearman_low, spearman_high, spearman_p_adjusted``, the same of
    ``pearson``, ``expected_sign`` (positive or negative, where one is), ``undefined_because``.
    """
    pairs = agreement.pairs
    table: dict[str, Any] = {
        "first": [pair.first.title for pair in pairs],
        "second": [pair.second.title for pair in pairs],
        "n": [pair.n for pair in pairs],
    }
    for kind in KINDS:
        for end, part in (("", "value"), ("_low", "low"), ("_high", "high"), ("_p_adjusted", "p_value")):
            table[f"{kind.lower()}{end}"] = [getattr(pair[kind], part) for pair in pairs]
    table["expected_sign"] = [{1: "positive", -1: "negative", 0: None}[pair.expected] for pair in pairs]
    table["undefined_because"] = [pair.reason or None for pair in pairs]
    text = dict.fromkeys(["first", "second", "expected_sign", "undefined_because"], "str")
    return pd.DataFrame(table).astype(text)


def signals_csv(diagnosis: Diagnosis) -> bytes:
    """Return `pairs_table` as CSV: formulas neutralised."""
    return csv_bytes(pairs_table(signal_agreement(diagnosis)), diagnosis.run.data_source)


def answer(agreement: SignalAgreement, kind: str = SPEARMAN) -> tuple[str, ...]:
    """Say which signals agree beyond chance, and which separate correct from incorrect answers."""
    if not agreement.signals:
        return ("The run has no signal: no number with at least three values that are not all equal.",)
    if len(agreement.signals) == 1:
        only = agreement.signals[0].title
        return (f"The run has only one signal, {only}: there is nothing to compare it with.",)
    return tuple(filter(None, (say(agreement, kind) for say in (_how_many, _contrary, _correct))))


def signals_facts(agreement: SignalAgreement) -> dict[str, Any]:
    """Return the agreement as plain JSON values: ``answer, signals, left_out, pairs``."""
    facts: dict[str, Any] = json_value(
        {
            "answer": list(answer(agreement)),
            "signals": [
                {
                    "key": one.key, "title": one.title, "n": one.n, "higher_is": one.higher_is or None,
                    "mean": float(one.known.mean()), "median": float(np.median(one.known)),
                }
                for one in agreement.signals
            ],
            "left_out": [{"title": title, "reason": reason} for title, reason in agreement.left_out],
            "pairs": [_facts(pair) for pair in agreement.pairs],
        }
    )  # fmt: skip
    return facts


def signals_text(agreement: SignalAgreement) -> str:
    """Return the agreement as text, for a terminal: the answer, then every pair with its n."""
    lines = [*answer(agreement), ""]
    for pair in agreement.pairs:
        own = [f"{kind} {pair[kind].text}" for kind in KINDS]
        said = f"undefined because {pair.reason}" if pair.reason else f"{'; '.join(own)}; n = {pair.n:,}"
        lines.append(f"  {pair.first.title} · {pair.second.title}: {said}")
    lines += [f"  Not listed: {title} ({reason})" for title, reason in agreement.left_out]
    return "\n".join([*lines, "", METHOD, NOT_TRUTH])


def _facts(pair: SignalPair) -> dict[str, Any]:
    own = {
        kind.lower(): {"value": one.value, "interval": [one.low, one.high], "p_value": one.p_value}
        for kind, one in pair.coefficients.items()
    }
    return {
        "first": pair.first.key, "second": pair.second.key, "n": pair.n, **own,
        "expected_sign": pair.expected or None, "undefined_because": pair.reason or None,
    }  # fmt: skip


def _how_many(agreement: SignalAgreement, kind: str) -> str:
    """Say how many pairs can be told from chance, and the strongest between two diagnostics."""
    tested, clear = agreement.tested, agreement.clear(kind)
    if not tested:
        pairs = count(len(agreement.pairs), "pair")
        return f"No correlation is defined for the {pairs} of signals: {agreement.pairs[0].reason}."
    by_chance = number(ALPHA * len(tested), "{:.1f}")
    said = (
        f"{len(clear):,} of {count(len(tested), 'pair')} of signals "
        f"{'correlates' if len(clear) == 1 else 'correlate'} beyond chance ({kind}, adjusted for all pairs; "
        f"unadjusted, chance alone would give {by_chance})"
    )
    apart = [pair for pair in clear if pair.first.owner != pair.second.owner and not pair.of_outcome]
    if not clear:
        return f"{said}."
    if not apart:
        return f"{said}, none of them between different diagnostics."
    strongest = "; ".join(_said(pair, kind) for pair in apart[:NAMED_AT_MOST])
    return f"{said}; strongest between different diagnostics: {strongest}."


def _contrary(agreement: SignalAgreement, kind: str) -> str:
    """Name the pairs that go the other way than their directions let expect."""
    found = [pair for pair in agreement.clear(kind) if pair.is_contrary(kind) and not pair.of_outcome]
    said = [f"{_said(pair, kind)}, {pair.expected_text}" for pair in found]
    return f"Contrary to what they should measure: {named(said, 'pair')}." if found else ""


def _correct(agreement: SignalAgreement, kind: str) -> str:
    """Say which signals separate correct from incorrect answers."""
    if agreement.outcome is None:
        return (
            "Which signal separates correct from incorrect answers is unknown: there are no reference "
            "answers, or all answers are equally correct."
        )
    tested = [pair for pair in agreement.tested if pair.of_outcome]
    if not tested:
        reason = next((pair.reason for pair in agreement.pairs if pair.of_outcome), "")
        return f"Which signal separates correct from incorrect answers cannot be said: {reason}."
    clear = [pair for pair in agreement.clear(kind) if pair.of_outcome]
    signals, what = count(len(tested), "signal"), "correct from incorrect answers beyond chance"
    if not clear:
        return f"None of {signals} separates {what}."
    found = named([_with_outcome(pair, kind) for pair in clear])
    return f"{len(clear):,} of {signals} {'separates' if len(clear) == 1 else 'separate'} {what}: {found}."


def _said(pair: SignalPair, kind: str) -> str:
    return f"{pair.first.title} and {pair.second.title} ({_value(pair, kind)})"


def _with_outcome(pair: SignalPair, kind: str) -> str:
    signal = pair.second if pair.first.is_outcome else pair.first
    higher = "higher" if pair[kind].value > 0 else "lower"
    against = ", contrary to its meaning" if pair.is_contrary(kind) else ""
    return f"{signal.title}, {higher} where correct{against} ({_value(pair, kind)})"


def _value(pair: SignalPair, kind: str) -> str:
    one = pair[kind]
    interval = f", {one.range_text}" if one.low == one.low else ""
    return f"{number(one.value)}{interval}, n = {pair.n:,}"
