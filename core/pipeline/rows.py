"""Rows of a step: merged into a run's tables, or cleared from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from core.errors import InputError
from core.llm.prompts import DEFAULT_STYLE, FUNCTION_STYLE, STYLES, NumberedPassage
from core.llm.types import DEFAULT_MAX_TOKENS
from core.rows import dicts_of, is_among
from core.run import Run
from core.schema import TABLES

Rows = Mapping[str, "pd.DataFrame | Sequence[Mapping[str, Any]]"]
# The tables that a run begins with: a step fills their columns and neither adds nor drops rows.
_FILLED = ("queries", "passages")
OF_ANSWERS = tuple(name for name in TABLES if name not in (*_FILLED, "gold"))


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question's rows: of ``queries``, ``passages`` in prompt order, and those ``filled`` by the step."""

    query_id: str
    query: Mapping[str, Any]
    passages: tuple[Mapping[str, Any], ...]
    filled: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)

    @property
    def numbered(self) -> list[NumberedPassage]:
        """Its passages as a prompt takes them: label, title, text."""
        return [(i, p["title"] or "", p["text"] or "") for i, p in enumerate(self.passages, start=1)]


def questions_of(run: Run, added: Iterable[str] = ()) -> Callable[[str], AskedQuestion]:
    """Return a function that looks up a question of the run by its id, with its rows of ``added`` tables."""
    queries = dicts_of(run.queries)
    passages = dicts_of(run.passages.sort_values(["slot", "retrieval_rank"], kind="stable"))
    filled = {name: dicts_of(run[name]) for name in added}

    def question(query_id: str) -> AskedQuestion:
        own = {name: rows(query_id) for name, rows in filled.items()}
        return AskedQuestion(query_id, queries(query_id)[0], passages(query_id), own)

    return question


def prompt_of(run: Run) -> tuple[str, int, int]:
    """Return prompt style, max answer tokens and seed of a run's own answers."""
    prompt, options = run.manifest.get("prompt") or {}, run.manifest.get("options") or {}
    style = str(prompt.get("style"))
    known = style if style in STYLES or style == FUNCTION_STYLE.name else DEFAULT_STYLE
    return known, prompt.get("max_tokens") or DEFAULT_MAX_TOKENS, int(options.get("seed") or 0)


def cleared(
    run: Run,
    cells: Mapping[str, tuple[str, ...]],
    done: Iterable[str],
    kept: Mapping[str, pd.DataFrame] = MappingProxyType({}),
    now: Mapping[str, Any] = MappingProxyType({}),
) -> Run:
    """Return the run without some cells and facts; ``kept`` tables and ``now`` facts take their places."""
    tables = dict(run.tables)
    for name, columns in cells.items():
        if not len(run[name]):
            continue
        frame = run[name].assign(**dict.fromkeys(columns)) if columns else run[name].iloc[:0]
        others = frame.columns.difference(TABLES[name].key)
        tables[name] = frame if name in _FILLED else frame[frame[others].notna().any(axis=1)]
        tables[name] = kept.get(name, tables[name])
    steps = dict(run.manifest.get("steps", {}))
    said = {note for name in list(done) for note in steps.pop(name, {}).get("notes", ())}
    manifest = {**run.manifest, "steps": {**steps, **now}}
    if said:
        manifest["notes"] = [note for note in manifest["notes"] if note not in said]
    return Run.create(manifest, **tables)


def merged(
    run: Run, parts: Sequence[tuple[Sequence[str], Rows]], cells: Mapping[str, tuple[str, ...]]
) -> Run:
    """Return the run with new rows of some questions, in the order of its questions.

    Columns in ``cells`` are replaced by key; without columns, all rows of these questions are.
    """
    tables = dict(run.tables)
    order = pd.Index(run.queries["query_id"])
    for name in dict.fromkeys(name for _, rows in parts for name in rows):
        given = [(ids, rows[name]) for ids, rows in parts if name in rows]
        frame = _joined([rows for _, rows in given])
        if not len(frame) and not len(run[name]):
            continue
        if cells.get(name):
            kept, frame = _filled(name, run[name], frame)
        else:
            worked = [query_id for ids, _ in given for query_id in ids]
            kept = run[name][~is_among(run[name]["query_id"], worked)]
        both = pd.concat([kept.astype("object"), frame.astype("object")]) if len(frame) else kept
        tables[name] = both.iloc[np.argsort(order.get_indexer(both["query_id"]), kind="stable")]
    return Run.create(run.manifest, **tables) if parts else run


def _joined(given: Sequence[pd.DataFrame | Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    frames = [rows for rows in given if isinstance(rows, pd.DataFrame) and len(rows)]
    listed = [row for rows in given if not isinstance(rows, pd.DataFrame) for row in rows]
    # Most questions have only a few rows: one frame for all of them.
    return pd.concat(
        [*([pd.DataFrame(listed, dtype="object")] if listed else []), *frames] or [pd.DataFrame()]
    )


def _filled(name: str, old: pd.DataFrame, new: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the old rows with the new values, and the new rows whose key is not among them."""
    if not len(new):
        return old, new
    key = list(TABLES[name].key)
    rows = pd.MultiIndex.from_frame(old[key]).get_indexer(pd.MultiIndex.from_frame(new[key]))
    there, added = rows >= 0, new[rows < 0]
    if len(added) and name in _FILLED:
        stray = ", ".join(str(added.iloc[0][part]) for part in key)
        raise InputError(f"Table {name} has no row for {stray}.")
    filled = {}
    for column in new.columns.difference(key):
        values = old[column].astype("object").to_numpy(copy=True)
        values[rows[there]] = new[column].astype("object").to_numpy()[there]
        filled[column] = pd.Series(values, index=old.index, dtype="object")
    return old.assign(**filled), added
