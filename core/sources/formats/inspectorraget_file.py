"""The parts of an InspectorRAGet file in version 2 of its schema: tasks, results and documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from core.errors import InputError
from core.sources.content import Content
from core.sources.fields import MAX_LIST, FieldError, Fields, as_id, unique
from core.sources.formats.messages import ASSISTANT, USER, content_text, last_text
from core.sources.formats.records import Record, RecordPassage
from core.sources.report import IssueLog, shorten
from core.text.strict import finite

TYPES = ("qa", "generation", "rag")
TASK_TYPE = ("task_type", "")
Documents = Mapping[str, Mapping[str, Any]]
Found = tuple[tuple[RecordPassage, ...], list[str]]  # passages, and the documents that they were taken from
_OLD_TYPES = {
    "question_answering": "qa",
    "conversation": "qa",
    "rag": "qa",
    "chat": "rag",
    "text_generation": "generation",
    "json_generation": "generation",
}
_OWN = ("tasks", "results", "evaluations", "documents", "schema_version")


class InspectorFile(NamedTuple):
    """The parts of a file: tasks and results as in version 2, documents by id, and all else at its top.

    ``models`` holds the ids of the models that are declared, and of those that results name.
    """

    version: int
    tasks: Sequence[Any]
    results: Sequence[Any]
    documents: Mapping[str, Mapping[str, Any]]
    models: tuple[str, ...]
    top: Mapping[str, Any]


def open_file(content: Content, log: IssueLog) -> InspectorFile:
    """Split a file into its parts; InputError without lists of tasks and results."""
    value = content.value if content.kind == "json" and isinstance(content.value, Mapping) else {}
    results, tasks = value.get("results", value.get("evaluations")), value.get("tasks")
    if not isinstance(results, list) or not isinstance(tasks, list):
        raise InputError(
            f"{content.name} is not an InspectorRAGet file; expected a JSON object with the lists "
            '"models", "metrics", "tasks" and "results" (schema version 2).'
        )
    stated = value.get("schema_version")
    version = stated if isinstance(stated, int) and not isinstance(stated, bool) else 1
    if version < 2:
        tasks = [_task_from_v1(task) for task in tasks]
        results = [_result_from_v1(result) for result in results]
    declared = value.get("models")
    ids = [id_of(entry, "model_id") for entry in (declared if isinstance(declared, list) else [])]
    ids += [id_of(entry, "model_id") for entry in results]
    models = tuple(dict.fromkeys(i for i in ids if i is not None))
    top = {str(name): v for name, v in value.items() if name not in _OWN and v is not None}
    return InspectorFile(version, tasks, results, _documents(value.get("documents"), log), models, top)


def id_of(entry: object, name: str) -> str | None:
    """Return an identifier of an entry that may be anything."""
    return as_id(entry.get(name)) if isinstance(entry, Mapping) else None


def read_task(fields: Fields, documents: Documents) -> tuple[Record, list[str]]:
    """Read a task as a record without an answer, with the ids of its documents.

    `FieldError` without an id or a question, and for types other than question answering.
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
    question = Fields({"input": question}, path="tasks.").required_text("input")
    references = _references(fields)
    passages, used = passages_of(fields.items("contexts") or _tool_documents(value), fields, documents)
    reported = {TASK_TYPE: task_type}
    return Record(task_id, question, None, passages, references, reported=reported), used


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
    return tuple(named), used


def own_passages(result: Fields, documents: Documents) -> Found | None:
    """Return the passages of the result itself; None where the task's are meant."""
    contexts = result.record.get("contexts")
    if not isinstance(contexts, list) or not contexts:
        contexts = _tool_documents(result.record.get("output"))
    return passages_of(contexts, result, documents) if contexts else None


def answer_of(fields: Fields) -> str | None:
    """Return the last message of the model."""
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


def _documents(value: object, log: IssueLog) -> dict[str, Mapping[str, Any]]:
    documents: dict[str, Mapping[str, Any]] = {}
    if value is not None and not isinstance(value, list):
        log.add(None, "documents", value, "a list of documents", "warning")
    for row, entry in enumerate(value if isinstance(value, list) else (), start=1):
        document_id = id_of(entry, "document_id")
        if document_id is None:
            log.add(row, "documents", entry, "an object with document_id and text", "warning")
        elif document_id in documents:
            log.add(
                row, "documents.document_id", document_id, "ids that differ; the first is used", "warning"
            )
        else:
            documents[document_id] = entry
    return documents


def _task_from_v1(task: object) -> object:
    if not isinstance(task, Mapping):
        return task
    new = dict(task)
    old_type, messages, targets = task.get("task_type"), task.get("input"), task.get("targets")
    in_turns = isinstance(messages, list) and any(isinstance(m, Mapping) and "role" in m for m in messages)
    if isinstance(old_type, str):
        new["task_type"] = "rag" if old_type == "rag" and in_turns else _OLD_TYPES.get(old_type, old_type)
    if isinstance(messages, list):
        new["input"] = [
            _spoken(message, lambda role, text: {"role": role, "content": text}) for message in messages
        ]
    if isinstance(targets, list):
        new["targets"] = [
            _spoken(target, lambda _, text: {"type": "text", "value": text}) for target in targets
        ]
    return new


def _spoken(entry: object, named: Callable[[str, str], dict[str, Any]]) -> object:
    """Return what version 1 has as ``speaker`` and ``text`` under the names of version 2."""
    if (
        not isinstance(entry, Mapping)
        or not isinstance(entry.get("text"), str)
        or {"role", "type"} & set(entry)
    ):
        return entry
    rest = {name: value for name, value in entry.items() if name not in ("speaker", "text")}
    speaker = entry.get("speaker", "agent")
    role = "assistant" if isinstance(speaker, str) and speaker.lower() in ASSISTANT else speaker
    return {**named(role, entry["text"]), **rest}


def _result_from_v1(result: object) -> object:
    if not isinstance(result, Mapping):
        return result
    new = dict(result)
    if "scores" not in new and "annotations" in new:
        new["scores"] = new.pop("annotations")
    if "output" not in new and "model_response" in new:
        new["output"] = [{"role": "assistant", "content": new.pop("model_response")}]
    return new


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
    """Return the documents of the last tool message with any."""
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, Mapping) and message.get("type") == "documents":
            content = message.get("content")
            if isinstance(content, list) and content:
                return content
    return ()
