"""How well the metrics find what the simulation planted."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from core.analyses import RECOVERED, Analyses
from core.influence.analysis import InfluenceAnalysis
from core.run import Run
from core.stats import mean_in_unit, mean_interval

EXPECTED_REASON = {"empty": "empty_baseline", "inert": "inert", "redundant": "inert", "parametric": "inert"}


def recover(diagnosis: Analyses) -> pd.DataFrame:
    """Return the rows of `recovery` for a simulated run: it plants what leaving out one passage does."""
    found = recovery(diagnosis.run, diagnosis["influence"])
    return found if diagnosis["influence"].measure.one_by_one else found.head(0)


def recovery(run: Run, analysis: InfluenceAnalysis) -> pd.DataFrame:
    """Compare what a simulated run planted with what the metrics found.

    One row per check, as of `core.analyses.Analyses.recovered`. ``planted`` is the ideal value: 1 for shares
    found and recognised, 0 for errors. ``recovered`` is a share in [0, 1] (with its 95 % Wilson interval) or
    a difference; NaN where n is 0.
    """
    rows = [*_rho_rows(run, analysis), *_passage_rows(run, analysis), *_case_rows(run, analysis)]
    return pd.DataFrame(rows, columns=[*RECOVERED])


def _rho_rows(run: Run, analysis: InfluenceAnalysis) -> list[tuple[object, ...]]:
    planted = run.queries["planted_rho"].to_numpy()
    error = analysis.queries["rho"].to_numpy() - planted
    error = error[~np.isnan(error)]
    n = error.size
    bias = float(error.mean()) if n else math.nan
    mae = float(np.abs(error).mean()) if n else math.nan
    both = "queries.planted_rho:..,rho:.."
    return [
        (
            "Bias of ρ", 0.0, bias, *mean_interval(error), n,
            "Mean of measured minus planted ρ; 0 is unbiased.", both,
        ),
        (
            "Mean absolute error of ρ", 0.0, mae, math.nan, math.nan, n,
            "Mean distance of measured from planted ρ.", both,
        ),
    ]  # fmt: skip


def _passage_rows(run: Run, analysis: InfluenceAnalysis) -> list[tuple[object, ...]]:
    planted = run.passages["planted_influence"].to_numpy()
    above = analysis.passages["above_noise"]
    known = above.notna().to_numpy() & ~np.isnan(planted)
    found = above.fillna(False).to_numpy(dtype=bool)
    real, none = known & (planted > 0), known & (planted == 0)
    return [
        _share(
            "Power", 1.0, found[real], "Share of planted influential passages above the noise floor.",
            "passages.planted_influence:0.001..,above_noise:False",
        ),
        _share(
            "False alarms", 0.0, found[none], "Share of passages without planted influence above it.",
            "passages.planted_influence:0,above_noise:True",
        ),
    ]  # fmt: skip


def _case_rows(run: Run, analysis: InfluenceAnalysis) -> list[tuple[object, ...]]:
    case, reason = run.queries["planted_case"], analysis.queries["reason"]
    rows = []
    for name, expected in EXPECTED_REASON.items():
        hit = (reason == expected).to_numpy(dtype=bool)
        if name in ("redundant", "parametric"):
            hit = hit & analysis.queries[name].to_numpy(dtype=bool)
        hit = hit[(case == name).to_numpy(dtype=bool)]
        about = f"Share of questions planted as {name} that are recognised as such."
        rows.append(_share(f"Recognised: {name}", 1.0, hit, about, f"queries.planted_case:{name}"))
    plain = (~case.isin(EXPECTED_REASON)).to_numpy(dtype=bool)
    wrongly = reason.isin(set(EXPECTED_REASON.values())).to_numpy(dtype=bool)
    # No single condition says which: what is ordinary is whatever was not planted as something else.
    rows.append(
        _share("Wrongly undefined", 0.0, wrongly[plain], "Share of ordinary questions without a ρ.", "")
    )
    return rows


def _share(check: str, ideal: float, hits: np.ndarray, meaning: str, cases: str) -> tuple[object, ...]:
    """Return a share with its Wilson 95 % interval."""
    return (check, ideal, *mean_in_unit(hits, share=True), int(hits.size), meaning, cases)
