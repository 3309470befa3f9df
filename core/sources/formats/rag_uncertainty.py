"""Results of rag_uncertainty: one entry for each sampled answer, with a claim-evidence matrix on its side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import InputError
from core.sources.content import Content
from core.sources.fields import Fields, as_id, read_each, without_null
from core.sources.formats.messages import content_text
from core.sources.formats.records import (
    ENTAILMENT,
    Format,
    ReadRecords,
    Record,
    RecordClaim,
    RecordPassage,
    count_names,
)
from core.sources.formats.writing import is_kept, keep, to_document, with_kept
from core.sources.report import IssueLog, counted, shorten
from core.text.strict import finite

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
    return count_names(content.names(), _TELLTALE, _COMMON)


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
            # Each answer is stored with all others, so their number must be bounded.
            others = members if len(members) <= MAX_SAMPLES else []
            samples[row] = tuple(a for other, a in others if other != row and a is not None)
    records, rejected = read_each(
        content.entries, log, lambda row, entry: _record(Fields(entry, row, log), ids[row], samples[row])
    )
    largest = max((len(members) for members in groups.values()), default=0)
    return ReadRecords(records, rejected, _notes(records, len(groups), largest))


def write(records: Sequence[Record]) -> bytes:
    """Write one entry for each record, in the form and orientation of rag_uncertainty."""
    return to_document([with_kept(NAME, record, _entry(record)) for record in records])


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
            "The verdicts come from evidence searched for each claim, not from the passages of the matrix."
        )
    return tuple(notes)


def _record(fields: Fields, record_id: str, samples: tuple[str, ...]) -> Record:
    question, answer = fields.required_text("question"), fields.text("answer")
    kind = fields.text("category")
    documents, columns = _columns(fields)
    details = _details(fields)
    judged = dict.fromkeys(claim for column in columns.values() for claim in column)
    listed = {text for text, _ in details}
    claims = [*details, *((claim, None) for claim in judged if claim not in listed)]
    record = Record(
        record_id,
        question,
        answer,
        tuple(RecordPassage(name, None) for name in documents),
        samples=samples,
        claims=tuple(_claim(text, label, columns, text in judged) for text, label in claims),
        reported=_numbers(fields),
        kind=kind,
    )
    return keep(NAME, record, _entry(record), without_null(fields.record))


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
            number = finite(value)
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


def _details(fields: Fields) -> list[tuple[str, str | None]]:
    """Return claims with their labels."""
    claims: list[tuple[str, str | None]] = []
    for place, detail in enumerate(fields.items(*_DETAILS)):
        path = f"{_DETAILS[0]}[{place}]"
        text = detail.get("claim") if isinstance(detail, Mapping) else None
        if not isinstance(text, str) or content_text(text) is None or not text.strip():
            fields.warn(path, detail, "an object with claim and label")
            continue
        label = detail.get("label")
        known = label in (SUPPORTED, NOT_SUPPORTED, IRRELEVANT)
        if label is not None and not known:
            fields.warn(f"{path}.label", label, f"{SUPPORTED}, {NOT_SUPPORTED} or {IRRELEVANT}")
        claims.append((text, label if known else None))
    return claims


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


def _numbers(fields: Fields) -> dict[tuple[str, str], float]:
    """Return the numbers that the entry reports."""
    numbers = {(_PREFIX + name, ""): value for name, value in fields.numbers(_EVIDENCE).items()}
    for name, value in fields.rest().items():
        number = finite(value)
        own = name in _READ or name.startswith(_EVIDENCE) or is_kept(name)
        if number is not None and as_id(name) and not own:
            numbers[name, ""] = number
    return numbers


def _entry(record: Record) -> dict[str, Any]:
    claims = [claim for claim in record.claims if claim.side == "answer"]
    judged = [claim for claim in claims if claim.support]
    numbers = {name: v for (name, _), v in record.reported.items() if finite(v) is not None}
    evidence = {n.removeprefix(_PREFIX): value for n, value in numbers.items() if n.startswith(_PREFIX)}
    entry = {
        "category": record.kind,
        "question": record.question,
        "answer": record.answer,
        "atomic_facts": [claim.text for claim in claims],
        _DETAILS[0]: [_detail(claim, record) for claim in claims],
        **{name: v for name, v in numbers.items() if name not in _READ and not name.startswith(_PREFIX)},
        "cem_matrix": {
            p.passage_id: {c.text: _number(c.support.get(p.passage_id)) for c in judged}
            for p in (record.passages if judged else ())
        },
        _EVIDENCE: evidence or _importance(record, claims),
    }
    return without_null(entry)


def _detail(claim: RecordClaim, record: Record) -> dict[str, Any]:
    label = IRRELEVANT if claim.relevance == IRRELEVANT else claim.verdict
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
        "Fields of an entry that are null are left out.",
        "Samples are not written: where the file had them, each is an entry of its own.",
        "Passage texts, titles and scores, reference answers and their claims are not written; labels of "
        "other judges become 1 for Entailment and 0 for the rest.",
    ),
)
