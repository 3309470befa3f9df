"""What formats of flat records have in common: one object a record, its fields named at the top."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.sources.content import Content
from core.sources.fields import Fields, Unreadable, read_each, unique
from core.sources.formats.records import ReadRecords, Record, RecordGold, RecordPassage
from core.sources.formats.writing import is_kept
from core.sources.mapping import check_columns
from core.sources.question import passage_text
from core.sources.report import IssueLog

# What a record holds -> the names under which a format has it, its own first.
Names = Mapping[str, tuple[str, ...]]
# What files of no particular tool call passages (a single text or several) and correct answers.
PLAIN: Names = {"passages": ("context",), "references": ("ground_truth", "target")}
# Scores inside, which are read although the field is also kept as it is.
_USED = ("metrics_data",)


def read_entries(
    content: Content,
    log: IssueLog,
    names: Names,
    row: Callable[[Any], Any] | None,
    record: Callable[[Fields], Record],
) -> ReadRecords:
    """Read every entry as a record, also where a JSON object holds the entries (see `Content.opened`).

    ``row`` turns an entry (the cells of a CSV row) into fields, None where it is a record already; ``record``
    turns fields into a record or raises `FieldError`. What other files call passages and references is moved
    to the format's ``names`` of them.
    """
    inner = _with_blank_answers(content.opened(), names["answer"])
    unused: dict[str, None] = {}

    def read(number: int, entry: Any) -> Record:
        fields = Fields(_plainly_named(entry if row is None else row(entry), names), number, log)
        found = record(fields)
        unused.update(dict.fromkeys(name for name in fields.rest() if name not in _USED))
        return found

    records, rejected = read_each(inner.entries, log, read)
    return ReadRecords(records, rejected, unused=tuple(unused))


def record_of(fields: Fields, names: Names) -> Record:
    """Read what all flat formats have: id, question, answer, one correct answer, samples and latency."""
    reference = fields.text(*names["references"])
    return Record(
        fields.identifier(*names["id"]) or "",
        fields.required_text(*names["question"]),
        fields.text(*names["answer"]),
        references=(reference,) if reference and reference.strip() else (),
        samples=fields.texts(*names.get("samples", ())),
        latency=fields.seconds(*names.get("latency", ())),
    )


def entry_of(record: Record, names: Names, named: bool) -> dict[str, Any]:
    """Return what `record_of` reads, under a format's own names; ``named`` says whether ids are written."""
    values = {
        "id": record.record_id if named else None,
        "question": record.question,
        "answer": record.answer,
        "references": record.references[0] if record.references else None,
        "samples": list(record.samples),
        "latency": record.latency,
    }
    return {names[name][0]: value for name, value in values.items() if name in names}


def renamed(content: Content, mapping: Mapping[str, str], names: Mapping[str, str]) -> Content:
    """Return opened content with mapped columns renamed to the format's own names.

    ``mapping`` is field (question, answer, …) to column, ``names`` field to own name. InputError for an
    unknown field or column.
    """
    present = {key for _, entry in content.entries if isinstance(entry, Mapping) for key in entry}
    present |= set(content.columns)
    check_columns(mapping, names, present, content.keys(), content.name)
    new = {column: names[field] for field, column in mapping.items()}
    entries = tuple((number, _renamed(entry, new)) for number, entry in content.entries)
    columns = tuple(_renamed(dict.fromkeys(content.columns), new))
    return replace(content, entries=entries, columns=columns)


def passage_texts(fields: Fields, *names: str) -> tuple[str, ...]:
    """Return the texts of passages, which may be empty; `FieldError` names the one that is no text."""
    name = fields.present(*names)
    if name is None:
        return ()
    value = fields.record[name]
    entries = [value] if isinstance(value, str) else fields.required_items(name)
    return tuple(passage_text(f"{fields.path}{name}[{i}]", entry) for i, entry in enumerate(entries))


def marked_gold(
    passages: Sequence[RecordPassage], texts: Iterable[str], ids: Collection[str] = ()
) -> tuple[RecordPassage, ...]:
    """Mark each passage as gold or not; unknown where neither texts nor ids are given.

    One is gold whose text is or contains one of the texts (see `folded`), or whose id is among the ids.
    """
    wanted = distinct(texts)
    if not wanted and not ids:
        return tuple(passages)
    return tuple(
        replace(p, is_gold=any(text in folded(p.text or "") for text in wanted) or p.passage_id in ids)
        for p in passages
    )


