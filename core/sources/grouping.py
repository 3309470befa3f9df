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
    key = question
    if passage is not None and question.size:
        block = np.cumsum(np.r_[True, question[1:] != question[:-1]]) - 1
        part = _cycles(passage, block)
        if (separate := _separate(question, passage, block)).any():
            part += np.where(separate, block, 0) * question.size
        if part.any():
            key = _pairs(pd.factorize(part)[0], question)
    group = np.asarray(pd.factorize(key)[0], dtype=np.int64)
    of_group = question[first_rows(group)]
    return Grouping(group, of_group, position_within(of_group) + 1)


def first_rows(group: Ints) -> Ints:
    """Return the first row of each group, where groups are numbered in order of their first rows."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(group), prepend=-1))


def repeated(a: Ints, b: Ints) -> Bools:
    """Return which rows hold a pair of codes (from 0, below the number of rows) that an earlier row holds."""
    return pd.Series(_pairs(a, b)).duplicated().to_numpy()


def _pairs(a: Ints, b: Ints) -> Ints:
    """Return an integer for each pair of codes, the same for equal pairs."""
    codes = a.astype(np.int64)
    codes *= int(b.max(initial=0)) + 1
    codes += b
    return codes


def position_within(group: Ints) -> Ints:
    """Return each row's place among the rows of its group, from 0, in the order given."""
    return np.asarray(pd.Series(group).groupby(group, sort=False).cumcount(), dtype=np.int64)


def _separate(question: Ints, passage: Ints, block: Ints) -> Bools:
    """Rows of questions whose blocks are runs of their own: they repeat passages and none is tiny."""
    if block[-1] + 1 == np.unique(question).size:  # the usual file: one block per question
        return np.zeros(question.size, dtype=bool)
    different = ~repeated(block, passage)
    again = np.unique(question[different][repeated(question[different], passage[different])])
    tiny = np.unique(question[np.bincount(block)[block] < 2])
    return np.isin(question, again) & ~np.isin(question, tiny)


def _cycles(passage: Ints, block: Ints) -> Ints:
    """Which time round a block is in: 0 everywhere unless all its passages come again in turn."""
    if not repeated(block, passage).any():
        return np.zeros(block.size, np.int64)
    again = position_within(_pairs(block, passage))
    falls = np.r_[False, (again[1:] < again[:-1]) & (block[1:] == block[:-1])]
    sizes = pd.DataFrame({"block": block, "again": again}).value_counts(sort=False).reset_index(name="n")
    spread = sizes.groupby("block")["n"].agg(["min", "max"])
    whole = (spread["min"] == spread["max"]) & (spread["min"] >= 2)
    whole[np.unique(block[falls])] = False
    return np.where(whole.reindex(block).to_numpy(dtype=bool), again, 0)
