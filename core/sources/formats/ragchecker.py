"""RAGChecker's JSON: questions, contexts, claims and entailment labels, as it reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import InputError
from core.sources.corpus import text_problem
from core.sources.formats.fields import Fields, as_number
from core.sources.formats.json_text import to_document
from core.sources.formats.kept import Kept, as_id, first_kept, keep, read_each, unique, with_file
from core.sources.formats.label_matrix import LABELS, Orientation, as_label, label_matrix, orientation_of
from core.sources.formats.records import Record, RecordClaim, RecordPassage
from core.sources.formats.types import Content, Format, ReadRecords
from core.sources.report import IssueLog, counted, shorten

NAME = "ragchecker"
# Side of a claim -> where the file has the claims, their labels per passage, and against the other text.
SIDES: Mapping[str, tuple[str, str, str]] = {
    "answer": ("response_claims", "retrieved2response", "answer2response"),
    "reference": ("gt_answer_claims", "retrieved2answer", "response2answer"),
}
_LISTS = tuple(name for names in SIDES.values() for name in names)
_TELLTALE = ("gt_answer", "retrieved_context", *_LISTS)
_COMMON = ("query_id", "query", "response")
_FIELDS = (*_COMMON, *_TELLTALE, "metrics")


def recognise(content: Content) -> int:
    """Count the names that only RAGChecker uses, and the common ones beside them."""
    entries = [entry for _, entry in _entries(content)[:50] if isinstance(entry, Mapping)]
    names = {name for entry in entries for name in entry}
    telltale = len(names.intersection(_TELLTALE))
    return telltale + len(names.intersection(_COMMON)) if telltale else 0


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read what RAGChecker takes as input or gives as output."""
    entries = _entries(content)
    whole = content.value if isinstance(content.value, Mapping) else {}
    if not entries and not isinstance(whole.get("results"), list):
        raise InputError(
            f'{content.name} is not a RAGChecker file; expected a JSON object with a list "results".'
        )
    orientation = _orientation(entries)
    given = [as_id(entry.get("query_id")) if isinstance(entry, Mapping) else None for _, entry in entries]
    ids = dict(zip([row for row, _ in entries], unique(given, "q"), strict=True))
    records, rejected = read_each(
        entries, log, lambda row, entry: _record(row, entry, log, orientation, ids[row])
    )
    file = {
        "metrics": whole.get("metrics"),
        "rest": {name: value for name, value in whole.items() if name not in ("results", "metrics")},
    }
    if any(file.values()):
        records = with_file(records, NAME, {**file, "n": len(entries)}, log)
    return ReadRecords(records, rejected, len(entries), _notes(orientation, given))


def _notes(orientation: Orientation, given: Sequence[str | None]) -> tuple[str, ...]:
    notes = []
    if orientation == "passages":
        notes.append(
            "The matrices of this file list passages first, not claims as RAGChecker does; they were turned."
        )
    if orientation == "mixed":
        notes.append(
            "Some matrices of this file list claims first, others passages; square ones were not read."
        )
    if changed := len(given) - len(set(given) - {None}):
        notes.append(
            f"Ids were made for {counted(changed, 'question')} without one, or with that of another."
        )
    return tuple(notes)


def write(records: Sequence[Record]) -> bytes:
    """Write ``{"results": [...]}``, with claims and labels where they are complete."""
    file = first_kept(records, NAME)
    value: dict[str, Any] = {"results": [_result(record) for record in records]}
    if file is not None:
        metrics = file.mapping("metrics")
        # Averages over the whole file would be wrong of a part of it.
        if metrics and file.values.get("n") == len(records):
            value["metrics"] = metrics
        value = {**file.mapping("rest"), **value}
    return to_document(value)


def _entries(content: Content) -> Sequence[tuple[int, Any]]:
    if content.kind == "csv":
        return ()
    results = content.value.get("results") if isinstance(content.value, Mapping) else None
    return list(enumerate(results, start=1)) if isinstance(results, list) else content.entries


