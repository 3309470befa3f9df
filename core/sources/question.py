"""One question of a data set: its fields, and reading them from a record that may hold anything."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from core.sources.corpus import Document, parse_document, split_texts, text_problem
from core.sources.gold import gold_spans

MAX_QUESTION = 20_000
MAX_ID = 200
MAX_PASSAGES = 200
MAX_DOCUMENTS_INLINE = 10_000
MAX_TEXTS = 100

# Field of a record -> other names it goes by.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": ("query_id",),
    "question": ("query", "prompt"),
    "documents": (),
    "passages": (),
    "corpus": (),
    "answers": ("reference_answers",),
    "gold": (),
    "kind": ("topic",),
    "language": (),
}
EVIDENCE = ("documents", "passages", "corpus")
LIST_FIELDS = ("documents", "passages", "answers", "gold")


@dataclass(frozen=True, slots=True)
class PassageIn:
    """A passage that is already retrieved; its place in the tuple is its retrieval rank."""

    passage_id: str
    title: str
    text: str
    score: float | None
    is_gold: bool | None


@dataclass(frozen=True, slots=True)
class Question:
    """One question with what may be retrieved for it.

    Attributes
    ----------
    query_id, question : str
        Neither is empty; the id is unique in its data set.
    documents : tuple of Document
        To be cut into passages and searched. Questions that share a corpus hold the very same tuple
        (compare with ``is``), so that it is indexed once. Empty where ``passages`` are given.
    passages : tuple of PassageIn or None
        Passages in retrieval order, used as they are; None where they must be retrieved.
    reference_answers, gold : tuple of str
        Answers known to be right; exact fragments of the documents that hold the answer.
    kind, language : str or None
        Labels as the data set gives them.
    problem : str or None
        Why its passages could not be had, where somebody tried before the run; it is not asked then.
    n_gold : int or None
        Passages known to be relevant, retrieved or not, where that is known beyond ``passages`` and ``gold``.
    """

    query_id: str
    question: str
    documents: tuple[Document, ...]
    passages: tuple[PassageIn, ...] | None
    reference_answers: tuple[str, ...]
    gold: tuple[str, ...]
    kind: str | None
    language: str | None
    problem: str | None = None
    n_gold: int | None = None


class FieldError(Exception):
    """A field cannot be used; becomes an issue of the report, so users never see it as such."""

    def __init__(self, field: str, value: object, expected: str) -> None:
        super().__init__(expected)
        self.field, self.value, self.expected = field, value, expected


T = TypeVar("T")
CorpusLoader = Callable[[str], tuple[Document, ...]]


def fields_of(record: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a record under the names of `FIELDS`, without null values, and the names not used."""
    names = {}
    for name, aliases in FIELDS.items():
        # A field's own name goes before its other names, wherever they stand in the record.
        present = next((n for n in (name, *aliases) if record.get(n) is not None), None)
        if present is not None:
            names[present] = name
    fields = {name: record[key] for key, name in names.items()}
    known = {alias for name, aliases in FIELDS.items() for alias in (name, *aliases)}
    unused = [
        str(key)
        for key, value in record.items()
        if key not in names and (key not in known or value is not None)
    ]
    return fields, unused


def fields_of_cells(cells: Mapping[str, str]) -> dict[str, Any]:
    """Read the cells of a CSV row: empty ones are absent, lists are JSON or texts split at ``---``."""
    fields: dict[str, Any] = {}
    for name, cell in cells.items():
        if not cell.strip():
            continue
        fields[name] = _list_cell(name, cell) if name in LIST_FIELDS else cell
    return fields


def parse_question(
    fields: Mapping[str, Any],
    default_id: str,
    load_corpus: CorpusLoader,
    shared: tuple[Document, ...] | None = None,
) -> Question:
    """Read one question.

    Parameters
    ----------
    fields : Mapping
        Values under the names of `FIELDS`, of any type.
    default_id : str
        The id where the record gives none.
    load_corpus : callable
        From the value of ``corpus`` to its documents; raises `FieldError` where it may not be read.
    shared : tuple of Document, optional
        The documents of a question that brings neither passages nor documents; None where it must.

    Raises
    ------
    FieldError
        The first field that cannot be used: which, its value, and what would be right.
    """
    if "question" not in fields:
        raise FieldError("question", "", "a question")
    question = _text("question", fields["question"], MAX_QUESTION)
    documents, passages = _evidence(fields, load_corpus, shared)
    gold = _texts("gold", fields.get("gold"))
    return Question(
        _identifier("id", fields.get("id", default_id)),
        question,
        documents,
        _marked(passages, gold),
        _texts("answers", fields.get("answers")),
        gold,
        _optional_text("kind", fields),
        _optional_text("language", fields),
    )


