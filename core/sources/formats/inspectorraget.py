"""InspectorRAGet's JSON, schema version 2 (version 1 is read too): one record for each task and model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from core.errors import InputError
from core.sources.content import Content
from core.sources.fields import MAX_LIST, FieldError, Fields, as_id, read_each, unique, without_null
from core.sources.formats.messages import ASSISTANT, USER, content_text, last_text
from core.sources.formats.records import Format, ReadRecords, Record, RecordPassage
from core.sources.formats.writing import (
    is_kept,
    keep,
    keep_file,
    kept_file,
    to_document,
    with_kept,
)
from core.sources.report import IssueLog, shorten
from core.text.strict import finite

NAME = "inspectorraget"
MODEL, TASK_TYPE = ("model_id", ""), ("task_type", "")
TYPES = ("qa", "generation", "rag")
Documents = Mapping[str, Mapping[str, Any]]
Found = tuple[tuple[RecordPassage, ...], list[str]]  # passages, and the documents that they were taken from
_NO_MODEL = "model"
_NO_ANNOTATOR = "unknown"
_TELLTALE = ("schema_version", "models", "metrics", "documents", "filters", "tasks", "results", "evaluations")
_OWN = ("tasks", "results", "evaluations", "documents", "schema_version")
_OLD_TYPES = {
    "question_answering": "qa",
    "conversation": "qa",
    "rag": "qa",
    "chat": "rag",
    "text_generation": "generation",
    "json_generation": "generation",
}


def recognise(content: Content) -> int:
    """Count the names at the top of the file, once tasks with their results are there."""
    value = content.value
    if content.kind != "json" or not isinstance(value, Mapping) or not isinstance(value.get("tasks"), list):
        return 0
    if not isinstance(value.get("results", value.get("evaluations")), list):
        return 0
    return sum(name in value for name in _TELLTALE)


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read every result as a record; a task that no result names is a record without an answer."""
    file = _open_file(content, log)
    named = {_id_of(entry, "task_id") for entry in file.results}
    tasks = [(row, _id_of(task, "task_id"), task) for row, task in enumerate(file.tasks, start=1)]
    rows = {name: row for row, name, _ in reversed(tasks)}
    # Of no result, or with an id that an earlier task has: each is a record too, or is rejected.
    bare = [(row, t) for row, name, t in tasks if name is None or name not in named or rows[name] != row]
    ids = iter(_ids(file, [task for _, task in bare]))
    done: set[tuple[str, str]] = set()
    used: set[str] = set()
    good: set[int] = set()  # tasks that could be read, by row

    def record_of(row: int, record_id: str, result: Fields | None) -> Record:
        # A task is read once for each of its results; its problems are logged the first time only.
        fields = Fields(file.tasks[row - 1], row, IssueLog() if row in good else log, "tasks.")
        record, found = _read_task(fields, file.documents)
        good.add(row)
        entry = {"place": row, "task": without_null(file.tasks[row - 1])}
        if result is not None:
            contexts = _items(result.record.get("contexts")) or _tool_documents(result.record.get("output"))
            passages, found = (
                _passages_of(contexts, result, file.documents) if contexts else (record.passages, found)
            )
            reported = {**_scores_of(result), MODEL: result.required_id("model_id"), **record.reported}
            record = replace(record, answer=_answer_of(result), passages=passages, reported=reported)
            entry["result"] = without_null(result.record)
        used.update(found)
        entry["documents"] = {i: without_null(file.documents[i]) for i in found}
        record = replace(record, record_id=record_id)
        return keep(NAME, record, _entry(record), entry)

    def result_of(row: int, entry: object) -> Record:
        record_id, fields = next(ids), Fields(entry, row, log, "results.")
        task_id, model = fields.required_id("task_id"), fields.required_id("model_id")
        if task_id not in rows:
            raise FieldError("results.task_id", task_id, "the id of one of the file's tasks")
        if (task_id, model) in done:
            raise FieldError("results.model_id", model, f"one result of each model for the task {task_id}")
        record = record_of(rows[task_id], record_id, fields)
        done.add((task_id, model))
        return record

    def bare_task(row: int, entry: object) -> Record:
        record_id, task_id = next(ids), _id_of(entry, "task_id")
        if task_id is not None and rows[task_id] != row:
            raise FieldError("tasks.task_id", task_id, "an id that no earlier task has")
        return record_of(row, record_id, None)

    records, rejected = read_each(enumerate(file.results, start=1), log, result_of)
    more, worse = read_each(bare, log, bare_task)
    notes = []
    if file.version != 2:
        old = "1 of the schema; it is exported in version 2"
        new = f"{file.version} of the schema; read as version 2"
        notes.append(f"The file is in version {old if file.version < 2 else new}.")
    pairs = len(file.models) * len(good)
    if missing := pairs - len(done):
        notes.append(
            f"Of {pairs:,} pairs of task and model {missing:,} have no result; InspectorRAGet itself "
            "leaves out tasks that lack one."
        )
    unused = [document for i, document in file.documents.items() if i not in used]
    kept = keep_file([*records, *more], NAME, {"top": dict(file.top), "documents": unused})
    return ReadRecords(kept, [*rejected, *worse], tuple(notes))


