"""Traces in OpenInference's conventions (Phoenix, OTLP): one record for each trace with a retrieval."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from core.errors import InputError
from core.sources.content import Content
from core.sources.fields import FieldError, as_id, read_each, unique
from core.sources.formats.kept import keep, with_kept
from core.sources.formats.records import Record
from core.sources.formats.spans import KIND, Span, entries_of, span_of
from core.sources.formats.trace import RETRIEVED, read_trace
from core.sources.formats.types import Format, ReadRecords
from core.sources.formats.writing import to_lines
from core.sources.report import IssueLog, counted
from core.text.strict import clean

NAME = "openinference"
OWN_ID = "leadline.record_id"
_PLAIN = "text/plain"
_START = datetime(1970, 1, 1, tzinfo=UTC)
_TELLTALE = (KIND, "input.value", "output.value", "llm.model_name")
_PREFIXES = (RETRIEVED, "reranker.")


def recognise(content: Content) -> int:
    """Count what makes a trace of retrieval: trace, kind, input, output and documents."""
    found: set[str] = set()
    for number, entry in entries_of(content)[:50]:
        try:
            span = span_of(entry, number)
        except FieldError:
            continue
        if span.kind:
            found |= {"trace", "kind", *(name for name in _TELLTALE if name in span.attributes)}
            found |= {p for p in _PREFIXES if any(name.startswith(p) for name in span.attributes)}
    return len(found)


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read every trace in which something was retrieved."""
    entries = entries_of(content)
    spans, rejected = read_each(entries, log, lambda number, entry: span_of(entry, number))
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    if not traces and not rejected:
        raise InputError(
            f"{content.name} holds no spans; expected JSON or JSON Lines of OpenInference spans, each with "
            "context.trace_id, parent_id and attributes."
        )
    ids = dict(zip(traces, unique(list(map(_record_id, traces.values())), "q"), strict=True))
    dropped = [0]

    def one(_: int, summary: Any) -> Record:
        trace_id = summary["trace_id"]
        trace = read_trace(ids[trace_id], traces[trace_id], log)
        dropped[0] += trace.n_dropped
        return keep(NAME, trace.record, _spans(trace.record, {}), _spans(trace.record, trace.own))

    summaries = [
        (held[0].number, {"trace_id": i, "spans": len(held), "kinds": [span.kind for span in held][:20]})
        for i, held in traces.items()
    ]
    records, without = read_each(summaries, log, one)
    notes = [f"{counted(len(spans), 'span')} in {counted(len(traces), 'trace')}; a trace is a question."]
    if without:
        notes.append(f"{counted(len(without), 'trace')} left out: nothing retrieved or nothing asked.")
    if dropped[0]:
        notes.append(f"{counted(dropped[0], 'passage')} left out that an earlier retriever had returned.")
    return ReadRecords(records, [*rejected, *without], tuple(notes))


def write(records: Sequence[Record]) -> bytes:
    """Write a CHAIN span and the RETRIEVER span below it for each record, one span a line."""
    return to_lines(span for record in records for span in with_kept(NAME, record, _spans(record, {})))


def _record_id(spans: Sequence[Span]) -> str:
    own = next((span.attributes[OWN_ID] for span in spans if OWN_ID in span.attributes), None)
    return as_id(own) or spans[0].trace_id


def _spans(record: Record, own: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the two spans of a record; ``own`` holds ids, names and times of its trace."""
    # An id that can be the id of a trace is kept, any other is hashed.
    fits = re.fullmatch(r"[0-9a-f]{32}", record.record_id)
    trace_id = own.get("trace_id") or (record.record_id if fits else _hash(record.record_id)[:32])
    start = own.get("start") or _START
    times = {"start_time": start.isoformat(), "end_time": _end(start, record.latency).isoformat()}
    root_name, root_id = own.get("root", ("", None))
    source_name, source_id = own.get("source", ("", None))
    root_id = root_id or _hash(f"{trace_id} CHAIN")[:16]
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
    return [
        _span(root_name or "question", trace_id, root_id, None, times, chain),
        _span(
            source_name or "retriever",
            trace_id,
            source_id or _hash(f"{trace_id} RETRIEVER")[:16],
            root_id,
            {**times, "end_time": times["start_time"]},
            retriever,
        ),
    ]


def _span(
    name: Any, trace_id: str, span_id: str, parent_id: str | None, times: Mapping[str, str], attributes: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "context": {"trace_id": trace_id, "span_id": span_id},
        "span_kind": attributes[KIND],
        "parent_id": parent_id,
        **times,
        "status_code": "OK",
        "status_message": "",
        "attributes": attributes,
        "events": [],
    }


def _documents(record: Record, own: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for place, passage in enumerate(record.passages):
        title = json.dumps({"title": passage.title}, ensure_ascii=False) if passage.title else None
        other = {"id": passage.passage_id, "metadata": title} if own is None else own[place]
        document = {"content": passage.text, "score": passage.score, **other}
        for name, value in document.items():
            if value is not None:
                attributes[f"{RETRIEVED}.{place}.document.{name}"] = value
    return attributes


def _end(start: datetime, latency: float | None) -> datetime:
    try:
        return start + timedelta(seconds=latency or 0.0)
    except OverflowError:
        return start


def _hash(text: str) -> str:
    return hashlib.sha256(clean(text).encode()).hexdigest()


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
