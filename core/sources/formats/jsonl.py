"""Plain JSON Lines: our own data sets with the answers beside the questions; also as JSON or CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.errors import InputError
from core.sources.corpus import split_texts
from core.sources.formats.cells import with_cells
from core.sources.formats.fields import Fields
from core.sources.formats.flat import (
    counted_names,
    has_own_ids,
    opened,
    own_id,
    passage_text,
    reported_rest,
    with_blank_answers,
    without_none,
)
from core.sources.formats.json_text import to_lines
from core.sources.formats.kept import as_id, is_kept, read_each, unique
from core.sources.formats.records import Record, RecordPassage
from core.sources.formats.types import Content, Format, ReadRecords
from core.sources.gold import gold_spans
from core.sources.question import FIELDS
from core.sources.report import IssueLog

_QUESTION = ("question", "query")
_ANSWER = ("answer", "response", "output")
_PASSAGES = ("passages", "documents", "docs")
_REFERENCES = ("answers", "reference_answers", "references")
_LISTS = (*_PASSAGES, *_REFERENCES, "samples", "gold")
_NUMBERS = ("n_gold", "latency")
_PASSAGE_TEXT = ("text", "passage", "content")
_PASSAGE_ID = ("id", "passage_id", "doc_id")
_ID = ("id", "query_id")
# What the reader takes for something, here or in a data set.
_OWN = {
    *(name for field, others in FIELDS.items() for name in (field, *others)),
    *(*_ANSWER, *_PASSAGES, *_REFERENCES, *_NUMBERS, "samples", "reported"),
}
_MOST_GOLD = 1_000_000_000


def recognise(content: Content) -> int:
    """Count what is there beside the question: answers, passages, right answers, samples, an id."""
    inner = opened(content)
    if not counted_names(inner, _QUESTION):
        return 0
    families = (_ANSWER, _PASSAGES, _REFERENCES, ("samples",), ("corpus",), ("gold",))
    count = sum(counted_names(inner, names) > 0 for names in families)
    return 1 + count if count else 0


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read records; InputError where they are questions still to be asked."""
    inner = with_blank_answers(opened(content), _ANSWER)
    is_csv = content.kind == "csv"
    records, rejected = read_each(inner.entries, log, lambda row, entry: _record(row, entry, log, is_csv))
    if records and not any(r.answer is not None or r.samples for r in records):
        if counted_names(inner, (*_PASSAGES, "corpus")):
            raise InputError(
                f"{content.name} holds questions and passages but no answers, so it is a data set: run it "
                f"with `python -m core analyze {content.name} --out RUN`, or on the page Live run."
            )
    notes: tuple[str, ...] = ()
    if any(counted_names(inner, (name,)) for name in ("documents", "docs")):
        notes = ("Documents were taken as passages, in the order in which they stand.",)
    return ReadRecords(records, rejected, len(inner.entries), notes)


def write(records: Sequence[Record]) -> bytes:
    """Write one record a line, so that it can also be read as a data set."""
    named = has_own_ids(records)
    return to_lines(_line(record, named) for record in records)


def _record(row: int, entry: Any, log: IssueLog, is_csv: bool) -> Record:
    fields = Fields(_row(entry) if is_csv else entry, row, log)
    question = fields.required_text(*_QUESTION)
    gold = fields.texts("gold")
    return Record(
        own_id(fields, *_ID),
        question,
        fields.text(*_ANSWER),
        _marked(_passages(fields), gold),
        tuple(text for text in fields.texts(*_REFERENCES) if text.strip()),
        fields.texts("samples"),
        _count(fields),
        kind=fields.text("kind"),
        language=fields.text("language"),
        latency=_seconds(fields),
        reported={**_named_values(fields), **reported_rest(fields), **_gold_kept(gold)},
    )


def _row(cells: Mapping[str, str]) -> dict[str, Any]:
    row = with_cells(cells, (*_LISTS, "reported"), _NUMBERS)
    for name in row.keys() & set(_PASSAGES):
        if isinstance(row[name], str):
            row[name] = split_texts(row[name])
    return row


def _passages(fields: Fields) -> tuple[RecordPassage, ...]:
    name = fields.present(*_PASSAGES)
    if name is None:
        return ()
    entries = fields.required_items(name)
    passages = [_passage(entry, f"{name}[{place}]", fields) for place, entry in enumerate(entries)]
    given = [as_id(p.passage_id) for p in passages]
    if twice := [i for i, n in Counter(given).items() if i is not None and n > 1]:
        fields.warn(name, ", ".join(twice), "passage ids that differ")
    ids = unique(given, "p")
    return tuple(replace(p, passage_id=i) for p, i in zip(passages, ids, strict=True))


