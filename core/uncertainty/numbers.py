"""The headline numbers of sampling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from core.socket import REASON, Number
from core.stats import mean_in_unit, mean_interval, wilson_interval
from core.text.display import count, share_interval
from core.uncertainty.analysis import UncertaintyAnalysis
from core.uncertainty.definitions import FAILS, PASSES, STABLE, UNDEFINED, UNSTABLE, VARIES
from core.uncertainty.findings import comparable


def numbers(analysis: UncertaintyAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers.

    Stable, varying and unstable answers add up to the questions with a label.
    """
    q = analysis.queries
    label = q["stability"].value_counts()
    of = len(q) - int(label.get(UNDEFINED, 0))
    compared = comparable(q)
    expected = compared["differs_by_chance"]
    n_other = int((~compared["baseline_in_largest"].astype(bool)).sum())
    agreement, entropy, share = (q[name].dropna() for name in ("agreement", "entropy", "meaning_share"))
    confidence = 1 - q["embedding_variance"].dropna()
    auroc = analysis.quality("agreement_text")
    stable = int(label.get(STABLE, 0))
    context = analysis.context
    tests = context.compared
    return (
        Number("n_stable", "Stable answers", stable, of=of, define="stability", place="card",
            note=share_interval(wilson_interval(stable / of, of)) if of else "",
            cases=f"queries.stability:{STABLE}"),
        Number("n_varies", "Varying answers", int(label.get(VARIES, 0)), of=of, define="stability",
            place="row", cases=f"queries.stability:{VARIES}"),
        Number("n_unstable", "Unstable answers", int(label.get(UNSTABLE, 0)), of=of, define="stability",
            place="row", cases=f"queries.stability:{UNSTABLE}"),
        Number("n_baseline_disagrees", "Answers that differ from most samples", n_other, of=len(compared),
            define="baseline_disagrees", chance=float(expected.sum()) if len(compared) else None, place="row",
            cases="queries.baseline_in_largest:False"),
        _mean("mean_agreement", "Mean agreement with the samples", agreement, mean_in_unit(agreement),
            "agreement"),
        _mean("mean_meaning_share", "Mean share of the largest meaning", share, mean_in_unit(share),
            "meaning_share"),
        _mean("mean_semantic_entropy", "Mean semantic entropy", entropy,
            (entropy.mean(), *mean_interval(entropy, lower=0.0)), "entropy"),
        replace(
            _mean("mean_mc_confidence", "Mean MC dropout confidence", confidence, mean_in_unit(confidence),
                "mc_confidence"),
            place="card" if len(confidence) else "row"),
        Number("agreement_auroc", "AUROC of agreement at finding incorrect answers",
            auroc and auroc.auroc[0], n=auroc.n if auroc else 0, noun="answer",
            interval=auroc and auroc.auroc[1:], chance=0.5, define="agreement",
            note=analysis.not_judged or "", place="row"),
        Number("context_failures", "Context tests failed",
            int((tests["outcome"] == FAILS).sum()), of=len(tests), define="context_test", place="row",
            note=f"{count(len(context.query_ids), 'question')}; "
            f"{(tests['outcome'] == PASSES).sum():,} passed; chance gives any failure at most 1 time in 10"
            if len(tests) else ""),
        Number("n_order_dependent", "Number of meanings depends on the order of the samples",
            int((q["meanings_low"] < q["meanings_high"]).sum()), of=int((q["n_samples"] > 1).sum()),
            define="meanings_low", place="row"),
        Number("uncertainty_undefined_reasons", "Uncertainty undefined because",
            q["reason"].value_counts().to_dict(), define=REASON, place="row"),
        Number("n_samples", "Samples per question", _range(q["n_samples"]), place="setup"),
        Number("n_sampled", value=int((q["n_samples"] > 0).sum())),
        Number("n_context_questions", value=len(context.query_ids)),
        Number("meaning_rule", value=analysis.rule),
        Number("stable_from", value=analysis.stable_from),
    )  # fmt: skip


def _range(values: pd.Series) -> str | None:
    """Return the smallest and the largest number above 0; one where they are the same."""
    some = values[values > 0]
    return "–".join(f"{n}" for n in dict.fromkeys([some.min(), some.max()])) if len(some) else None


def _mean(key: str, title: str, values: Any, found: tuple[float, float, float], define: str) -> Number:
    value, *interval = found
    return Number(
        key,
        title,
        float(value) if len(values) else None,
        n=len(values),
        interval=None if np.isnan(interval).any() else (float(interval[0]), float(interval[1])),
        define=define,
        place="row",
    )