def _ids(file: _File, bare: Sequence[Any]) -> Sequence[str]:
    """Name every result, then every bare task: after its task, and its model where there are several."""
    names: list[str | None] = []
    for entry in file.results:
        task_id, model = _id_of(entry, "task_id"), _id_of(entry, "model_id")
        names.append(f"{task_id} | {model}" if task_id and model and len(file.models) > 1 else task_id)
    return unique([*names, *(_id_of(task, "task_id") for task in bare)], "q")


def write(records: Sequence[Record]) -> bytes:
    """Write tasks, results and documents; models and metrics as the file declared them, else made up."""
    file = kept_file(records, NAME)
    tasks: dict[str, tuple[float, Any]] = {}
    results: list[Any] = []
    documents: dict[str, Any] = {}
    for record in records:
        entry = with_kept(NAME, record, _entry(record))
        task = _with_documents(record.record_id, entry, documents)
        place = finite(entry.get("place"))
        tasks.setdefault(
            as_id(task.get("task_id")) or record.record_id, (float("inf") if place is None else place, task)
        )
        results += [entry["result"]] if "result" in entry else []
    for unused in _items(file.get("documents")):
        if isinstance(unused, dict):
            documents.setdefault(str(unused.get("document_id")), unused)
    top = file.get("top")
    return to_document(
        {
            "schema_version": 2,
            **(top if isinstance(top, dict) else _made_up(records)),
            **({"documents": list(documents.values())} if documents else {}),
            "tasks": [task for _, task in sorted(tasks.values(), key=lambda entry: entry[0])],
            "results": results,
        }
    )


def _entry(record: Record) -> dict[str, Any]:
    """Return the task, the result and the documents of a record."""
    ids = [passage.passage_id for passage in record.passages]
    own_type, model = record.reported.get(TASK_TYPE), record.reported.get(MODEL)
    scores: dict[str, dict[str, Any]] = {}
    for (metric, annotator), value in _scores(record).items():
        scores.setdefault(metric, {})[annotator or _NO_ANNOTATOR] = {"value": value}
    contexts = [{"document_id": i} for i in ids]
    targets = [{"type": "text", "value": text} for text in record.references]
    return {
        "task": {
            "task_id": record.record_id,
            "task_type": own_type if isinstance(own_type, str) else "qa" if ids else "generation",
            "input": [{"role": "user", "content": record.question}],
            **({"contexts": contexts} if contexts else {}),
            **({"targets": targets} if targets else {}),
        },
        "result": {
            "task_id": record.record_id,
            "model_id": model if isinstance(model, str) else record.model or _NO_MODEL,
            "output": [{"role": "assistant", "content": record.answer or ""}],
            "scores": scores,
        },
        "documents": {
            p.passage_id: {
                "document_id": p.passage_id,
                "text": p.text or "",
                **({"title": p.title} if p.title else {}),
            }
            for p in record.passages
        },
    }


def _with_documents(record_id: str, entry: Mapping[str, Any], documents: dict[str, Any]) -> dict[str, Any]:
    """Add the documents of a record to those of the file; return its task with their names there."""
    task, names = dict(entry["task"]), {}
    for document_id, document in entry["documents"].items():
        name = document_id
        while documents.setdefault(name, document) != document:
            name = f"{record_id}/{name}"
            document = {**document, "document_id": name}
        names[document_id] = name
    if any(name != document_id for document_id, name in names.items()):
        contexts = [
            (c, as_id(c.get("document_id"))) for c in _items(task.get("contexts")) if isinstance(c, dict)
        ]
        task["contexts"] = [{**c, "document_id": names[i]} if i in names else c for c, i in contexts]
    return task


def _scores(record: Record) -> dict[tuple[str, str], Any]:
    own = (MODEL, TASK_TYPE)
    return {key: v for key, v in record.reported.items() if key not in own and not is_kept(key[0])}


def _made_up(records: Sequence[Record]) -> dict[str, Any]:
    """Declare models and metrics: InspectorRAGet leaves out every task that lacks a declared number."""
    models = dict.fromkeys(_entry(record)["result"]["model_id"] for record in records)
    kinds: dict[str, list[bool]] = {}
    for record in records:
        found: dict[str, bool] = {}
        for (metric, _), value in _scores(record).items():
            found[metric] = found.get(metric, True) and finite(value) is not None
        for metric, is_number in found.items():
            kinds.setdefault(metric, []).append(is_number)
    metrics = []
    for metric, numbers in kinds.items():
        if not any(numbers):
            metrics.append({"name": metric, "author": "algorithm", "type": "text"})
        elif all(numbers) and len(numbers) == len(records):
            metrics.append(
                {"name": metric, "author": "algorithm", "type": "numerical", "aggregator": "average"}
            )
    return {
        "name": "Leadline export",
        "models": [{"model_id": model, "name": model, "owner": "unknown"} for model in models],
        "metrics": metrics,
    }


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


