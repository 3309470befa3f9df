"""One task of an InspectorRAGet file, and one result: question, passages, targets, answer and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.sources.formats.fields import MAX_LIST, Fields, as_number
from core.sources.formats.kept import as_id, unique
from core.sources.formats.messages import ASSISTANT, USER, content_text, last_text
from core.sources.formats.records import RecordPassage
from core.sources.question import FieldError
from core.sources.report import IssueLog, shorten

TYPES = ("qa", "generation", "rag")
Documents = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages with ids that differ, and the document that each was taken from (None: no document)."""

    passages: tuple[RecordPassage, ...] = ()
    sources: tuple[str | None, ...] = ()

    @property
    def ids(self) -> list[str]:
        """The ids in order."""
        return [passage.passage_id for passage in self.passages]


@dataclass(frozen=True, slots=True)
class Task:
    """One task.

    Attributes
    ----------
    place : int
        Its place in the list of tasks, from 1.
    task_id, task_type, question : str
        The question is the last thing the user said.
    references : tuple of str
        The targets that are texts.
    found : Passages
        What its contexts name.
    kept : Mapping
        What is needed beyond that to write the same task again.
    """

    place: int
    task_id: str
    task_type: str
    question: str
    references: tuple[str, ...]
    found: Passages
    kept: Mapping[str, Any]


def open_task(entry: object, row: int, log: IssueLog, documents: Documents) -> Task:
    """Read a task.

    Raises
    ------
    FieldError
        No id, no question, or a type that is not of questions, passages and answers.
    """
    fields = Fields(entry, row, log, "tasks.")
    task_id = required_id(fields, "task_id")
    task_type = fields.record.get("task_type")
    if not isinstance(task_type, str) or task_type not in TYPES:
        expected = "qa, rag or generation; calling tools and agents are not questions with passages"
        raise FieldError("tasks.task_type", "" if task_type is None else task_type, expected)
    value = fields.record.get("input")
    question = value if isinstance(value, str) else last_text(value, USER)
    if question is None or not question.strip():
        shown = "" if value is None else value
        raise FieldError("tasks.input", shown, "messages of which the user wrote one that is not empty")
    question = Fields({"input": question}, row, log, "tasks.").required_text("input")
    references, targets = _references(fields)
    given = fields.items("contexts")
    found = passages_of(given or _tool_documents(value), fields, documents)
    fields.used.update(("task_type", "input"))
    kept = {
        "place": row,
        "input": None if value == [{"role": "user", "content": question}] else value,
        "targets": targets,
        "contexts": given,
        "empty": [name for name in ("contexts", "targets") if fields.record.get(name) == []],
        "task": fields.rest(),
    }
    return Task(row, task_id, task_type, question, references, found, kept)


def required_id(fields: Fields, name: str) -> str:
    """Return an identifier; `FieldError` where there is none of use."""
    value = fields.record.get(name)
    fields.used.add(name)
    found = as_id(value)
    if found is None:
        raise FieldError(
            fields.path + name, "" if value is None else value, "an id: a text or a whole number"
        )
    return found


def passages_of(contexts: Sequence[Any], fields: Fields, documents: Documents) -> Passages:
    """Return the passages that contexts name.

    A context is an id, an object with ``document_id``, or holds text itself (then no document is needed). An
    unknown document gives a passage without text.
    """
    found: list[RecordPassage] = []
    sources: list[str | None] = []
    for place, context in enumerate(contexts):
        whole = {"document_id": context} if isinstance(context, (str, int)) else context
        path = f"contexts[{place}]"
        if not isinstance(whole, Mapping):
            fields.warn(path, context, "an object with document_id")
            continue
        document_id = as_id(whole.get("document_id"))
        known = None if document_id is None else documents.get(document_id)
        own = isinstance(whole.get("text"), str)
        if known is None and not own:
            fields.warn(path, context, "an object with the document_id of one of the file's documents")
        inner = Fields(whole if own else known or {}, fields.row, fields.log, f"{fields.path}{path}.")
        score = as_number(whole.get("score", inner.record.get("score")))
        found.append(RecordPassage(document_id or "", inner.text("text"), inner.text("title") or "", score))
        sources.append(None if own or known is None else document_id)
    names = unique([passage.passage_id or None for passage in found])
    named = [replace(passage, passage_id=name) for passage, name in zip(found, names, strict=True)]
    return Passages(tuple(named), tuple(sources))


def own_passages(result: Fields, documents: Documents) -> Passages | None:
    """Return the passages that stand with the result itself; None where the task's are meant."""
    contexts = result.record.get("contexts")
    if not isinstance(contexts, list) or not contexts:
        contexts = _tool_documents(result.record.get("output"))
    return passages_of(contexts, result, documents) if contexts else None


def answer_of(fields: Fields) -> tuple[str | None, Any]:
    """Return the last thing the model said, and the whole output where it is more than that."""
    value = fields.record.get("output")
    fields.used.add("output")
    # Version 2 began with one object {type, value} in place of messages.
    whole = [{"role": "assistant", "content": value.get("value")}] if isinstance(value, Mapping) else value
    answer = content_text(value) if isinstance(value, str) else last_text(whole, ASSISTANT)
    if answer is None:
        fields.warn("output", "" if value is None else value, "messages of which the assistant wrote one")
    return answer, None if value == [{"role": "assistant", "content": answer}] else value


def scores_of(fields: Fields) -> tuple[dict[tuple[str, str], float | str], dict[str, Any]]:
    """Return ``(metric, annotator)`` to value, and what the scores say beyond values (times …)."""
    values: dict[tuple[str, str], float | str] = {}
    beyond: dict[str, Any] = {}
    for metric, annotators in fields.mapping("scores").items():
        path = f"scores.{shorten(metric)}"
        if as_id(metric) is None or not isinstance(annotators, Mapping) or len(annotators) > MAX_LIST:
            fields.warn(path, annotators, "a named metric with its annotators")
            beyond[metric] = annotators
            continue
        rest = {}
        for annotator, score in annotators.items():
            value = _value(annotator, score)
            if value is None:
                fields.warn(
                    f"{path}.{shorten(annotator)}", score, "an object with a value: a number or a text"
                )
                rest[annotator] = score
                continue
            values[metric, annotator] = value
            if others := {name: v for name, v in score.items() if name != "value"}:
                rest[annotator] = others
        if rest or not annotators:
            beyond[metric] = rest
    return values, beyond


def _value(annotator: str, score: object) -> float | str | None:
    if (annotator and as_id(annotator) is None) or not isinstance(score, Mapping):
        return None
    value = score.get("value")
    return content_text(value) if isinstance(value, str) else as_number(value)


def _references(fields: Fields) -> tuple[tuple[str, ...], Any]:
    """Return the targets that are texts, and all targets where there are others or more is said of them."""
    targets = fields.items("targets")
    texts = []
    for place, target in enumerate(targets):
        value = target.get("value") if isinstance(target, Mapping) and target.get("type") == "text" else None
        text = content_text(value) if isinstance(value, str) else None
        if text is None:
            fields.warn(f"targets[{place}]", target, "an object with type text and value")
        else:
            texts.append(text)
    simple = targets == [{"type": "text", "value": text} for text in texts]
    return tuple(texts), None if simple else targets


def _tool_documents(messages: object) -> Sequence[Any]:
    """Return the documents of the last tool message that brings any."""
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, Mapping) and message.get("type") == "documents":
            content = message.get("content")
            if isinstance(content, list) and content:
                return content
    return ()
