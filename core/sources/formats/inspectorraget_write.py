"""Writing InspectorRAGet's JSON, schema version 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.sources.formats.fields import as_number
from core.sources.formats.json_text import to_document
from core.sources.formats.kept import Kept, first_kept, is_kept
from core.sources.formats.messages import ASSISTANT, USER, last_text
from core.sources.formats.records import Record

NAME = "inspectorraget"
MODEL, TASK_TYPE = ("model_id", ""), ("task_type", "")
_NO_MODEL = "model"
_NO_ANNOTATOR = "unknown"


def write(records: Sequence[Record]) -> bytes:
    """Write tasks, results and documents; models and metrics as the file declared them, else made up."""
    file = first_kept(records, NAME)
    groups: dict[str, list[tuple[Record, Kept]]] = {}
    for record in records:
        kept = Kept(record, NAME)
        groups.setdefault(kept.text("task_id") or record.record_id, []).append((record, kept))
    places = {task_id: _place(members[0][1]) for task_id, members in groups.items()}
    order = sorted(groups, key=lambda task_id: places[task_id])
    documents = _Documents(records, file)
    value: dict[str, Any] = {
        "schema_version": 2,
        **({"name": "Leadline export"} if file is None else {}),
        **_declared(records, file),
        "documents": documents.listed,
        "tasks": [_task(task_id, *groups[task_id][0], documents) for task_id in order],
        "results": [
            _result(task_id, record, kept)
            for task_id, members in groups.items()
            for record, kept in members
            if not kept.values.get("no_result")
        ],
    }
    if not documents.listed:
        del value["documents"]
    return to_document(value)


class _Documents:
    """The documents of a file: one for each text, however many records have it as a passage."""

    def __init__(self, records: Sequence[Record], file: Kept | None) -> None:
        self.extras = {} if file is None else file.mapping("extras")
        self.by_id: dict[str, dict[str, Any]] = {}
        self.names: dict[tuple[str, str], str] = {}
        for record in records:
            kept = Kept(record, NAME)
            ids = [passage.passage_id for passage in record.passages]
            sources = kept.items("document_ids", len(ids)) or ids
            for source, passage in zip(sources if kept else (), record.passages, strict=bool(kept)):
                if isinstance(source, str) and (passage.text is not None or source in self.extras):
                    self._add(source, passage.title, passage.text)
        for unused in (file.items("documents") if file else None) or ():
            if isinstance(unused, Mapping):
                self.by_id.setdefault(str(unused.get("document_id")), dict(unused))
        for record in records:
            if not Kept(record, NAME):
                self._add_stranger(record)
        self.listed = list(self.by_id.values())

    def _add(self, document_id: str, title: str, text: str | None) -> None:
        extra = self.extras.get(document_id)
        document = {"document_id": document_id, "text": text, "title": title or None}
        document |= extra if isinstance(extra, dict) else {}
        self.by_id.setdefault(document_id, {name: v for name, v in document.items() if v is not None})

    def _add_stranger(self, record: Record) -> None:
        """Add passages of another source: their ids are unique within their question only."""
        for passage in record.passages:
            text = {"text": passage.text or "", **({"title": passage.title} if passage.title else {})}
            name = passage.passage_id
            while self.by_id.setdefault(name, {"document_id": name, **text}) != {"document_id": name, **text}:
                name = f"{record.record_id}/{name}"
            self.names[record.record_id, passage.passage_id] = name


def _place(kept: Kept) -> float:
    place = as_number(kept.values.get("place"))
    return float("inf") if place is None else place


def _task(task_id: str, record: Record, kept: Kept, documents: _Documents) -> dict[str, Any]:
    named = [documents.names.get((record.record_id, p.passage_id), p.passage_id) for p in record.passages]
    given = kept.items("contexts")
    if given is None:
        given = [] if kept.values.get("no_contexts") else [{"document_id": name} for name in named]
    own_type = record.reported.get(TASK_TYPE)
    task_type = own_type if isinstance(own_type, str) else "qa" if named else "generation"
    task = {
        "task_id": task_id,
        "task_type": task_type,
        "input": _input(record, kept),
        "contexts": given,
        "targets": _targets(record, kept),
    }
    empty = kept.items("empty") or []
    for name in ("contexts", "targets"):
        if not task[name] and name not in empty:
            del task[name]
    return kept.mapping("task") | task


def _input(record: Record, kept: Kept) -> Any:
    own = kept.values.get("input")
    if record.question in (own, last_text(own, USER)):
        return own
    return [{"role": "user", "content": record.question}]


def _targets(record: Record, kept: Kept) -> list[Any]:
    own = kept.items("targets")
    return own if own is not None else [{"type": "text", "value": text} for text in record.references]


def _result(task_id: str, record: Record, kept: Kept) -> dict[str, Any]:
    own = kept.values.get("output")
    whole = [{"role": "assistant", "content": own.get("value")}] if isinstance(own, dict) else own
    if own is None or record.answer not in (own, last_text(whole, ASSISTANT)):
        own = [{"role": "assistant", "content": record.answer or ""}]
    return kept.mapping("result") | {
        "task_id": task_id,
        "model_id": _model(record),
        "output": own,
        "scores": _scores(record, kept),
    }


def _model(record: Record) -> str:
    model = record.reported.get(MODEL)
    return model if isinstance(model, str) else _NO_MODEL


def _values(record: Record) -> dict[tuple[str, str], Any]:
    return {
        key: value
        for key, value in record.reported.items()
        if key not in (MODEL, TASK_TYPE) and not is_kept(key[0])
    }


def _scores(record: Record, kept: Kept) -> dict[str, Any]:
    scores = {name: dict(v) if isinstance(v, dict) else v for name, v in kept.mapping("scores").items()}
    for (metric, annotator), value in _values(record).items():
        if not isinstance(scores.get(metric), dict):
            scores[metric] = {}
        by = annotator if kept else annotator or _NO_ANNOTATOR
        beyond = scores[metric].get(by)
        scores[metric][by] = (beyond if isinstance(beyond, dict) else {}) | {"value": value}
    return scores


def _declared(records: Sequence[Record], file: Kept | None) -> dict[str, Any]:
    """Return the declarations at the top of the file; what is absent is made up of the records."""
    top = {} if file is None else file.mapping("top")
    if file is None:
        used = dict.fromkeys(_model(record) for record in records)
        top["models"] = [{"model_id": model, "name": model, "owner": "unknown"} for model in used]
        top["metrics"] = _metrics(records)
    return top


def _metrics(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Declare metrics: a number that every record has, or a text.

    InspectorRAGet leaves out every task that lacks one of the numbers declared, so others stay undeclared.
    """
    kinds: dict[str, list[bool]] = {}
    for record in records:
        found: dict[str, bool] = {}
        for (metric, _), value in _values(record).items():
            found[metric] = found.get(metric, True) and as_number(value) is not None
        for metric, is_number in found.items():
            kinds.setdefault(metric, []).append(is_number)
    declared = []
    for metric, numbers in kinds.items():
        if not any(numbers):
            declared.append({"name": metric, "author": "algorithm", "type": "text"})
        elif all(numbers) and len(numbers) == len(records):
            declared.append(
                {"name": metric, "author": "algorithm", "type": "numerical", "aggregator": "average"}
            )
    return declared
