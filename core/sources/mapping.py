"""Which column of a file feeds which column of the schema: told by its name, guessed from its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from core.errors import InputError
from core.schema import PASSAGES, QUERIES, Column
from core.sources.content import Content, cell_text, read_content
from core.sources.fields import said_number
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

_ROWS = 200
_LONG = 40  # characters from which a text is rather a passage than an answer
# What values can tell, the surest first.
_LOOKS = (
    "passages", "question", "influence_score", "retrieval_rank", "retrieval_score", "text", "answer",
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


def values_in(data: bytes, name: str, most: int = 200) -> Mapping[str, Sequence[str]]:
    """Return `first_values` of a file that is not read yet; `InputError` where it cannot be."""
    return first_values(read_content(data, name), most)


def first_values(content: Content, most: int = 200) -> Mapping[str, Sequence[str]]:
    """Return the columns of a file, at most so many, each with the texts of its first 200 records."""
    content = content.opened()
    records = [entry for _, entry in content.entries[:_ROWS] if isinstance(entry, Mapping)]
    found: dict[str, list[str]] = {str(column): [] for column in content.columns[:most]}
    for record in records:
        for column, value in record.items():
            if len(found) < most or column in found:
                text = cell_text(value).strip()
                found.setdefault(str(column), []).extend([text] if text else [])
    return found


def guess_columns(
    columns: Mapping[str, Sequence[str]], wanted: Mapping[str, str]
) -> Mapping[str, tuple[str, str]]:
    """Guess which column holds which field: by its name, else by what its values look like.

    ``columns`` are those of `first_values`, ``wanted`` fields, each with the name that a file of the format
    gives it. Returns field to (column, "name" or "values"): no column twice, fields without a guess left out.

    >>> rows = {"Frage": ["Wer?", "Wer?"], "Einfluss": ["0.5", "0.1"], "score": ["2", "1"]}
    >>> fields = {"question": "query", "influence_score": "influence_score", "retrieval_score": "score"}
    >>> dict(guess_columns(rows, fields))["influence_score"]
    ('Einfluss', 'values')
    """
    named = {_folded(column): column for column in reversed(list(columns))}
    known = suggest_mapping(columns)
    found: dict[str, tuple[str, str]] = {}
    free = dict(columns)
    for field, usual in wanted.items():
        own = next((named[_folded(n)] for n in (usual, field) if named.get(_folded(n)) in free), None)
        column = own or (known.get(field) if field in MAPPABLE else None)
        if column in free:
            found[field] = (column, "name")
            del free[column]
    for field in _LOOKS:
        if field not in wanted or field in found:
            continue
        asked = columns[found["question"][0]] if "question" in found else ()
        column = next(
            (name for name, values in free.items() if values and _looks_like(field, values, asked)), None
        )
        if column is not None:
            found[field] = (column, "values")
            del free[column]
    return {field: found[field] for field in wanted if field in found}


def examples(values: Iterable[str], n: int = 3) -> list[str]:
    """Return the first different values."""
    return list(dict.fromkeys(values))[:n]


def _looks_like(field: str, values: Sequence[str], asked: Sequence[str]) -> bool:
    """Tell whether a column's texts may be a field's; ``asked`` are the questions, where they are known."""
    read = [said_number(value.replace(",", ".")) for value in values]
    numbers = [number for number in read if number is not None] if None not in read else []
    low, high, different = min(numbers, default=0.0), max(numbers, default=0.0), sorted(set(numbers))
    lists = all(value.startswith("[") for value in values)
    rises = low in (0, 1) and different == [low + place for place in range(len(different))]
    # Each question has one of these texts.
    one_each = len(values) != len(asked) or len(set(zip(asked, values, strict=True))) == len(set(asked))
    return {
        "passages": lists,
        "question": 2 * sum(value.endswith(("?", "？", "؟")) for value in values) > len(values),
        "influence_score": bool(numbers) and low >= 0 and high <= 1 and any(x % 1 for x in numbers),
        "retrieval_rank": rises and high > low,
        "retrieval_score": len(different) > 2,
        "text": not numbers and not lists and 2 * sum(len(v) >= _LONG for v in values) > len(values),
        "answer": not numbers and not lists and one_each,
    }[field]
