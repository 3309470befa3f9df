"""What can be computed from imported records, and what is missing for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.sources.formats.records import Record
from core.sources.report import possibilities
from core.text.strict import finite

LIVE = "continue live with the same passages"


def abilities(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """Say which analyses the records (one or more) enable, and what the others would need."""
    enables, missing = possibilities(records, _ANALYSES)
    needs = "needs answers with each passage left out"
    texts = any(passage.text and passage.text.strip() for record in records for passage in record.passages)
    how = f"; {LIVE} to get them" if texts else ", and passages with text to get them"
    return enables, [f"influence vs retrieval: {needs}{how}", *missing]


def _has_claims(record: Record) -> bool:
    return any(claim.side == "answer" and (claim.support or claim.verdict) for claim in record.claims)


_ANALYSES: tuple[tuple[str, Callable[[Record], bool], str], ...] = (
    ("empty answers and refusals", lambda r: r.answer is not None, "answers"),
    ("retrieval metrics", lambda r: any(p.is_gold is not None for p in r.passages), "gold passages"),
    (
        "correct and incorrect answers",
        lambda r: bool(r.references) and r.answer is not None,
        "answers and correct answers to compare them with",
    ),
    (
        "the file's own scores beside each question",
        lambda r: any(finite(value) is not None for value in r.reported.values()),
        "scores in the file",
    ),
    (
        "claims and evidence, with verdicts and uncertainty",
        _has_claims,
        "claims, which can be found offline where there are answers and passages with text",
    ),
    # Kept in the run and exported, nothing more yet.
    (
        "sampled answers, kept and exported",
        lambda r: len(r.samples) > 1,
        "two sampled answers or more a question",
    ),
)
