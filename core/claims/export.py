"""Export of claims: one row per claim of an answer and passage."""

from __future__ import annotations

from core.diagnosis import Diagnosis
from core.spreadsheet import csv_bytes


def claims_csv(diagnosis: Diagnosis) -> bytes:
    """Return one row per claim of an answer and passage; no rows where there are no claims.

    State, verdict and scores of the claim are in each of its rows; probability, sentence and judge are those
    of the passage; ``causal`` is the effect of leaving the passage out. States and verdicts follow from
    ``support_threshold``. Claims of reference answers are not in it.
    """
    claims = diagnosis["claims"]
    frame = claims.to_frame().assign(support_threshold=claims.threshold)
    return csv_bytes(frame, diagnosis.run.data_source)
