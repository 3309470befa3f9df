"""RAGChecker's JSON: questions, contexts, claims and entailment labels, as it reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.errors import InputError
from core.sources.content import Content
from core.sources.fields import Fields, as_id, read_each, text_problem, unique, without_null
from core.sources.formats.records import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    Format,
    ReadRecords,
    Record,
    RecordClaim,
    RecordPassage,
    count_names,
)
from core.sources.formats.writing import keep, keep_file, kept_file, to_document, with_kept
from core.sources.report import IssueLog, counted

NAME = "ragchecker"
LABELS = (ENTAILMENT, NEUTRAL, CONTRADICTION)
_ENTAILED_FROM = 0.5  # of a probability, as everywhere unless another threshold is chosen
_WANTED = "Entailment, Neutral or Contradiction"
# Side of a claim -> where the file has the claims, their labels per passage, and against the other text.
SIDES: Mapping[str, tuple[str, str, str]] = {
    "answer": ("response_claims", "retrieved2response", "answer2response"),
    "reference": ("gt_answer_claims", "retrieved2answer", "response2answer"),
}
_LISTS = tuple(name for names in SIDES.values() for name in names)
_TELLTALE = ("gt_answer", "retrieved_context", *_LISTS)
_COMMON = ("query_id", "query", "response")


def recognise(content: Content) -> int:
    """Count the names that only RAGChecker uses, and the common ones beside them."""
    return count_names(replace(content, entries=_entries(content), columns=()).names(), _TELLTALE, _COMMON)


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read what RAGChecker takes as input or gives as output."""
    entries = _entries(content)
    whole = content.value if isinstance(content.value, Mapping) else {}
    if not entries and not isinstance(whole.get("results"), list):
        raise InputError(
            f'{content.name} is not a RAGChecker file; expected a JSON object with a list "results".'
        )
    given = [as_id(entry.get("query_id")) if isinstance(entry, Mapping) else None for _, entry in entries]
    ids = dict(zip([row for row, _ in entries], unique(given, "q"), strict=True))
    records, rejected = read_each(entries, log, lambda row, entry: _record(Fields(entry, row, log), ids[row]))
    rest = {name: value for name, value in whole.items() if name not in ("results", "metrics")}
    metrics = {"metrics": whole["metrics"], "n": len(entries)} if whole.get("metrics") else {}
    notes: tuple[str, ...] = ()
    if changed := len(given) - len(set(given) - {None}):
        made = f"{counted(changed, 'question')} without one, or with that of another"
        notes = (f"Ids were made for {made}.",)
    return ReadRecords(keep_file(records, NAME, {"rest": rest, **metrics}), rejected, notes)


def write(records: Sequence[Record]) -> bytes:
    """Write ``{"results": [...]}``, with claims and labels where they are complete."""
    file = kept_file(records, NAME)
    value = {"results": [with_kept(NAME, record, _result(record)) for record in records]}
    # Averages over the whole file would be wrong of a part of it.
    metrics = file.get("metrics") if file.get("n") == len(records) else None
    rest = file.get("rest")
    return to_document(
        {**(rest if isinstance(rest, dict) else {}), **value, **({"metrics": metrics} if metrics else {})}
    )


def _entries(content: Content) -> Sequence[tuple[int, Any]]:
    if content.kind == "csv":
        return ()
    results = content.value.get("results") if isinstance(content.value, Mapping) else None
    return list(enumerate(results, start=1)) if isinstance(results, list) else content.entries


def _record(fields: Fields, record_id: str) -> Record:
    question = fields.required_text("query")
    reference = fields.text("gt_answer")
    passages = _passages(fields)
    claims = [c for side in SIDES for c in _claims_of(side, fields, passages)]
    fields.identifier("query_id")
    record = Record(
        record_id,
        question,
        fields.text("response"),
        passages,
        (reference,) if reference else (),
        claims=tuple(claims),
        reported={(name, NAME): value for name, value in fields.numbers("metrics").items()},
        judge=NAME if any(claim.support for claim in claims) else None,
    )
    return keep(NAME, record, _result(record), without_null(fields.record))


def _passages(fields: Fields) -> tuple[RecordPassage, ...]:
    texts, ids = [], []
    for place, context in enumerate(fields.items("retrieved_context")):
        path = f"retrieved_context[{place}]"
        whole = {"text": context} if isinstance(context, str) else context
        if not isinstance(whole, Mapping):
            # Its place stays, since the columns of the label matrices count on it.
            fields.warn(path, context, "an object with text and doc_id")
            whole = {}
        inner = fields.inner(whole, path)
        texts.append(inner.text("text"))
        ids.append(inner.identifier("doc_id"))
    return tuple(RecordPassage(i, text) for i, text in zip(unique(ids), texts, strict=True))


