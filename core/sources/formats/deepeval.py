"""Test cases and goldens of DeepEval: JSON, JSON Lines, CSV with lists inside cells, and test runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.sources.content import Content
from core.sources.fields import FieldError, Fields, with_cells
from core.sources.formats import flat
from core.sources.formats.records import Format, ReadRecords, Record, RecordPassage, count_names
from core.sources.formats.writing import to_document
from core.sources.question import passage_text
from core.sources.report import IssueLog
from core.text.strict import finite

NAMES: flat.Names = {
    "question": ("input",),
    "answer": ("actual_output",),
    "passages": ("retrieval_context",),
    "references": ("expected_output",),
    "id": ("name",),
    "latency": ("completion_time",),
}
_OWN = (
    "name", "input", "context", "actual_output", "expected_output", "retrieval_context", "metadata",
    "comments", "tags", "tools_called", "expected_tools", "token_cost", "completion_time",
    "custom_column_key_values", "source_file", "metrics_data",
)  # fmt: skip
_TELLTALE = ("actual_output", "expected_output", "retrieval_context")
_COMMON = ("context", "tools_called", "expected_tools", "metadata", "custom_column_key_values", "source_file")
_LISTS = ("context", "retrieval_context", "tags")
_OBJECTS = ("metadata", "tools_called", "expected_tools", "custom_column_key_values")
_NUMBERS = ("token_cost", "completion_time")
_DELIMITERS = {"|": "a vertical bar", ";": "a semicolon"}


def recognise(content: Content) -> int:
    """Count the names of test cases; conversations are recognised too, so that they can be refused."""
    names = _opened(content).names()
    if names >= {"scenario", "turns"} or names >= {"metricsData", "turns"}:
        return 2
    n = count_names(set(_own_names(dict.fromkeys(names))), _TELLTALE, _COMMON)
    return 1 + n if n and "input" in names else 0


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read test cases; conversations are rejected, each with a reason."""
    opened = _opened(content)
    inner = replace(opened, entries=[(row, _own_names(entry)) for row, entry in opened.entries])
    splits: dict[str, str] = {} if content.kind == "json" else _delimiters(inner)
    # Here context has a meaning of its own: the right passages.
    names = {field: own for field, own in NAMES.items() if field != "passages"}
    found = flat.read_entries(
        inner, log, names, lambda entry: _split(entry, splits, content.kind == "csv"), _record
    )
    notes = [f"Texts in {name} were split at {_DELIMITERS[mark]} ({mark})." for name, mark in splits.items()]
    if any(r.reported.get(("context", "")) for r in found.records) and not any(
        r.passages for r in found.records
    ):
        notes.append("context holds the right passages, not those retrieved; there is no retrieval_context.")
    return replace(found, notes=tuple(notes))


def write(records: Sequence[Record]) -> bytes:
    """Write a JSON list of test cases with the names of `LLMTestCase`."""
    named = flat.has_own_ids(records)
    return to_document([_test_case(record, named) for record in records])


def _opened(content: Content) -> Content:
    """Return the test cases of a file, and after them the conversations of a test run."""
    run = content.value.get("testRunData", content.value) if isinstance(content.value, Mapping) else {}
    talks = run.get("conversationalTestCases") if isinstance(run, Mapping) else None
    if not isinstance(talks, list) or not talks:
        return content.opened()
    cases = run["testCases"] if isinstance(run.get("testCases"), list) else []
    return replace(content, value=None, entries=tuple(enumerate([*cases, *talks], start=1)))


