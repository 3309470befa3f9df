"""How well the metrics find what the simulation planted."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from core.influence.analysis import InfluenceAnalysis
from core.run import Run
from core.stats import mean_in_unit, mean_interval

_COLUMNS = ["check", "value", "low", "high", "n", "meaning", "about", "cases", "n_questions"]
EXPECTED_REASON = {"empty": "empty_baseline", "inert": "inert", "redundant": "inert", "parametric": "inert"}


def recovery(run: Run, analysis: InfluenceAnalysis) -> pd.DataFrame:
    """Compare what a simulated run planted with what the metrics found.

    Parameters
    ----------
    run : Run
        A simulated run (its tables carry ``planted_*`` columns).
    analysis : InfluenceAnalysis
        What `analyse` made of it.

    Returns
    -------
    DataFrame
        One row per check: ``check, value, low, high, n, meaning``. ``value`` is a share in [0, 1]
        (with its 95 % Wilson interval) or a difference; NaN where n is 0. ``cases`` is the condition
        (`core.diagnosis.Number.cases`) of the questions to read for it, "" for none, ``n_questions`` their
        number and ``about`` what they have in common.
    """
    rows = [*_rho_rows(run, analysis), *_passage_rows(run, analysis), *_case_rows(run, analysis)]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _rho_rows(run: Run, analysis: InfluenceAnalysis) -> list[tuple[object, ...]]:
    planted = run.queries["planted_rho"].to_numpy()
    error = analysis.queries["rho"].to_numpy() - planted
    error = error[~np.isnan(error)]
    n = error.size
    bias = float(error.mean()) if n else math.nan
    mae = float(np.abs(error).mean()) if n else math.nan
    both = ("With both values of ρ", "queries.planted_rho:..,rho:..", n)
    return [
        (
            "Bias of ρ", bias, *mean_interval(error), n, "Mean of measured minus planted ρ; 0 is unbiased.",
            *both,
        ),
        (
            "Mean absolute error of ρ", mae, math.nan, math.nan, n,
            "Mean distance of measured from planted ρ.", *both,
        ),
    ]  # fmt: skip


def _passage_rows(run: Run, analysis: InfluenceAnalysis) -> list[tuple[object, ...]]:
    planted = run.passages["planted_influence"].to_numpy()
    above = analysis.passages["above_noise"]
    known = above.notna().to_numpy() & ~np.isnan(planted)
    found = above.fillna(False).to_numpy(dtype=bool)
    real, none = known & (planted > 0), known & (planted == 0)
    ids = run.passages["query_id"]
    missed = "passages.planted_influence:0.001..,above_noise:False", ids[real & ~found].nunique()
    alarms = "passages.planted_influence:0,above_noise:True", ids[none & found].nunique()
    return [
        (
            *_share("Power", found[real], "Share of planted influential passages above the noise floor."),
            "With a passage that was missed", *missed,
        ),
        (
            *_share("False alarms", found[none], "Share of passages without planted influence above it."),
            "With a false alarm", *alarms,
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
        leads_to = (f"Planted as {name}", f"queries.planted_case:{name}", hit.size)
        rows.append((*_share(f"Recognised: {name}", hit, about), *leads_to))
    plain = (~case.isin(EXPECTED_REASON)).to_numpy(dtype=bool)
    wrongly = reason.isin(set(EXPECTED_REASON.values())).to_numpy(dtype=bool)
    # No single condition says which: what is ordinary is whatever was not planted as something else.
    meaning = "Share of ordinary questions without a ρ."
    rows.append((*_share("Wrongly undefined", wrongly[plain], meaning), "", "", 0))
    return rows


def _share(check: str, hits: np.ndarray, meaning: str) -> tuple[object, ...]:
    """Return a share with its Wilson 95 % interval."""
    return (check, *mean_in_unit(hits, share=True), int(hits.size), meaning)
