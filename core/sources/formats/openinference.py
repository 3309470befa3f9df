"""Traces in OpenInference's conventions (Phoenix, OTLP): one record for each trace with a retrieval."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from core.errors import InputError
from core.sources.content import Content
from core.sources.fields import FieldError, as_id, read_each
from core.sources.formats.records import Format, ReadRecords, Record
from core.sources.formats.trace import (
    DOCUMENTS,
    EPOCH,
    KIND,
    MAX_DEPTH,
    MAX_DOCUMENTS,
    OWN_ID,
    Span,
    read_trace,
    read_traces,
    time_of,
)
from core.sources.formats.writing import keep, to_lines, with_kept
from core.sources.report import IssueLog, counted
from core.text.strict import clean, read_json

NAME = "openinference"
_PLAIN = "text/plain"
_TELLTALE = (KIND, "input.value", "output.value", "llm.model_name")
_PREFIXES = ("retrieval.documents", "reranker.")
# Not flattened further: values that a tool may have left as objects.
_WHOLE = ("input.value", "output.value", "document.metadata", "metadata")
_ENVELOPES = ("resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "spans", "data")
_SCALAR_KEYS = ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue")


def recognise(content: Content) -> int:
    """Count what makes a trace of retrieval: trace, kind, input, output and documents."""
    found: set[str] = set()
    for number, entry in _entries_of(content)[:50]:
        with suppress(FieldError):
            span = _span_of(number, entry)
            if span.kind:
                found |= {"trace", "kind", *(name for name in _TELLTALE if name in span.attributes)}
                found |= {p for p in _PREFIXES if any(name.startswith(p) for name in span.attributes)}
    return len(found)


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read every trace in which something was retrieved."""
    spans, rejected = read_each(_entries_of(content), log, _span_of)
    if not spans and not rejected:
        raise InputError(
            f"{content.name} holds no spans; expected JSON or JSON Lines of OpenInference spans, each with "
            "context.trace_id, parent_id and attributes."
        )
    dropped = [0]

    def record(record_id: str, held: Sequence[Span]) -> Record:
        trace = read_trace(record_id, held, log)
        dropped[0] += trace.n_dropped
        return keep(NAME, trace.record, _spans(trace.record, {}), _spans(trace.record, trace.own))

    records, without, notes = read_traces(spans, "span", log, record)
    if without:
        notes.append(f"{counted(len(without), 'trace')} left out: nothing retrieved or nothing asked.")
    if dropped[0]:
        notes.append(f"{counted(dropped[0], 'passage')} left out that an earlier retriever had returned.")
    return ReadRecords(records, [*rejected, *without], tuple(notes))


def write(records: Sequence[Record]) -> bytes:
    """Write a CHAIN span and the RETRIEVER span below it for each record, one span a line."""
    return to_lines(span for record in records for span in with_kept(NAME, record, _spans(record, {})))