def _claims_of(side: str, fields: Fields, passages: Sequence[RecordPassage]) -> list[RecordClaim]:
    """Return the claims of one side with their labels."""
    name, matrix, counterpart = SIDES[side]
    raw = fields.items(name)
    labels = _label_matrix(fields, matrix, len(raw), len(passages))
    given = fields.items(counterpart)
    others = _labels_of(fields, counterpart, given, len(raw), "claim") if given else [None] * len(raw)
    claims = []
    for place, (claim, row, other) in enumerate(zip(raw, labels, others, strict=True)):
        text = _claim_text(claim)
        if text is None:
            fields.warn(f"{name}[{place}]", claim, "a text, or a triplet of texts")
            continue
        support = {p.passage_id: label for p, label in zip(passages, row, strict=True) if label is not None}
        claims.append(RecordClaim(text, side, support, other))
    return claims


def _claim_text(claim: object) -> str | None:
    """Return a claim as one text: RAGChecker has triplets of subject, predicate and object, or sentences."""
    parts = [claim] if isinstance(claim, str) else claim
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        return None
    text = " ".join(parts)
    return text if text.strip() and not text_problem(text) else None


def _result(record: Record) -> dict[str, Any]:
    result: dict[str, Any] = {
        "query_id": record.record_id,
        "query": record.question,
        "gt_answer": record.references[0] if record.references else "",
        "response": record.answer or "",
        "retrieved_context": [{"doc_id": p.passage_id, "text": p.text or ""} for p in record.passages],
    }
    for side, (name, matrix, counterpart) in SIDES.items():
        claims = [
            claim
            for claim in record.claims
            if claim.side == side
            and (claim.relevance != "IRRELEVANT" or claim.support or claim.counterpart is not None)
        ]
        if claims:
            result[name] = [claim.text for claim in claims]
            rows = [[_as_label(claim.support.get(p.passage_id)) for p in record.passages] for claim in claims]
            complete = record.passages and all(label in LABELS for row in rows for label in row)
            result[matrix] = rows if complete else None
            counterparts = [claim.counterpart for claim in claims]
            result[counterpart] = counterparts if all(counterparts) else None
    result["metrics"] = {name: value for (name, by), value in record.reported.items() if by == NAME}
    return {name: value for name, value in result.items() if value is not None and value != {}}


def _label_matrix(fields: Fields, name: str, n_claims: int, n_passages: int) -> list[Sequence[str | None]]:
    """Return the labels of each claim, one per passage; None where not given, or not as they should be."""
    matrix: Sequence[Any] = fields.items(name)
    if n_passages == 1 and not any(isinstance(row, list) for row in matrix):
        matrix = [[label] for label in matrix]  # labels of an only passage
    if matrix and len(matrix) == n_claims:
        return [_labels_of(fields, f"{name}[{place}]", row, n_passages) for place, row in enumerate(matrix)]
    if any(row != [] for row in matrix):
        fields.warn(name, matrix, f"{n_claims} rows (claims) of {n_passages} labels (passages)")
    return [[None] * n_passages] * n_claims


def _labels_of(fields: Fields, name: str, row: object, n: int, what: str = "passage") -> Sequence[str | None]:
    """Return ``n`` labels, None for anything else, with a warning."""
    if not isinstance(row, (list, tuple)) or len(row) != n:
        fields.warn(name, row, f"{n} labels, one per {what}")
        return [None] * n
    for place, label in enumerate(row):
        if label not in LABELS:
            fields.warn(f"{name}[{place}]", label, _WANTED)
    return [label if label in LABELS else None for label in row]


def _as_label(support: str | float | None) -> str | None:
    """Return a label as it is; a probability is Entailment from a half on, Neutral below."""
    if isinstance(support, float):
        return ENTAILMENT if support >= _ENTAILED_FROM else NEUTRAL
    return support if support in LABELS else None


FORMAT = Format(
    NAME,
    "RAGChecker JSON",
    ".json",
    recognise,
    read,
    write,
    losses=(
        'A file that is a bare list of results, or one a line, comes back as {"results": [...]}.',
        "Fields of a result that are null are left out.",
        "Of several reference answers only the first is written.",
        "Of other sources, a matrix is written only when every claim has a label for every passage.",
        "Support given as probabilities is written as labels: Entailment from 0.5 on, Neutral below.",
        "Irrelevant claims that were compared with nothing are not written.",
        "Metrics over the whole file come back only while all its questions are there.",
        "Support by pairs of passages, passage titles, retrieval scores, sampled answers and what other "
        "tools reported are not written.",
    ),
)