class _File(NamedTuple):
    """The parts of a file as in version 2; ``models`` are those declared, and those that results name."""

    version: int
    tasks: Sequence[Any]
    results: Sequence[Any]
    documents: Mapping[str, Mapping[str, Any]]
    models: tuple[str, ...]
    top: Mapping[str, Any]


def _open_file(content: Content, log: IssueLog) -> _File:
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
    ids = [_id_of(entry, "model_id") for entry in (*_items(value.get("models")), *results)]
    models = tuple(dict.fromkeys(i for i in ids if i is not None))
    top = {str(name): v for name, v in value.items() if name not in _OWN and v is not None}
    return _File(version, tasks, results, _documents(value.get("documents"), log), models, top)


def _id_of(entry: object, name: str) -> str | None:
    """Return an identifier of an entry that may be anything."""
    return as_id(entry.get(name)) if isinstance(entry, Mapping) else None


def _read_task(fields: Fields, documents: Documents) -> tuple[Record, list[str]]:
    """Read a task as a record without an answer, with the ids of its documents."""
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
    passages, used = _passages_of(fields.items("contexts") or _tool_documents(value), fields, documents)
    reported = {TASK_TYPE: task_type}
    return Record(task_id, question, None, passages, references, reported=reported), used


def _passages_of(contexts: Sequence[Any], fields: Fields, documents: Documents) -> Found:
    """Return the passages that contexts name by an id, or hold; an unknown document has no text."""
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


def _answer_of(fields: Fields) -> str | None:
    """Return the last message of the model."""
    value = fields.record.get("output")
    # Version 2 began with one object {type, value} in place of messages.
    whole = [{"role": "assistant", "content": value.get("value")}] if isinstance(value, Mapping) else value
    answer = content_text(value) if isinstance(value, str) else last_text(whole, ASSISTANT)
    if answer is None:
        fields.warn("output", "" if value is None else value, "messages of which the assistant wrote one")
    return answer


def _scores_of(fields: Fields) -> dict[tuple[str, str], float | str]:
    """Return ``(metric, annotator)`` to value."""
    values: dict[tuple[str, str], float | str] = {}
    for metric, annotators in fields.mapping("scores").items():
        path = f"scores.{shorten(metric)}"
        if as_id(metric) is None or not isinstance(annotators, Mapping) or len(annotators) > MAX_LIST:
            fields.warn(path, annotators, "a named metric with its annotators")
            continue
        for annotator, score in annotators.items():
            named = not annotator or as_id(annotator) is not None
            value = score.get("value") if named and isinstance(score, Mapping) else None
            value = content_text(value) if isinstance(value, str) else finite(value)
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
    for row, entry in enumerate(_items(value), start=1):
        document_id = _id_of(entry, "document_id")
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
    if isinstance(old_type, str):
        turns = isinstance(messages, list) and any(isinstance(m, Mapping) and "role" in m for m in messages)
        new["task_type"] = "rag" if old_type == "rag" and turns else _OLD_TYPES.get(old_type, old_type)
    if isinstance(messages, list):
        new["input"] = [_spoken(message) for message in messages]
    if isinstance(targets, list):
        new["targets"] = [_spoken(target, is_target=True) for target in targets]
    return new


def _spoken(entry: object, is_target: bool = False) -> object:
    """Return what version 1 has as ``speaker`` and ``text`` under the names of version 2."""
    if not isinstance(entry, Mapping) or not {"role", "type"}.isdisjoint(entry):
        return entry
    text, speaker = entry.get("text"), entry.get("speaker", "agent")
    if not isinstance(text, str):
        return entry
    role = "assistant" if isinstance(speaker, str) and speaker.lower() in ASSISTANT else speaker
    named = {"type": "text", "value": text} if is_target else {"role": role, "content": text}
    return named | {name: value for name, value in entry.items() if name not in ("speaker", "text")}


def _result_from_v1(result: object) -> object:
    if not isinstance(result, Mapping):
        return result
    new = dict(result)
    if "scores" not in new and "annotations" in new:
        new["scores"] = new.pop("annotations")
    if "output" not in new and "model_response" in new:
        new["output"] = [{"role": "assistant", "content": new.pop("model_response")}]
    return new


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
    found = [m for m in _items(messages) if isinstance(m, Mapping) and m.get("type") == "documents"]
    return next(filter(None, (_items(message.get("content")) for message in reversed(found))), ())


FORMAT = Format(
    NAME,
    "InspectorRAGet JSON",
    ".json",
    recognise,
    read,
    write,
    losses=(
        "A file in version 1 of the schema comes back in version 2.",
        "Fields of tasks, results and documents that are null are left out, and so is an empty list of "
        "documents.",
        "Documents come back in the order in which tasks use them, those that no task uses last; of several "
        "with the same id the first comes back.",
        "What the file declares of models, metrics and filters is kept with its first question; without that "
        "question it is derived again.",
        "Retrieval scores, claims, sampled answers and latencies of other sources are not written.",
    ),
)
