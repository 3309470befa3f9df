"""What became of the questions of a run: whether each has an answer, and whether that is correct."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from core.answers.evidence import evidence
from core.run import Run
from core.text.matching import correctness


@dataclass(frozen=True, slots=True)
class Answers:
    """One row per question, in the run's order.

    ``query_id, question, answer, answer_status, correct``; ``evidence`` and ``evidence_by``, see
    `core.answers.evidence.evidence`.
    """

    queries: pd.DataFrame

    @property
    def incorrect(self) -> pd.DataFrame:
        """The questions whose answer is incorrect."""
        return self.queries[self.queries["correct"].eq(False).fillna(False)]

    def n(self, status: str) -> int:
        """Return the number of answers with a status."""
        return int((self.queries["answer_status"] == status).sum())


def analyse_answers(run: Run) -> Answers:
    """Judge every answer of a run that has a label or reference answers; no LLM calls."""
    frame = run.queries[["query_id", "question", "answer", "answer_status"]].copy()
    frame["correct"] = correctness(run.queries).array
    wrong = frame["correct"].eq(False).fillna(False).to_numpy(dtype=bool)
    return Answers(pd.concat([frame, evidence(run, wrong)], axis=1))
