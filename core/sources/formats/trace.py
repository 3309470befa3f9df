"""Traces of spans, whichever tool wrote them: question, passages, answer and latency of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from core.sources.fields import FieldError, Fields, Rejected, as_id, read_each, unique, without_null
from core.sources.formats.messages import ANSWER_FIELDS, QUESTION_FIELDS, content_text, last_reply, value_text
from core.sources.formats.records import Record, RecordPassage
from core.sources.report import IssueLog, counted
from core.text.strict import finite, read_json

KIND = "openinference.span.kind"
OWN_ID = "leadline.record_id"
# Where spans of these kinds have their documents.
DOCUMENTS = {"RETRIEVER": "retrieval.documents", "RERANKER": "reranker.output_documents"}
MAX_DEPTH = 20
MAX_DOCUMENTS = 10_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROOTS = ("CHAIN", "AGENT")
_COUNTS = ("prompt", "completion", "total")
# Stands in for a time that is not known; never compared with one that is.
_NEVER = datetime.max


@dataclass(frozen=True, slots=True)
class Span:
    """One span: ids as in the file, kind in capitals ("" for none), attributes under dotted names.

    ``documents`` are what was retrieved, each with content, id, score and metadata if known. ``record`` is
    the span as in the file, ``top`` whether it stands at the top of it.
    """

    number: int
    trace_id: str
    span_id: str | None
    parent_id: str | None
    kind: str
    name: str
    start: datetime | None
    end: datetime | None
    attributes: Mapping[str, Any]
    documents: Sequence[Mapping[str, Any]] = ()
    record: Mapping[str, Any] = field(default_factory=dict)
    top: bool = True


Found = tuple[Span, int, Mapping[str, Any]]  # a document, with its span and its place there


class Trace(NamedTuple):
    """One trace as a record, what is needed beyond it to write its two spans again, and passages left out."""

    record: Record
    own: Mapping[str, Any]
    n_dropped: int


def read_traces(
    spans: Sequence[Span],
    what: str,
    log: IssueLog,
    record: Callable[[str, Sequence[Span]], Record],
) -> tuple[list[Record], list[Rejected], list[str]]:
    """Read the spans of each trace by ``record``, which is given its id too.

    Also return the traces left out, and a note on spans, which are called ``what``.
    """
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    own = {
        n: s.attributes[OWN_ID] for n, held in traces.items() for s in held[::-1] if OWN_ID in s.attributes
    }
    ids = unique([as_id(own.get(name)) or name for name in traces], "q")
    named = iter(zip(ids, traces.values(), strict=True))
    entries = [
        (held[0].number, {"trace_id": name, "spans": len(held), "kinds": [span.kind for span in held][:20]})
        for name, held in traces.items()
    ]
    records, without = read_each(entries, log, lambda *_: record(*next(named)))
    note = f"{counted(len(spans), what)} in {counted(len(traces), 'trace')}; a trace is a question."
    return records, without, [note]


def read_trace(record_id: str, spans: Sequence[Span], log: IssueLog) -> Trace:
    """Read the spans of one trace; `FieldError` where nothing was retrieved or no question can be found."""
    ordered = sorted(spans, key=lambda span: (span.start is None, span.start or _NEVER, span.number))
    sources = _sources(ordered)
    if not sources:
        kinds = ", ".join(dict.fromkeys(span.kind or "no kind" for span in spans))
        raise FieldError(KIND, kinds, "a RETRIEVER span in the trace")
    root, source = _root(ordered), sources[0]
    found, n_dropped = _documents(sources)
    asked = source.attributes.get("input.value")
    seconds = (root.end - root.start).total_seconds() if root.start and root.end else 0.0
    record = Record(
        record_id,
        _question(root, sources, spans),
        _answer(root, ordered, sources[-1]),
        _passages(found, log),
        latency=seconds if seconds > 0 else None,
        reported={(name, ""): value for name, value in _model_of(spans).items()},
    )
    own = {
        "trace_id": root.trace_id,
        "start": root.start,
        "root": (root.name, root.span_id),
        "source": (source.name, source.span_id if source is not root else None),
        "query": asked if isinstance(asked, str) else None,
        "documents": [{k: v for k, v in d.items() if k in ("id", "metadata")} for _, _, d in found],
    }
    return Trace(record, own, n_dropped)


def _model_of(spans: Sequence[Span]) -> dict[str, Any]:
    """Return the name of the model and its token counts, from the last LLM span."""
    last = next((span.attributes for span in reversed(spans) if span.kind == "LLM"), {})
    counts = {f"llm.token_count.{what}": last.get(f"llm.token_count.{what}") for what in _COUNTS}
    found = {"llm.model_name": as_id(last.get("llm.model_name")), **{n: finite(v) for n, v in counts.items()}}
    return without_null(found)


def _sources(spans: Sequence[Span]) -> list[Span]:
    """Return the spans whose documents are the passages: the last reranker, else the outermost retrievers."""
    if rerankers := [span for span in spans if span.kind == "RERANKER" and span.documents]:
        return rerankers[-1:]
    retrievers = [span for span in spans if span.kind == "RETRIEVER"]
    full = {span.span_id for span in retrievers if span.span_id and span.documents}
    parents = {span.span_id: span.parent_id for span in spans if span.span_id}
    return [span for span in retrievers if not _inside(span, full, parents)]


def _inside(span: Span, full: Collection[str], parents: Mapping[str, str | None]) -> bool:
    """Return whether a retriever only serves another one, which passes its documents on."""
    above = span.parent_id
    seen = {span.span_id}
    while above is not None and above not in seen:
        if above in full:
            return True
        seen.add(above)
        above = parents.get(above)
    return False


def _root(spans: Sequence[Span]) -> Span:
    known = {span.span_id for span in spans if span.span_id}
    roots = [span for span in spans if span.parent_id not in known] or list(spans)
    ranked = [span for span in roots if span.kind in ROOTS] or roots
    return next((span for span in ranked if span.attributes.get("input.value") is not None), ranked[0])


def _question(root: Span, sources: Sequence[Span], spans: Sequence[Span]) -> str:
    for span in (root, *sources, *(span for span in spans if span.kind == "RETRIEVER")):
        given = span.attributes
        text = value_text(given.get("input.value"), given.get("input.mime_type"), QUESTION_FIELDS)
        text = text or value_text(given.get("reranker.query"), None, ())
        if text and text.strip():
            return Fields({"input.value": text}).required_text("input.value")
    shown = root.attributes.get("input.value")
    raise FieldError("input.value", "" if shown is None else shown, "a question in the root or a RETRIEVER")


def _answer(root: Span, spans: Sequence[Span], source: Span) -> str | None:
    after = [
        span
        for span in spans
        if span.kind == "LLM"
        and not _is_prompt(span)
        and (not span.start or not source.start or span.start >= source.start)
    ]
    candidates = [] if root.kind in ("RETRIEVER", "RERANKER", "EMBEDDING") else [root]
    for span in (*candidates, *reversed(after)):
        said, output = span.attributes, span.attributes.get("output.value")
        found = (
            last_reply(output),
            value_text(output, said.get("output.mime_type"), ANSWER_FIELDS),
            value_text(said.get("llm.output_messages.0.message.content"), None, ()),
        )
        if (text := next((text for text in found if text is not None), None)) is not None:
            return text
    return None


def _is_prompt(span: Span) -> bool:
    """Return whether a span is a prompt builder of Haystack's, whose kind is LLM though no model answers."""
    names = span.attributes
    answers = any(name.startswith(("llm.output_messages", "llm.model_name")) for name in names)
    return "llm.prompt_template.template" in names and not answers


