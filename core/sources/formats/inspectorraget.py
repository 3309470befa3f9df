"""InspectorRAGet's JSON, schema version 2 (version 1 is read too): one record for each task and model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.sources.formats.fields import Fields
from core.sources.formats.inspectorraget_file import InspectorFile, id_of, open_file
from core.sources.formats.inspectorraget_task import (
    Task,
    answer_of,
    open_task,
    own_passages,
    required_id,
    scores_of,
)
from core.sources.formats.inspectorraget_write import MODEL, NAME, TASK_TYPE, write
from core.sources.formats.kept import keep, read_each, unique, with_file
from core.sources.formats.records import Record
from core.sources.formats.types import Content, Format, ReadRecords
from core.sources.question import FieldError
from core.sources.report import IssueLog

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
    reading = _Reading(open_file(content, log), log)
    records, rejected = read_each(reading.results, log, reading.result)
    more, worse = read_each(reading.bare, log, reading.bare_task)
    return ReadRecords(
        with_file([*records, *more], NAME, reading.whole(), log),
        [*rejected, *worse],
        len(reading.results) + len(reading.bare),
        reading.notes(),
    )


class _Reading:
    """What is known while the results of one file are read one after the other.

    ``results`` and ``bare`` (tasks that no result names, or whose id an earlier task has) are what must each
    become a record or be put aside.
    """

    def __init__(self, file: InspectorFile, log: IssueLog) -> None:
        self.file, self.log = file, log
        self.done: set[tuple[str, str]] = set()
        self.used: set[str] = set()
        self.tasks: dict[str, Task | FieldError] = {}
        self.outcomes: dict[int, Task | FieldError] = {}
        self.results = list(enumerate(file.results, start=1))
        self.bare: list[tuple[int, Any]] = []
        named = {id_of(entry, "task_id") for entry in file.results}
        for row, entry in enumerate(file.tasks, start=1):
            task_id = id_of(entry, "task_id")
            again = task_id is not None and task_id in self.tasks
            outcome = self.outcomes[row] = self._open(row, entry, again)
            if task_id is not None and not again:
                self.tasks[task_id] = outcome
            if again or task_id not in named or task_id is None:
                self.bare.append((row, entry))
        self.ids = self._ids()

    def _open(self, row: int, entry: object, again: bool) -> Task | FieldError:
        if again:
            return FieldError("tasks.task_id", id_of(entry, "task_id"), "an id that no earlier task has")
        try:
            return open_task(entry, row, self.log, self.file.documents)
        except FieldError as error:
            return error

    def _ids(self) -> dict[tuple[str, int], str]:
        """Name every record: after its task, and after its model where there are several."""
        keys = [("result", row) for row, _ in self.results] + [("task", row) for row, _ in self.bare]
        names = []
        for _, entry in self.results:
            task_id, model = id_of(entry, "task_id"), id_of(entry, "model_id")
            several = task_id and model and len(self.file.models) > 1
            names.append(f"{task_id} | {model}" if several else task_id)
        names += [id_of(entry, "task_id") for _, entry in self.bare]
        return dict(zip(keys, unique(names, "q"), strict=True))

    def bare_task(self, row: int, _: object) -> Record:
        """Return the record of a task that no result names."""
        return self._record(_opened(self.outcomes[row]), self.ids["task", row], None)

    def result(self, row: int, entry: object) -> Record:
        """Return the record of one result with its task."""
        fields = Fields(entry, row, self.log, "results.")
        task_id, model = required_id(fields, "task_id"), required_id(fields, "model_id")
        if task_id not in self.tasks:
            raise FieldError("results.task_id", task_id, "the id of one of the file's tasks")
        task = _opened(self.tasks[task_id])
        if (task_id, model) in self.done:
            raise FieldError("results.model_id", model, f"one result of each model for the task {task_id}")
        record = self._record(task, self.ids["result", row], fields, model)
        self.done.add((task_id, model))
        return record

    def _record(self, task: Task, record_id: str, result: Fields | None, model: str = "") -> Record:
        reported: dict[tuple[str, str], Any] = {}
        kept: dict[str, Any] = {**task.kept, "task_id": task.task_id if task.task_id != record_id else None}
        answer, found = None, task.found
        if result is None:
            kept["no_result"] = True
        else:
            answer, kept["output"] = answer_of(result)
            found = own_passages(result, self.file.documents) or found
            scores, kept["scores"] = scores_of(result)
            reported = {**scores, MODEL: model}
            kept["result"] = result.rest()
        self.used.update(source for source in found.sources if source is not None)
        kept["no_contexts"] = True if found.passages and not kept["contexts"] else None
        if kept["contexts"] == [{"document_id": name} for name in found.ids]:
            kept["contexts"] = None
        kept["document_ids"] = None if list(found.sources) == found.ids else list(found.sources)
        return Record(
            record_id,
            task.question,
            answer,
            found.passages,
            task.references,
            reported={**reported, TASK_TYPE: task.task_type, **keep(NAME, "record", kept)},
        )

    def whole(self) -> dict[str, Any]:
        """Return what the file says of itself: declarations, and of documents all but the passages."""
        extras = {}
        for document_id in sorted(self.used):
            document = self.file.documents[document_id]
            rest = {name: v for name, v in document.items() if name not in ("document_id", "text", "title")}
            if rest or not isinstance(document.get("text"), str):
                extras[document_id] = rest
        unused = [document for i, document in self.file.documents.items() if i not in self.used]
        return {"top": dict(self.file.top), "documents": unused, "extras": extras}

    def notes(self) -> tuple[str, ...]:
        """Say what should be known of the file as a whole."""
        notes = []
        if self.file.version < 2:
            notes.append("The file is in version 1 of the schema; it is exported in version 2.")
        if self.file.version > 2:
            notes.append(f"The file is in version {self.file.version} of the schema; read as version 2.")
        pairs = len(self.file.models) * sum(isinstance(task, Task) for task in self.tasks.values())
        if missing := pairs - len(self.done):
            notes.append(
                f"Of {pairs:,} pairs of task and model {missing:,} have no result; InspectorRAGet itself "
                "leaves out tasks that lack one."
            )
        return tuple(notes)


def _opened(outcome: Task | FieldError) -> Task:
    if isinstance(outcome, FieldError):
        # A new one for each result: an exception raised again and again would grow its traceback.
        raise FieldError(outcome.field, outcome.value, outcome.expected)
    return outcome


FORMAT = Format(
    NAME,
    "InspectorRAGet JSON",
    ".json",
    recognise,
    read,
    write,
    losses=(
        "A file in version 1 of the schema comes back in version 2.",
        "Whole numbers used as ids come back as texts, and fields that are null are left out.",
        "Documents come back in the order in which tasks use them, those that no task uses last; of several "
        "with the same id the first comes back.",
        "A result without an output, or without scores, comes back with an empty one; an empty list of "
        "documents is left out.",
        "What the file declares of models, metrics and filters stands with its first question; without that "
        "question it is made up anew.",
        "Retrieval scores, claims, sampled answers and latencies of other sources are not written.",
    ),
)
