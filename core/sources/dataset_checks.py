"""What is said of a data set as a whole: its digest, its odd lines, what a run of it will show."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from core.sources.gold import gold_spans
from core.sources.question import Question
from core.sources.report import IssueLog

# Looking for gold fragments that stand nowhere reads every document for every question.
_MAX_GOLD_SEARCH = 20_000_000


def digest_of(questions: Sequence[Question]) -> str:
    """Return the SHA-256 over questions and their documents: equal content, equal digest."""
    digest = hashlib.sha256()
    corpora: dict[int, str] = {}
    for q in questions:
        key = id(q.documents)
        if key not in corpora:
            corpora[key] = _hash([[d.title, d.text] for d in q.documents])
        passages = q.passages and [[p.passage_id, p.title, p.text, p.score, p.is_gold] for p in q.passages]
        rest = [
            q.query_id,
            q.question,
            corpora[key],
            passages,
            q.reference_answers,
            q.gold,
            q.kind,
            q.language,
        ]
        # Only where it is known, so that digests of data sets without it stay what they were.
        known = [q.n_gold] if q.n_gold is not None else []
        digest.update(_hash([*rest, *known]).encode())
    return digest.hexdigest()


def note_oddities(log: IssueLog, row: int, question: Question) -> None:
    """Note what is odd but can be run: gold that stands nowhere, the same passage twice."""
    texts = [passage.text for passage in question.passages or ()]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        log.add(row, "passages", twice, "passages that differ within the question", "warning")
    if not question.gold:
        return
    texts += [document.text for document in question.documents]
    if sum(map(len, texts)) > _MAX_GOLD_SEARCH:
        return
    for fragment in question.gold:
        if not any(gold_spans(text, [fragment]) for text in texts):
            log.add(row, "gold", fragment, "a fragment that stands word for word in the documents", "warning")


def possible(questions: Sequence[Question]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say what a run of these questions will show, and what it cannot."""
    referenced = sum(bool(q.reference_answers) for q in questions)
    golden = sum(bool(q.gold) or any(p.is_gold is not None for p in q.passages or ()) for q in questions)
    enables: list[str] = ["influence vs retrieval"]
    missing: list[str] = []
    for count, what, needs in (
        (referenced, "right and wrong answers, harmful passages", "answers"),
        (golden, "missed evidence", "gold, or is_gold of each passage"),
        (golden, "hit, recall, MRR and nDCG of the retriever", "gold, or is_gold of each passage"),
    ):
        share = "" if count == len(questions) else f" ({count} of {len(questions)} questions)"
        (enables if count else missing).append(f"{what}{share}" if count else f"{what}: needs {needs}")
    return tuple(enables), tuple(missing)


def nothing_usable(source: str, n_rows: int, log: IssueLog) -> str:
    """Say why a file gives no question at all."""
    first = log.first_error
    if first is None:
        return f"{source} holds no question; expected one JSON object a line, or CSV with a column question."
    return (
        f"None of the {n_rows:,} lines of {source} can be used: line {first.row}, field {first.column}: "
        f"found {first.value!r}, expected {first.expected}."
    )


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
