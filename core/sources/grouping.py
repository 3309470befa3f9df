"""Which rows of a file belong to one question, and where a file holds the same question twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Rows sorted into runs of questions.

    ``group`` is each row's group, from 0 in order of first appearance; ``question`` and ``run`` are, per
    group, the code of its question and 1 for its first run in the file, 2 for the second …
    """

    group: Ints
    question: Ints
    run: Ints

    @property
    def n_repeated(self) -> int:
        """How many questions occur in the file more than once."""
        return int(np.unique(self.question[self.run > 1]).size)


def group_rows(question: Ints, passage: Ints | None) -> Grouping:
    """Sort rows into questions by codes, keeping two runs of the same question apart.

    A question is split where it appears in separate blocks of at least two rows that repeat passages (ids or
    ranks), or where one block cycles through all its passages. A single repeated row is no second run, but
    stays to be found as a duplicate. Without passages, the rows of one question are one run.
    """
    n = question.size
    if passage is None or not n:
        part = np.zeros(n, np.int64)
    else:
        block = np.cumsum(np.r_[True, question[1:] != question[:-1]]) - 1
        part = np.where(_separate(question, passage, block), block, 0)
        part = part * n + _cycles(passage, block)
    frame = pd.DataFrame({"question": question, "part": part})
    group = np.asarray(frame.groupby(["question", "part"], sort=False).ngroup(), dtype=np.int64)
    first = np.unique(group, return_index=True)[1] if n else np.zeros(0, np.int64)
    of_group = question[first]
    run = pd.Series(of_group).groupby(of_group, sort=False).cumcount().to_numpy(np.int64) + 1
    return Grouping(group, of_group, run)


def position_within(group: Ints) -> Ints:
    """Return each row's place among the rows of its group, from 0, in the order given."""
    return np.asarray(pd.Series(group).groupby(group, sort=False).cumcount(), dtype=np.int64)


def _separate(question: Ints, passage: Ints, block: Ints) -> Bools:
    """Rows of questions whose blocks are runs of their own: they repeat passages and none is tiny."""
    if block[-1] + 1 == np.unique(question).size:  # the usual file: one block per question
        return np.zeros(question.size, dtype=bool)
    pairs = pd.DataFrame({"question": question, "passage": passage, "block": block}).drop_duplicates()
    repeated = pairs.loc[pairs.duplicated(["question", "passage"]), "question"].unique()
    sizes = np.bincount(block)
    tiny = np.unique(question[sizes[block] < 2])
    return np.isin(question, repeated) & ~np.isin(question, tiny)


def _cycles(passage: Ints, block: Ints) -> Ints:
    """Which time round a block is in: 0 everywhere unless all its passages come again in turn."""
    frame = pd.DataFrame({"block": block, "passage": passage})
    again = frame.groupby(["block", "passage"], sort=False).cumcount().to_numpy(np.int64)
    if not again.any():
        return again
    falls = np.r_[False, (again[1:] < again[:-1]) & (block[1:] == block[:-1])]
    sizes = pd.DataFrame({"block": block, "again": again}).value_counts(sort=False).reset_index(name="n")
    spread = sizes.groupby("block")["n"].agg(["min", "max"])
    whole = (spread["min"] == spread["max"]) & (spread["min"] >= 2)
    whole[np.unique(block[falls])] = False
    return np.where(whole.reindex(block).to_numpy(dtype=bool), again, 0)
