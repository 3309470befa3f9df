"""InspectorRAGet's JSON, schema version 2 (version 1 is read too): one record for each task and model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.sources.content import Content
from core.sources.fields import FieldError, Fields, as_id, read_each, unique
from core.sources.formats import inspectorraget_file as parts
from core.sources.formats.kept import is_kept, keep, keep_file, kept_file, with_kept
from core.sources.formats.records import Record
from core.sources.formats.types import Format, ReadRecords
from core.sources.formats.writing import to_document
from core.sources.report import IssueLog
from core.text.strict import finite

NAME = "inspectorraget"
MODEL = ("model_id", "")
_NO_MODEL = "model"
_NO_ANNOTATOR = "unknown"
_TELLTALE = ("schema_version", "models", "metrics", "documents", "filters", "tasks", "results", "evaluations")


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
    results = _Results(parts.open_file(content, log), log)
    records, rejected = read_each(enumerate(results.file.results, start=1), log, results.result)
    more, worse = read_each(results.bare, log, results.bare_task)
    unused = [document for i, document in results.file.documents.items() if i not in results.used]
    return ReadRecords(
        keep_file([*records, *more], NAME, {"top": dict(results.file.top), "documents": unused}),
        [*rejected, *worse],
        results.notes(),
    )


class _Results:
    """The state while the results of one file are read.

    ``bare`` are the tasks that no result names, or whose id an earlier task has: each becomes a record, too,
    or is rejected.
    """

    def __init__(self, file: parts.InspectorFile, log: IssueLog) -> None:
        self.file, self.log = file, log
        self.done: set[tuple[str, str]] = set()
        self.used: set[str] = set()
        self.good: set[int] = set()  # tasks that could be read, by row
        named = {parts.id_of(entry, "task_id") for entry in file.results}
        tasks = list(enumerate(file.tasks, start=1))
        self.rows = {parts.id_of(entry, "task_id"): row for row, entry in reversed(tasks)}
        self.bare = [
            (row, task)
            for row, task in tasks
            if (name := parts.id_of(task, "task_id")) is None or name not in named or self.rows[name] != row
        ]
        self.ids = self._ids()

    def _ids(self) -> dict[tuple[str, int], str]:
        """Name every record: after its task, and after its model where there are several."""
        names: dict[tuple[str, int], str | None] = {}
        for row, entry in enumerate(self.file.results, start=1):
            task_id, model = parts.id_of(entry, "task_id"), parts.id_of(entry, "model_id")
            several = task_id and model and len(self.file.models) > 1
            names["result", row] = f"{task_id} | {model}" if several else task_id
        names |= {("task", row): parts.id_of(entry, "task_id") for row, entry in self.bare}
        return dict(zip(names, unique(list(names.values()), "q"), strict=True))

    def bare_task(self, row: int, entry: object) -> Record:
        """Return the record of a task that no result names."""
        task_id = parts.id_of(entry, "task_id")
        if task_id is not None and self.rows[task_id] != row:
            raise FieldError("tasks.task_id", task_id, "an id that no earlier task has")
        return self._record(row, self.ids["task", row], None)

    def result(self, row: int, entry: object) -> Record:
        """Return the record of one result with its task."""
        fields = Fields(entry, row, self.log, "results.")
        task_id, model = fields.required_id("task_id"), fields.required_id("model_id")
        if task_id not in self.rows:
            raise FieldError("results.task_id", task_id, "the id of one of the file's tasks")
        if (task_id, model) in self.done:
            raise FieldError("results.model_id", model, f"one result of each model for the task {task_id}")
        record = self._record(self.rows[task_id], self.ids["result", row], fields)
        self.done.add((task_id, model))
        return record

    def _record(self, row: int, record_id: str, result: Fields | None) -> Record:
        # A task is read once for each of its results; its problems are logged the first time only.
        log = IssueLog() if row in self.good else self.log
        record, used = parts.read_task(
            Fields(self.file.tasks[row - 1], row, log, "tasks."), self.file.documents
        )
        self.good.add(row)
        entry = {"place": row, "task": _without_null(self.file.tasks[row - 1])}
        if result is not None:
            passages, used = parts.own_passages(result, self.file.documents) or (record.passages, used)
            reported = {**parts.scores_of(result), MODEL: result.required_id("model_id"), **record.reported}
            record = replace(record, answer=parts.answer_of(result), passages=passages, reported=reported)
            entry["result"] = _without_null(result.record)
        self.used.update(used)
        entry["documents"] = {i: _without_null(self.file.documents[i]) for i in used}
        record = replace(record, record_id=record_id)
        return keep(NAME, record, _entry(record), entry)

    def notes(self) -> tuple[str, ...]:
        """Return remarks on the file as a whole."""
        notes = []
        if self.file.version < 2:
            notes.append("The file is in version 1 of the schema; it is exported in version 2.")
        if self.file.version > 2:
            notes.append(f"The file is in version {self.file.version} of the schema; read as version 2.")
        pairs = len(self.file.models) * len(self.good)
        if missing := pairs - len(self.done):
            notes.append(
                f"Of {pairs:,} pairs of task and model {missing:,} have no result; InspectorRAGet itself "
                "leaves out tasks that lack one."
            )
        return tuple(notes)


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
    own_type, model = record.reported.get(parts.TASK_TYPE), record.reported.get(MODEL)
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
    """Add the documents of a record to those of the file, and return its task with their names there.

    Ids of passages are unique within their question only: another text under a taken name gets a new one.
    """
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
    own = (MODEL, parts.TASK_TYPE)
    return {key: v for key, v in record.reported.items() if key not in own and not is_kept(key[0])}


def _made_up(records: Sequence[Record]) -> dict[str, Any]:
    """Declare the models and metrics of records: as metric a number that every record has, or a text.

    InspectorRAGet leaves out every task that lacks one of the numbers declared, so others stay undeclared.
    """
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


def _without_null(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if value is not None}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


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
        "question it is made up anew.",
        "Retrieval scores, claims, sampled answers and latencies of other sources are not written.",
    ),
)
