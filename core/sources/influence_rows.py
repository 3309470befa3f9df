"""Checks of an influence file's rows: what is kept, in which question, at which rank, how influential."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.schema import PASSAGES
from core.sources.checks import Bools, ColumnChecks, Floats, outside_range
from core.sources.grouping import Grouping, Ints, group_rows, position_within, repeated
from core.sources.question import MAX_PASSAGES
from core.sources.report import counted
from core.sources.table import is_blank, some_rows, text_codes

_COMPARED = 10_000  # texts at a time
_ROUGE_SLACK = 1e-3  # both numbers may be rounded to three places


@dataclass(frozen=True, slots=True)
class Rows:
    """The usable rows of a file: their positions in the raw table, groups, ranks and influences.

    Ranks count from 1; influence is in [0, 1] or NaN where unknown. ``notes`` are the decisions made.
    """

    kept: NDArray[np.int64]
    grouping: Grouping
    rank: Floats
    influence: Floats
    notes: tuple[str, ...]


def check_rows(checks: ColumnChecks) -> Rows:
    """Check every row; what is wrong goes into ``checks`` (its ``bad`` rows and its log)."""
    notes: list[str] = []
    checks.flag(is_blank(checks.text("question"), strip=True), "question", "a question")
    influence = _influence(checks, notes)
    rank = _ranks(checks)

    usable = np.flatnonzero(~checks.bad)
    key = text_codes(checks.text("query_id" if checks.has("query_id") else "question"), strip=True)
    passage = None
    if checks.has("passage_id"):
        passage = text_codes(checks.text("passage_id"), strip=True)[usable]
    elif rank is not None:
        passage = pd.factorize(rank[usable])[0]
    grouping = group_rows(key[usable], passage)
    if rank is None:
        rank = np.full(len(checks.frame), np.nan)
        rank[usable] = position_within(grouping.group) + 1
        notes.append("There are no retrieval ranks: the order of the rows within a question was taken.")
    else:
        _from_one(checks, rank, grouping, usable, notes)
    _duplicates(checks, grouping, usable)
    _too_many(checks, grouping, usable)

    still = ~checks.bad[usable]
    kept = usable[still]
    codes, left = pd.factorize(grouping.group[still])
    grouping = Grouping(np.asarray(codes, np.int64), grouping.question[left], grouping.run[left])
    if grouping.n_repeated:
        notes.append(
            f"In the file more than once, as separate runs: {counted(grouping.n_repeated, 'question')}; "
            "each run became a question of its own (its id ends in -2, -3 …)."
        )
    _incomplete_note(checks, key, kept, notes)
    _warn_within(checks, rank[kept], grouping, kept)
    return Rows(kept, grouping, rank[kept], influence[kept], tuple(notes))


def _influence(checks: ColumnChecks, notes: list[str]) -> Floats:
    """Influence as the file has it: its own column, else 1 - rouge_l, else from the answers later."""
    n = len(checks.frame)
    rouge = np.full(n, np.nan)
    if checks.has("reported_rouge_l"):
        needed = not checks.has("influence_score")
        rouge = _unit_interval(checks, "reported_rouge_l", needed)
    if not checks.has("influence_score"):
        if checks.has("reported_rouge_l"):
            notes.append("There is no influence_score: 1 - rouge_l was taken.")
        return 1 - rouge
    influence = _unit_interval(checks, "influence_score", True)
    with np.errstate(invalid="ignore"):
        off = np.abs(influence - (1 - rouge)) > _ROUGE_SLACK
    checks.flag(off & ~checks.bad, "influence_score", "1 - rouge_l of the same row", "warning")
    if not checks.has("ablated_answer"):
        # An empty baseline has no influence, so its blank cells are as they should be.
        due = np.ones(n, dtype=bool)
        if "answer" in checks.mapping:
            due = ~is_blank(checks.text("answer"))
        checks.flag(
            np.isnan(influence) & due & ~checks.bad,
            "influence_score",
            "a number from 0 to 1; without it the question has no rank agreement",
            "warning",
        )
    return influence


def _unit_interval(checks: ColumnChecks, field: str, needed: bool) -> Floats:
    definition = PASSAGES.column(field)
    if not needed:
        return checks.optional_numbers(field, definition)
    values, unreadable = checks.numbers(field)
    checks.flag(unreadable | outside_range(values, definition), field, "a number from 0 to 1")
    return np.asarray(np.clip(values, 0, 1))


def _ranks(checks: ColumnChecks) -> Floats | None:
    if not checks.has("retrieval_rank"):
        return None
    values, _ = checks.numbers("retrieval_rank")
    checks.flag(np.isnan(values), "retrieval_rank", "a number, 1 for the first passage")
    return values


def _from_one(checks: ColumnChecks, rank: Floats, grouping: Grouping, usable: Ints, notes: list[str]) -> None:
    """Shift ranks that count from 0 in every question; ranks below 1 are errors otherwise."""
    lowest = np.full(grouping.question.size, np.inf)
    np.minimum.at(lowest, grouping.group, rank[usable])
    if lowest.size and (lowest == 0).all():
        rank += 1
        notes.append("Retrieval ranks count from 0 in this file; 1 was added.")
        return
    with np.errstate(invalid="ignore"):
        checks.flag(rank < 1, "retrieval_rank", "a number of at least 1")


def _duplicates(checks: ColumnChecks, grouping: Grouping, usable: Ints) -> None:
    if not checks.has("passage_id"):
        return
    blank = is_blank(checks.text("passage_id"), strip=True)[usable]
    again = repeated(grouping.group, text_codes(checks.text("passage_id"), strip=True)[usable])
    checks.flag(usable[blank], "passage_id", "the id of the passage")
    checks.flag(usable[again & ~blank], "passage_id", "an id that no earlier row of the question has")


def _too_many(checks: ColumnChecks, grouping: Grouping, usable: Ints) -> None:
    # A question cut off at the limit would look complete, so it is left out as a whole.
    long = np.bincount(grouping.group) > MAX_PASSAGES
    checks.flag(usable[long[grouping.group]], "question", f"a question with at most {MAX_PASSAGES} passages")


def _incomplete_note(checks: ColumnChecks, key: Ints, kept: Ints, notes: list[str]) -> None:
    if not checks.bad.any():
        return
    hit = np.intersect1d(key[checks.bad], key[kept])
    if hit.size:
        notes.append(
            f"At least one row was lost to an error in {counted(hit.size, 'question')}; "
            "its numbers use the passages that are left."
        )


def _warn_within(checks: ColumnChecks, rank: Floats, grouping: Grouping, kept: Ints) -> None:
    """Warn of the same passage text, or the same retrieval rank, twice in one question."""
    if checks.has("text"):
        again = _repeated_texts(checks.text("text"), kept, grouping.group)
        checks.flag(kept[again], "text", "passages that differ within the question", "warning")
    if checks.has("retrieval_rank"):
        tied = repeated(grouping.group, pd.factorize(rank)[0])
        expected = "a rank of its own; tied passages share their average rank"
        checks.flag(kept[tied], "retrieval_rank", expected, "warning")


def _repeated_texts(column: pd.Series, kept: Ints, group: Ints) -> Bools:
    """Return which kept rows have the text of an earlier row of their group; blank ones do not count.

    Some groups at a time: a comparison of all texts takes as much memory again as they do.
    """
    again = np.zeros(kept.size, dtype=bool)
    part = (np.cumsum(np.bincount(group)) // _COMPARED)[group]
    for rows in np.split(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part))[:-1]):
        texts = some_rows(column, kept[rows])
        again[rows] = repeated(group[rows], text_codes(texts)) & ~is_blank(texts)
    return again
