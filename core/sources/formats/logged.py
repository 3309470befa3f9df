"""Tools that log each call of an application: their records as spans, by a table of field names a tool.

Question, answer and passages are then found as in any other trace (see `core.sources.formats.trace`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from core.errors import InputError
from core.sources.content import Content
from core.sources.fields import FieldError, as_id, literal, read_each, said_number, without_null
from core.sources.formats.messages import ANSWER_FIELDS, ASSISTANT, USER, value_text
from core.sources.formats.records import Format, ReadRecords, Record, count_names
from core.sources.formats.trace import MAX_DEPTH, MAX_DOCUMENTS, ROOTS, Span, read_trace, read_traces, time_of
from core.sources.question import as_passage
from core.sources.report import IssueLog, counted, shorten
from core.text.strict import finite

Names = tuple[str, ...]
_JUDGED = ("args.context", "args.contexts", "args.source")
_KINDS = {"GENERATION": "LLM", "RECORD_ROOT": "CHAIN", "RETRIEVAL": "RETRIEVER"}
_PLAIN_KINDS = ("", "SPAN", "CHAIN", "TOOL")
# Where retrieved documents stand inside the values of a call, the usual name first.
_DOCUMENTS = (
    "documents", "output", "outputs", "result", "results", "context", "contexts", "source_documents", "docs",
    "nodes", "retrieved_documents",
)  # fmt: skip
# Of these the whole application may have been given or have returned its passages, also as mere texts.
_CONTEXT = {
    "context",
    "contexts",
    "retrieved_contexts",
    *(name for name in _DOCUMENTS if "documents" in name),
}
_SPEAKERS = (*USER, *ASSISTANT, "system", "tool")
_RETRIEVES = re.compile("retriev|search|fetch", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Tool:
    """The names under which a tool writes what a span holds, as dotted paths; the first that is there counts.

    ``inside`` are the lists of calls in a record, ``lifted`` the field that holds the record as JSON,
    ``telltale`` the names that only this tool uses. ``scores`` name a list of score, name and author, or an
    object of scores by name; ``score`` is where a call that scores has its name and value. In a table,
    columns of numbers are scores unless ``not_scores`` finds their name, and those that end in ``judged``
    list the calls of each judge.
    """

    name: str
    title: str
    telltale: Names
    inside: Names
    trace: Names = ("trace_id", "traceId")
    span: Names = ("id",)
    parent: Names = ()
    kind: Names = ("type",)
    call: Names = ("name",)
    start: Names = ("start_time", "startTime", "timestamp")
    end: Names = ("end_time", "endTime")
    seconds: Names = ("latency",)
    given: Names = ("input",)
    returned: Names = ("output",)
    references: Names = ()
    scores: Names = ("scores",)
    score: Names = ()
    lifted: str | None = None
    not_scores: re.Pattern[str] | None = None
    judged: str | None = None
    ignored: Names = ()

    def paths(self) -> tuple[str, ...]:
        """Return every path at which something is read, or is known to say nothing that is read."""
        read = (getattr(self, f.name) for f in fields(self) if f.type == "Names" and f.name != "telltale")
        return tuple(path for paths in read for path in paths)

    def own(self) -> set[str]:
        """Return the names of these at the top of a record."""
        return {path.split(".")[0] for path in self.paths()} | {self.lifted or ""}


def at(entry: Any, paths: Names) -> Any:
    """Return what is at the first of these dotted paths that is there; numbers are places in a list."""
    found = (_reached(entry, path) for path in paths)
    return next((value for value in found if value is not None and value != ""), None)


def _reached(value: Any, path: str) -> Any:
    step, _, rest = path.partition(".")
    if isinstance(value, Mapping):
        if path in value or not rest:
            return value.get(path)
        return _reached(value.get(step), rest)
    if isinstance(value, list) and step.lstrip("-").isdigit() and -len(value) <= int(step) < len(value):
        return _reached(value[int(step)], rest) if rest else value[int(step)]
    return None


def format_of(tool: Tool) -> Format:
    """Return the format of a tool; such files are read only, for no tool takes them back."""

    def recognise(content: Content) -> int:
        return count_names(_opened(content).names(), tool.telltale, tool.own())

    def read(content: Content, log: IssueLog) -> ReadRecords:
        return _read(tool, _opened(content), log)

    return Format(tool.name, tool.title, "", recognise, read, None)


def _opened(content: Content) -> Content:
    """Return the records of a file; the page of one trace names its calls beside it."""
    value = content.value
    if isinstance(value, Mapping) and isinstance(value.get("trace"), Mapping):
        calls = value.get("observations")
        whole = {**value["trace"], **({"observations": calls} if isinstance(calls, list) else {})}
        return replace(content, value=None, entries=((1, whole),))
    return content.opened()


def _read(tool: Tool, content: Content, log: IssueLog) -> ReadRecords:
    found, rejected = read_each(content.entries, log, lambda n, entry: _spans(tool, n, entry))
    unread: dict[str, None] = {}

    def record(record_id: str, spans: Sequence[Span]) -> Record:
        unread.update(dict.fromkeys(name for span in spans if span.top for name in span.record))
        return _record(tool, record_id, spans, log)

    spans = _by_root([span for held in found for span in held])
    records, without, notes = read_traces(spans, "call", log, record)
    if bare := sum(not record.passages for record in records):
        notes.append(f"Without retrieved documents: {counted(bare, 'trace')}.")
    scores = {name for record in records for name, _ in record.reported}
    if rest := [name for name in unread if name not in tool.own() and name not in scores]:
        notes.append(f"Fields not read: {', '.join(map(shorten, rest[:20]))}.")
    return ReadRecords(records, [*rejected, *without], tuple(notes))


def _spans(tool: Tool, number: int, entry: Any) -> list[Span]:
    """Return the calls of one record of a file, outermost first."""
    if not isinstance(entry, Mapping):
        raise FieldError("record", entry, "an object with named fields")
    if tool.lifted is not None and isinstance(inner := _parsed(entry.get(tool.lifted)), Mapping):
        entry = {**inner, **{name: value for name, value in entry.items() if name != tool.lifted}}
    held = {path.split(".")[0] for path in tool.paths() if "." in path}
    entry = {name: _parsed(value) if name in held else value for name, value in entry.items()}
    trace = as_id(at(entry, tool.trace)) or as_id(at(entry, tool.span))
    if trace is None:
        raise FieldError(tool.span[0], "", "the id of the record, or of its trace")
    spans: list[Span] = []

    def add(call: Mapping[str, Any], above: str | None, depth: int) -> None:
        own = as_id(at(call, tool.span)) or f"{trace} {len(spans) + 1}"
        name, kind = at(call, tool.call), at(call, tool.kind)
        values = {
            "input.value": _parsed(at(call, tool.given)),
            "output.value": _parsed(at(call, tool.returned)),
        }
        spans.append(
            Span(
                number,
                trace,
                own,
                as_id(at(call, tool.parent)) or above,
                _KINDS.get(kind.upper(), kind.upper()) if isinstance(kind, str) else "",
                name if isinstance(name, str) else "",
                time_of(at(call, tool.start)),
                time_of(at(call, tool.end)),
                values,
                record=call,
                top=depth == 0,
            )
        )
        for list_name in tool.inside:
            inner = _parsed(call.get(list_name))
            for child in inner if isinstance(inner, list) and depth < MAX_DEPTH else ():
                if isinstance(child, Mapping):
                    add(child, own, depth + 1)

    add(entry, None, 0)
    return spans


def _by_root(spans: Sequence[Span]) -> list[Span]:
    """Return the calls with a trace of its own for each further chain of a trace that nothing called.

    It is named after the chain. What belongs to none of them stays with the first.
    """
    first: dict[str, str] = {}
    parents = {(span.trace_id, span.span_id): span.parent_id for span in spans}
    roots = {}
    for span in spans:
        if span.parent_id is None and span.kind in ROOTS and span.span_id is not None:
            key = span.trace_id, span.span_id
            roots[key] = span.trace_id if first.setdefault(span.trace_id, key[1]) == key[1] else key[1]

    def trace_of(span: Span) -> str:
        name, seen = span.span_id, set[str]()
        while name is not None and name not in seen and (span.trace_id, name) not in roots:
            seen.add(name)
            name = parents.get((span.trace_id, name))
        return roots.get((span.trace_id, name or ""), span.trace_id)

    return [replace(span, trace_id=trace_of(span)) for span in spans]


def _record(tool: Tool, record_id: str, spans: Sequence[Span], log: IssueLog) -> Record:
    known = {span.span_id for span in spans}
    outermost = [span for span in spans if span.parent_id not in known] or [*spans]
    root = next((span for span in outermost if span.kind == "CHAIN"), outermost[0])
    record = read_trace(record_id, _with_documents(spans, root, _judged(tool, root.record)), log).record
    reference = value_text(_parsed(at(root.record, tool.references)), None, ANSWER_FIELDS)
    reported = {name: value for span in reversed(spans) for name, value in _scores(tool, span).items()}
    seconds = finite(at(root.record, tool.seconds)) if record.latency is None else record.latency
    return replace(
        record,
        references=(reference,) if reference and reference.strip() else (),
        latency=seconds if seconds is not None and seconds > 0 else None,
        reported={**record.reported, **reported},
    )


def _judged(tool: Tool, record: Mapping[str, Any]) -> list[Any]:
    """Return the passages that a score of a table was asked about, one a call of its judge."""
    for name in record if tool.judged is not None else ():
        calls = _parsed(record[name]) if str(name).endswith(str(tool.judged)) else None
        texts = [at(call, _JUDGED) for call in calls] if isinstance(calls, list) else []
        if texts and all(isinstance(text, str) for text in texts):
            return texts
    return []


def _with_documents(spans: Sequence[Span], root: Span, judged: Sequence[Any]) -> list[Span]:
    """Return the spans with the documents that each retrieved; one retrieves at least, if only nothing."""
    marked = {n for n, span in enumerate(spans) if _retrieves(span)}
    found = [_documents(span.attributes["output.value"], loose=n in marked) for n, span in enumerate(spans)]
    if not any(found[n] for n in marked):
        # Nothing is marked as a retriever: what returned documents was one, but for the whole application.
        marked = {n for n, span in enumerate(spans) if found[n] and span is not root}
    if not marked:
        values = (root.attributes[name] for name in ("output.value", "input.value"))
        parts = ({k: v[k] for k in v if k in _CONTEXT} for v in values if isinstance(v, Mapping))
        outside = next(filter(None, (_documents(part, loose=True) for part in parts)), judged)
        bare = replace(root, span_id=None, parent_id=root.span_id, attributes={"input.value": None})
        return [*spans, _retriever(bare, outside)]
    return [_retriever(span, found[n]) if n in marked else span for n, span in enumerate(spans)]


def _retrieves(span: Span) -> bool:
    if span.kind in _PLAIN_KINDS and _RETRIEVES.search(span.name):
        return bool(_documents(span.attributes["output.value"], loose=True))
    return span.kind == "RETRIEVER"


def _retriever(span: Span, documents: Sequence[Any]) -> Span:
    given = {"input.value": span.attributes.get("input.value")}
    found = tuple(map(_fields, documents[:MAX_DOCUMENTS]))
    return replace(span, kind="RETRIEVER", attributes=given, documents=found)


def _fields(document: Any) -> dict[str, Any]:
    """Return what a document holds, in the names of a span's documents."""
    try:
        passage = as_passage(_unwrapped(document))
    except InputError:
        return {"content": document}
    own = passage.passage_id if passage.passage_id != "p1" else None
    title = {"title": passage.title} if passage.title else None
    values = {"content": passage.text, "id": own, "score": passage.score, "metadata": title}
    return without_null(values)


