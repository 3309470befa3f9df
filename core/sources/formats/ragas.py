"""Evaluation data of ragas: single-turn samples under their current names and those of version 0.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.sources.formats.cells import number_of, with_cells
from core.sources.formats.fields import Fields
from core.sources.formats.flat import (
    counted_names,
    distinct,
    further_fields,
    has_own_ids,
    marked_gold,
    opened,
    own_id,
    passage_texts,
    reported_rest,
    with_blank_answers,
    without_none,
)
from core.sources.formats.json_text import to_lines
from core.sources.formats.kept import as_id, read_each, unique
from core.sources.formats.records import Record, RecordPassage
from core.sources.formats.types import Content, Format, ReadRecords
from core.sources.question import FieldError
from core.sources.report import IssueLog

_LISTS = (
    "retrieved_contexts",
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
    "multi_responses",
    "contexts",
    "ground_truths",
)
_TEXTS = (
    "id",
    "user_input",
    "question",
    "response",
    "answer",
    "reference",
    "ground_truth",
    "persona_name",
    "query_style",
    "query_length",
)
_TELLTALE = (
    "user_input",
    *_LISTS,
    "ground_truth",
    "persona_name",
    "query_style",
    "query_length",
)
_COMMON = ("question", "response", "answer", "reference", "rubrics")
_OWN = (
    "id",
    "user_input",
    "retrieved_contexts",
    "retrieved_context_ids",
    "reference_contexts",
    "reference_context_ids",
    "response",
    "multi_responses",
    "reference",
    "ground_truths",
)
# Kept as they are, since a record holds only what follows from them.
_AS_THEY_ARE = ("retrieved_context_ids", "reference_contexts", "reference_context_ids")


def recognise(content: Content) -> int:
    """Count the names that only ragas uses, and the common ones beside them."""
    inner = opened(content)
    telltale = counted_names(inner, _TELLTALE)
    return telltale + counted_names(inner, _COMMON) if telltale else 0


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read samples; conversations of several turns are left out, each with a word."""
    inner = with_blank_answers(opened(content), ("response", "answer"))
    is_csv = content.kind == "csv"
    records, rejected = read_each(inner.entries, log, lambda row, entry: _record(row, entry, log, is_csv))
    return ReadRecords(records, rejected, len(inner.entries))


def write(records: Sequence[Record]) -> bytes:
    """Write one sample a line, under the current names."""
    named = has_own_ids(records)
    return to_lines(_sample(record, named) for record in records)


def _record(row: int, entry: Any, log: IssueLog, is_csv: bool) -> Record:
    if is_csv:
        entry = _row(entry)
    fields = Fields(entry, row, log)
    _single_turn(fields)
    question = fields.required_text("user_input", "question")
    texts = passage_texts(fields, "retrieved_contexts", "contexts")
    passages = _passages(fields, texts)
    gold_texts = fields.texts("reference_contexts")
    gold_ids = _ids(fields, "reference_context_ids")
    return Record(
        own_id(fields, "id"),
        question,
        fields.text("response", "answer"),
        marked_gold(passages, gold_texts, gold_ids if _has(fields, "retrieved_context_ids") else ()),
        _references(fields),
        fields.texts("multi_responses"),
        max(len(distinct(gold_texts)), len(set(gold_ids))) or None,
        reported=_reported(fields),
    )


def _row(cells: Mapping[str, str]) -> dict[str, Any]:
    """Read the cells of a CSV: lists, numbers in columns that are neither text nor list, rubrics."""
    row = with_cells(cells, _LISTS)
    for name, cell in cells.items():
        if name in _TEXTS or name in _LISTS:
            continue
        number = number_of(cell)
        row[name] = number if number is not None else None if cell.strip().lower() == "nan" else cell
    rubrics = with_cells(cells, ("rubrics",)).get("rubrics")
    return {**row, "rubrics": rubrics} if isinstance(rubrics, Mapping) else row


