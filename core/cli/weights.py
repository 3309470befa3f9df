"""`calibrate --weights`: labelled answers become weights and a map of the confidence, in a small file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from core.cli.files import free_file, log_report, write_file
from core.cli.output import log
from core.confidence import Labelled, Learned, configured, labelled, labelled_run, learn, to_json
from core.confidence.labelled import COLUMNS
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.run import Run
from core.sources.continue_run import is_run
from core.sources.rows import read_rows
from core.stats import Interval
from core.text.display import count, number, p_text

_COLUMNS = ("query", "answer", "expected_answer", "is_correct", *COLUMNS)
_MEASURES = {"accuracy": "accuracy", "brier": "Brier score", "auroc": "AUROC"}


def learned_weights(source: str, path: str, overwrite: bool) -> tuple[dict[str, Any], str]:
    """Learn from a file or a saved run, write the file of weights, and return the facts and the text."""
    target = free_file(path, overwrite, "--weights")
    rows = labelled_run(Diagnosis(Run.load(source))) if is_run(source) else _from_file(source)
    if not rows.n:
        raise InputError(f"{source} has no answer with a label and all signals{rows.left_out(': ')}.")
    log(f"Learning from {count(rows.n, 'answer')}; thousands take minutes.")
    found = learn(rows, configured())
    if found.proposed is None:
        raise InputError(f"Nothing can be learned from {source}: {found.weights.reason}.")
    write_file(target, to_json(found.saved))
    return _facts(path, rows, found), _text(path, rows, found)


def _from_file(source: str) -> Labelled:
    table, report = read_rows(source, source, _COLUMNS)
    log_report(report, source)
    return labelled(table)


def _facts(path: str, rows: Labelled, found: Learned) -> dict[str, Any]:
    weights, mapped = found.weights, found.saved.map
    return {
        "file": path,
        "n": rows.n,
        "n_correct": weights.n_correct,
        "n_questions": weights.n_questions,
        "n_by_reference": rows.n_by_reference,
        "n_unlabelled": rows.n_unlabelled,
        "n_without_signal": rows.n_without_signal,
        "keeps_default": weights.best is None,
        "reason": weights.reason,
        "weights": dict(found.saved.weighting.weights),
        "default_auroc": weights.default_auroc,
        "learned": [
            {name: value for name, value in vars(one).items() if name != "confidences"}
            for one in weights.learned
        ],
        "compared_method": found.proposed.method if found.proposed else None,
        "compared": [one._asdict() for one in found.compared],
        "map": mapped.kind,
        "maps": {
            kind: {"before": asdict(one.before), "after": asdict(one.after), "reason": one.reason}
            for kind, one in found.maps.items()
        },
    }


def _text(path: str, rows: Labelled, found: Learned) -> str:
    weights, kind = found.weights, found.saved.map.kind
    chosen = _named(found.saved.weighting.weights)
    if weights.best is None:
        lines = [f"Keep the default weights ({chosen}): {weights.reason}."]
    else:
        lines = [f"Use the weights learned by {weights.best.method}: {chosen}."]
    lines += [
        f"n = {count(rows.n, 'answer')} to {count(weights.n_questions, 'question')}, {weights.n_correct:,} "
        f"of them correct{rows.left_out('; ')}.",
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
    lines.append(f"{path}: the {held} weights and {with_map}.")
    lines.append("Intervals: 95 %, of both gains at once. p: adjusted for three measures (Holm).")
    return "\n".join(lines)


def _named(weights: Any) -> str:
    return ", ".join(f"{name} {number(weight)}" for name, weight in weights.items())


def _interval(ends: Interval) -> str:
    return f"({number(ends[0])} to {number(ends[1])})"