def _documents(value: Any, loose: bool = False, depth: int = 0) -> list[Any]:
    """Return the list of documents in a value; ``loose`` takes a list of texts for one."""
    if isinstance(value, Mapping) and depth < 3:
        named = (_documents(_parsed(value[name]), loose, depth + 1) for name in _DOCUMENTS if name in value)
        return next((documents for documents in named if documents), [])
    if not isinstance(value, list) or not value:
        return []
    fits = ((loose and isinstance(entry, str)) or _is_document(_unwrapped(entry)) for entry in value)
    return value if all(fits) else []


def _is_document(value: Any) -> bool:
    inner = value.get("node", value) if isinstance(value, Mapping) else None
    if not isinstance(inner, Mapping) or "role" in inner or inner.get("type") in _SPEAKERS:
        return False
    return any(isinstance(inner.get(name), str) for name in ("page_content", "content", "text"))


def _unwrapped(document: Any) -> Any:
    """Return a document out of the envelope in which LangChain writes its objects."""
    inner = document.get("kwargs") if isinstance(document, Mapping) and "lc" in document else None
    return inner if isinstance(inner, Mapping) else document


def _parsed(value: Any) -> Any:
    """Return what a text holds that was written as JSON, or printed by Python; any other value as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        return literal(value)
    except ValueError:
        return value


def _scores(tool: Tool, call: Span) -> dict[tuple[str, str], Any]:
    """Return the scores of a call: named numbers and texts, with their author where one is given."""
    found: dict[tuple[str, str], Any] = {}
    given = _parsed(at(call.record, tool.scores))
    for entry in given if isinstance(given, list) else ():
        if isinstance(entry, Mapping) and isinstance(name := entry.get("name", entry.get("key")), str):
            by = entry.get("source", entry.get("author"))
            value = at(entry, ("value", "score", "stringValue", "string_value"))
            if value is not None and not isinstance(value, (list, Mapping)):
                found[name, by if isinstance(by, str) else ""] = value
    for name, entry in given.items() if isinstance(given, Mapping) else ():
        value = at(entry, ("avg", "value", "score")) if isinstance(entry, Mapping) else entry
        if finite(value) is not None:
            found[str(name), ""] = value
    if tool.score and isinstance(name := at(call.record, tool.score[:1]), str):
        value = finite(at(call.record, tool.score[1:]))
        found |= {} if value is None else {(name, ""): value}
    if tool.not_scores is not None and call.top:
        for name, value in call.record.items():
            number = said_number(value)
            if number is not None and name not in tool.own() and not tool.not_scores.search(name):
                found[name, ""] = number
    return found


_LENS = "record_attributes.ai.observability"
TOOLS = (
    Tool(
        "langsmith",
        "LangSmith runs",
        ("run_type", "child_runs", "parent_run_id", "dotted_order", "feedback_stats", "reference_example_id"),
        inside=("child_runs",),
        parent=("parent_run_id",),
        kind=("run_type",),
        given=("inputs",),
        returned=("outputs",),
        references=("reference_outputs", "reference_output"),
        scores=("feedback_stats", "feedback"),
    ),
    Tool(
        "langfuse",
        "Langfuse traces",
        (
            "observations", "parentObservationId", "parent_observation_id", "htmlPath", "usageDetails",
            "usage_details", "bookmarked",
            "isRootObservation",
        ),
        inside=("observations",),
        parent=("parentObservationId", "parent_observation_id"),
        references=("expectedOutput", "expected_output"),
    ),
    Tool(
        "trulens",
        "TruLens records",
        ("record_json", "main_input", "main_output", "app_json", "perf_json", "cost_json"),
        inside=("calls",),
        trace=("record_id",),
        span=("record_id", "call_id"),
        call=("stack.-1.method.name", "method.name"),
        kind=(),
        start=("perf.start_time",),
        end=("perf.end_time",),
        given=("main_input", "input", "args"),
        returned=("main_output", "output", "rets"),
        lifted="record_json",
        scores=("feedback_results", "feedback"),
        not_scores=re.compile(r"_calls$|cost|tokens|_id$|^(?:index|ts|n_\w+|Unnamed: \d+)$", re.IGNORECASE),
        judged="_calls",
        ignored=("app_id", "app_name", "app_version", "app_json", "perf", "stack", "type", "tags", "ts"),
    ),
    Tool(
        "trulens-events",
        "TruLens events",
        ("event_id", "record_attributes", "resource_attributes"),
        inside=(),
        trace=(f"{_LENS}.record_id", "trace.trace_id"),
        span=("trace.span_id",),
        parent=("trace.parent_id", "record.parent_span_id"),
        kind=(f"{_LENS}.span_type",),
        call=("record.name",),
        start=("start_timestamp",),
        end=("timestamp",),
        given=(f"{_LENS}.record_root.input", f"{_LENS}.retrieval.query_text"),
        returned=(
            f"{_LENS}.record_root.output", f"{_LENS}.retrieval.retrieved_contexts", f"{_LENS}.call.return",
        ),
        references=(f"{_LENS}.record_root.ground_truth_output",),
        score=(f"{_LENS}.eval_root.metric_name", f"{_LENS}.eval_root.score"),
        ignored=("event_id", "record_type", "resource_attributes"),
    ),
)  # fmt: skip
FORMATS = tuple(map(format_of, TOOLS))
