"""Plain JSON Lines: our own data sets with the answers beside the questions; also as JSON or CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.errors import InputError
from core.sources.content import Content
from core.sources.fields import Fields
from core.sources.formats import flat
from core.sources.formats.records import (
    SIGNALS,
    Format,
    ReadRecords,
    Record,
    RecordPassage,
    as_dataset,
    may_judge,
    question_of,
)
from core.sources.formats.writing import is_kept, to_lines
from core.sources.question import FIELDS, names_of, question_record, read_question, row_of_cells
from core.sources.report import IssueLog

_ANSWER = ("answer", "response", "output")
_PASSAGES = ("passages", *names_of("documents"))
_NAMES: flat.Names = {"answer": _ANSWER, "passages": _PASSAGES, "references": names_of("answers")}
_NUMBERS = ("n_gold", "latency")
# As a cell, also as our own table calls the role of a question.
_CALIBRATES = {"true": True, "calibration": True, "false": False, "test": False, "new": None}
# What the reader takes for something, here or in a data set.
_OWN = {
    *(name for field in FIELDS for name in names_of(field)), *_ANSWER, *_NUMBERS, *SIGNALS, "samples",
    "reported",
}  # fmt: skip


def recognise(content: Content) -> int:
    """Count what is there beside the question: answers, passages, correct answers, samples, labels."""
    names = content.opened().names()
    passages, references = ((*_NAMES[field], *flat.PLAIN[field]) for field in ("passages", "references"))
    families = (_ANSWER, passages, references, ("samples",), ("corpus",), names_of("gold"))
    count = sum(not names.isdisjoint(family) for family in families) + any(map(may_judge, names))
    return 1 + count if count and not names.isdisjoint(names_of("question")) else 0


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read records; InputError where they are questions still to be asked."""
    found = flat.read_entries(content, log, _NAMES, _row if content.kind == "csv" else None, _record)
    names = content.opened().names()
    unanswered = not any(r.answer is not None or r.samples for r in found.records)
    unanswered = unanswered and not any(map(may_judge, names))
    if found.records and unanswered and not names.isdisjoint((*_PASSAGES, "corpus")):
        raise InputError(
            f"{content.name} holds questions and passages but no answers, so it is a data set: "
            f"{as_dataset(content.name)}."
        )
    if names.isdisjoint(names_of("documents")):
        return found
    note = "Documents were read as passages, in the order of the file."
    return replace(found, notes=(note,))


def write(records: Sequence[Record]) -> bytes:
    """Write one record a line, so that it can also be read as a data set."""
    named = flat.has_own_ids(records)
    return to_lines(_line(record, named) for record in records)


def _row(cells: Mapping[str, str]) -> dict[str, Any]:
    row = row_of_cells(cells, ("samples", "reported", *flat.PLAIN["passages"]), (*_NUMBERS, *SIGNALS))
    if "calibrates" in row:
        row["calibrates"] = _CALIBRATES.get(row["calibrates"].strip().lower(), row["calibrates"])
    return row


def _record(fields: Fields) -> Record:
    question = read_question(fields, _PASSAGES)
    reported = {("gold", ""): list(question.gold)} if question.gold else {}
    passages = tuple(
        RecordPassage(p.passage_id, p.text, p.title, p.score, p.is_gold) for p in question.passages or ()
    )
    return Record(
        question.query_id,
        question.question,
        fields.text(*_ANSWER),
        passages,
        question.reference_answers,
        fields.texts("samples"),
        question.n_gold,
        kind=question.kind,
        language=question.language,
        latency=fields.seconds("latency"),
        calibrates=fields.flag("calibrates"),
        gold=flat.gold_of(passages, question.gold),
        # Before what is left over is reported.
        signals={name: value for name in SIGNALS if (value := fields.number(name)) is not None},
        reported={**_named_values(fields), **flat.reported_rest(fields), **reported},
    )


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


def _line(record: Record, named: bool) -> dict[str, Any]:
    question = question_record(question_of(record))
    reported = {k: v for k, v in record.reported.items() if v is not None and not is_kept(k[0])}
    gold = reported.pop(("gold", ""), None) or question.get("gold")
    line = {
        **question,
        "id": record.record_id if named else None,
        "answer": record.answer,
        "samples": list(record.samples),
        "gold": gold,
        "latency": record.latency,
        "calibrates": record.calibrates,
        **record.signals,
        "reported": [
            {"name": name, "by": by, "value": value}
            for (name, by), value in reported.items()
            if by or name in _OWN
        ],
    }
    further = {name: value for (name, by), value in reported.items() if not by and name not in _OWN}
    return flat.filled(line) | further


FORMAT = Format(
    "jsonl",
    "Plain JSON Lines",
    ".jsonl",
    recognise,
    read,
    write,
    losses=(
        "A JSON list or a CSV comes back as JSON Lines.",
        "Other names of a field (query, prompt, documents, context, response, references, target, topic, "
        "doc_id …) come back as question, passages, answer, answers, kind and id.",
        "A passage given as a text comes back as an object with that text.",
        "What gold says of the passages is written out as is_gold; gold_contexts and reference_contexts come "
        "back as gold.",
        "Fields that are null, empty lists, blank correct answers and passages without text are left out; so "
        "are further fields of a passage.",
        "Ids come back as texts, and an id that occurs twice gets a number behind it.",
        "Claims and their support are not written.",
    ),
    fields={
        "question": "question",
        "answer": "answer",
        "passages": "passages",
        "references": "answers",
        "samples": "samples",
        "id": "id",
        "reference_answers": "answers",
        "query_id": "id",
        **{name: name for name in ("correct", "confidence", "kind", "language", *_NUMBERS, *SIGNALS)},
    },
)