def _spans(record: Record, own: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the two spans of a record; ``own`` holds ids, names and times of its trace."""
    # An id that can be the id of a trace is kept, any other is hashed.
    fits = re.fullmatch(r"[0-9a-f]{32}", record.record_id)
    trace_id = own.get("trace_id") or (record.record_id if fits else _hash(record.record_id)[:32])
    start = own.get("start") or EPOCH
    end = start
    with suppress(OverflowError):
        end += timedelta(seconds=record.latency or 0.0)
    names = own.get("root", ("", None)), own.get("source", ("", None))
    (root_name, root_id), (source_name, source_id) = names
    root_id = root_id or _hash(f"{trace_id} CHAIN")[:16]
    source_id = source_id or _hash(f"{trace_id} RETRIEVER")[:16]
    chain = {
        KIND: "CHAIN",
        "input.value": record.question,
        "input.mime_type": _PLAIN,
        **({} if record.answer is None else {"output.value": record.answer, "output.mime_type": _PLAIN}),
        **({OWN_ID: record.record_id} if trace_id != record.record_id else {}),
    }
    retriever = {
        KIND: "RETRIEVER",
        "input.value": record.question if own.get("query") is None else own["query"],
        "input.mime_type": _PLAIN,
        **_documents(record, own.get("documents")),
    }

    def span(name: Any, span_id: str, parent: str | None, ends: datetime, attributes: Any) -> Any:
        return {
            "name": name,
            "context": {"trace_id": trace_id, "span_id": span_id},
            "span_kind": attributes[KIND],
            "parent_id": parent,
            "start_time": start.isoformat(),
            "end_time": ends.isoformat(),
            "status_code": "OK",
            "status_message": "",
            "attributes": attributes,
            "events": [],
        }

    return [
        span(root_name or "question", root_id, None, end, chain),
        span(source_name or "retriever", source_id, root_id, start, retriever),
    ]


def _documents(record: Record, own: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for place, passage in enumerate(record.passages):
        title = json.dumps({"title": passage.title}, ensure_ascii=False) if passage.title else None
        other = {"id": passage.passage_id, "metadata": title} if own is None else own[place]
        for name, value in {"content": passage.text, "score": passage.score, **other}.items():
            if value is not None:
                attributes[f"{DOCUMENTS['RETRIEVER']}.{place}.document.{name}"] = value
    return attributes


def _hash(text: str) -> str:
    return hashlib.sha256(clean(text).encode()).hexdigest()


def _entries_of(content: Content) -> list[tuple[int, Any]]:
    """Return the candidates for spans with their numbers, out of whatever envelope they are in."""
    if content.kind == "csv":
        return []
    if isinstance(content.value, Mapping):
        return list(enumerate(_unwrapped(content.value, 0), start=1))
    # The spans of one line of OTLP share its number.
    return [(number, span) for number, entry in content.entries for span in _unwrapped(entry, 0)]


def _unwrapped(entry: Any, depth: int) -> Iterator[Any]:
    """Yield the spans inside an OTLP batch or a page of Phoenix's API; anything else as it is."""
    inner = None
    if isinstance(entry, Mapping) and depth < len(_ENVELOPES):
        inner = next((entry[name] for name in _ENVELOPES if isinstance(entry.get(name), list)), None)
    if inner is None:
        yield entry
        return
    for part in inner:
        yield from _unwrapped(part, depth + 1)


def _span_of(number: int, entry: object) -> Span:
    """Read one span; `FieldError` where it is not an object or names no trace."""
    if not isinstance(entry, Mapping):
        raise FieldError("span", entry, "an object with the fields of a span")
    context = entry.get("context")
    where: Mapping[str, Any] = context if isinstance(context, Mapping) else {}
    flat = {**entry, **{f"context.{name}": value for name, value in where.items()}}
    trace_id = _span_id(flat, "context.trace_id", "trace_id", "traceId")
    if trace_id is None:
        raise FieldError("context.trace_id", "", "the id of the trace that the span belongs to")
    attributes = _attributes_of(entry)
    kind = _first(attributes, KIND) or _first(flat, "span_kind")
    kind = kind.upper() if isinstance(kind, str) else ""
    name = entry.get("name")
    return Span(
        number,
        trace_id,
        _span_id(flat, "context.span_id", "span_id", "spanId"),
        _span_id(flat, "parent_id", "parent_span_id", "parentSpanId", "parentId"),
        kind,
        name if isinstance(name, str) else "",
        time_of(_first(flat, "start_time", "startTimeUnixNano", "startTime")),
        time_of(_first(flat, "end_time", "endTimeUnixNano", "endTime")),
        attributes,
        _documents_of(attributes, DOCUMENTS[kind]) if kind in DOCUMENTS else (),
    )


def _attributes_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return all attributes of a span under dotted names."""
    given = entry.get("attributes")
    if isinstance(given, list):
        given = _pairs(given, 0)
    flat: dict[str, Any] = {}
    _flatten(given if isinstance(given, Mapping) else {}, "", flat, 0)
    columns = {k.removeprefix("attributes."): v for k, v in entry.items() if k.startswith("attributes.")}
    _flatten(columns, "", flat, 0)
    return flat


def _documents_of(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the documents under a name, in order, each with content, id, score and metadata."""
    pattern = re.compile(re.escape(prefix) + r"\.(\d{1,6})\.document\.(content|id|score|metadata)")
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        match = pattern.fullmatch(name)
        if match and value is not None:
            found.setdefault(int(match[1]), {})[match[2]] = value
    return [found[place] for place in sorted(found)[:MAX_DOCUMENTS]]


def _first(values: Mapping[str, Any], *names: str) -> Any:
    return next((values[name] for name in names if values.get(name) is not None), None)


def _span_id(values: Mapping[str, Any], *names: str) -> str | None:
    """Return an id of a trace or span; the console exporter writes 0x in front of it."""
    found = as_id(_first(values, *names))
    return found and (found.removeprefix("0x") or found)


def _flatten(value: Mapping[str, Any], prefix: str, flat: dict[str, Any], depth: int) -> None:
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, str) and name.endswith("documents") and inner.startswith("["):
            with suppress(ValueError):  # a list that was written as JSON text, as some exports do
                inner = read_json(inner, repair=True)
        parts: Mapping[str, Any] | None = inner if isinstance(inner, Mapping) else None
        if isinstance(inner, Sequence) and any(isinstance(part, Mapping) for part in inner):
            parts = {str(place): part for place, part in enumerate(inner[:MAX_DOCUMENTS])}
        if parts is None or depth >= MAX_DEPTH or name.endswith(_WHOLE):
            flat[name] = inner
        else:
            _flatten(parts, f"{name}.", flat, depth + 1)


