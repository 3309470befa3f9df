"""Which column of a file feeds which column of the schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.errors import InputError
from core.schema import PASSAGES, QUERIES, Column
from core.sources.report import shorten

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

_INFLUENCE_FIELDS = ("influence_score", "reported_rouge_l", "ablated_answer")


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


def _folded(name: str) -> str:
    return "".join(ch for ch in name.casefold() if ch not in " _-.\t\u00a0")