def _single_turn(fields: Fields) -> None:
    value = fields.record.get("user_input")
    messages = with_cells({"user_input": value}, ("user_input",))["user_input"] if _spelled(value) else value
    if isinstance(messages, list):
        raise FieldError("user_input", value, "one question as text, not a conversation of several turns")


def _spelled(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip().startswith("[{")


def _passages(fields: Fields, texts: Sequence[str]) -> tuple[RecordPassage, ...]:
    ids = _ids(fields, "retrieved_context_ids")
    if texts and ids and len(ids) != len(texts):
        fields.warn("retrieved_context_ids", ids, f"one id for each of the {len(texts)} contexts")
        ids = ()
    names = unique(ids or [None] * len(texts), "p")
    return tuple(RecordPassage(name, texts[place] if texts else None) for place, name in enumerate(names))


def _ids(fields: Fields, name: str) -> tuple[str, ...]:
    """Return ids as texts; () where the field is absent or one of them is of no use."""
    ids = [as_id(value) for value in fields.items(name)]
    usable = tuple(i for i in ids if i is not None)
    if len(usable) < len(ids):
        fields.warn(name, fields.record[name], "a list of texts or whole numbers")
        return ()
    return usable


def _references(fields: Fields) -> tuple[str, ...]:
    one = fields.text("reference", "ground_truth")
    several = fields.texts("ground_truths")
    return tuple(dict.fromkeys(text for text in (one or "", *several) if text.strip()))


def _reported(fields: Fields) -> dict[tuple[str, str], Any]:
    kept = {name: fields.record[name] for name in _AS_THEY_ARE if _has(fields, name)}
    return {**reported_rest(fields), **{(name, ""): value for name, value in kept.items()}}


def _has(fields: Fields, name: str) -> bool:
    return isinstance(fields.record.get(name), (str, list))


def _sample(record: Record, named: bool) -> dict[str, Any]:
    reported = {name: record.reported.get((name, "")) for name in _AS_THEY_ARE}
    sample = {
        "id": record.record_id if named else None,
        "user_input": record.question,
        "retrieved_contexts": _contexts(record),
        "retrieved_context_ids": reported["retrieved_context_ids"] or _own_ids(record),
        "reference_contexts": reported["reference_contexts"] or _gold(record),
        "reference_context_ids": reported["reference_context_ids"],
        "response": record.answer,
        "multi_responses": list(record.samples),
        "reference": record.references[0] if record.references else None,
        "ground_truths": list(record.references) if len(record.references) > 1 else None,
    }
    return without_none(sample) | further_fields(record, _OWN)


def _contexts(record: Record) -> list[str]:
    """Return the texts of the passages; none at all where the file brought only ids."""
    texts = [passage.text for passage in record.passages]
    return [text or "" for text in texts] if any(text is not None for text in texts) else []


def _own_ids(record: Record) -> list[str]:
    ids = [passage.passage_id for passage in record.passages]
    return [] if ids == [f"p{place}" for place in range(1, len(ids) + 1)] else ids


def _gold(record: Record) -> list[str]:
    """Return the texts of gold passages where the file had no list of reference contexts."""
    if ("reference_context_ids", "") in record.reported:
        return []
    return [passage.text for passage in record.passages if passage.is_gold and passage.text is not None]


FORMAT = Format(
    "ragas",
    "ragas evaluation data",
    ".jsonl",
    recognise,
    read,
    write,
    losses=(
        "A CSV, a JSON list or a table of columns comes back as JSON Lines.",
        "The names of version 0.1 (question, contexts, answer, ground_truth) come back as the current ones.",
        "Fields that are null, empty lists, blank right answers and scores that are NaN are left out.",
        "Ids come back as texts, and an id that stands twice gets a number behind it; a right answer that "
        "is given twice comes back once.",
        "A single text in the place of a list comes back as a list of one.",
        "Conversations of several turns are not read.",
        "Passage titles, retrieval scores and claims are not written.",
    ),
    fields={
        "question": "user_input",
        "answer": "response",
        "passages": "retrieved_contexts",
        "references": "reference",
        "samples": "multi_responses",
        "id": "id",
    },
)
