"""The claims of one answer with all that is known of them, and their places in its text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from core.claims.causal import causal_labels
from core.claims.layout import ablated_answers
from core.claims.matrix import ClaimEvidenceMatrix
from core.claims.types import Floats, Ints, Labels
from core.run import Run
from core.text.sentences import Span, read_span, sentence_spans
from core.text.words import ENGLISH, words

if TYPE_CHECKING:
    from core.claims.analysis import ClaimsAnalysis

_AROUND = " \t\n\r.,;:!?。，；：！？\"'“”‘’"


def claim_spans(claims: pd.DataFrame, answers: Sequence[str | None]) -> tuple[tuple[Span, ...], ...]:
    """Return every place of claims in their answers, given the rows of the table ``claims``."""
    columns = (claims["text"], claims["spans"], *(_whole_numbers(claims[name]) for name in ("start", "end")))
    return tuple(spans_of(*row) for row in zip(answers, *columns, strict=True))


def spans_of(answer: str | None, text: str, spans: object, start: object, end: object) -> tuple[Span, ...]:
    """Return every place of a claim in its answer, in order; found by its text where the run gives none.

    >>> spans_of("It opened in 1914. It is long.", "it is long", None, None, None)
    ((19, 29),)
    """
    if not answer:
        return ()
    given = [read_span(entry) for entry in spans] if isinstance(spans, (list, tuple)) else []
    places = {place for place in given if place is not None and _within(place, answer)}
    if not places and isinstance(start, int) and isinstance(end, int) and _within((start, end), answer):
        places = {(start, end)}
    return tuple(sorted(places)) or _found(answer, text)


def sentences_of(run: Run, support: Ints, passages: Ints) -> Labels:
    """Return the sentence of each cell, "" where none is known, given its rows in both tables (-1 = none)."""
    found = np.full(support.shape, "", dtype=object)
    given = np.flatnonzero(support.ravel() >= 0)
    rows = run["support"].iloc[support.ravel()[given]]
    texts = run.passages["text"].iloc[passages.ravel()[given]]
    columns = (_whole_numbers(rows[name]) for name in ("start", "end"))
    for cell, text, start, end in zip(given, texts, *columns, strict=True):
        if isinstance(text, str) and start is not None and end is not None and _within((start, end), text):
            found.flat[cell] = text[start:end].strip()
    return found


def sharing_most(claims: Sequence[str], passage: str) -> list[str]:
    """Return for each claim the sentence of a passage that shares most of its words; "" where none does.

    >>> sharing_most(["It opened in 1914.", "Coffee"], "Ships wait. The canal opened in 1914.")
    ['The canal opened in 1914.', '']
    """
    texts = [passage[start:end].strip() for start, end in sentence_spans(passage)]
    there = [set(words(text)) - ENGLISH for text in texts]
    found = []
    for claim in claims:
        wanted = set(words(claim))
        n, best = max(((len(wanted & said), -i) for i, said in enumerate(there)), default=(0, 0))
        found.append(texts[-best] if n else "")
    return found


def _whole_numbers(column: pd.Series) -> list[int | None]:
    """Return a column of whole numbers as plain ones, None where one is missing."""
    numbers = column.fillna(0).to_numpy(dtype=np.int64).tolist()
    return [number if known else None for number, known in zip(numbers, column.notna(), strict=True)]


def _within(place: Span, text: str) -> bool:
    return 0 <= place[0] < place[1] <= len(text)


def _found(answer: str, text: str) -> tuple[Span, ...]:
    wanted = text.strip(_AROUND)
    if not wanted:
        return ()
    at = answer.find(wanted)
    if at < 0 and len(lowered := answer.lower()) == len(answer):
        at = lowered.find(wanted.lower())
    return ((at, at + len(wanted)),) if at >= 0 else ()


@dataclass(frozen=True, slots=True, eq=False)
class AnswerClaims:
    """Claims and evidence of one answer; matrices are claims × passages."""

    query_id: str
    answer: str | None
    claim_ids: tuple[str, ...]
    passage_ids: tuple[str, ...]  # in the order of retrieval
    titles: tuple[str, ...]  # "" where one is missing
    spans: tuple[tuple[Span, ...], ...]  # of each claim in the answer, as `spans_of`
    matrix: ClaimEvidenceMatrix
    states: Labels  # of CLAIM_STATES, *joint* among them, which the matrix alone cannot tell
    verdicts: Labels  # of `core.claims.rafe.VERDICTS`
    causal: Labels | None  # `core.claims.causal.causal_labels`; None where no passage was left out
    sentences: Labels  # the most like the claim: as the verifier says, or by shared words; "" = none
    agreement: Floats | None  # of repeated verdicts; None where nothing was repeated
    joint: tuple[tuple[int, tuple[int, int], float], ...]  # of claims in the state *joint*, best first
    added: tuple[tuple[str, ...], ...]  # content words of each claim that are not in its span
    dropped: tuple[tuple[str, ...], ...]  # the reverse
    judge: str  # who verified; "" if nobody
    reason: str | None = None  # why grounding is undefined, of `core.claims.definitions.REASONS`


def answer_claims(found: ClaimsAnalysis, query: int) -> AnswerClaims:
    """Put together what is known of the claims of one answer, given the row of its question."""
    run, layout = found.run, found.layout
    asked = run.queries.iloc[query]
    answer, reason = (
        value if isinstance(value, str) else None
        for value in (asked["answer"], found.queries["reason"].iloc[query])
    )
    ids, block = layout.matrix(query, of_answer=True)
    claims, scored = layout.claims.iloc[ids], found.scores.iloc[ids]
    texts = claims["text"].to_list()
    rows = layout.passages_of(query)
    passages = run.passages.iloc[rows]
    support = layout.support[block]
    judge = judges_of(run, support)
    place = {claim: i for i, claim in enumerate(ids.tolist())}
    pairs = [
        (place[claim], (i, j), p)
        for claim, i, j, p in found.pairs
        if claim in place and scored["joint"].iloc[place[claim]]
    ]
    ablated = ablated_answers(passages)
    was_left_out = any(without is not None for without in ablated)
    sentences = sentences_of(run, support, np.broadcast_to(rows, block.shape))
    _fill_in(sentences, texts, passages["text"])
    return AnswerClaims(
        asked["query_id"],
        answer,
        tuple(claims["claim_id"]),
        tuple(passages["passage_id"]),
        tuple(passages["title"].fillna("")),
        claim_spans(claims, [answer] * len(claims)),
        ClaimEvidenceMatrix(
            tuple(texts),
            layout.probability[block],
            scored["relevant"].to_numpy(dtype=bool),
            found.threshold,
        ),
        scored["state"].to_numpy(dtype=object),
        scored["verdict"].to_numpy(dtype=object),
        causal_labels(texts, ablated, answer, asked["question"]) if was_left_out else None,
        sentences,
        _agreement(run, support),
        tuple(sorted(pairs, key=lambda pair: (pair[0], -pair[2]))),
        _words_of(claims["added"]),
        _words_of(claims["dropped"]),
        judge,
        reason,
    )


def judges_of(run: Run, support: Ints) -> str:
    """Name who verified cells, given their rows in the table ``support``; "" if none did."""
    names = run["support"]["judge"].iloc[support[support >= 0]].dropna().unique()
    return ", ".join(map(str, names))


def _words_of(column: pd.Series) -> tuple[tuple[str, ...], ...]:
    """Return a column of lists as tuples, empty where one is missing."""
    return tuple(tuple(words) if isinstance(words, list) else () for words in column)


def _fill_in(sentences: Labels, claims: Sequence[str], passages: Iterable[object]) -> None:
    """Fill in the sentence of a passage that shares most words with a claim where a file names none."""
    for j, passage in enumerate(passages):
        unknown = np.flatnonzero(sentences[:, j] == "")
        if unknown.size and isinstance(passage, str):
            sentences[unknown, j] = sharing_most([claims[int(i)] for i in unknown], passage)


def _agreement(run: Run, support: Ints) -> Floats | None:
    values = run["support"]["agreement"].to_numpy(dtype=np.float64, na_value=np.nan)
    found = np.where(support >= 0, values[support], np.nan) if values.size else np.full(support.shape, np.nan)
    return None if np.isnan(found).all() else found
