"""What the agreement of a run's signals says: the answer in words, and every pair as text or JSON values."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.report.signals import ALPHA, KINDS, SPEARMAN, SignalAgreement, SignalPair
from core.text.display import count, number
from core.text.strict import json_value

_NAMED_AT_MOST = 3
NOT_TRUTH = "Correlation is agreement, not truth: signals that agree can be wrong together."
METHOD = (
    "Spearman compares the order of the questions (ties share their mean rank), Pearson the values "
    "themselves; with a signal of 0 and 1, such as whether the answer is correct, Pearson's is the "
    "point-biserial correlation. Each pair: the questions that have both. 95 % intervals: Fisher's z, for "
    "Spearman with the standard error of Bonett and Wright. p: permutation test, or Student's t where there "
    "are many questions, adjusted (Holm) for all pairs."
)


def answer(agreement: SignalAgreement, kind: str = SPEARMAN) -> tuple[str, ...]:
    """Say which signals agree beyond chance, and which separate correct from incorrect answers."""
    if len(agreement.signals) < 2:
        return (_too_few(agreement),)
    return tuple(
        filter(None, [_how_many(agreement, kind), _contrary(agreement, kind), _correct(agreement, kind)])
    )


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
        title = f"{pair.first.title} · {pair.second.title}"
        if pair.reason:
            lines.append(f"  {title}: undefined because {pair.reason}")
            continue
        own = [
            f"{kind} {number(pair[kind].value)} ({pair[kind].range_text}), {pair[kind].p_text}"
            for kind in KINDS
        ]
        lines.append(f"  {title}: {'; '.join(own)}; n = {pair.n:,}")
    lines += [f"  Not listed: {title} ({reason})" for title, reason in agreement.left_out]
    return "\n".join([*lines, "", METHOD, NOT_TRUTH])


def _facts(pair: SignalPair) -> dict[str, Any]:
    own = {
        kind.lower(): {
            "value": pair[kind].value, "interval": [pair[kind].low, pair[kind].high],
            "p_value": pair[kind].p_value,
        }
        for kind in KINDS
    }  # fmt: skip
    return {
        "first": pair.first.key, "second": pair.second.key, "n": pair.n, **own,
        "expected_sign": pair.expected or None, "undefined_because": pair.reason or None,
    }  # fmt: skip


def _too_few(agreement: SignalAgreement) -> str:
    if not agreement.signals:
        return "The run has no signal: no number with at least three values that are not all equal."
    only = agreement.signals[0].title
    return f"The run has only one signal, {only}: there is nothing to compare it with."


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
    named = "; ".join(_said(pair, kind) for pair in apart[:_NAMED_AT_MOST])
    return f"{said}; strongest between different diagnostics: {named}."


def _contrary(agreement: SignalAgreement, kind: str) -> str:
    """Name the pairs that go the other way than their directions let expect."""
    found = [pair for pair in agreement.clear(kind) if pair.is_contrary(kind) and not pair.of_outcome]
    if not found:
        return ""
    named = "; ".join(f"{_said(pair, kind)}, {pair.expected_text}" for pair in found[:_NAMED_AT_MOST])
    more = len(found) - _NAMED_AT_MOST
    rest = f"; and {count(more, 'pair')} more" if more > 0 else ""
    return f"Contrary to what they should measure: {named}{rest}."


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
    signals = count(len(tested), "signal")
    if not clear:
        return f"None of {signals} separates correct from incorrect answers beyond chance."
    named = "; ".join(_with_outcome(pair, kind) for pair in clear[:_NAMED_AT_MOST])
    more = len(clear) - _NAMED_AT_MOST
    rest = f"; and {more:,} more" if more > 0 else ""
    separate = "separates" if len(clear) == 1 else "separate"
    return (
        f"{len(clear):,} of {signals} {separate} correct from incorrect answers beyond chance: {named}{rest}."
    )


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
