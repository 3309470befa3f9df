"""One trace of spans as a question: what was asked, retrieved and answered, and how long it took."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from core.sources.fields import FieldError, Fields, as_id, unique
from core.sources.formats.messages import ANSWER_FIELDS, QUESTION_FIELDS, content_text, value_text
from core.sources.formats.records import RecordPassage
from core.sources.formats.spans import Span, documents_of
from core.sources.report import IssueLog
from core.text.strict import finite, read_json

RETRIEVED, RERANKED = "retrieval.documents", "reranker.output_documents"
_ROOTS = ("CHAIN", "AGENT")
# Stands in for a time that is not known; never compared with one that is.
_NEVER = datetime.max


@dataclass(frozen=True, slots=True)
class Trace:
    """What one trace says.

    Attributes
    ----------
    root, source : Span
        The span that stands for the whole, and the one that gave the passages (of several, the first).
    question : str
        Not empty.
    answer : str or None
        None where no span tells.
    passages : tuple of RecordPassage
        In order of retrieval; ids differ.
    documents : list of dict
        The same as the spans have them, without the text.
    latency : float or None
        Seconds; None where the root does not say when it began and ended.
    n_dropped : int
        Passages that a second retriever brought again.
    """

    root: Span
    source: Span
    question: str
    answer: str | None
    passages: tuple[RecordPassage, ...]
    documents: list[dict[str, Any]]
    latency: float | None
    n_dropped: int


def read_trace(spans: Sequence[Span], log: IssueLog) -> Trace:
    """Read the spans of one trace.

    Raises
    ------
    FieldError
        Nothing was retrieved in it, or no question can be found.
    """
    ordered = sorted(spans, key=lambda span: (span.start is None, span.start or _NEVER, span.number))
    sources, prefix = _sources(ordered)
    if not sources:
        kinds = ", ".join(dict.fromkeys(span.kind or "no kind" for span in spans))
        raise FieldError("openinference.span.kind", kinds, "a RETRIEVER span in the trace")
    root = _root(ordered)
    found, n_dropped = _documents(sources, prefix)
    passages, documents = _passages(found, prefix, log)
    return Trace(
        root,
        sources[0],
        _question(root, sources, spans),
        _answer(root, ordered, sources[-1]),
        passages,
        documents,
        _seconds(root.start, root.end),
        n_dropped,
    )


def model_of(spans: Sequence[Span]) -> dict[str, Any]:
    """Return the name of the model and the tokens it read and wrote, as the last LLM span says."""
    names = (
        "llm.model_name",
        "llm.token_count.prompt",
        "llm.token_count.completion",
        "llm.token_count.total",
    )
    models = [span.attributes for span in spans if span.kind == "LLM"]
    last = models[-1] if models else {}
    text = as_id(last.get(names[0]))
    numbers = {name: finite(last.get(name)) for name in names[1:]}
    return {name: value for name, value in {names[0]: text, **numbers}.items() if value is not None}


def _sources(spans: Sequence[Span]) -> tuple[list[Span], str]:
    """Return the spans whose documents are the passages: the last reranker, else the outermost retrievers."""
    rerankers = [s for s in spans if s.kind == "RERANKER" and documents_of(s.attributes, RERANKED)]
    if rerankers:
        return rerankers[-1:], RERANKED
    retrievers = [span for span in spans if span.kind == "RETRIEVER"]
    full = {s.span_id for s in retrievers if s.span_id and documents_of(s.attributes, RETRIEVED)}
    parents = {span.span_id: span.parent_id for span in spans if span.span_id}
    outermost = [span for span in retrievers if not _inside(span, full, parents)]
    return outermost, RETRIEVED


def _inside(span: Span, full: Collection[str], parents: Mapping[str, str | None]) -> bool:
    """Say whether a retriever only serves another one, which passes its documents on."""
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
    ranked = [span for span in roots if span.kind in _ROOTS] or roots
    return next((span for span in ranked if span.attributes.get("input.value") is not None), ranked[0])


def _question(root: Span, sources: Sequence[Span], spans: Sequence[Span]) -> str:
    retrievers = [span for span in spans if span.kind == "RETRIEVER"]
    for span in (root, *sources, *retrievers):
        text = value_text(
            span.attributes.get("input.value"), span.attributes.get("input.mime_type"), QUESTION_FIELDS
        )
        text = text or value_text(span.attributes.get("reranker.query"), None, ())
        if text and text.strip():
            return Fields({"input.value": text}).required_text("input.value")
    shown = root.attributes.get("input.value")
    raise FieldError("input.value", "" if shown is None else shown, "a question in the root or a RETRIEVER")


def _answer(root: Span, spans: Sequence[Span], source: Span) -> str | None:
    after = [
        span
        for span in spans
        if span.kind == "LLM" and (not span.start or not source.start or span.start >= source.start)
    ]
    candidates = [] if root.kind in ("RETRIEVER", "RERANKER", "EMBEDDING") else [root]
    for span in (*candidates, *reversed(after)):
        attributes = span.attributes
        text = value_text(attributes.get("output.value"), attributes.get("output.mime_type"), ANSWER_FIELDS)
        said = value_text(attributes.get("llm.output_messages.0.message.content"), None, ())
        if text is not None or said is not None:
            return text if text is not None else said
    return None


def _documents(sources: Sequence[Span], prefix: str) -> tuple[list[tuple[Span, int, dict[str, Any]]], int]:
    """Return the documents of all sources; one that an earlier span brought already is left out."""
    found: list[tuple[Span, int, dict[str, Any]]] = []
    ids: dict[str, list[Any]] = {}
    texts: set[str] = set()
    n_dropped = 0
    for span in sources:
        new = []
        for place, document in enumerate(documents_of(span.attributes, prefix)):
            text, name = document.get("content"), as_id(document.get("id"))
            # The same id with another text is another piece of the same document.
            again = text in texts if isinstance(text, str) and text else name in ids
            again = again or (name is not None and any(not t for t in ids.get(name, ())))
            n_dropped += again
            if not again:
                new.append((span, place, document))
        for entry in new:
            text, name = entry[2].get("content"), as_id(entry[2].get("id"))
            if isinstance(text, str) and text:
                texts.add(text)
            if name is not None:
                ids.setdefault(name, []).append(text)
        found += new
    return found, n_dropped


def _passages(
    found: Sequence[tuple[Span, int, dict[str, Any]]], prefix: str, log: IssueLog
) -> tuple[tuple[RecordPassage, ...], list[dict[str, Any]]]:
    passages = []
    for span, place, document in found:
        fields = Fields(document, span.number, log, f"{prefix}.{place}.document.")
        score = fields.number("score")
        text = fields.text("content")
        fields.identifier("id")
        passages.append(RecordPassage("", text, _title(document.get("metadata")), score))
    names = unique([as_id(document.get("id")) for _, _, document in found])
    named = tuple(replace(p, passage_id=name) for p, name in zip(passages, names, strict=True))
    rest = [{k: v for k, v in document.items() if k in ("id", "metadata")} for _, _, document in found]
    return named, rest


def _title(metadata: object) -> str:
    """Return the title in the metadata, which may be an object or its JSON."""
    if isinstance(metadata, str) and '"title"' in metadata:
        try:
            metadata = read_json(metadata, mend=True)
        except ValueError:
            return ""
    title = metadata.get("title") if isinstance(metadata, Mapping) else None
    return content_text(title) or "" if isinstance(title, str) else ""


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    seconds = (end - start).total_seconds() if start and end else 0.0
    return seconds if seconds > 0 else None