def _orientation(entries: Sequence[tuple[int, Any]]) -> Orientation:
    shapes = []
    for _, entry in entries:
        if isinstance(entry, Mapping):
            passages = entry.get("retrieved_context")
            for claims, matrix, _ in SIDES.values():
                sizes = [
                    len(value) for value in (entry.get(claims), passages) if isinstance(value, (list, tuple))
                ]
                if len(sizes) == 2:
                    shapes.append((entry.get(matrix), sizes[0], sizes[1]))
    return orientation_of(shapes)


def _record(row: int, entry: object, log: IssueLog, orientation: Orientation, record_id: str) -> Record:
    fields = Fields(entry, row, log)
    question = fields.required_text("query")
    reference, answer = fields.text("gt_answer"), fields.text("response")
    contexts = fields.items("retrieved_context")
    passages, raw_contexts = _passages(contexts, fields)
    claims: list[RecordClaim] = []
    originals = {}
    for side in SIDES:
        found, raw = _claims_of(side, fields, [p.passage_id for p in passages], orientation)
        claims += found
        if any(not isinstance(claim, str) for claim in raw):
            originals[side] = raw
    reported = {(name, NAME): value for name, value in _metrics(fields).items()}
    query_id = fields.record.get("query_id")
    if query_id is not None and as_id(query_id) is None:
        fields.warn("query_id", query_id, "a text or a whole number")
    extra = {
        "query_id": None if query_id == record_id else query_id,
        "contexts": raw_contexts if raw_contexts != [{"doc_id": p.passage_id} for p in passages] else [],
        "claims": originals,
        "empty": {name: value for name in _LISTS if _is_empty(value := fields.record.get(name))},
        "rest": {name: value for name, value in fields.rest().items() if name not in _FIELDS},
    }
    return Record(
        record_id,
        question,
        answer,
        passages,
        (reference,) if reference else (),
        claims=tuple(claims),
        reported=reported | keep(NAME, "record", extra),
        judge=NAME if any(claim.support for claim in claims) else None,
    )


def _passages(
    contexts: Sequence[Any], fields: Fields
) -> tuple[tuple[RecordPassage, ...], list[dict[str, Any]]]:
    """Return the passages, and what the file says of each beside its text."""
    texts, others = [], []
    for place, context in enumerate(contexts):
        path = f"retrieved_context[{place}]"
        whole = {"text": context} if isinstance(context, str) else context
        if not isinstance(whole, Mapping):
            # Its place stays, since the columns of the label matrices count on it.
            fields.warn(path, context, "an object with text and doc_id")
            whole = {}
        inner = Fields(whole, fields.row, fields.log, f"{path}.")
        texts.append(inner.text("text"))
        others.append(inner.rest())
        if "doc_id" in others[-1] and as_id(others[-1]["doc_id"]) is None:
            inner.warn("doc_id", whole["doc_id"], "a text or a whole number")
    ids = unique([as_id(other.get("doc_id")) for other in others])
    return tuple(RecordPassage(i, text) for i, text in zip(ids, texts, strict=True)), others


def _claims_of(
    side: str, fields: Fields, ids: Sequence[str], orientation: Orientation
) -> tuple[list[RecordClaim], list[Any]]:
    """Return the claims of one side with their labels, and the same claims as they stand in the file."""
    name, matrix, counterpart = SIDES[side]
    raw = fields.items(name)
    labels = label_matrix(fields, matrix, len(raw), len(ids), orientation)
    others = _labels(fields, counterpart, len(raw))
    claims, kept = [], []
    for place, (claim, row, other) in enumerate(zip(raw, labels, others, strict=True)):
        text = _claim_text(claim)
        if text is None:
            fields.warn(f"{name}[{place}]", claim, "a text, or a triplet of texts")
            continue
        support = {i: label for i, label in zip(ids, row, strict=True) if label is not None}
        claims.append(RecordClaim(text, side, support, other))
        kept.append(claim)
    return claims, kept


def _claim_text(claim: object) -> str | None:
    """Return a claim as one text: RAGChecker has triplets of subject, predicate and object, or sentences."""
    parts = [claim] if isinstance(claim, str) else claim
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        return None
    text = " ".join(parts)
    return text if text.strip() and not text_problem(text) else None


