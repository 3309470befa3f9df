"""What labelled answers taught `calibrate --learn`, in words and as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from core.confidence import Learned
from core.stats import Interval
from core.text.display import count, number, p_text

_MEASURES = {"accuracy": "accuracy", "brier": "Brier score", "auroc": "AUROC"}


def learned_facts(found: Learned) -> dict[str, Any]:
    """Return what was learned as plain values."""
    weights = found.weights
    return {
        "n": weights.n,
        "n_correct": weights.n_correct,
        "n_questions": weights.n_questions,
        "keeps_default": weights.best is None,
        "reason": weights.reason,
        "weights": dict(found.method.weighting.weights),
        "default_auroc": weights.default_auroc,
        "learned": [
            {name: value for name, value in vars(one).items() if name != "confidences"}
            for one in weights.learned
        ],
        "compared_method": found.proposed.method if found.proposed else None,
        "compared": [one._asdict() for one in found.compared],
        "map": found.method.map.kind,
        "maps": {
            kind: {"before": asdict(one.before), "after": asdict(one.after), "reason": one.reason}
            for kind, one in found.maps.items()
        },
    }


def learned_text(found: Learned) -> list[str]:
    """Return what was learned, line by line."""
    weights, kind = found.weights, found.method.map.kind
    chosen = _named(found.method.weighting.weights)
    if weights.best is None:
        lines = [f"Keep the default weights ({chosen}): {weights.reason}."]
    else:
        lines = [f"Use the weights learned by {weights.best.method}: {chosen}."]
    lines += [
        f"Learned from {count(weights.n, 'answer')} to {count(weights.n_questions, 'question')}, "
        f"{weights.n_correct:,} of them correct; these do not calibrate.",
        f"AUROC of the default {number(weights.default_auroc)} (0.50 by chance).",
    ]
    for one in weights.learned:
        each = (f"{name} {number(w)} {_interval(one.intervals[name])}" for name, w in one.weights.items())
        lines.append(
            f"  {one.method:<10}{', '.join(each)}; AUROC {number(one.auroc)}, "
            f"gain {number(one.gain)} {_interval(one.gain_interval)}"
        )
    if found.proposed is not None:
        lines.append(f"Default against {found.proposed.method}, on answers that neither was learned from:")
    for other in found.compared:
        lines.append(
            f"  {_MEASURES[other.measure]:<13}{number(other.a)} and {number(other.b)}, difference "
            f"{number(other.difference)} {_interval((other.low, other.high))}, {p_text(other.p_adjusted)}"
        )
    lines.append("Maps from confidence to probability, cross-validated, without and with:")
    for name, mapped in found.maps.items():
        before, after = mapped.before, mapped.after
        lines.append(
            f"  {name:<10}ECE {number(before.ece)} and {number(after.ece)}, "
            f"Brier score {number(before.brier, '{:.3f}')} and {number(after.brier, '{:.3f}')}"
        )
    with_map = "no map, since none lowers the Brier score" if kind == "none" else f"the map {kind}"
    held = "default" if weights.best is None else "learned"
    lines.append(f"Kept: the {held} weights and {with_map}.")
    lines.append("Intervals: 95 %, of both gains at once. p: adjusted for three measures (Holm).")
    return lines


def _named(weights: Any) -> str:
    return ", ".join(f"{name} {number(weight)}" for name, weight in weights.items())


def _interval(ends: Interval) -> str:
    return f"({number(ends[0])} to {number(ends[1])})"