def gold_of(passages: Sequence[RecordPassage], texts: Iterable[str]) -> tuple[RecordGold, ...]:
    """Return what the texts of a question's gold passages say beyond the marks of `marked_gold`.

    A text in no passage is a gold passage that was not retrieved; one in a longer passage is what makes that
    passage gold.
    """
    within: dict[str, list[str]] = {passage.passage_id: [] for passage in passages}
    missing: list[str] = []
    shown = {passage.passage_id: folded(passage.text or "") for passage in passages}
    for text in {folded(text): text for text in texts if text.strip()}.values():
        holders = [name for name, found in shown.items() if folded(text) in found]
        missing += [] if holders else [text]
        for name in holders:
            within[name] += [text] if shown[name] != folded(text) else []
    ids = unique([*within, *(f"gold {i}" for i in range(1, len(missing) + 1))])[len(within) :]
    parts = [RecordGold(name, None, tuple(found)) for name, found in within.items() if found]
    return (*parts, *(RecordGold(name, text) for name, text in zip(ids, missing, strict=True)))


def gold_texts(record: Record) -> list[str]:
    """Return the texts of all gold passages that are known, the retrieved ones first."""
    retrieved = [passage.text for passage in record.passages if passage.is_gold]
    return [text for text in (*retrieved, *(one.text for one in record.gold)) if text is not None]


def count_gold(passages: Iterable[RecordPassage], gold: Iterable[RecordGold]) -> int:
    """Return how many gold passages are known, retrieved or not."""
    return sum(p.is_gold is True for p in passages) + sum(one.text is not None for one in gold)


def distinct(texts: Iterable[str]) -> set[str]:
    """Return the texts that differ in more than white space and Unicode form; blank ones are none."""
    return {folded(text) for text in texts} - {""}


def folded(text: str) -> str:
    """Return a text in one Unicode form, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def reported_rest(fields: Fields) -> dict[tuple[str, str], Any]:
    """Return every unused field, as a record reports it."""
    return {
        (name, ""): value.cell if isinstance(value, Unreadable) else value
        for name, value in fields.rest().items()
    }


def further_fields(record: Record, own: Collection[str]) -> dict[str, Any]:
    """Return what a record reports under names that a format has not, each with its source in brackets."""
    fields: dict[str, Any] = {}
    for (name, by), value in record.reported.items():
        key = f"{name} ({by})" if by else name
        if value is not None and key not in own and not is_kept(name):
            fields[key] = value
    return fields


def default_id(place: int) -> str:
    """Return the id of a record that has none: q0001 for the first."""
    return f"q{place:04d}"


def has_own_ids(records: Iterable[Record]) -> bool:
    """Return whether any record has an id that is not just its number."""
    return any(r.record_id not in ("", default_id(place)) for place, r in enumerate(records, start=1))


def filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that hold something: no None, no empty list or object."""
    return {name: value for name, value in fields.items() if value is not None and value not in ([], {}, ())}


def _plainly_named(entry: Any, names: Names) -> Any:
    """Move what plain files call passages and references to a format's own names, unless those are there."""
    if not isinstance(entry, Mapping):
        return entry
    moved = dict(entry)
    for field, others in PLAIN.items():
        own = names.get(field, ())
        several = field == "passages" or "answers" in own
        other = next((name for name in others if _holds_texts(moved.get(name), several)), None)
        if own and other is not None and all(moved.get(name) is None for name in own):
            value = moved.pop(other)
            moved[own[0]] = [value] if field == "passages" and isinstance(value, str) else value
    return moved


def _holds_texts(value: object, several: bool) -> bool:
    if isinstance(value, list) and value and several:
        return all(isinstance(entry, str) for entry in value)
    return isinstance(value, str)


def _renamed(entry: Any, new: Mapping[str, str]) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    moved = {new[key]: value for key, value in entry.items() if key in new}
    return {**{key: value for key, value in entry.items() if key not in new and key not in moved}, **moved}


def _with_blank_answers(content: Content, names: Sequence[str]) -> Content:
    """Fill in the answers that a CSV leaves blank: beside other answers, a blank one is an empty answer."""
    if content.kind != "csv":
        return content
    filled = {name for name in names for _, entry in content.entries if name in entry}
    blank = dict.fromkeys(filled, "")
    return replace(content, entries=tuple((number, {**blank, **entry}) for number, entry in content.entries))
