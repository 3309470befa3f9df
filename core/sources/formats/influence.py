"""Influence files: one row per question and passage, as the published tool writes them, as columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from core.errors import InputError
from core.schema import PASSAGES, QUERIES
from core.sources.content import Content
from core.sources.formats import long
from core.sources.formats.records import Format, ReadRecords, not_used
from core.sources.mapping import MAPPABLE, check_mapping, suggest_mapping
from core.sources.question import MAX_PASSAGES
from core.sources.report import IssueLog, counted
from core.sources.table import Bools, ColumnChecks, Floats, is_blank, outside_range, some_rows, text_codes
from core.text.abstention import answer_status

Ints = NDArray[np.int64]

# Analysis -> the fields of which it needs any.
_ANALYSES: Mapping[str, tuple[str, ...]] = {
    "influence vs retrieval": ("question",),
    "comparison with the file's own verdicts": ("reported_rho", "reported_divergent"),
    "empty answers and refusals": ("answer",),
    "retrieval scores": ("retrieval_score",),
    "passage texts": ("text",),
    "word diff of ablated answers": ("ablated_answer",),
    "parametric and redundant answers": ("closed_book_answer",),
    "correct and incorrect answers, harmful passages": ("reference_answers",),
    "gold passages": ("is_gold",),
}
_SAME = "the same value in all rows of the question; the first was used"
_COMPARED = 10_000  # texts at a time
_ROUGE_SLACK = 1e-3  # both numbers may be rounded to three places
_DONE = {"query_id", "question", "passage_id", "retrieval_rank", "influence_score", "ablated_answer"}
_FULL = 1 - 1e-9
_SURE = 1_000  # any file may have such columns, but none has them all by chance


def recognise(content: Content) -> int:
    """Return a number above all others for a table of questions and passages with the influence of each."""
    columns = content.opened(content.given.values()).names()
    if not columns or not set(content.given) <= set(MAPPABLE):
        return 0
    if not {"influence_score", "ablated_answer"}.isdisjoint(content.given):
        return _SURE
    fields = {*suggest_mapping(columns), *content.given}
    if "question" not in fields or long.is_long(columns):
        return 0
    # Any file may have a score of that name; beside a passage it is meant here.
    by_rouge = "reported_rouge_l" in fields and bool(fields & {"passage_id", "text", "retrieval_rank"})
    return _SURE if by_rouge or fields & {"influence_score", "ablated_answer"} else 0


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read the rows; each step holds only what it needs, as the file may be large.

    Values that the file reports of itself become ``reported_*`` and are only compared. A blank influence
    keeps its row: the question is then undefined (``incomplete``). Named columns go before suggested ones.
    """
    content = content.opened(content.given.values())
    table, given = content.as_table(), content.given
    columns = [str(name) for name in table.frame if name in content.columns or not content.columns]
    suggested = {f: c for f, c in suggest_mapping(columns).items() if c not in given.values()}
    fields = check_mapping(suggested | dict(given), columns, content.name)
    checks = ColumnChecks(table.frame, fields, log, decimal_comma=table.delimiter != ",")
    rows = _check_rows(checks)
    if not rows.kept.size:
        n_rows = len(table.frame) + len(table.rejected)
        raise InputError(log.nothing_usable(content.name, n_rows, "rows", "row", "column"))
    # pyarrow keeps what it has freed, which is as much as the file here, until it is told.
    pa.default_memory_pool().release_unused()
    queries = _query_table(checks, rows)
    pa.default_memory_pool().release_unused()
    passages = _passage_table(checks, rows, queries)
    unused = [column for column in columns if column not in fields.values()]
    notes = [*rows.notes, *not_used(unused, kept=False)]
    if checks.used_decimal_comma:
        notes.append("Commas in numbers were read as decimal points.")
    enables = [what for what, needs in _ANALYSES.items() if any(map(checks.has, needs))]
    missing = [f"{what}: needs {' or '.join(_ANALYSES[what])}" for what in _ANALYSES if what not in enables]
    missing.append("noise floor: needs repeated calls, which such a file cannot hold")
    return ReadRecords(
        (),
        _rejected(checks),
        tuple(notes),
        tuple(unused),
        {"queries": queries, "passages": passages},
        rows.kept.size,
        (enables, missing),
        fields,
    )


FORMAT = Format(
    "influence-csv", "Influence CSV", ".csv", recognise, read, None, fields={name: name for name in MAPPABLE}
)


def _rejected(checks: ColumnChecks) -> pd.DataFrame:
    bad = np.flatnonzero(checks.bad)
    # A file's own columns are kept apart from ours: its ``reason`` becomes ``reason (file)``.
    names = {n: re.sub(r"^(row|reason)((?: \(file\))*)$", r"\1\2 (file)", n) for n in checks.frame}
    rejected = pd.DataFrame({own: some_rows(checks.frame[name], bad) for name, own in names.items()})
    rejected.index = checks.frame.index[bad]
    rejected.insert(0, "reason", pd.Series(checks.reason[bad], index=rejected.index, dtype="str"))
    rejected.insert(0, "row", rejected.index)
    return rejected


@dataclass(frozen=True, slots=True)
class _Rows:
    """The usable rows: places in the raw table, groups, ranks from 1, influences (NaN where unknown)."""

    kept: NDArray[np.int64]
    grouping: Grouping
    rank: Floats
    influence: Floats
    notes: tuple[str, ...]


