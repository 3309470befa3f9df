"""Evaluation data of ragas: single-turn samples under their current names and those of version 0.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.sources.content import Content
from core.sources.fields import FieldError, Fields, as_id, number_of, unique, with_cells
from core.sources.formats import flat
from core.sources.formats.records import Format, ReadRecords, Record, RecordPassage, count_names
from core.sources.formats.writing import to_lines
from core.sources.report import IssueLog

NAMES: flat.Names = {
    "question": ("user_input", "question"),
    "answer": ("response", "answer"),
    "passages": ("retrieved_contexts", "contexts"),
    "references": ("reference", "ground_truth"),
    "samples": ("multi_responses",),
    "id": ("id",),
}
# Kept as they are, since a record holds only what follows from them.
_AS_THEY_ARE = ("retrieved_context_ids", "reference_contexts", "reference_context_ids")
_LISTS = (*NAMES["passages"], *NAMES["samples"], *_AS_THEY_ARE, "ground_truths")
_LABELS = ("persona_name", "query_style", "query_length")
_TEXTS = (*(n for field in ("id", "question", "answer", "references") for n in NAMES[field]), *_LABELS)
_TELLTALE = ("user_input", *_LISTS, "ground_truth", *_LABELS)
_COMMON = ("question", *NAMES["answer"], "reference", "rubrics")
_OWN = (*(names[0] for names in NAMES.values()), *_AS_THEY_ARE, "ground_truths")


def recognise(content: Content) -> int:
    """Count the names that only ragas uses, and the common ones beside them."""
    return count_names(content.opened().names(), _TELLTALE, _COMMON)


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read samples; conversations of several turns are rejected, each with a reason."""
    return flat.read_entries(content, log, NAMES, _row if content.kind == "csv" else None, _record)


def write(records: Sequence[Record]) -> bytes:
    """Write one sample a line, under the current names."""
    named = flat.has_own_ids(records)
    return to_lines(_sample(record, named) for record in records)


def _row(cells: Mapping[str, str]) -> dict[str, Any]:
    """Read the cells of a CSV: lists, numbers in columns that are neither text nor list, rubrics."""
    row = with_cells(cells, (*_LISTS, *flat.PLAIN["passages"]))
    for name, cell in cells.items():
        if name in _TEXTS or name in _LISTS or any(name in names for names in flat.PLAIN.values()):
            continue
        number = number_of(cell)
        row[name] = number if number is not None else None if cell.strip().lower() == "nan" else cell
    rubrics = with_cells(cells, ("rubrics",)).get("rubrics")
    return {**row, "rubrics": rubrics} if isinstance(rubrics, Mapping) else row


def _record(fields: Fields) -> Record:
    value = fields.record.get("user_input")
    spelled = isinstance(value, str) and value.lstrip().startswith("[{")
    if isinstance(with_cells({"": value}, [""])[""] if spelled else value, list):
        raise FieldError("user_input", value, "one question as text, not a conversation of several turns")
    record = flat.record_of(fields, NAMES)
    texts = flat.passage_texts(fields, *NAMES["passages"])
    passages = _passages(fields, texts)
    gold_texts = fields.texts("reference_contexts")
    gold_ids = _ids(fields, "reference_context_ids")
    references = (*record.references, *(text for text in fields.texts("ground_truths") if text.strip()))
    kept = {(name, ""): fields.record[name] for name in _AS_THEY_ARE if _has(fields, name)}
    known_ids = gold_ids if _has(fields, "retrieved_context_ids") else ()
    passages = flat.marked_gold(passages, gold_texts, known_ids)
    if len(known_ids) == len(gold_texts):  # texts of passages that their ids tell were retrieved
        there = {passage.passage_id for passage in passages}
        gold_texts = tuple(t for i, t in zip(known_ids, gold_texts, strict=True) if i not in there)
    gold = flat.gold_of(passages, gold_texts)
    return replace(
        record,
        passages=passages,
        gold=gold,
        references=tuple(dict.fromkeys(references)),
        n_gold=max(flat.count_gold(passages, gold), len(set(gold_ids))) or None,
        reported={**flat.reported_rest(fields), **kept},
    )


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


def _has(fields: Fields, name: str) -> bool:
    return isinstance(fields.record.get(name), (str, list))


def _sample(record: Record, named: bool) -> dict[str, Any]:
    texts = [passage.text for passage in record.passages]
    ids = [passage.passage_id for passage in record.passages]
    numbered = ids == [f"p{place}" for place in range(1, len(ids) + 1)]
    # A file with gold ids has no texts of gold passages but those that are kept.
    gold = [] if ("reference_context_ids", "") in record.reported else flat.gold_texts(record)
    kept = {name: record.reported.get((name, "")) for name in _AS_THEY_ARE}
    sample = {
        **flat.entry_of(record, NAMES, named),
        "retrieved_contexts": [text or "" for text in texts] if any(t is not None for t in texts) else [],
        "retrieved_context_ids": [] if numbered else ids,
        "reference_contexts": gold,
        "ground_truths": list(record.references) if len(record.references) > 1 else None,
        **{name: value for name, value in kept.items() if value},
    }
    return flat.filled(sample) | flat.further_fields(record, _OWN)


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
        "Fields that are null, empty lists, blank correct answers and scores that are NaN are left out.",
        "Ids come back as texts, and an id that occurs twice gets a number behind it; a correct answer that "
        "is given twice comes back once.",
        "A single text in the place of a list comes back as a list of one.",
        "Conversations of several turns are not read.",
        "Passage titles, retrieval scores and claims are not written.",
    ),
    fields={field: names[0] for field, names in NAMES.items()},
)
