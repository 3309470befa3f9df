"""One task of an InspectorRAGet file, and one result: question, passages, targets, answer and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.sources.fields import MAX_LIST, FieldError, Fields, as_id, unique
from core.sources.formats.messages import ASSISTANT, USER, content_text, last_text
from core.sources.formats.records import RecordPassage
from core.sources.report import shorten
from core.text.strict import finite

TYPES = ("qa", "generation", "rag")
Documents = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Found:
    """Passages with ids that differ, and the ids of the documents that they were taken from."""

    passages: tuple[RecordPassage, ...] = ()
    documents: tuple[str, ...] = ()


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
    found : Found
        What its contexts name.
    entry : Mapping
        The task as the file has it.
    """

    place: int
    task_id: str
    task_type: str
    question: str
    references: tuple[str, ...]
    found: Found
    entry: Mapping[str, Any]


def open_task(fields: Fields, documents: Documents) -> Task:
    """Read a task.

    Raises
    ------
    FieldError
        No id, no question, or a type that is not of questions, passages and answers.
    """
    task_id = fields.required_id("task_id")
    task_type = fields.record.get("task_type")
    if not isinstance(task_type, str) or task_type not in TYPES:
        expected = "qa, rag or generation; calling tools and agents are not questions with passages"
        raise FieldError("tasks.task_type", "" if task_type is None else task_type, expected)
    value = fields.record.get("input")
    question = value if isinstance(value, str) else last_text(value, USER)
    if question is None or not question.strip():
        shown = "" if value is None else value
        raise FieldError("tasks.input", shown, "messages of which the user wrote one that is not empty")
    return Task(
        fields.row,
        task_id,
        task_type,
        Fields({"input": question}, path="tasks.").required_text("input"),
        _references(fields),
        passages_of(fields.items("contexts") or _tool_documents(value), fields, documents),
        fields.record,
    )


def passages_of(contexts: Sequence[Any], fields: Fields, documents: Documents) -> Found:
    """Return the passages that contexts name.

    A context is an id, an object with ``document_id``, or holds text itself (then no document is needed). An
    unknown document gives a passage without text.
    """
    found: list[RecordPassage] = []
    used: list[str] = []
    for place, context in enumerate(contexts):
        whole = {"document_id": context} if isinstance(context, (str, int)) else context
        path = f"contexts[{place}]"
        if not isinstance(whole, Mapping):
            fields.warn(path, context, "an object with document_id")
            continue
        document_id = as_id(whole.get("document_id")) or ""
        own = isinstance(whole.get("text"), str)
        if document_id in documents and not own:
            used.append(document_id)
        elif not own:
            fields.warn(path, context, "an object with the document_id of one of the file's documents")
        inner = fields.inner(whole if own else documents.get(document_id, {}), path)
        score = finite(whole.get("score", inner.record.get("score")))
        found.append(RecordPassage(document_id, inner.text("text"), inner.text("title") or "", score))
    names = unique([passage.passage_id or None for passage in found])
    named = [replace(passage, passage_id=name) for passage, name in zip(found, names, strict=True)]
    return Found(tuple(named), tuple(used))


def own_passages(result: Fields, documents: Documents) -> Found | None:
    """Return the passages that stand with the result itself; None where the task's are meant."""
    contexts = result.record.get("contexts")
    if not isinstance(contexts, list) or not contexts:
        contexts = _tool_documents(result.record.get("output"))
    return passages_of(contexts, result, documents) if contexts else None


def answer_of(fields: Fields) -> str | None:
    """Return the last thing the model said."""
    value = fields.record.get("output")
    # Version 2 began with one object {type, value} in place of messages.
    whole = [{"role": "assistant", "content": value.get("value")}] if isinstance(value, Mapping) else value
    answer = content_text(value) if isinstance(value, str) else last_text(whole, ASSISTANT)
    if answer is None:
        fields.warn("output", "" if value is None else value, "messages of which the assistant wrote one")
    return answer


def scores_of(fields: Fields) -> dict[tuple[str, str], float | str]:
    """Return ``(metric, annotator)`` to value."""
    values: dict[tuple[str, str], float | str] = {}
    for metric, annotators in fields.mapping("scores").items():
        path = f"scores.{shorten(metric)}"
        if as_id(metric) is None or not isinstance(annotators, Mapping) or len(annotators) > MAX_LIST:
            fields.warn(path, annotators, "a named metric with its annotators")
            continue
        for annotator, score in annotators.items():
            value = _value(annotator, score)
            if value is None:
                fields.warn(
                    f"{path}.{shorten(annotator)}", score, "an object with a value: a number or a text"
                )
            else:
                values[metric, annotator] = value
    return values


def _value(annotator: str, score: object) -> float | str | None:
    if (annotator and as_id(annotator) is None) or not isinstance(score, Mapping):
        return None
    value = score.get("value")
    return content_text(value) if isinstance(value, str) else finite(value)


def _references(fields: Fields) -> tuple[str, ...]:
    """Return the targets that are texts."""
    texts = []
    for place, target in enumerate(fields.items("targets")):
        value = target.get("value") if isinstance(target, Mapping) and target.get("type") == "text" else None
        text = content_text(value) if isinstance(value, str) else None
        if text is None:
            fields.warn(f"targets[{place}]", target, "an object with type text and value")
        else:
            texts.append(text)
    return tuple(texts)


def _tool_documents(messages: object) -> Sequence[Any]:
    """Return the documents of the last tool message that brings any."""
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, Mapping) and message.get("type") == "documents":
            content = message.get("content")
            if isinstance(content, list) and content:
                return content
    return ()
