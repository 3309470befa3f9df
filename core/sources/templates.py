"""Example files for download, one for each kind of table that people fill in themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from core.errors import InputError
from core.schema import CONFIDENCES, SIGNALS, Column
from core.sources.formats import long
from core.sources.mapping import MAPPABLE, suggest_mapping

# Kind of table: its title, and what a row is. The rows are in `examples/`.
_KINDS = {
    "influence": ("Influence", "question and retrieved passage"),
    "labels": ("Answers and labels", "question"),
    "signals": ("Answers and signals", "question"),
    "claims": ("Claims × passages", "claim and passage"),
    "samples": ("Sampled answers", "sampled answer"),
    "passages": ("Retrieved passages", "question and passage"),
}
TEMPLATES: Mapping[str, str] = {kind: title for kind, (title, _) in _KINDS.items()}
_NEEDED = {
    **dict.fromkeys(("question", "claim", "sample"), "needed"),
    "influence_score": "needed, unless ablated_answer is there",
}
_CONFIDENCE = CONFIDENCES.column("value")
_FIELDS: Mapping[str, Column] = {
    **{name: column for name, (_, column) in long.FIELDS.items()},
    **{column.name: column for column in SIGNALS.columns},
    **MAPPABLE,
}


def template_csv(kind: str = "influence") -> str:
    """Return a small example file of a kind of `TEMPLATES`: comments on each column, a header and some rows.

    The comments come from the schema; `core.sources.formats.import_file` reads the file as it is. InputError
    where there is no such kind.
    """
    if kind not in _KINDS:
        raise InputError(f"The template must be one of {', '.join(_KINDS)}, got {kind!r}.")
    rows = (Path(__file__).parent / "examples" / f"{kind}.csv").read_text("utf-8")
    columns = rows.partition("\n")[0].split(",")
    fields = {column: field for field, column in suggest_mapping(columns, _FIELDS).items()}
    lines = [f"# One row per {_KINDS[kind][1]}. Lines that start with # are comments.\n"]
    return "".join([*lines, *(f"# {name}: {_explained(fields.get(name))}\n" for name in columns), rows])


def _explained(field: str | None) -> str:
    """Return what a field of the schema holds; a column that is none is a confidence of its own name."""
    column = _FIELDS.get(field or "", _CONFIDENCE)
    facts = [{"str": "text", "float": "number", "int": "whole number", "bool": "True or False"}[column.type]]
    if column.range:
        low, high = column.range
        facts.append(f"{low} to {high}" if high is not None else f"{low} or more")
    facts += [part for part in (column.unit, column.direction) if part]
    # A semicolon or quotation mark would cut a comment in two in some spreadsheets.
    text = f"{column.meaning} ({', '.join([*facts, _NEEDED.get(field or '', 'optional')])})"
    return text.replace('"', "'").replace(";", ",")
