"""The headline numbers of the confidence."""

from __future__ import annotations

import math

from core.calibration.decision import whatif
from core.confidence.analysis import ConfidenceAnalysis
from core.confidence.definitions import BANDS
from core.context_score import NO_BAND
from core.socket import REASON, Number
from core.stats import mean_in_unit, wilson_interval
from core.text.display import number, share_interval


def numbers(analysis: ConfidenceAnalysis) -> tuple[Number, ...]:
    """Return the headline numbers; without a value where no answer has a confidence."""
    q, quality = analysis.queries, analysis.quality
    mean, *interval = mean_in_unit(analysis.confidence)
    found = whatif(analysis.confidence, analysis.used.correct, analysis.weighting.threshold)
    n, labelled = found.n, quality.n
    threshold = f"threshold {analysis.weighting.threshold:g}"
    share = float(analysis.labelled["correct"].mean()) if labelled else math.nan
    bands = {word: k for word, k in q["band"].value_counts().to_dict().items() if word != NO_BAND.word}
    measured = any(len(analysis.run[name]) for name in ("signals", "confidences"))
    gap, gap_interval = analysis.gap
    uncertainty, *around = mean_in_unit(q["combined_uncertainty"])
    reliable, n_reliable = analysis.reliable("is_reliable")
    strict, n_strict = analysis.reliable("is_reliable_strict")
    chance_ece, most_ece = analysis.ece_by_chance
    fitted = analysis.fit_note if labelled else ""
    auroc, *auroc_interval = analysis.auroc
    parts = analysis.brier
    of_brier = (
        f"reliability {number(parts.reliability)} − resolution {number(parts.resolution)} + uncertainty "
        f"{number(parts.uncertainty)} + within {number(parts.within)}"
        if labelled else ""
    )  # fmt: skip
    weights = ", ".join(f"{name} {weight:.2g}" for name, weight in analysis.weighting.weights.items())
    return (
        Number("mean_confidence", "Mean confidence", _value(mean), n=n, noun="answer",
            interval=_ends(interval), define="confidence", place="card", note=analysis.used.reason),
        Number("n_passing", "Reach the threshold", found.n_passing if n else None, of=n,
            define="passes", place="card", note=threshold if n else "", cases="queries.passes:True"),
        Number("confidence_bands", "Answers by band", bands if n else None, noun="answer", define=BANDS,
            place="row"),
        _correct(analysis, True, share), _correct(analysis, False, share),
        Number("confidence_gap", "Mean confidence − accuracy", _value(gap), n=labelled, noun="answer",
            interval=_ends(gap_interval), chance=0.0 if labelled else None, define="confidence", place="row"),
        Number("confidence_ece", "Calibration error (ECE)", _value(quality.ece), n=labelled, noun="answer",
            chance=_value(chance_ece), define="ece", place="card",
            note="; ".join(filter(None, [f"at most {number(most_ece)} in 95 % of such runs", fitted]))
            if labelled else ""),
        Number("confidence_mce", "Largest calibration error (MCE)", _value(quality.mce), n=labelled,
            noun="answer", define="mce", place="row"),
        Number("confidence_brier", "Brier score", _value(quality.brier), n=labelled, noun="answer",
            chance=_value(parts.uncertainty), note=of_brier, define="brier", place="row"),
        Number("confidence_auroc", "Confidence AUROC", _value(auroc), n=labelled, noun="answer",
            interval=_ends(auroc_interval), chance=0.5 if _value(auroc) is not None else None, define="auroc",
            place="card"),
        Number("confidence_aurc", "Confidence AURC", _value(quality.aurc), n=labelled, noun="answer",
            chance=_value(1 - share), define="aurc", place="row"),
        Number("mean_combined_uncertainty", "Mean combined uncertainty", _value(uncertainty),
            n=int(q["combined_uncertainty"].notna().sum()), noun="answer", interval=_ends(around),
            define="combined_uncertainty", place="row"),
        Number("n_reliable", "Reliable by the combined decision",
            reliable if n_reliable else None, of=n_reliable, define="is_reliable",
            place="row", cases="queries.is_reliable:True"),
        Number("n_reliable_strict", "Reliable by the stricter decision",
            strict if n_strict else None, of=n_strict, define="is_reliable_strict",
            place="row", cases="queries.is_reliable_strict:True"),
        Number("confidence_undefined_reasons", "No confidence because",
            q["reason"].value_counts().to_dict() if measured else None, define=REASON,
            place="row"),
        Number("confidence_weights", "Weights", weights if n else None, define="weights", place="setup"),
        Number("confidence_threshold_used", value=analysis.weighting.threshold if n else None),
        Number("confidence_origin", value=analysis.used.origin if n else None),
        Number("confidence_map", value=analysis.used.method.map.kind if n else None),
        Number("n_taught", value=analysis.n_taught if labelled else None),
    )  # fmt: skip


def _correct(analysis: ConfidenceAnalysis, passes: bool, share: float) -> Number:
    """Return how many of the answers that pass, or do not, are correct."""
    right = analysis.labelled.loc[analysis.labelled["passes"].eq(passes), "correct"]
    n, of = int(right.sum()), len(right)
    return Number(
        "n_correct_passing" if passes else "n_correct_below",
        f"Correct, of answers that {'pass' if passes else 'do not pass'}",
        n if of else None, of=of, noun="answer", define="passes", place="row",
        chance=share * of if of else None,
        note=share_interval(wilson_interval(n / of, of)) if of else "",
    )  # fmt: skip


def _value(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _ends(interval: tuple[float, ...] | list[float]) -> tuple[float, float] | None:
    low, high = interval
    return None if math.isnan(low) or math.isnan(high) else (low, high)
