"""Example files for download, one for each kind of table that people fill in themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from core.schema import CONFIDENCES, Column
from core.sources.formats import long
from core.sources.mapping import MAPPABLE, suggest_mapping
from core.spreadsheet import csv_bytes

_TEMPLATE_COLUMNS = (
    "query", "baseline_answer", "doc_id", "passage", "retrieval_rank", "retrieval_score",
    "ablated_answer", "influence_score",
)  # fmt: skip
_NEEDED = {
    **dict.fromkeys(("question", "claim", "sample"), "needed"),
    "influence_score": "needed, unless ablated_answer is there",
}
_EXAMPLES = (
    ("When did the harbour bridge open?", "The bridge opened in 1931.", (
        ("The harbour bridge opened to traffic in May 1931.", 9.4, "I don't know."),
        ("Ferries crossed the harbour every ten minutes.", 6.1, "The bridge opened in 1931."),
        ("A second bridge was planned but never built.", 5.8, "The bridge opened in 1931."),
    )),
    ("Which plant gives the dye madder?", "The roots of Rubia tinctorum.", (
        ("Woad leaves give a blue dye.", 7.9, "The roots of Rubia tinctorum."),
        ("Madder, a red dye, comes from the roots of Rubia tinctorum.", 7.7, "The leaves of woad."),
        ("Alum fixes a dye to the cloth.", 3.2, "The roots of Rubia tinctorum plants."),
    )),
    ("How deep is the northern basin?", "I don't know.", (
        ("The southern basin is 80 metres deep.", 5.0, "I don't know."),
        ("Trout live in both basins.", 2.5, "I don't know."),
        ("The lake was dammed in 1902.", 1.1, "I don't know."),
    )),
)  # fmt: skip
_EXAMPLE_INFLUENCE = ((1.0, 0.0, 0.0), (0.0, 0.5556, 0.0909), (0.0, 0.0, 0.0))

# Kind of table: its title, what a row is, its columns, and its rows.
_SMALL: Mapping[str, tuple[str, str, tuple[str, ...], tuple[tuple[Any, ...], ...]]] = {
    "labels": ("Answers and labels", "question", ("question", "answer", "confidence", "correct"), (
        ("When did the harbour bridge open?", "The bridge opened in 1931.", 0.9, 1),
        ("Which plant gives the dye madder?", "The leaves of woad.", 0.4, 0),
        ("How deep is the northern basin?", "It is 80 metres deep.", 0.7, 0),
    )),
    "claims": ("Claims × passages", "claim and passage", ("question", "claim", "passage_id", "support"), (
        ("When did the harbour bridge open?", "The bridge opened in 1931.", "d1", 0.95),
        ("When did the harbour bridge open?", "The bridge opened in 1931.", "d2", 0.1),
        ("When did the harbour bridge open?", "It was the first bridge.", "d1", 0.3),
        ("When did the harbour bridge open?", "It was the first bridge.", "d2", 0),
    )),
    "samples": ("Sampled answers", "sampled answer", ("question", "answer", "sample"), (
        ("How deep is the northern basin?", "It is 80 metres deep.", "80 metres."),
        ("How deep is the northern basin?", "It is 80 metres deep.", "It is 30 metres deep."),
        ("How deep is the northern basin?", "It is 80 metres deep.", "I don't know."),
    )),
}  # fmt: skip
TEMPLATES: Mapping[str, str] = {"influence": "Influence", **{kind: one[0] for kind, one in _SMALL.items()}}
_FIELDS: Mapping[str, Column] = {
    **{name: column for name, (_, column) in long.FIELDS.items()},
    "confidence": CONFIDENCES.column("value"),
    **MAPPABLE,
}


def template_csv(kind: str = "influence") -> str:
    """Return a small example file of a kind of `TEMPLATES`: comments on each column, a header and some rows.

    The comments come from the schema; `core.sources.formats.import_file` reads the file as it is.
    """
    if kind in _SMALL:
        _, row, columns, small = _SMALL[kind]
        lines = [f"# One row per {row}. Lines that start with # are comments.\n"]
        lines += [f"# {name}: {_explained(name)}\n" for name in columns]
        return "".join(lines) + csv_bytes(pd.DataFrame(small, columns=columns)).decode("utf-8-sig")
    lines = ["# One row per question and retrieved passage. Lines that start with # are comments.\n"]
    fields = {column: field for field, column in suggest_mapping(_TEMPLATE_COLUMNS).items()}
    lines += [f"# {column}: {_explained(fields[column])}\n" for column in _TEMPLATE_COLUMNS]
    rows = [
        [question, answer, i, text, i + 1, score, ablated, influence]
        for (question, answer, passages), influences in zip(_EXAMPLES, _EXAMPLE_INFLUENCE, strict=True)
        for i, ((text, score, ablated), influence) in enumerate(zip(passages, influences, strict=True))
    ]
    return "".join(lines) + csv_bytes(pd.DataFrame(rows, columns=_TEMPLATE_COLUMNS)).decode("utf-8-sig")


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
