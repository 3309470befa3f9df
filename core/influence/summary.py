"""The headline numbers of a run: for people, and under the keys that scripts and CI jobs rely on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from core.influence.analysis import InfluenceAnalysis
from core.influence.definitions import MODES
from core.influence.metrics import above_noise_by_chance, labels
from core.influence.modes import AgainstPlacebo
from core.socket import REASON, Number
from core.stats import mean_interval
from core.text.display import p_text

_REPEATS = 19  # the fewest that keep a passage without effect below the noise floor 19 times in 20


def summary(analysis: InfluenceAnalysis) -> dict[str, Any]:
    """Return the headline numbers of a run as plain JSON values.

    Values of `numbers` by key. Every mean is over questions where its number is defined; ``n_defined`` and
    ``undefined_reasons`` say how many have a ρ and why the others have none, ``n_unlabelled`` and
    ``label_reasons`` the same of labels. Numbers without a value are None. ``rho_ci`` is the 95 % t interval
    of the mean over questions (None below 2). ``p_random_divergent`` is the share of *random* orders of the
    same influences that the threshold would call divergent, averaged over the labelled questions;
    ``n_divergent_published`` counts ρ < τ among all defined ρ, whatever their ties.
    """
    return {one.key: one.value for one in numbers(analysis)}


def numbers(analysis: InfluenceAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers of influence, each with its n and what chance alone gives."""
    q, rho, use = analysis.queries, analysis.defined["rho"].to_numpy(), analysis.order_of_use
    label, ndcg = q["label"].value_counts(), q["influence_ndcg"]
    n_labelled = int(label.get("Aligned", 0) + label.get("Divergent", 0))
    by_chance = q["divergent_by_chance"].dropna()
    dominance, noise = q["dominance"].dropna(), q["noise_quantile"].dropna()
    rho_interval = mean_interval(rho, lower=-1.0, upper=1.0)
    published = int((labels(rho, analysis.threshold) == "Divergent").sum())
    modes = analysis.modes.set_index("name")
    tested = modes.dropna(subset="expected")
    shown = (
        Number(
            "mean_influence_ndcg", "nDCG by influence", _value(use.mean), n=use.n,
            interval=_pair(use.low, use.high), define="influence_ndcg", place="card",
            chance=_value(use.chance), note=f"{p_text(use.p_value)}, two-sided" if use.n else "",
        ),
        Number(
            "influence_ndcg_excess", "Excess over chance", _value(use.excess), n=use.n,
            interval=_pair(use.excess_low, use.excess_high), define="influence_ndcg_excess", place="row",
            chance=0.0,
        ),
        Number(
            "mean_rho", "Mean ρ", _mean(rho), n=rho.size, interval=_pair(*rho_interval), define="rho",
            chance=0.0, place="card",
        ),
        Number(
            "median_rho", "Median ρ", _value(np.median(rho)) if rho.size else None, n=rho.size, define="rho",
            note="about 0 by chance", place="row",
        ),
        Number(
            "n_divergent", "Divergent", int(label.get("Divergent", 0)), of=n_labelled, define="label",
            chance=float(by_chance.sum()) if n_labelled else None, cases="queries.label:Divergent",
            place="card",
        ),
        Number(
            "mean_dominance", "Mean dominance", _mean(dominance), n=len(dominance), define="dominance",
            place="row",
        ),
        Number(
            "mean_entropy", "Mean entropy (nats)", _mean(q["entropy"]), n=len(dominance), define="entropy",
            place="row",
        ),
        Number(
            "mean_noise_quantile", "Mean noise floor", _mean(noise), n=len(noise), define="noise_quantile",
            place="row",
        ),
        _above_noise(analysis),
        Number("undefined_reasons", "Without ρ", _counts(q["reason"]), define=REASON, place="row"),
        Number("label_reasons", "Without a label", _counts(q["label_reason"]), define=REASON, place="row"),
        *(_mode_number(name, modes.loc[name], analysis.against_placebo) for name in MODES),
    )  # fmt: skip
    data = {
        "threshold": analysis.threshold,
        "as_published": analysis.as_published,
        "influence": analysis.measure.name,
        "n_defined": rho.size,
        "n_undefined": len(q) - rho.size,
        "n_aligned": int(label.get("Aligned", 0)),
        "n_unlabelled": len(q) - n_labelled,
        "n_divergent_published": published,
        "rho_ci": _list(rho_interval),
        "p_random_divergent": _mean(by_chance),
        "n_influence_ndcg": int(ndcg.notna().sum()),
        "influence_ndcg_ci": _list((use.low, use.high)),
        "influence_ndcg_by_chance": _value(use.chance),
        "influence_ndcg_p_value": _value(use.p_value),
        "influence_ndcg_excess_ci": _list((use.excess_low, use.excess_high)),
        "n_dominance": len(dominance),
        "n_noise_quantile": len(noise),
        "failure_modes": {name: int(n) for name, n in modes["n"].items()},
        "failure_modes_tested": dict(analysis.testable),
        "failure_modes_by_chance": {name: float(n) for name, n in tested["expected"].items()},
        "failure_modes_p_value": {name: float(p) for name, p in tested["p_value"].items()},
    }
    return (*shown, *(Number(key, value=value) for key, value in data.items()))


def _above_noise(analysis: InfluenceAnalysis) -> Number:
    """Count the passages above the noise floor, beside those that would be without any effect."""
    q = analysis.queries
    above = analysis.passages[["query_id", "above_noise"]].dropna()
    repeats = above["query_id"].map(dict(zip(q["query_id"], q["n_repeats"], strict=True))).to_numpy()
    fewest, most = (int(end) for end in (repeats.min(), repeats.max())) if len(above) else (0, 0)
    given = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    few = "; it takes 19 repeats to keep them below 5 %" if most < _REPEATS else ""
    return Number(
        "n_passages_above_noise", "Passages above noise",
        int(above["above_noise"].sum()) if len(above) else None, of=len(above), noun="passage",
        define="above_noise", chance=float(above_noise_by_chance(repeats).sum()) if len(above) else None,
        note=f"without any effect, R = {given}{few}" if len(above) else "", cases="passages.above_noise:True",
        place="row",
    )  # fmt: skip


def _mode_number(name: str, mode: pd.Series, against: AgainstPlacebo) -> Number:
    """Count of one failure mode, with what chance alone, or the placebo, gives."""
    depends, note = not math.isnan(mode["expected"]), ""
    if name == "harmful_passage" and against.n:
        note = f"{against.text}; {p_text(against.p_value)}"
    if depends:
        low, high = int(mode["expected_low"]), int(mode["expected_high"])
        note = f"95 % of random orders give {low} to {high}; {p_text(mode['p_value'])}"
    return Number(
        f"n_{name}", MODES[name].title, int(mode["n"]), of=int(mode["of"]), define=name,
        chance=float(mode["expected"]) if depends else None, note=note, cases=f"queries.{name}:True",
        place="row",
    )  # fmt: skip


def _counts(reasons: pd.Series) -> dict[str, int]:
    return {str(reason): int(n) for reason, n in reasons.value_counts().items()}


def _mean(values: ArrayLike) -> float | None:
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return _value(known.mean()) if known.size else None


def _value(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _pair(low: float, high: float) -> tuple[float, float] | None:
    return None if math.isnan(low) else (low, high)


def _list(ends: tuple[float, float]) -> list[float] | None:
    return None if math.isnan(ends[0]) else [*ends]
