"""What can be computed from imported records, and what is missing for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.sources.formats.fields import as_number
from core.sources.formats.records import Record

LIVE = "continue live with the same passages"


def abilities(records: Sequence[Record]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say which analyses the records enable, and what the others would need.

    Parameters
    ----------
    records : sequence of Record
        At least one.

    Returns
    -------
    enables, missing : tuple of str
        One line an analysis; where only some questions bring what is needed, how many.
    """
    enables, missing = [], [f"influence vs retrieval: {_influence_needs(records)}"]
    for what, test, needs in _ANALYSES:
        n = sum(map(test, records))
        if n:
            share = "" if n == len(records) else f" ({n:,} of {len(records):,} questions)"
            enables.append(what + share)
        else:
            missing.append(f"{what}: needs {needs}")
    return tuple(enables), tuple(missing)


def has_texts(record: Record) -> bool:
    """Tell whether there is a passage with text."""
    return any(passage.text and passage.text.strip() for passage in record.passages)


def _influence_needs(records: Sequence[Record]) -> str:
    if any(map(has_texts, records)):
        return f"needs answers with each passage left out; {LIVE} to get them"
    return "needs answers with each passage left out, and passages with text to get them"


def _has_answer(record: Record) -> bool:
    return record.answer is not None


def _has_claims(record: Record) -> bool:
    return any(claim.side == "answer" and (claim.support or claim.verdict) for claim in record.claims)


def _has_samples(record: Record) -> bool:
    return len(record.samples) > 1


def _has_gold(record: Record) -> bool:
    return any(passage.is_gold is not None for passage in record.passages)


def _has_references(record: Record) -> bool:
    return bool(record.references) and record.answer is not None


def _has_reported(record: Record) -> bool:
    return any(as_number(value) is not None for value in record.reported.values())


_ANALYSES: tuple[tuple[str, Callable[[Record], bool], str], ...] = (
    ("empty answers and refusals", _has_answer, "answers"),
    ("retrieval metrics", _has_gold, "gold passages"),
    ("right and wrong answers", _has_references, "answers and right answers to compare them with"),
    ("the file's own scores beside each question", _has_reported, "scores in the file"),
    (
        "claims and evidence, with verdicts and uncertainty",
        _has_claims,
        "claims, which can be found offline where there are answers and passages with text",
    ),
    # Kept in the run and exported, nothing more yet.
    ("sampled answers, kept and exported", _has_samples, "two sampled answers or more a question"),
)