def _evidence(
    fields: Mapping[str, Any], load_corpus: CorpusLoader, shared: tuple[Document, ...] | None
) -> tuple[tuple[Document, ...], tuple[PassageIn, ...] | None]:
    given = [name for name in EVIDENCE if name in fields]
    if not given and shared is not None:
        return shared, None
    if not given:
        alone = "a list of questions alone needs a corpus for all of them (--corpus)"
        raise FieldError("documents", "", f"documents, passages or corpus; {alone}")
    if len(given) > 1:
        raise FieldError(" and ".join(given), "", "exactly one of documents, passages and corpus")
    if given[0] == "corpus":
        return load_corpus(_text("corpus", fields["corpus"], 1_000)), None
    if given[0] == "documents":
        return tuple(_list("documents", fields["documents"], _document, MAX_DOCUMENTS_INLINE)), None
    passages = _list("passages", fields["passages"], _passage, MAX_PASSAGES)
    seen: set[str] = set()
    for passage in passages:
        if passage.passage_id in seen:
            raise FieldError("passages", passage.passage_id, "passage ids that differ within the question")
        seen.add(passage.passage_id)
    return (), tuple(passages)


def _document(value: object, position: int) -> Document:
    document = parse_document(value)
    if isinstance(document, str):
        raise FieldError("documents", value, f"{document} (document {position})")
    return document


def _passage(value: object, position: int) -> PassageIn:
    document = parse_document(value)
    if isinstance(document, str):
        raise FieldError("passages", value, f"{document} (passage {position})")
    record = value if isinstance(value, dict) else {}
    score, is_gold = record.get("score"), record.get("is_gold")
    if score is not None and not _is_number(score):
        raise FieldError("passages", score, f"a finite number as score (passage {position})")
    if is_gold is not None and not isinstance(is_gold, bool):
        raise FieldError("passages", is_gold, f"true or false as is_gold (passage {position})")
    identifier = record.get("id")
    return PassageIn(
        _identifier("passages", f"p{position}" if identifier is None else identifier),
        document.title,
        document.text,
        None if score is None else float(score),
        is_gold,
    )


def _marked(passages: tuple[PassageIn, ...] | None, gold: tuple[str, ...]) -> tuple[PassageIn, ...] | None:
    """Fill in ``is_gold`` from the fragments where the passages themselves do not say."""
    if passages is None or not gold or any(p.is_gold is not None for p in passages):
        return passages
    return tuple(
        PassageIn(p.passage_id, p.title, p.text, p.score, bool(gold_spans(p.text, gold))) for p in passages
    )


def _list(field: str, value: object, parse: Callable[[object, int], T], limit: int) -> list[T]:
    if not isinstance(value, list) or not value:
        raise FieldError(field, value, "a list that is not empty")
    if len(value) > limit:
        raise FieldError(field, f"{len(value):,} entries", f"at most {limit:,} entries")
    return [parse(entry, position) for position, entry in enumerate(value, start=1)]


def _texts(field: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list) or len(entries) > MAX_TEXTS:
        raise FieldError(field, value, f"a text or a list of at most {MAX_TEXTS} texts")
    return tuple(_text(field, entry, MAX_QUESTION) for entry in entries)


def _text(field: str, value: object, limit: int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise FieldError(field, value, "a text that is not empty")
    if len(value) > limit:
        raise FieldError(field, value, f"a text of at most {limit:,} characters")
    if wrong := text_problem(value):
        raise FieldError(field, "(not valid Unicode)", wrong)
    return value.strip()


def _optional_text(field: str, fields: Mapping[str, Any]) -> str | None:
    return _text(field, fields[field], MAX_ID) if field in fields else None


def _identifier(field: str, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18:
        value = str(value)
    return _text(field, value, MAX_ID)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False


def _list_cell(name: str, cell: str) -> object:
    stripped = cell.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        try:
            return json.loads(stripped)
        except (ValueError, RecursionError) as error:
            raise FieldError(name, cell, "a JSON list, or texts split at lines of ---") from error
    return split_texts(cell)
