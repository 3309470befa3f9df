"""Example files for download, one for each kind of table that people fill in themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from core.schema import CONFIDENCES, Column
from core.sources.formats import long
from core.sources.mapping import MAPPABLE, suggest_mapping
from core.spreadsheet import csv_bytes

_NEEDED = {
    **dict.fromkeys(("question", "claim", "sample"), "needed"),
    "influence_score": "needed, unless ablated_answer is there",
}
_BRIDGE, _MADDER, _BASIN = (
    ("When did the harbour bridge open?", "The bridge opened in 1931."),
    ("Which plant gives the dye madder?", "The roots of Rubia tinctorum."),
    ("How deep is the northern basin?", "I don't know."),
)
# Kind of table: its title, what a row is, its columns, and its rows.
_KINDS: Mapping[str, tuple[str, str, tuple[str, ...], tuple[tuple[Any, ...], ...]]] = {
    "influence": ("Influence", "question and retrieved passage", (
        "query", "baseline_answer", "doc_id", "passage", "retrieval_rank", "retrieval_score",
        "ablated_answer", "influence_score",
    ), (
        (*_BRIDGE, 0, "The harbour bridge opened to traffic in May 1931.", 1, 9.4, "I don't know.", 1.0),
        (*_BRIDGE, 1, "Ferries crossed the harbour every ten minutes.", 2, 6.1, _BRIDGE[1], 0.0),
        (*_BRIDGE, 2, "A second bridge was planned but never built.", 3, 5.8, _BRIDGE[1], 0.0),
        (*_MADDER, 0, "Woad leaves give a blue dye.", 1, 7.9, _MADDER[1], 0.0),
        (*_MADDER, 1, "Madder, a red dye, comes from the roots of Rubia tinctorum.", 2, 7.7,
         "The leaves of woad.", 0.5556),
        (*_MADDER, 2, "Alum fixes a dye to the cloth.", 3, 3.2,
         "The roots of Rubia tinctorum plants.", 0.0909),
        (*_BASIN, 0, "The southern basin is 80 metres deep.", 1, 5.0, "I don't know.", 0.0),
        (*_BASIN, 1, "Trout live in both basins.", 2, 2.5, "I don't know.", 0.0),
        (*_BASIN, 2, "The lake was dammed in 1902.", 3, 1.1, "I don't know.", 0.0),
    )),
    "labels": ("Answers and labels", "question", ("question", "answer", "confidence", "correct"), (
        (*_BRIDGE, 0.9, 1),
        (_MADDER[0], "The leaves of woad.", 0.4, 0),
        (_BASIN[0], "It is 80 metres deep.", 0.7, 0),
    )),
    "claims": ("Claims × passages", "claim and passage", ("question", "claim", "passage_id", "support"), (
        (*_BRIDGE, "d1", 0.95),
        (*_BRIDGE, "d2", 0.1),
        (_BRIDGE[0], "It was the first bridge.", "d1", 0.3),
        (_BRIDGE[0], "It was the first bridge.", "d2", 0),
    )),
    "samples": ("Sampled answers", "sampled answer", ("question", "answer", "sample"), (
        (_BASIN[0], "It is 80 metres deep.", "80 metres."),
        (_BASIN[0], "It is 80 metres deep.", "It is 30 metres deep."),
        (_BASIN[0], "It is 80 metres deep.", "I don't know."),
    )),
}  # fmt: skip
TEMPLATES: Mapping[str, str] = {kind: one[0] for kind, one in _KINDS.items()}
_FIELDS: Mapping[str, Column] = {
    **{name: column for name, (_, column) in long.FIELDS.items()},
    "confidence": CONFIDENCES.column("value"),
    **MAPPABLE,
}


def template_csv(kind: str = "influence") -> str:
    """Return a small example file of a kind of `TEMPLATES`: comments on each column, a header and some rows.

    The comments come from the schema; `core.sources.formats.import_file` reads the file as it is.
    """
    _, row, columns, rows = _KINDS[kind]
    fields = {column: field for field, column in suggest_mapping(columns, _FIELDS).items()}
    lines = [f"# One row per {row}. Lines that start with # are comments.\n"]
    lines += [f"# {column}: {_explained(fields[column])}\n" for column in columns]
    return "".join(lines) + csv_bytes(pd.DataFrame(rows, columns=columns)).decode("utf-8-sig")


def _explained(field: str) -> str:
    column = _FIELDS[field]
    facts = [{"str": "text", "float": "number", "int": "whole number", "bool": "True or False"}[column.type]]
    if column.range:
        low, high = column.range
        facts.append(f"{low} to {high}" if high is not None else f"{low} or more")
    facts += [part for part in (column.unit, column.direction) if part]
    # A semicolon or quotation mark would cut a comment in two in some spreadsheets.
    text = f"{column.meaning} ({', '.join([*facts, _NEEDED.get(field, 'optional')])})"
    return text.replace('"', "'").replace(";", ",")
