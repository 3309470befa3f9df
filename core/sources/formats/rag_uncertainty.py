"""Results of rag_uncertainty: one entry for each sampled answer, with a claim-evidence matrix on its side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import InputError
from core.sources.formats.fields import Fields, as_number
from core.sources.formats.json_text import to_document
from core.sources.formats.kept import Kept, as_id, is_kept, keep, read_each
from core.sources.formats.messages import content_text
from core.sources.formats.records import ENTAILMENT, Record, RecordClaim, RecordPassage
from core.sources.formats.types import Content, Format, ReadRecords
from core.sources.report import IssueLog, counted, shorten

NAME = "rag-uncertainty"
SUPPORTED, NOT_SUPPORTED, IRRELEVANT = "SUPPORTED", "NOT_SUPPORTED", "IRRELEVANT"
MAX_SAMPLES = 100
# The second name is that of older versions.
_DETAILS = ("rafe_details", "safe_details")
_EVIDENCE = "cem_evidence_scores"
_TELLTALE = (*_DETAILS, "cem_matrix")
_COMMON = (
    *("category", "question", "answer", "atomic_facts", "sum_eigen", _EVIDENCE),
    *("semantic_entropy_global", "semantic_entropy_per_gen"),
)
_READ = (*_DETAILS, "cem_matrix", _EVIDENCE, "category", "question", "answer", "atomic_facts")
_PREFIX = f"{_EVIDENCE}."
_NUMBERED = re.compile(r"doc_(\d{1,6})")


def recognise(content: Content) -> int:
    """Count the names that only rag_uncertainty uses, and the common ones beside them."""
    if content.kind == "csv":
        return 0
    names = {name for _, entry in content.entries[:50] if isinstance(entry, Mapping) for name in entry}
    telltale = len(names.intersection(_TELLTALE))
    return telltale + len(names.intersection(_COMMON)) if telltale else 0


def read(content: Content, log: IssueLog) -> ReadRecords:
    """Read every entry as a record whose samples are the other answers to the same question."""
    if content.kind == "csv" or (content.value is not None and not isinstance(content.value, list)):
        raise InputError(
            f"{content.name} is not a results file of rag_uncertainty; expected a JSON list of entries with "
            "question, answer and rafe_details."
        )
    groups: dict[tuple[str, str], list[tuple[int, str | None]]] = {}
    for row, entry in content.entries:
        groups.setdefault(_group(row, entry), []).append((row, _answer(entry)))
    ids: dict[int, str] = {}
    samples: dict[int, tuple[str, ...]] = {}
    for number, members in enumerate(groups.values(), start=1):
        for place, (row, _) in enumerate(members, start=1):
            ids[row] = f"q{number:04d}.{place}" if len(members) > 1 else f"q{number:04d}"
            # Each answer stands with all others, so their number must not grow without bound.
            others = members if len(members) <= MAX_SAMPLES else []
            samples[row] = tuple(a for other, a in others if other != row and a is not None)
    records, rejected = read_each(
        content.entries, log, lambda row, entry: _record(Fields(entry, row, log), ids[row], samples[row])
    )
    largest = max((len(members) for members in groups.values()), default=0)
    return ReadRecords(records, rejected, len(content.entries), _notes(records, len(groups), largest))


def write(records: Sequence[Record]) -> bytes:
    """Write one entry for each record, in the form and orientation of rag_uncertainty."""
    return to_document([_entry(record) for record in records])


def _group(row: int, entry: object) -> tuple[str, str]:
    question = entry.get("question") if isinstance(entry, Mapping) else None
    category = entry.get("category") if isinstance(entry, Mapping) else None
    if not isinstance(question, str):
        return "", f"entry {row}"
    return question, category if isinstance(category, str) else ""


def _answer(entry: object) -> str | None:
    answer = entry.get("answer") if isinstance(entry, Mapping) else None
    return content_text(answer) if isinstance(answer, str) else None


def _notes(records: Sequence[Record], n_questions: int, largest: int) -> tuple[str, ...]:
    notes = []
    if n_questions < len(records):
        notes.append(
            f"{counted(n_questions, 'question')} with {len(records):,} answers: each answer is a record, and "
            "the other answers to its question are its samples."
        )
    if largest > MAX_SAMPLES:
        notes.append(f"Questions with more than {MAX_SAMPLES} answers are left without samples.")
    if any(claim.verdict for record in records for claim in record.claims):
        notes.append(
            "The verdicts rest on evidence searched for each claim, not on the passages of the matrix."
        )
    return tuple(notes)


def _record(fields: Fields, record_id: str, samples: tuple[str, ...]) -> Record:
    question, answer = fields.required_text("question"), fields.text("answer")
    kind = fields.text("category")
    documents, columns = _columns(fields)
    details, beyond = _details(fields)
    judged = dict.fromkeys(claim for column in columns.values() for claim in column)
    listed = {text for text, _ in details}
    claims = [*details, *((claim, None) for claim in judged if claim not in listed)]
    numbers, rest = _others(fields)
    facts = fields.record.get("atomic_facts")
    kept = {
        "details": beyond,
        "older": True if "rafe_details" not in fields.record and _DETAILS[1] in fields.record else None,
        "atomic_facts": None if facts == [text for text, _ in details] else facts,
        "no_facts": True if facts is None else None,
        "columns": {"names": list(columns)} if list(columns) != documents else None,
        "empty": {name: v for name in _READ if (v := fields.record.get(name)) in ([], {})},
        "rest": rest,
    }
    return Record(
        record_id,
        question,
        answer,
        tuple(RecordPassage(name, None) for name in documents),
        samples=samples,
        claims=tuple(_claim(text, label, columns, text in judged) for text, label in claims),
        reported={**numbers, **keep(NAME, "record", kept)},
        kind=kind,
    )


def _columns(fields: Fields) -> tuple[list[str], dict[str, dict[str, float | None]]]:
    """Return the documents in order, and the column of each: claim to 0 … 1, None where not judged."""
    columns: dict[str, dict[str, float | None]] = {}
    documents = []
    for document, column in fields.mapping("cem_matrix").items():
        path = f"cem_matrix.{shorten(document)}"
        if as_id(document) is None or not isinstance(column, Mapping):
            fields.warn(path, column, "a named document with its claims")
            continue
        documents.append(document)
        columns[document] = {}
        for claim, value in column.items():
            number = as_number(value)
            usable = number is not None and 0 <= number <= 1
            if content_text(claim) is None or not claim.strip():
                fields.warn(path, claim, "a claim that is a text")
                continue
            if not usable and value is not None:
                fields.warn(f"{path}.{shorten(claim)}", value, "0 or 1")
            columns[document][claim] = number if usable else None
    named = [name for name in fields.mapping(_EVIDENCE) if as_id(name) is not None]
    documents = list(dict.fromkeys([*documents, *named]))
    numbers = [_NUMBERED.fullmatch(name) for name in documents]
    if all(numbers):
        documents.sort(key=lambda name: int(name.removeprefix("doc_")))
    return documents, {name: columns[name] for name in documents if name in columns}


def _details(fields: Fields) -> tuple[list[tuple[str, str | None]], list[dict[str, Any]]]:
    """Return claims with their labels, and what else the file says of each."""
    claims: list[tuple[str, str | None]] = []
    beyond = []
    for place, detail in enumerate(fields.items(*_DETAILS)):
        path = f"{_DETAILS[0]}[{place}]"
        text = detail.get("claim") if isinstance(detail, Mapping) else None
        if not isinstance(text, str) or content_text(text) is None or not text.strip():
            fields.warn(path, detail, "an object with claim and label")
            continue
        label = detail.get("label")
        known = label in (SUPPORTED, NOT_SUPPORTED, IRRELEVANT)
        if not known and label is not None:
            fields.warn(f"{path}.label", label, f"{SUPPORTED}, {NOT_SUPPORTED} or {IRRELEVANT}")
        claims.append((text, label if known else None))
        beyond.append({k: v for k, v in detail.items() if k != "claim" and not (known and k == "label")})
    return claims, beyond


def _claim(
    text: str, label: str | None, columns: Mapping[str, Mapping[str, float | None]], judged: bool
) -> RecordClaim:
    # A claim that one column lists was put to every document: where another lacks it, it found no support.
    cells = {document: column.get(text, 0.0) for document, column in columns.items()} if judged else {}
    return RecordClaim(
        text,
        support={document: value for document, value in cells.items() if value is not None},
        relevance=None if label is None else "IRRELEVANT" if label == IRRELEVANT else "RELEVANT",
        verdict=None if label == IRRELEVANT else label,
    )


def _others(fields: Fields) -> tuple[dict[tuple[str, str], float], dict[str, Any]]:
    """Return the numbers that the entry reports, and all that is neither read nor a number."""
    numbers: dict[tuple[str, str], float] = {}
    rest = {}
    for document, value in fields.mapping(_EVIDENCE).items():
        number = as_number(value)
        if number is None or as_id(document) is None:
            fields.warn(f"{_EVIDENCE}.{shorten(document)}", value, "a named finite number")
        else:
            numbers[_PREFIX + document, ""] = number
    for name, value in fields.rest().items():
        number = as_number(value)
        if name in _READ:
            continue
        if number is None or as_id(name) is None or name.startswith(_EVIDENCE) or is_kept(name):
            rest[name] = value
        else:
            numbers[name, ""] = number
    return numbers, rest


def _entry(record: Record) -> dict[str, Any]:
    kept = Kept(record, NAME)
    claims = [claim for claim in record.claims if claim.side == "answer"]
    beyond = kept.items("details") or ([] if kept else [None] * len(claims))
    # Claims after those stood in the matrix only.
    details = [_detail(claim, more, record) for claim, more in zip(claims, beyond, strict=False)]
    facts = kept.values.get("atomic_facts", [detail["claim"] for detail in details])
    numbers = {name: v for (name, _), v in record.reported.items() if as_number(v) is not None}
    evidence = {n.removeprefix(_PREFIX): value for n, value in numbers.items() if n.startswith(_PREFIX)}
    entry = {
        "category": record.kind,
        "question": record.question,
        "answer": record.answer,
        "atomic_facts": None if kept.values.get("no_facts") else facts,
        _DETAILS[bool(kept.values.get("older"))]: details,
        **{name: v for name, v in numbers.items() if name not in _READ and not name.startswith(_PREFIX)},
        "cem_matrix": _matrix(record, claims, kept),
        _EVIDENCE: evidence if kept else _importance(record, claims),
    }
    # Of other sources the lists are written even when they are empty: the tool always has them.
    entry = {n: v for n, v in entry.items() if v is not None and (v not in ([], {}) or not kept)}
    return kept.mapping("rest") | kept.mapping("empty") | entry


def _detail(claim: RecordClaim, beyond: Any, record: Record) -> dict[str, Any]:
    label = IRRELEVANT if claim.relevance == IRRELEVANT else claim.verdict
    if isinstance(beyond, dict):
        return {"claim": claim.text, **({"label": label} if label else {}), **beyond}
    values = [_number(claim.support.get(passage.passage_id)) for passage in record.passages]
    numbers = [value for value in values if value is not None]
    # Only where every passage was judged is their uncertainty defined.
    score = 1 - sum(numbers) / len(values) if values and len(numbers) == len(values) else None
    return {"claim": claim.text, "label": label, "evidence": [], "uncertainty_score": score}


def _number(support: str | float | None) -> float | None:
    """Return a cell of the matrix: a probability as it is, 1 for Entailment and 0 for any other label."""
    if isinstance(support, str):
        return 1.0 if support == ENTAILMENT else 0.0
    return support


def _matrix(record: Record, claims: Sequence[RecordClaim], kept: Kept) -> dict[str, dict[str, Any]]:
    judged = [claim for claim in claims if claim.support]
    if not judged and not kept:
        return {}
    columns = kept.mapping("columns").get("names")
    documents = columns if isinstance(columns, list) else [passage.passage_id for passage in record.passages]
    return {
        str(document): {claim.text: _number(claim.support.get(str(document))) for claim in judged}
        for document in documents
    }


def _importance(record: Record, claims: Sequence[RecordClaim]) -> dict[str, float]:
    """Return the mean of each column, as rag_uncertainty defines the weight of a document."""
    means = {}
    for passage in record.passages:
        cells = [_number(claim.support.get(passage.passage_id)) for claim in claims]
        numbers = [cell for cell in cells if cell is not None]
        if numbers:
            means[passage.passage_id] = sum(numbers) / len(numbers)
    return means


FORMAT = Format(
    NAME,
    "rag_uncertainty results",
    ".json",
    recognise,
    read,
    write,
    losses=(
        "Fields that are null are left out, but for cells of the matrix.",
        "A claim that one column has and another lacks comes back as 0 there, as the tool reads it.",
        "Claims, documents and cells that cannot be used are lost, each with a warning.",
        "The cells of a claim are lost where all of them are null.",
        "Samples are not written: where the file had them, each is an entry of its own.",
        "Passage texts, titles and scores, reference answers and their claims are not written; labels of "
        "other judges become 1 for Entailment and 0 for the rest.",
    ),
)
