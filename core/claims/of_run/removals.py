"""What became of each claim of a run when each passage was left out, every distinct answer read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.claims.causal import CAUSAL_LABELS, CHANGED, GONE, KEPT, UNKNOWN, causal_labels
from core.claims.matrix import Labels
from core.claims.of_run.cells import Cells, Ints
from core.run import Run
from core.text.abstention import answer_status

_CODES = {label: code for code, label in enumerate(CAUSAL_LABELS)}
REMOVED = np.isin(CAUSAL_LABELS, (CHANGED, GONE))
KNOWN = np.array([label != UNKNOWN for label in CAUSAL_LABELS])


@dataclass(frozen=True, eq=False)
class Removals:
    """The labels of all cells of a run, worked out when first asked for; no threshold plays a part.

    ``codes`` are places in ``CAUSAL_LABELS``; *unknown* for claims of references.
    """

    run: Run
    cells: Cells

    @cached_property
    def codes(self) -> Ints:
        """Of every cell the place of its label."""
        return _codes(self.run, self.cells).astype(np.int64)


def ablated_answers(passages: pd.DataFrame) -> list[str | None]:
    """Return for each row of a table ``passages`` the answer without it; None where there is none."""
    known = passages["ablated_answer"].notna() & passages["ablated_status"].ne("error").fillna(True)
    return [a if k else None for a, k in zip(passages["ablated_answer"], known, strict=True)]


def removal_labels(
    claims: Sequence[str], ablated: Sequence[str | None], baseline: str | None, question: str
) -> Labels | None:
    """Return `causal_labels` of one answer; None where no passage was left out.

    Most removals leave the answer as it is or end in the same other one, so only distinct answers are read.
    """
    answers = list(dict.fromkeys(answer for answer in ablated if answer is not None))
    if not answers:
        return None
    labels = np.full((len(claims), len(ablated)), UNKNOWN, dtype=object)
    if baseline is None or answer_status(baseline) != "answered":
        return labels
    column = {baseline: np.full(len(claims), KEPT, dtype=object)}
    other = [answer for answer in answers if answer != baseline]
    column |= dict(zip(other, causal_labels(claims, other, baseline, question).T, strict=True))
    for place, answer in enumerate(ablated):
        if answer is not None:
            labels[:, place] = column[answer]
    return labels


def _codes(run: Run, cells: Cells) -> NDArray[np.int8]:
    codes = np.full(cells.probability.size, _CODES[UNKNOWN], dtype=np.int8)
    ablated = ablated_answers(run.passages)
    queries, texts = run.queries, cells.claims["text"].to_list()
    asked = zip(queries["question"], queries["answer"], strict=True)
    for query, (question, answer) in enumerate(asked):
        if cells.claim_bounds[query] < cells.claim_bounds[query + 1]:
            claims, block = cells.matrix(query, answer=True)
            labels = removal_labels(
                [texts[i] for i in claims],
                [ablated[row] for row in cells.passages_of(query)],
                None if pd.isna(answer) else answer,
                question,
            )
            if labels is not None:
                codes[block] = _coded(labels).reshape(block.shape)
    return codes


def _coded(labels: Labels) -> NDArray[np.int8]:
    return np.array([_CODES[str(label)] for label in labels.ravel()], dtype=np.int8)