def _labels(fields: Fields, name: str, n_claims: int) -> Sequence[str | None]:
    labels = fields.items(name)
    if labels and len(labels) != n_claims:
        fields.warn(name, labels, f"one label for each of the {n_claims} claims")
        labels = ()
    for place, label in enumerate(labels):
        if label not in LABELS:
            fields.warn(f"{name}[{place}]", label, "Entailment, Neutral or Contradiction")
    return [label if label in LABELS else None for label in labels] or [None] * n_claims


def _metrics(fields: Fields) -> dict[str, float]:
    numbers = {}
    for name, value in fields.mapping("metrics").items():
        number = as_number(value)
        if number is None or as_id(name) is None:
            fields.warn(f"metrics.{shorten(name)}", value, "a named finite number")
        else:
            numbers[name] = number
    return numbers


def _is_empty(value: object) -> bool:
    """Say whether a list is there but holds nothing: ``[]`` or, without passages, ``[[], []]``."""
    return isinstance(value, list) and all(entry == [] for entry in value)


def _result(record: Record) -> dict[str, Any]:
    kept = Kept(record, NAME)
    own_id = kept.values.get("query_id")
    result: dict[str, Any] = {
        "query_id": own_id if as_id(own_id) is not None else record.record_id,
        "query": record.question,
        "gt_answer": record.references[0] if record.references else "",
        "response": record.answer or "",
        "retrieved_context": _contexts(record, kept),
    }
    for side, (name, matrix, counterpart) in SIDES.items():
        claims = [claim for claim in record.claims if claim.side == side and not _is_talk(claim)]
        if claims:
            result[name] = _claims(claims, kept.mapping("claims").get(side))
            result[matrix] = _matrix(claims, [p.passage_id for p in record.passages])
            counterparts = [claim.counterpart for claim in claims]
            result[counterpart] = counterparts if all(counterparts) else None
    result["metrics"] = {name: value for (name, by), value in record.reported.items() if by == NAME}
    result = {name: value for name, value in result.items() if value is not None and value != {}}
    return kept.mapping("rest") | kept.mapping("empty") | result


def _contexts(record: Record, kept: Kept) -> list[dict[str, Any]]:
    others = kept.items("contexts", len(record.passages)) or [
        {"doc_id": p.passage_id} for p in record.passages
    ]
    return [
        {**(other if isinstance(other, dict) else {}), "text": passage.text or ""}
        for other, passage in zip(others, record.passages, strict=True)
    ]


def _claims(claims: Sequence[RecordClaim], originals: Any) -> list[Any]:
    """Give triplets back where they still read as the claims do."""
    texts = [claim.text for claim in claims]
    if not isinstance(originals, list) or [_claim_text(c) for c in originals] != texts:
        return texts
    return originals


def _matrix(claims: Sequence[RecordClaim], ids: Sequence[str]) -> list[list[Any]] | None:
    rows = [[as_label(claim.support.get(passage_id)) for passage_id in ids] for claim in claims]
    complete = bool(ids) and all(label in LABELS for row in rows for label in row)
    return rows if complete else None


def _is_talk(claim: RecordClaim) -> bool:
    """Tell a claim that has nothing to be supported, and was compared with nothing."""
    return claim.relevance == "IRRELEVANT" and not claim.support and claim.counterpart is None


FORMAT = Format(
    NAME,
    "RAGChecker JSON",
    ".json",
    recognise,
    read,
    write,
    losses=(
        'A file that is a bare list of results, or one a line, comes back as {"results": [...]}.',
        "Fields that are null are left out, and so is an empty list of metrics.",
        "A missing reference answer, response or text comes back as an empty one, since it is needed.",
        "Of several reference answers only the first is written.",
        "Labels that are none of RAGChecker's three words, and labels in lists of the wrong shape, are lost; "
        "a matrix is written only when every claim has a label for every passage.",
        "Support given as probabilities comes back as labels: Entailment from 0.5 on, Neutral below.",
        "Irrelevant claims that were compared with nothing are not written.",
        "Metrics over the whole file come back only while all its questions are there.",
        "Support by pairs of passages, passage titles, retrieval scores, sampled answers and what other "
        "tools reported are not written.",
    ),
)