def _otlp(value: object, depth: int) -> Any:
    """Return a value of OTLP's JSON, which names the type of each."""
    if not isinstance(value, Mapping) or depth >= MAX_DEPTH:
        return None
    for name in _SCALAR_KEYS:
        if name in value:
            scalar = value[name]
            # OTLP writes 64-bit integers as texts.
            whole = name == "intValue" and isinstance(scalar, str) and re.fullmatch(r"-?\d{1,19}", scalar)
            return int(scalar) if whole else scalar
    array, pairs = value.get("arrayValue"), value.get("kvlistValue")
    if isinstance(array, Mapping) and isinstance(array.get("values"), list):
        return [_otlp(item, depth + 1) for item in array["values"]]
    if isinstance(pairs, Mapping) and isinstance(pairs.get("values"), list):
        return _pairs(pairs["values"], depth + 1)
    return None


def _pairs(pairs: Sequence[Any], depth: int) -> dict[str, Any]:
    """Return the values of OTLP's pairs by key; what has no key that is a text is left out."""
    named = [pair for pair in pairs if isinstance(pair, Mapping) and isinstance(pair.get("key"), str)]
    return {pair["key"]: _otlp(pair.get("value"), depth) for pair in named}


FORMAT = Format(
    NAME,
    "OpenInference spans",
    ".jsonl",
    recognise,
    read,
    write,
    losses=(
        "Each trace comes back as two spans, the root (as a CHAIN) and a retriever; other spans, "
        "attributes, events and states are lost.",
        "What the console exporter printed comes back as JSON Lines, its ids without 0x.",
        "Inputs and outputs that are JSON come back as the plain text of the question and of the answer.",
        "Documents of a reranker, or of several retrievers, come back as those of one retriever, without "
        "those that a second retriever brought again.",
        "Times come back to the microsecond, those of the retriever as the root's start; a trace without "
        "times is dated 1970.",
        "Ids of other sources that are no trace ids are hashed; the id itself is kept as leadline.record_id.",
        "Correct answers, sampled answers, claims, gold marks and what others reported are not written.",
    ),
)
