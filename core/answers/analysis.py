"""What became of the questions of a run: their answers, whether correct, and whether on evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.run import Run
from core.text.matching import correctness, says

FIRST, PRESENT, MISSING, UNKNOWN = PARTS = (
    "in the prompt and first",
    "in the prompt, not first",
    "not in the prompt",
    "not known",
)
GOLD, REFERENCE = "gold", "reference"
# Such a reference occurs in passages of any content.
_MOST = 5_000  # passages read: below a millisecond each
_SAYS_LITTLE = {"yes", "no", "true", "false", "có", "không", "đúng", "sai", "是", "否", "对", "不是"}


def evidence(run: Run, asked: np.ndarray) -> pd.DataFrame:
    """Find for every question whether the evidence for its answer was in the prompt.

    ``asked``, (n,), are the questions whose passages are read where gold is not known. One row per question:
    ``evidence``, one of `PARTS`: all of it was retrieved, and the passage ranked first is part of it; all,
    but another passage is first; at least a part was not retrieved; not known, of questions that were asked
    for, else missing. ``evidence_by``: "gold" where gold passages say so, "reference" where the words of a
    reference answer in a passage do, else missing.

    Words show less than gold marks: a passage may hold the reference answer by accident, or state the fact in
    other words. "Yes" and "no" show nothing. Of many questions those read are spread evenly, with 5,000
    passages in all. Cost: no LLM calls; below a millisecond for each passage read.
    """
    n = len(run.queries)
    passages = run.passages
    group = np.asarray(pd.Index(run.queries["query_id"]).get_indexer(passages["query_id"]), dtype=np.int64)
    rank = passages["retrieval_rank"].to_numpy(dtype=np.float64)
    best = np.full(n, np.inf)
    np.fmin.at(best, group, rank)
    first = rank == best[group]
    gold = passages["is_gold"].fillna(False).to_numpy(dtype=bool)
    found, n_gold = np.bincount(group, gold, n), _n_gold(run)
    marked = np.bincount(group, passages["is_gold"].notna().to_numpy(), n) > 0
    by_gold = marked & ((n_gold > 0) | (found > 0))
    # Where the number of gold passages is not known, one that was retrieved has to do.
    everything = found >= np.where(np.isnan(n_gold), 1, n_gold)
    place = _placed(by_gold, everything, np.bincount(group, gold & first, n) > 0)

    read = _spread(
        ~by_gold & asked & run.queries["reference_answers"].map(_tells).to_numpy(dtype=bool), group
    )
    holds = _holding(run, group, read)
    has_text = np.bincount(group, run.passages["text"].notna().to_numpy(), n) > 0
    by_words = _placed(
        read & has_text, np.bincount(group, holds, n) > 0, np.bincount(group, holds & first, n) > 0
    )
    place = np.where(by_gold, place, by_words)
    by = np.select([by_gold, place != ""], [GOLD, REFERENCE], "")
    place = np.where((place == "") & asked, UNKNOWN, place)
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype="str").replace("", None)
            for name, values in (("evidence", place), ("evidence_by", by))
        }
    )


def _placed(known: np.ndarray, present: np.ndarray, first: np.ndarray) -> np.ndarray:
    return np.select([~known, ~present, first], ["", MISSING, FIRST], PRESENT)


def _n_gold(run: Run) -> np.ndarray:
    return run.queries["n_gold"].to_numpy(dtype=np.float64, na_value=np.nan)


def _spread(wanted: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Keep every second, third … of the wanted questions, so that no more passages are read than allowed."""
    step = -(-int(wanted[group].sum()) // _MOST) or 1
    return np.asarray(wanted & (np.cumsum(wanted) % step == 0))


def _tells(references: object) -> bool:
    """Whether some reference answer is more than a yes or no."""
    given = references if isinstance(references, (list, tuple, np.ndarray)) else ()
    return any(str(text).strip(" .!。").casefold() not in _SAYS_LITTLE for text in given)


def _holding(run: Run, group: np.ndarray, read: np.ndarray) -> np.ndarray:
    """Tell which passages of the questions to be read hold a reference answer."""
    references = [
        [text for text in given if _tells([text])] if chosen else []
        for given, chosen in zip(run.queries["reference_answers"], read, strict=True)
    ]
    rows, holds = np.flatnonzero(read[group]), np.zeros(len(group), dtype=bool)
    for row, text in zip(rows, run.passages["text"].iloc[rows], strict=True):
        holds[row] = isinstance(text, str) and says(text, references[group[row]])
    return holds


@dataclass(frozen=True, slots=True)
class Answers:
    """One row per question, in the run's order.

    ``query_id, question, answer, answer_status, correct``; ``evidence`` and ``evidence_by``, see
    `core.answers.analysis.evidence`.
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
