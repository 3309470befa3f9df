"""Questions in files that are not our own data sets: known data sets, and what other tools wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.sources.content import Content
from core.sources.fields import Rejected
from core.sources.formats.importing import detect
from core.sources.formats.records import Record, question_of, right_texts
from core.sources.formats.types import not_used
from core.sources.question import EVIDENCE, Document, names_of, question_record
from core.sources.report import IssueLog, counted
from core.sources.shapes import reshaped

_OWN = {name for field in EVIDENCE for name in names_of(field)}
_SHARED = "right passages of the file"


@dataclass(frozen=True, slots=True)
class Given:
    """The records of a data set file in our own schema, and what the file says beside them.

    ``corpora`` are documents that records name by their ``corpus``; ``rejected`` as in `read_each`.
    """

    content: Content
    corpora: Mapping[str, tuple[Document, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rejected: Sequence[Rejected] = ()


def foreign_questions(content: Content, log: IssueLog) -> Given | None:
    """Return the questions of a file that is not in our own schema; None where it is, or is unknown."""
    if (shape := reshaped(content, log)) is not None:
        reread = replace(content, kind="json", value=None, entries=shape.entries, columns=())
        return Given(reread, shape.corpora, (f"Read as {shape.title}.",), shape.rejected)
    if not content.opened().names().isdisjoint(_OWN):
        return None
    found = detect(content)
    if found is None or found.name == "jsonl":
        return None
    read = found.read(content, log)
    notes = [f"Auto-detected from field names: {found.title} ({found.name})."]
    records = list({(r.question, r.passages): r for r in reversed(read.records)}.values())[::-1]
    if again := len(read.records) - len(records):
        notes.append(f"Left out, as the same question with the same passages: {counted(again, 'record')}.")
    right = [() if record.passages else right_texts(record) for record in records]
    pool = tuple(Document("", text) for text in dict.fromkeys(text for texts in right for text in texts))
    if pool:
        notes.append(
            "Without retrieved passages, so these are retrieved from the right passages of all questions: "
            f"{counted(len(pool), 'text')}."
        )
    entries = tuple(
        (place, _entry(record, texts, bool(pool)))
        for place, (record, texts) in enumerate(zip(records, right, strict=True), start=1)
    )
    own = replace(content, kind="json", value=None, entries=entries, columns=())
    notes += [*read.notes, *not_used(read.unused)]
    return Given(own, {_SHARED: pool} if pool else {}, tuple(notes), read.rejected)


def _entry(record: Record, right: Sequence[str], pooled: bool) -> dict[str, Any]:
    entry = question_record(question_of(record))
    if not record.record_id:
        entry.pop("id", None)
    if record.passages or not pooled:
        return entry
    entry.pop("n_gold", None)  # it counts the right texts, not the passages that they are cut into
    return {**entry, "corpus": _SHARED, **({"gold": list(right)} if right else {})}