def _own_names(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    renamed = dict(entry)
    for alias in entry:
        name = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", str(alias))  # camelCase
        name = name.removeprefix("additional_") if name == "additional_metadata" else name
        if name != alias and name in _OWN:
            value = renamed.pop(alias)
            if renamed.get(name) is None:
                renamed[name] = value
    return renamed


def _delimiters(content: Content) -> dict[str, str]:
    """Return what separates the texts in the cells of each list column: DeepEval writes | and reads ;."""
    found = {}
    for name in _LISTS:
        values = [entry.get(name) for _, entry in content.entries if isinstance(entry, Mapping)]
        cells = [value for value in values if isinstance(value, str) and not value.lstrip().startswith("[")]
        mark = next((mark for mark in _DELIMITERS if any(mark in cell for cell in cells)), None)
        if mark is not None:
            found[name] = mark
    return found


def _split(entry: Any, splits: Mapping[str, str], is_csv: bool) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    row = dict(entry)
    if is_csv:
        objects = with_cells(entry, _OBJECTS)
        row = with_cells(entry, _LISTS, _NUMBERS)
        row |= {name: objects[name] for name in _OBJECTS if isinstance(objects.get(name), (dict, list))}
    for name, mark in splits.items():
        if isinstance(row.get(name), str):
            row[name] = [piece for piece in row[name].split(mark) if piece.strip()]
    return row


def _record(fields: Fields) -> Record:
    turns = fields.record.get("turns", fields.record.get("scenario"))
    if turns is not None:
        raise FieldError("turns", turns, "a test case of one turn (input, actual_output)")
    record = flat.record_of(fields, NAMES)
    right = fields.texts("context")
    passages = flat.marked_gold(_passages(fields), right)
    gold = flat.gold_of(passages, right)
    kept = {("context", ""): list(right)} if right else {}
    return replace(
        record,
        passages=passages,
        gold=gold,
        n_gold=flat.count_gold(passages, gold) or None,
        reported={**flat.reported_rest(fields), **_scores(fields), **kept},
    )


def _passages(fields: Fields) -> tuple[RecordPassage, ...]:
    if (name := fields.present("retrieval_context")) is None:
        return ()
    value = fields.record[name]
    entries = [value] if isinstance(value, str) else fields.required_items("retrieval_context")
    passages = []
    for place, entry in enumerate(entries):
        path = f"retrieval_context[{place}]"
        source = ""
        if isinstance(entry, Mapping):
            source = fields.inner(entry, path).text("source") or ""
            entry = entry.get("context")
        passages.append(RecordPassage(f"p{place + 1}", passage_text(path, entry), source))
    return tuple(passages)


def _scores(fields: Fields) -> dict[tuple[str, str], float]:
    """Return the scores of a test run: each by the model that judged."""
    scores = {}
    data = fields.record.get("metrics_data")
    for metric in data if isinstance(data, list) else ():
        name, judge, score = _metric(metric)
        if name and score is not None:
            scores[name, judge] = score
    return scores


def _metric(metric: Any) -> tuple[str, str, float | None]:
    if not isinstance(metric, Mapping):
        return "", "", None
    judge = metric.get("evaluationModel", metric.get("evaluation_model"))
    name = metric.get("name")
    return (
        name if isinstance(name, str) else "",
        judge if isinstance(judge, str) else "",
        finite(metric.get("score")),
    )


def _test_case(record: Record, named: bool) -> dict[str, Any]:
    reported = {name: value for (name, by), value in record.reported.items() if name in _OWN and not by}
    data = reported.get("metrics_data")
    scored = [_metric(metric)[:2] for metric in (data if isinstance(data, list) else ())]
    case = {
        **flat.entry_of(record, NAMES, named),
        "context": flat.gold_texts(record),
        "retrieval_context": [
            {"context": p.text or "", "source": p.title} if p.title else p.text or "" for p in record.passages
        ],
    }
    further = {key: value for key, value in record.reported.items() if key not in scored}
    rest = flat.further_fields(replace(record, reported=further), _OWN)
    return flat.filled({**case, **reported}) | rest


FORMAT = Format(
    "deepeval",
    "DeepEval test cases",
    ".json",
    recognise,
    read,
    write,
    losses=(
        "A CSV or JSON Lines file comes back as a JSON list; so do entries under testCases, "
        "test_results or goldens.",
        "Of a test run or a result of evaluate, only the test cases come back, not the run's own fields.",
        "camelCase names come back in snake_case, additional_metadata as metadata.",
        "Fields that are null, empty lists and blank expected outputs are left out.",
        "A text of DeepEval's form 'source: context' stays one text.",
        "A name that occurs twice gets a number behind it.",
        "Conversations are not read.",
        "Only the first of several correct answers is written; sampled answers, passage ids, retrieval "
        "scores and claims are not.",
    ),
    fields={field: NAMES[field][0] for field in ("question", "answer", "passages", "references", "id")},
)
