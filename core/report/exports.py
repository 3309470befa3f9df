"""Exports of a run: CSV that a spreadsheet can open safely, JSON, and the formats of other tools.

Every undefined number is an empty cell (null in JSON). Text cells that a spreadsheet could take for
a formula get a leading apostrophe; `core.sources.influence_csv.read_influence_csv` takes it off
again, so that what `run_csv` writes comes back unchanged. Numbers are never touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from core.claims.of_run.analysis import ClaimsAnalysis, analyse_claims
from core.influence.analysis import InfluenceAnalysis
from core.report.summary import run_summary
from core.run import Run
from core.sources.formats import FORMATS
from core.sources.formats.records import records_of
from core.sources.formats.types import Format
from core.sources.formats.writing import marked
from core.sources.formulas import neutralise, neutralise_text
from core.text.strict import clean, finite

# From a run, its influence and its claims; without the last they are analysed at the default threshold.
Export = Callable[..., bytes]
_SIMULATED = "simulated"


def csv_bytes(frame: pd.DataFrame, simulated: bool = False) -> bytes:
    """Return a frame as CSV for download.

    Parameters
    ----------
    frame : DataFrame
        Any frame; its index is left out. Lists are written as JSON lists.
    simulated : bool
        Puts a first column ``data_source`` that says ``simulated`` in every row.

    Returns
    -------
    bytes
        UTF-8 with a byte order mark, so that spreadsheets read accents right; comma-separated.
        Formulas in text cells and in column names are neutralised.
    """
    safe = pd.DataFrame({i: _safe(frame.iloc[:, i]) for i in range(frame.shape[1])}, index=frame.index)
    safe.columns = neutralise(pd.Series([str(name) for name in frame.columns], dtype="str")).to_list()
    if simulated and "data_source" not in safe.columns:
        safe.insert(0, "data_source", _SIMULATED)
    text: str = safe.to_csv(index=False, lineterminator="\n")
    return clean(text).encode("utf-8-sig")


def run_csv(run: Run, analysis: InfluenceAnalysis) -> bytes:
    """Return a run as an influence CSV: the 14 published columns, then ``label, reason, data_source``.

    One row per question and passage, in the run's order, with the recomputed numbers.
    ``rouge_l`` is 1 - ``influence_score``. ``data_source`` is ``simulated``, ``upload`` or ``live``.

    Parameters
    ----------
    run : Run
        The run.
    analysis : InfluenceAnalysis
        What `analyse` made of it; its threshold decides ``is_divergent``.

    Returns
    -------
    bytes
        As `csv_bytes`.
    """
    p, q, raw = analysis.passages, analysis.queries, run.queries
    row = pd.Index(q["query_id"]).get_indexer(p["query_id"])

    def of_question(values: pd.Series) -> Any:
        return values.take(row).array

    divergent = q["label"].map({"Divergent": True, "Aligned": False}).astype("boolean")
    frame = pd.DataFrame(
        {
            "query": of_question(raw["question"]),
            "baseline_answer": of_question(raw["answer"]),
            "spearman_rho": of_question(q["rho"]),
            "spearman_pvalue": of_question(q["p_value"]),
            "dominance_ratio": of_question(q["dominance"]),
            "influence_entropy": of_question(q["entropy"]),
            "is_divergent": of_question(divergent),
            "doc_id": p["passage_id"].array,
            "passage": run.passages["text"].array,
            "retrieval_rank": p["retrieval_rank"].array,
            "retrieval_score": p["retrieval_score"].array,
            "rouge_l": 1 - p["influence"].array,
            "influence_score": p["influence"].array,
            "influence_rank": p["influence_rank"].array,
            "label": of_question(q["label"]),
            "reason": of_question(q["reason"]),
        }
    )
    frame["data_source"] = _data_source(run)
    return csv_bytes(frame)


def queries_csv(run: Run, analysis: InfluenceAnalysis) -> bytes:
    """Return one row per question: every number, label, reason and failure mode, as `csv_bytes`."""
    return csv_bytes(analysis.queries, simulated=run.simulated)


def claims_csv(run: Run, analysis: InfluenceAnalysis, claims: ClaimsAnalysis | None = None) -> bytes:
    """Return one row per claim of an answer and passage, as `csv_bytes`; no rows where there are no claims.

    State, verdict and scores of the claim stand in each of its rows, probability, sentence and judge are
    those of the passage; ``causal`` says what became of the claim without it. States and verdicts follow from
    ``support_threshold``: that of ``claims``, or the default. Claims of reference answers are not in it.
    ``data_source`` is ``simulated``, ``upload`` or ``live``.
    """
    claims = analyse_claims(run, analysis) if claims is None else claims
    frame = claims.to_frame()
    frame["support_threshold"] = claims.threshold
    frame["data_source"] = _data_source(run)
    return csv_bytes(frame)


def summary_json(run: Run, analysis: InfluenceAnalysis, claims: ClaimsAnalysis | None = None) -> bytes:
    """Return ``{data_source, summary, manifest}`` as UTF-8 JSON; numbers without a value are null."""
    content = {
        "data_source": _data_source(run),
        "summary": run_summary(run, analysis, claims),
        "manifest": dict(run.manifest),
    }
    text = json.dumps(_plain(content), ensure_ascii=False, indent=2, allow_nan=False)
    return clean(text).encode()


def records_export(file_format: Format) -> Callable[[Run, InfluenceAnalysis], bytes]:
    """Return an exporter that writes the questions, passages and answers of a run in another tool's format.

    What that format cannot hold is not written (``file_format.losses``); files of a simulated run say so in
    a field ``data_source``.
    """

    def export(run: Run, analysis: InfluenceAnalysis) -> bytes:
        data = file_format.write(records_of(run))
        return marked(data, file_format.suffix) if run.simulated else data

    return export


def _without_claims(export: Callable[[Run, InfluenceAnalysis], bytes]) -> Export:
    return lambda run, analysis, claims=None: export(run, analysis)


EXPORTERS: Mapping[str, Export] = MappingProxyType(
    {
        "csv": _without_claims(run_csv),
        "queries-csv": _without_claims(queries_csv),
        "claims-csv": claims_csv,
        "json": summary_json,
        **{name: _without_claims(records_export(file_format)) for name, file_format in FORMATS.items()},
    }
)


def _data_source(run: Run) -> str:
    return _SIMULATED if run.simulated else str(run.manifest["source"])


def _safe(values: pd.Series) -> pd.Series:
    """Neutralise the texts of one column; numbers, dates and truth values stay as they are."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype("object")
    if isinstance(values.dtype, pd.StringDtype):
        return neutralise(values)
    if values.dtype != object:
        return values
    # Object columns may hold anything; whatever is no number becomes text first.
    return pd.Series([_safe_cell(value) for value in values], index=values.index, dtype="object")


def _safe_cell(value: object) -> object:
    if value is None or value is pd.NA or isinstance(value, (bool, int, float, np.number, np.bool_)):
        return value
    if isinstance(value, (list, tuple, np.ndarray, dict)):
        value = json.dumps(_plain(value), ensure_ascii=False)
    return neutralise_text(clean(str(value)))


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return finite(value)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
