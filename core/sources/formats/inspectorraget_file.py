"""An InspectorRAGet file taken apart: tasks, results and documents, brought to version 2 of its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import InputError
from core.sources.content import Content
from core.sources.fields import as_id
from core.sources.report import IssueLog

_OLD_TYPES = {
    "question_answering": "qa",
    "conversation": "qa",
    "rag": "qa",
    "chat": "rag",
    "text_generation": "generation",
    "json_generation": "generation",
}
_OWN = ("tasks", "results", "evaluations", "documents", "schema_version")


@dataclass(frozen=True, slots=True)
class InspectorFile:
    """The parts of a file.

    Attributes
    ----------
    version : int
        Version of the schema in which the file is written.
    tasks, results : sequence
        As in version 2, whatever the version.
    documents : Mapping
        Document id to the document as the file has it.
    models : tuple of str
        Ids of the models that are declared, and of those that results name.
    top : Mapping
        All else that stands at the top: name, models, metrics, filters ….
    """

    version: int
    tasks: Sequence[Any]
    results: Sequence[Any]
    documents: Mapping[str, Mapping[str, Any]]
    models: tuple[str, ...]
    top: Mapping[str, Any]


def open_file(content: Content, log: IssueLog) -> InspectorFile:
    """Take a file apart.

    Raises
    ------
    InputError
        It is no JSON object with lists of tasks and results.
    """
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
    if isinstance(targets, list):
        new["targets"] = [
            {"type": "text", "value": t["text"]} if isinstance(t, Mapping) and set(t) == {"text"} else t
            for t in targets
        ]
    return new


def _result_from_v1(result: object) -> object:
    if not isinstance(result, Mapping):
        return result
    new = dict(result)
    if "scores" not in new and "annotations" in new:
        new["scores"] = new.pop("annotations")
    if "output" not in new and "model_response" in new:
        new["output"] = [{"role": "assistant", "content": new.pop("model_response")}]
    return new
