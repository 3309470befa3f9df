"""The claims of one answer with everything known of them: what a page draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.claims.matrix import ClaimEvidenceMatrix, Labels
from core.claims.of_run.cells import Cells, Ints
from core.claims.of_run.places import Span, excerpt, sharing_most, spans_of, whole_numbers
from core.claims.of_run.removals import ablated_answers, removal_labels
from core.claims.types import Floats
from core.run import Run


@dataclass(frozen=True, slots=True, eq=False)
class AnswerClaims:
    """Claims and evidence of one answer.

    Attributes
    ----------
    query_id, question : str
        The question.
    answer, answer_status : str or None
        The baseline answer as it is, and what became of it.
    claim_ids : tuple of str
        In the order of the table, which is that of the answer.
    passage_ids, titles : tuple of str
        In the order of retrieval; a title is "" where there is none.
    spans : tuple of tuple of (int, int)
        Where the answer says each claim: half-open character ranges. Found by their text where the run gives
        no place; empty where that fails too.
    matrix : ClaimEvidenceMatrix
        Claims (their texts) × passages (their ids).
    states, verdicts : ndarray of str
        One of ``CLAIM_STATES`` (with *joint*, which the matrix alone cannot tell) and of
        `core.claims.rafe.VERDICTS` for every claim.
    causal : ndarray of str or None
        Claims × passages: what became of the claim without the passage, as
        `core.claims.causal.causal_labels`; None where no passage was left out.
    sentences : ndarray of str
        Claims × passages: the sentence of the passage that is most like the claim, as the verifier says, or
        else the one that shares most words with it; "" where there is none.
    agreement : ndarray of float or None
        Claims × passages: agreement of repeated verdicts; None where nothing was repeated.
    joint : tuple of (int, (int, int), float)
        Claim, pair of passages, and the probability that the two support the claim together; only for claims
        in the state *joint*, best first.
    added, dropped : tuple of tuple of str
        For each claim the content words that it has and its place in the answer has not, and the reverse.
    judge : str
        Who judged; "" where nobody did.
    reason : str or None
        Why grounding is undefined: a key of `core.claims.definitions.REASONS`.
    """

    query_id: str
    question: str
    answer: str | None
    answer_status: str | None
    claim_ids: tuple[str, ...]
    passage_ids: tuple[str, ...]
    titles: tuple[str, ...]
    spans: tuple[tuple[Span, ...], ...]
    matrix: ClaimEvidenceMatrix
    states: Labels
    verdicts: Labels
    causal: Labels | None
    sentences: Labels
    agreement: Floats | None
    joint: tuple[tuple[int, tuple[int, int], float], ...]
    added: tuple[tuple[str, ...], ...]
    dropped: tuple[tuple[str, ...], ...]
    judge: str
    reason: str | None = None


def answer_claims(
    run: Run,
    cells: Cells,
    scores: pd.DataFrame,
    joint: Sequence[tuple[int, int, int, float]],
    query: int,
    reason: str | None,
    threshold: float,
) -> AnswerClaims:
    """Put together what is known of the claims of one answer.

    Parameters
    ----------
    run : Run
        The run.
    cells, scores, joint
        Its layout, `claim_scores` and `joint_rows`.
    query : int
        Row of the question.
    reason : str or None
        Why its grounding is undefined.
    threshold : float
        From here on a passage supports a claim.
    """
    asked = run.queries.iloc[query]
    answer = asked["answer"] if isinstance(asked["answer"], str) else None
    status = asked["answer_status"] if isinstance(asked["answer_status"], str) else None
    ids, block = cells.matrix(query, answer=True)
    claims, scored = cells.claims.iloc[ids], scores.iloc[ids]
    texts = claims["text"].to_list()
    rows = _passage_rows(run, cells, query, str(asked["query_id"]))
    passages = run.passages.iloc[rows]
    if block.shape[1] != rows.size:
        block = np.empty((0, rows.size), dtype=np.int64)
    support, judge = cells.support[block], judges_of(run, cells.support[block])
    place = {claim: i for i, claim in enumerate(ids.tolist())}
    pairs = [(place[c], (i, j), p) for c, i, j, p in joint if c in place and scored["joint"].iloc[place[c]]]
    ablated = ablated_answers(passages)
    return AnswerClaims(
        str(asked["query_id"]),
        str(asked["question"]),
        answer,
        status,
        tuple(claims["claim_id"]),
        tuple(passages["passage_id"]),
        tuple(passages["title"].fillna("")),
        claim_spans(claims, [answer] * len(claims)),
        ClaimEvidenceMatrix(
            tuple(texts),
            tuple(passages["passage_id"]),
            cells.probability[block],
            scored["relevant"].to_numpy(dtype=bool),
            judge,
            threshold,
        ),
        scored["state"].to_numpy(dtype=object),
        scored["verdict"].to_numpy(dtype=object),
        removal_labels(texts, ablated, answer, str(asked["question"])),
        _filled(sentences_of(run, support, np.broadcast_to(rows, block.shape)), texts, passages["text"]),
        _agreement(run, support),
        tuple(sorted(pairs, key=lambda pair: (pair[0], -pair[2]))),
        words_of(claims["added"]),
        words_of(claims["dropped"]),
        judge,
        reason,
    )


def claim_spans(claims: pd.DataFrame, answers: Sequence[str | None]) -> tuple[tuple[Span, ...], ...]:
    """Return the places of claims in their answers."""
    columns = (
        claims["text"],
        claims["spans"],
        *(whole_numbers(claims[c]) for c in ("start", "end")),
    )
    return tuple(
        spans_of(answer, text, spans, start, end)
        for answer, text, spans, start, end in zip(answers, *columns, strict=True)
    )


def words_of(column: pd.Series) -> tuple[tuple[str, ...], ...]:
    """Return a column of lists as tuples, empty where there is none."""
    return tuple(tuple(words) if isinstance(words, list) else () for words in column)


def judges_of(run: Run, support: Ints) -> str:
    """Name who judged cells, given their rows in the table ``support``."""
    rows = support[support >= 0]
    names = run["support"]["judge"].iloc[rows].dropna().unique() if rows.size else []
    return ", ".join(map(str, names))


def sentences_of(run: Run, support: Ints, passages: Ints) -> Labels:
    """Return for cells the sentence meant, given their rows in ``support`` and ``passages``."""
    found = np.full(support.shape, "", dtype=object)
    given = np.flatnonzero(support.ravel() >= 0)
    rows = run["support"].iloc[support.ravel()[given]]
    texts = run.passages["text"].iloc[passages.ravel()[given]]
    columns = (whole_numbers(rows[name]) for name in ("start", "end"))
    for cell, text, start, end in zip(given, texts, *columns, strict=True):
        found.flat[cell] = excerpt(text, start, end)
    return found


def _filled(sentences: Labels, claims: Sequence[str], passages: Iterable[object]) -> Labels:
    """Fill in what a file does not say: which sentence of a passage shares most words with a claim."""
    for j, passage in enumerate(passages):
        unknown = np.flatnonzero(sentences[:, j] == "")
        if unknown.size and isinstance(passage, str):
            for i, found in zip(
                unknown, sharing_most([claims[int(i)] for i in unknown], passage), strict=True
            ):
                sentences[i, j] = found
    return sentences


def _agreement(run: Run, support: Ints) -> Floats | None:
    values = run["support"]["agreement"].to_numpy(dtype=np.float64, na_value=np.nan)
    found = np.where(support >= 0, values[support], np.nan) if values.size else np.full(support.shape, np.nan)
    return None if np.isnan(found).all() else found


def _passage_rows(run: Run, cells: Cells, query: int, query_id: str) -> Ints:
    """Rows of a question's passages by rank, also where there are no claims and so no layout."""
    rows = cells.passages_of(query)
    if not rows.size:
        rows = np.flatnonzero((run.passages["query_id"] == query_id).to_numpy(dtype=bool))
        rank = run.passages["retrieval_rank"].to_numpy(dtype=np.float64)[rows]
        rows = rows[np.argsort(rank, kind="stable")]
    return rows
