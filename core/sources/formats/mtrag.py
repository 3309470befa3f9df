"""Tasks of MTRAG, a benchmark of conversations: each asks the last question of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.sources.content import Content
from core.sources.fields import FieldError, Fields, read_each, unique
from core.sources.formats import flat
from core.sources.formats.messages import ASSISTANT, USER, last_text, message_text
from core.sources.formats.records import Format, ReadRecords, Record, RecordPassage, count_names
from core.sources.report import IssueLog, counted

_TELLTALE = ("task_id", "conversation_id", "targets", "predictions")
_COMMON = ("input", "contexts", "Collection", "collection", "turn", "answerability", "Answerability")
_RELEVANT = {"yes": True, "no": False}


def recognise(content: Content) -> int:
    """Count the names of a task, once one of the entries is asked by a conversation."""
    entries = [entry for _, entry in content.opened().entries[:50] if isinstance(entry, Mapping)]
    if not any(last_text(entry.get("input"), USER) is not None and "task_id" in entry for entry in entries):
        return 0
    return count_names(content.opened().names(), _TELLTALE, _COMMON)


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read every task; its prediction is the answer, if it has one."""
    later = 0

    def task(row: int, entry: Any) -> Record:
        nonlocal later
        record = _record(Fields(entry, row, log))
        later += sum(message_text(turn, USER) is not None for turn in entry["input"]) > 1
        return record

    records, rejected = read_each(content.opened().entries, log, task)
    notes = []
    if later:
        notes.append(
            f"Later turns of a conversation: {counted(later, 'task')}; only the last question is read, which "
            "may depend on the turns before it (kept as input)."
        )
    return ReadRecords(records, rejected, tuple(notes))


def _record(fields: Fields) -> Record:
    turns = fields.required_items("input")
    question = last_text(turns, USER)
    if question is None or not question.strip():
        raise FieldError("input", turns, "messages, the last question among them by the user")
    passages, ids = [], []
    for place, entry in enumerate(fields.items("contexts")):
        inner = fields.inner(entry, f"contexts[{place}]")
        title, score = inner.text("title") or "", inner.number("score")
        gold = _is_gold(inner.mapping("feedback").get("relevant"))
        ids.append(inner.identifier("document_id"))
        passages.append(RecordPassage("", inner.text("text"), title, score, gold))
    predictions = [text for entry in fields.items("predictions") if (text := _text(entry)) is not None]
    whole = {("input", ""): list(turns)} if len(turns) > 1 else {}
    return Record(
        fields.identifier("task_id") or "",
        question,
        predictions[0] if predictions else None,
        tuple(replace(p, passage_id=i) for i, p in zip(unique(ids, "p"), passages, strict=True)),
        tuple(text for entry in fields.items("targets") if (text := _text(entry)) and text.strip()),
        tuple(predictions) if len(predictions) > 1 else (),
        reported={**flat.reported_rest(fields), **whole},
    )


def _text(entry: Any) -> str | None:
    """Return the text of a target or prediction, with the name of its speaker or without."""
    if not isinstance(entry, Mapping):
        return None
    return message_text({"speaker": ASSISTANT[0], **entry}, ASSISTANT)


def _is_gold(votes: Any) -> bool | None:
    """Return what the annotators say of a passage; None where they say nothing, or disagree."""
    given = votes.values() if isinstance(votes, Mapping) else ()
    said = {_RELEVANT.get(str(vote.get("value"))) for vote in given if isinstance(vote, Mapping)}
    return said.pop() if len(said) == 1 else None


FORMAT = Format("mtrag", "MTRAG tasks", "", recognise, read, None)