def _documents(sources: Sequence[Span]) -> tuple[list[Found], int]:
    """Return the documents of all sources; one that an earlier span brought already is left out."""
    found: list[Found] = []
    seen: set[tuple[str, str]] = set()
    n_dropped = 0
    for span in sources:
        keys = [(as_id(document.get("id")) or "", _text(document)) for document in span.documents]
        # The same id with another text is another piece of the same document.
        new = [
            place
            for place, (name, text) in enumerate(keys)
            if ("text", text) not in seen and ("only id" if text else "id", name) not in seen
        ]
        n_dropped += len(keys) - len(new)
        for name, text in (keys[place] for place in new):
            seen |= {("text", text)} if text else set()
            seen |= {("id", name), *([] if text else [("only id", name)])} if name else set()
        found += [(span, place, span.documents[place]) for place in new]
    return found, n_dropped


def _text(document: Mapping[str, Any]) -> str:
    text = document.get("content")
    return text if isinstance(text, str) else ""


def _passages(found: Sequence[Found], log: IssueLog) -> tuple[RecordPassage, ...]:
    names = unique([as_id(document.get("id")) for _, _, document in found])
    passages = []
    for name, (span, place, document) in zip(names, found, strict=True):
        fields = Fields(document, span.number, log, f"{DOCUMENTS[span.kind]}.{place}.document.")
        fields.identifier("id")
        score, title = fields.number("score"), _title(document.get("metadata"))
        passages.append(RecordPassage(name, fields.text("content"), title, score))
    return tuple(passages)


def _title(metadata: object) -> str:
    """Return the title in the metadata, which may be an object or its JSON."""
    if isinstance(metadata, str) and '"title"' in metadata:
        try:
            metadata = read_json(metadata, repair=True)
        except ValueError:
            return ""
    title = metadata.get("title") if isinstance(metadata, Mapping) else None
    return content_text(title) or "" if isinstance(title, str) else ""


def time_of(value: object) -> datetime | None:
    """Return a time given as ISO 8601, or as a number of seconds … nanoseconds since 1970; None otherwise."""
    if isinstance(value, str) and not re.fullmatch(r"\d{1,20}", value):
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            return None
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    number = finite(int(value) if isinstance(value, str) else value)
    if number is None or number < 0:
        return None
    # Today is about 1.8e9 seconds: each unit is a thousand times the one before.
    unit = next((10.0**e for e, limit in ((9, 1e17), (6, 1e14), (3, 1e11)) if number >= limit), 1.0)
    try:
        return EPOCH + timedelta(microseconds=round(number / unit * 1e6))
    except OverflowError:
        return None