def _check_rows(checks: ColumnChecks) -> _Rows:
    """Check every row; what is wrong goes into ``checks`` (its ``bad`` rows and its log)."""
    notes: list[str] = []
    checks.flag(is_blank(checks.text("question"), strip=True), "question", "a question")
    influence = _influence(checks, notes)
    rank = None
    if checks.has("retrieval_rank"):
        rank, _ = checks.numbers("retrieval_rank")
        checks.flag(np.isnan(rank), "retrieval_rank", "a number, 1 for the first passage")

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
    # A question cut off at the limit would look complete, so it is left out as a whole.
    too_long = np.bincount(grouping.group)[grouping.group] > MAX_PASSAGES
    checks.flag(usable[too_long], "question", f"a question with at most {MAX_PASSAGES} passages")

    still = ~checks.bad[usable]
    kept = usable[still]
    codes, left = pd.factorize(grouping.group[still])
    grouping = Grouping(np.asarray(codes, np.int64), grouping.question[left], grouping.run[left])
    if n_repeated := np.unique(grouping.question[grouping.run > 1]).size:
        notes.append(
            f"In the file more than once, as separate runs: {counted(n_repeated, 'question')}; "
            "each run became a question of its own (its id ends in -2, -3 …)."
        )
    _incomplete_note(checks, key, kept, notes)
    _warn_within(checks, rank[kept], grouping, kept)
    return _Rows(kept, grouping, rank[kept], influence[kept], tuple(notes))


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
    """Return which kept rows repeat a text of their group; some groups at a time, to save memory."""
    again = np.zeros(kept.size, dtype=bool)
    part = (np.cumsum(np.bincount(group)) // _COMPARED)[group]
    for rows in np.split(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part))[:-1]):
        texts = some_rows(column, kept[rows])
        again[rows] = repeated(group[rows], text_codes(texts)) & ~is_blank(texts)
    return again


def _query_table(checks: ColumnChecks, rows: _Rows) -> pd.DataFrame:
    """Return the table ``queries``: the first row of each question speaks for all of them."""
    group = rows.grouping.group
    first = rows.kept[first_rows(group)]
    columns: dict[str, object] = {
        "query_id": _query_ids(checks, rows, first),
        "question": some_rows(checks.text("question"), first, strip=True).array,
    }
    for definition in QUERIES.columns:
        if definition.name in checks.mapping and checks.has(definition.name):
            codes = text_codes(checks.text(definition.name))
            differs = rows.kept[codes[rows.kept] != codes[first][group]]
            checks.flag(differs, definition.name, _SAME, "warning")
            if definition.name not in _DONE:
                columns[definition.name] = checks.values(definition.name, definition, first)
    if "answer" in columns:
        columns["answer_status"] = _statuses(pd.Series(columns["answer"]))
    elif "answer" in checks.mapping:
        # The column is there and blank throughout: every answer was empty.
        columns["answer"] = pd.array([""] * first.size, dtype="str")
        columns["answer_status"] = pd.array(["empty"] * first.size, dtype="str")
    return pd.DataFrame(columns)


def _passage_table(checks: ColumnChecks, rows: _Rows, queries: pd.DataFrame) -> pd.DataFrame:
    """Return the table ``passages``, one row per kept row of the file, in its order."""
    group, kept = rows.grouping.group, rows.kept
    if checks.has("passage_id"):
        identifier = some_rows(checks.text("passage_id"), kept, strip=True).array
    else:
        identifier = "p" + pd.Series(position_within(group) + 1).astype("str").array
    columns: dict[str, object] = {
        "query_id": queries["query_id"].take(group).array,
        "passage_id": identifier,
        "retrieval_rank": rows.rank,
        "influence_score": rows.influence,
    }
    if checks.has("ablated_answer"):
        columns |= _ablated(some_rows(checks.text("ablated_answer"), kept), rows.influence)
    for definition in PASSAGES.columns:
        name = definition.name
        if name in checks.mapping and name not in _DONE and checks.has(name):
            columns[name] = checks.values(name, definition, kept)
    return pd.DataFrame(columns, copy=False)


def _query_ids(checks: ColumnChecks, rows: _Rows, first: NDArray[np.int64]) -> pd.Series:
    run = pd.Series(rows.grouping.run)
    if checks.has("query_id"):
        base = some_rows(checks.text("query_id"), first, strip=True)
    else:
        number = pd.Series(pd.factorize(rows.grouping.question)[0] + 1).astype("str")
        base = "q" + number.str.zfill(max(4, int(number.str.len().max())))
    return (base + ("-" + run.astype("str")).where(run > 1, "")).array


def _ablated(answer: pd.Series, influence: NDArray[np.float64]) -> dict[str, object]:
    """Ablated answers; a blank one beside an influence below 1 was not recorded rather than empty."""
    blank = is_blank(answer)
    known = answer.mask(blank & ~np.isnan(influence) & (influence < _FULL)) if blank.any() else answer
    return {"ablated_answer": known.array, "ablated_status": _statuses(known)}


def _statuses(answers: pd.Series) -> pd.Series:
    """Return the status of every answer; equal answers are looked at once."""
    codes, texts = pd.factorize(answers)
    names = pd.Series([answer_status(text) for text in texts], dtype="str")
    return pd.Series(names.reindex(codes).array).where(codes >= 0).array


@dataclass(frozen=True, slots=True)
class Grouping:
    """Rows sorted into runs of questions.

    ``group`` is each row's group, from 0 in order of first appearance; ``question`` and ``run`` are, per
    group, the code of its question and 1 for its first run in the file, 2 for the second …
    """

    group: Ints
    question: Ints
    run: Ints


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
