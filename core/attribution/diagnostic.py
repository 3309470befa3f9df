"""The diagnostic *attribution*: credit that redundant passages share, and how far each attribution can be trusted."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from core.analyses import Analyses
from core.attribution.analysis import AttributionAnalysis, analyse
from core.attribution.definitions import DEFINITIONS
from core.attribution.findings import findings
from core.attribution.pairs import LEVEL
from core.attribution.step import AttributionStep
from core.socket import Diagnostic, Export, Need, Number, QuestionColumn
from core.spreadsheet import csv_bytes
from core.stats import mean_interval


def numbers(analysis: AttributionAnalysis) -> tuple[Number, ...]:
    """Return how far the attributions can be read, pairs that do not add up, and shares of passage and place."""
    q, judged = analysis.queries, analysis.judged
    looked = q.dropna(subset="n_either")
    of = len(looked)
    return (
        Number(
            "n_readable_attributions", "Bars can be read", int(judged["readable"].sum()), of=len(judged),
            define="readable", cases="queries.readable:True", place="card", chance=0.025 * len(judged) if len(judged) else None,
        ),
        _mean("mean_lds", "LDS", judged["lds"], "lds", 0.0, "card", -1.0, 1.0),
        _mean("mean_concordance", "Removals told apart", judged["concordance"], "concordance", 0.5, "card", 0.0, 1.0),
        _mean("mean_lds_ceiling", "Ceiling of the LDS", q["ceiling"], "ceiling", None, "row", -1.0, 1.0),
        _mean("mean_top_drop", f"Lost without the first passage ({analysis.unit})", q["drop_1"], "top_drop",
              _value(q["drop_1_random"]), "row"),
        Number(
            "n_either_enough", "Either is enough", int((looked["n_either"] > 0).sum()), of=of, define="either",
            chance=LEVEL * of if of else None, note="at most" if of else "", cases="pairs.either:True", place="row",
        ),
        Number(
            "n_both_needed", "Needs both", int((looked["n_both"] > 0).sum()), of=of, define="both",
            chance=LEVEL * of if of else None, note="at most" if of else "", cases="pairs.either:False", place="row",
        ),
        _mean("mean_passage_share", "Share of the passages", q["passage_share"], "passage_share", 0.0, "row", -math.inf, 1.0),
        _mean("mean_slot_share", "Share of the place", q["slot_share"], "slot_share", 0.0, "row", -math.inf, 1.0),
        _mean("mean_swap", f"Swap of neighbours ({analysis.unit})", q["swap"], "swap", None, "row", 0.0),
        Number(
            "n_claims_disagree", "Claims: influence against support", *_disagreeing(analysis), noun="claim",
            define="claim_disagreement", place="row",
        ),
        Number("attribution_by", value=analysis.by),
        Number("n_attribution_calls", "Prompts measured", int(q["n_calls"].fillna(0).sum()), place="setup"),
    )  # fmt: skip


def _mean(
    key: str, title: str, values: pd.Series, define: str, chance: float | None, place: str,
    least: float = -math.inf, most: float = math.inf,
) -> Number:  # fmt: skip
    known = values.dropna().to_numpy(dtype=np.float64)
    low, high = mean_interval(known, lower=least, upper=most)
    return Number(
        key, title, float(known.mean()) if known.size else None, n=known.size,
        interval=None if math.isnan(low) else (low, high), define=define,
        chance=chance if known.size else None, place=place,
    )  # fmt: skip


def _value(values: pd.Series) -> float | None:
    return float(values.mean()) if values.notna().any() else None


def _disagreeing(analysis: AttributionAnalysis) -> tuple[int, None, int]:
    told = analysis.claims.dropna(subset="disagrees").drop_duplicates(["query_id", "claim_id"])
    return int(told["disagrees"].astype(bool).sum()), None, len(told)


def attribution_csv(diagnosis: Analyses) -> bytes:
    """Return one row per passage with its scores and their intervals, beside the LDS of its question."""
    return csv_bytes(diagnosis["attribution"].to_frame(), diagnosis.run.data_source)


def pairs_csv(diagnosis: Analyses) -> bytes:
    """Return one row per pair of passages that do not add up."""
    return csv_bytes(diagnosis["attribution"].pairs, diagnosis.run.data_source)


ATTRIBUTION = Diagnostic(
    name="attribution",
    title="Attribution",
    question="Which passages make the answer, together or alone, and can these bars be trusted?",
    analyse=lambda diagnosis: diagnosis.once(analyse),
    numbers=numbers,
    findings=findings,
    finds=("readable", "either", "both", "near_duplicates", "slot_share"),
    needs=(
        Need("passages", "The run has no passages."),
        Need(
            "ablations",
            "No subset of passages was measured: run the step attribution on the Live page.",
            step="attribution",
        ),
    ),
    exports=(
        Export(
            "attribution-csv",
            "Passages and attribution",
            ".csv",
            attribution_csv,
            "One row per passage of a measured answer.",
        ),
        Export(
            "attribution-pairs-csv",
            "Pairs of passages",
            ".csv",
            pairs_csv,
            "One row per pair that does not add up.",
        ),
    ),
    figures=("slot_effects", "lds_histogram"),
    definitions=DEFINITIONS,
    columns=(
        QuestionColumn("lds", "Faithfulness", bounds=(-1.0, 1.0), higher_is="better"),
        QuestionColumn("concordance", "Removals told apart", bounds=(0.0, 1.0), is_secondary=True),
        QuestionColumn("readable", "Bars can be read", "bool", is_secondary=True),
    ),
    step=AttributionStep,
    icon=":material/join_inner:",
)