def _passage(entry: Any, path: str, fields: Fields) -> RecordPassage:
    if isinstance(entry, str):
        return RecordPassage("", passage_text(path, entry))
    inner = Fields(entry, fields.row, fields.log, f"{path}.")
    name = inner.present(*_PASSAGE_TEXT) or _PASSAGE_TEXT[0]
    text = passage_text(f"{path}.{name}", inner.record.get(name))
    is_gold = inner.record.get("is_gold")
    if is_gold is not None and not isinstance(is_gold, bool):
        inner.warn("is_gold", is_gold, "true or false")
    return RecordPassage(
        own_id(inner, *_PASSAGE_ID),
        text,
        inner.text("title") or "",
        inner.number("score"),
        is_gold if isinstance(is_gold, bool) else None,
    )


def _marked(passages: Sequence[RecordPassage], gold: Sequence[str]) -> tuple[RecordPassage, ...]:
    """Fill in ``is_gold`` from the fragments, as a data set does, where no passage says it itself."""
    if not gold or any(p.is_gold is not None for p in passages):
        return tuple(passages)
    return tuple(replace(p, is_gold=bool(gold_spans(p.text or "", gold))) for p in passages)


def _count(fields: Fields) -> int | None:
    number = fields.number("n_gold")
    if number is None or (number.is_integer() and 0 <= number <= _MOST_GOLD):
        return None if number is None else int(number)
    fields.warn("n_gold", number, "a whole number, 0 or more")
    return None


def _seconds(fields: Fields) -> float | None:
    seconds = fields.number("latency")
    if seconds is not None and seconds < 0:
        fields.warn("latency", seconds, "seconds, 0 or more")
        return None
    return seconds


def _named_values(fields: Fields) -> dict[tuple[str, str], Any]:
    """Read what `write` puts under ``reported``: values by somebody, names that mean something else."""
    values = {}
    for place, entry in enumerate(fields.items("reported")):
        name, by = (entry.get("name"), entry.get("by", "")) if isinstance(entry, Mapping) else (None, "")
        if isinstance(name, str) and isinstance(by, str) and entry.get("value") is not None:
            values[name, by] = entry["value"]
        else:
            fields.warn(f"reported[{place}]", entry, "an object with name and value")
    return values


def _gold_kept(gold: Sequence[str]) -> dict[tuple[str, str], Any]:
    return {("gold", ""): list(gold)} if gold else {}


def _line(record: Record, named: bool) -> dict[str, Any]:
    reported = {
        (name, by): value
        for (name, by), value in record.reported.items()
        if value is not None and not is_kept(name)
    }
    gold = reported.pop(("gold", ""), None)
    aside = [
        {"name": name, "by": by, "value": value}
        for (name, by), value in reported.items()
        if by or name in _OWN
    ]
    line = {
        "id": record.record_id if named else None,
        "question": record.question,
        "passages": [_passage_object(p, i) for i, p in enumerate(record.passages, start=1) if p.text],
        "answer": record.answer,
        "answers": list(record.references),
        "samples": list(record.samples),
        "n_gold": record.n_gold,
        "gold": gold,
        "kind": record.kind,
        "language": record.language,
        "latency": record.latency,
        "reported": aside,
    }
    further = {name: value for (name, by), value in reported.items() if not by and name not in _OWN}
    return without_none(line) | further


def _passage_object(passage: RecordPassage, place: int) -> dict[str, Any]:
    return without_none(
        {
            "id": passage.passage_id if passage.passage_id != f"p{place}" else None,
            "title": passage.title or None,
            "text": passage.text,
            "score": passage.score,
            "is_gold": passage.is_gold,
        }
    )


FORMAT = Format(
    "jsonl",
    "Plain JSON Lines",
    ".jsonl",
    recognise,
    read,
    write,
    losses=(
        "A JSON list or a CSV comes back as JSON Lines.",
        "Other names of a field (query, documents, response, references, doc_id …) come back as question, "
        "passages, answer, answers and id.",
        "A passage given as a text comes back as an object with that text.",
        "What gold says of the passages is written out as is_gold.",
        "Fields that are null, empty lists, blank right answers and passages without text are left out; so "
        "are further fields of a passage.",
        "Ids come back as texts, and an id that stands twice gets a number behind it.",
        "Claims and their support are not written.",
    ),
    fields={
        "question": "question",
        "answer": "answer",
        "passages": "passages",
        "references": "answers",
        "samples": "samples",
        "id": "id",
    },
)
