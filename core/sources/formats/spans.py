"""Spans of traces, in whichever of their JSON forms they come: Phoenix exports, data frames, OTLP."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from core.sources.content import Content
from core.sources.fields import FieldError, as_id
from core.text.strict import finite, read_json

KIND = "openinference.span.kind"
MAX_DEPTH = 20
MAX_DOCUMENTS = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Not flattened further: values that a tool may have left as objects.
_WHOLE = ("input.value", "output.value", "document.metadata", "metadata")
_ENVELOPES = ("resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "spans", "data")
_SCALAR_KEYS = ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue")


@dataclass(frozen=True, slots=True)
class Span:
    """One span: ids as in the file, kind in capitals ("" for none), attributes under dotted names."""

    number: int
    trace_id: str
    span_id: str | None
    parent_id: str | None
    kind: str
    name: str
    start: datetime | None
    end: datetime | None
    attributes: Mapping[str, Any]


def entries_of(content: Content) -> list[tuple[int, Any]]:
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


def span_of(entry: object, number: int) -> Span:
    """Read one span; `FieldError` where it is not an object or names no trace."""
    if not isinstance(entry, Mapping):
        raise FieldError("span", entry, "an object with the fields of a span")
    context = entry.get("context")
    where: Mapping[str, Any] = context if isinstance(context, Mapping) else {}
    flat = {**entry, **{f"context.{name}": value for name, value in where.items()}}
    trace_id = _span_id(flat, "context.trace_id", "trace_id", "traceId")
    if trace_id is None:
        raise FieldError("context.trace_id", "", "the id of the trace that the span belongs to")
    attributes = attributes_of(entry)
    kind = _first(attributes, KIND) or _first(flat, "span_kind")
    name = entry.get("name")
    return Span(
        number,
        trace_id,
        _span_id(flat, "context.span_id", "span_id", "spanId"),
        _span_id(flat, "parent_id", "parent_span_id", "parentSpanId", "parentId"),
        kind.upper() if isinstance(kind, str) else "",
        name if isinstance(name, str) else "",
        time_of(_first(flat, "start_time", "startTimeUnixNano", "startTime")),
        time_of(_first(flat, "end_time", "endTimeUnixNano", "endTime")),
        attributes,
    )


def attributes_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return all attributes of a span under dotted names."""
    given = entry.get("attributes")
    if isinstance(given, list):
        given = _pairs(given, 0)
    flat: dict[str, Any] = {}
    _flatten(given if isinstance(given, Mapping) else {}, "", flat, 0)
    columns = {k.removeprefix("attributes."): v for k, v in entry.items() if k.startswith("attributes.")}
    _flatten(columns, "", flat, 0)
    return flat


def documents_of(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the documents under a name, in order, each with content, id, score and metadata."""
    pattern = re.compile(re.escape(prefix) + r"\.(\d{1,6})\.document\.(content|id|score|metadata)")
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        match = pattern.fullmatch(name)
        if match and value is not None:
            found.setdefault(int(match[1]), {})[match[2]] = value
    return [found[place] for place in sorted(found)[:MAX_DOCUMENTS]]


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
        return _EPOCH + timedelta(microseconds=round(number / unit * 1e6))
    except OverflowError:
        return None


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
