"""Which column of a file feeds which column of the schema, and the template for download."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from core.errors import InputError
from core.schema import PASSAGES, QUERIES, Column
from core.sources.report import shorten
from core.spreadsheet import csv_bytes

_NOT_IN_FILES = {
    "answer_status", "status_reason", "n_gold", "latency", "prompt_tokens", "completion_tokens",
    "slot", "ablated_status", "planted_case", "planted_rho", "planted_influence",
    "planted_correct",
}  # fmt: skip

# Everything that a file of question x passage rows may hold, in the order of the mapping form.
MAPPABLE: Mapping[str, Column] = {
    column.name: column
    for column in (*QUERIES.columns, *PASSAGES.columns)
    if column.name not in _NOT_IN_FILES
}

# The columns of the published influence CSV, in its order.
PUBLISHED_COLUMNS = (
    "query", "baseline_answer", "spearman_rho", "spearman_pvalue", "dominance_ratio",
    "influence_entropy", "is_divergent", "doc_id", "passage", "retrieval_rank", "retrieval_score",
    "rouge_l", "influence_score", "influence_rank",
)  # fmt: skip

_TEMPLATE_COLUMNS = (
    "query", "baseline_answer", "doc_id", "passage", "retrieval_rank", "retrieval_score",
    "ablated_answer", "influence_score",
)  # fmt: skip
_NEEDED = {"question": "needed", "influence_score": "needed, unless ablated_answer is there"}
_INFLUENCE_FIELDS = ("influence_score", "reported_rouge_l", "ablated_answer")

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


def suggest_mapping(columns: Iterable[str], fields: Mapping[str, Column] = MAPPABLE) -> Mapping[str, str]:
    """Propose which column of a file holds which field, as schema field to column.

    A field's own name comes first, then its aliases, then either of them without regard to case, white space,
    ``_``, ``-`` and ``.``. Every column is used once.

    Examples
    --------
    >>> dict(suggest_mapping(["Query", "doc_id", "Influence Score", "colour"]))
    {'question': 'Query', 'passage_id': 'doc_id', 'influence_score': 'Influence Score'}
    """
    free = dict.fromkeys(columns)
    found: dict[str, str] = {}
    for plain in (str, _folded):
        for only_own_name in (True, False):
            by_name = {plain(column): column for column in reversed(list(free))}
            for field, definition in fields.items():
                names = (field,) if only_own_name else definition.aliases
                hit = next((by_name[plain(n)] for n in names if by_name.get(plain(n)) in free), None)
                if hit is not None and field not in found:
                    found[field] = hit
                    del free[hit]
    return {field: found[field] for field in fields if field in found}


def check_mapping(mapping: Mapping[str, str], columns: Iterable[str], name: str) -> dict[str, str]:
    """Return a mapping in the schema's order; InputError if it does not fit the columns or lacks a field."""
    present = list(columns)
    check_columns(mapping, MAPPABLE, present, present[:40], name)
    influence = [field for field in _INFLUENCE_FIELDS if field in mapping]
    lacks = ""
    if "question" not in mapping:
        lacks = "no column for the question (query, question)"
    elif not influence:
        lacks = "no column for the influence (influence_score, rouge_l or ablated_answer)"
    elif influence == ["ablated_answer"] and "answer" not in mapping:
        lacks = "ablated answers but no column for the baseline answer (baseline_answer)"
    if lacks:
        raise InputError(f"{name} has {lacks}; its columns are {', '.join(map(shorten, present[:40]))}.")
    return {field: mapping[field] for field in MAPPABLE if field in mapping}


def check_columns(
    mapping: Mapping[str, str], fields: Iterable[str], columns: Iterable[str], shown: Iterable[str], name: str
) -> None:
    """Raise InputError for a mapped field or column that does not exist; ``shown`` columns are listed."""
    for field, column in mapping.items():
        if field not in fields:
            raise InputError(f"There is no field {shorten(field)!r} to map; fields are {', '.join(fields)}.")
        if column not in columns:
            raise InputError(
                f"{name} has no column {shorten(column)!r} for the field {field}; "
                f"its columns are {', '.join(map(shorten, shown))}."
            )


def template_csv() -> str:
    """Return a small example file: comments that explain each column, a header and three questions.

    The comments come from the schema; `read_influence_csv` reads the file as it is.
    """
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
    column = MAPPABLE[field]
    facts = [{"str": "text", "float": "number", "int": "whole number", "bool": "True or False"}[column.type]]
    if column.range:
        low, high = column.range
        facts.append(f"{low} to {high}" if high is not None else f"{low} or more")
    facts += [part for part in (column.unit, column.direction) if part]
    # A semicolon or quotation mark would cut a comment in two in some spreadsheets.
    text = f"{column.meaning} ({', '.join([*facts, _NEEDED.get(field, 'optional')])})"
    return text.replace('"', "'").replace(";", ",")


def _folded(name: str) -> str:
    return "".join(ch for ch in name.casefold() if ch not in " _-.\t\u00a0")
