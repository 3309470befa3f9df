"""The texts of a question, its claims and their support: as arrays, as rows of the tables, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.claims import matrix
from core.claims.decomposition.decompose import Decomposition
from core.claims.decomposition.split import split_claims
from core.claims.rafe import NOT_SUPPORTED, SUPPORTED, verdicts
from core.claims.self_contained import self_contained
from core.claims.types import Bools, Claim, Floats, Ints
from core.claims.verifiers.checked import Joint
from core.text.abstention import answer_status
from core.text.sentences import read_span
from core.text.words import has_words, words


@dataclass(frozen=True, slots=True)
class QuestionTexts:
    """The texts of a question: references that have a word, passages (id, text) in retrieval order."""

    query_id: str
    question: str
    answer: str
    status: str
    references: tuple[str, ...]
    passages: tuple[tuple[str, str], ...]
    titles: tuple[str, ...]

    @classmethod
    def of(
        cls, query: Mapping[str, Any], passages: Sequence[Mapping[str, Any]], with_references: bool
    ) -> QuestionTexts:
        """Return the texts, given the question's rows of ``queries`` and ``passages``; None where missing."""
        answer = query["answer"] or ""
        ranked = sorted(
            passages, key=lambda row: math.inf if row["retrieval_rank"] is None else row["retrieval_rank"]
        )
        return cls(
            query["query_id"],
            query["question"],
            answer,
            query["answer_status"] or answer_status(answer),
            _different(query["reference_answers"] or ()) if with_references else (),
            tuple((row["passage_id"], row["text"] or "") for row in ranked),
            tuple((row["title"] or "").strip() for row in ranked),
        )

    def evidence(self, titled: bool) -> tuple[str, ...]:
        """Return the passages for a verifier; titled: as the model got them, since titles name their "it"."""
        texts = (text for _, text in self.passages)
        return tuple(
            f"{title}: {text}" if titled and title and has_words(text) else text
            for title, text in zip(self.titles, texts, strict=True)
        )

    def in_passages(self, columns: Sequence[int], sentences: Ints, titled: bool) -> Ints:
        """Return character ranges of `evidence` as those of the passages' own texts; -1 within a title."""
        shown = self.evidence(titled)
        shift = np.array([len(shown[j]) - len(self.passages[j][1]) for j in columns], dtype=np.int64)
        moved = np.maximum(sentences - shift[:, None], 0)
        known = (sentences[..., :1] >= 0) & (moved[..., 1:] > 0)
        return np.where(known, moved, -1)

    @property
    def answered(self) -> bool:
        """Whether the answer states something."""
        return self.status == "answered"

    @property
    def is_compared(self) -> bool:
        """Whether answer and reference both say something."""
        return self.answered and bool(self.references)

    @property
    def to_decompose(self) -> tuple[str, ...]:
        """The answer, if it states something, and the first reference: the others are spellings of it."""
        return (*((self.answer,) if self.answered else ()), *self.references[:1])

    def claims(self, decomposed: Sequence[Decomposition]) -> QuestionClaims:
        """Return the claims, self-contained and numbered, from the decompositions of `to_decompose`."""
        rest = list(decomposed)
        if self.answered:
            answer = self._contained(rest.pop(0).claims)
        else:
            # An answer that declines as a whole states nothing to be verified, whatever it mentions.
            said = split_claims(self.answer) if self.status == "abstained" else ()
            answer = [replace(claim, relevant=False) for claim in said]
        reference = self._contained(rest.pop().claims) if self.references else []
        return question_claims(self.query_id, answer, reference, self.passages)

    def _contained(self, claims: Sequence[Claim]) -> list[Claim]:
        return [self_contained(claim, self.question) for claim in claims]


def _different(texts: Sequence[str]) -> tuple[str, ...]:
    found: dict[tuple[str, ...], str] = {}
    for text in filter(has_words, texts):
        found.setdefault(tuple(words(text)), text)
    return tuple(found.values())


ANSWER, REFERENCE = "answer", "reference"
RELEVANT, IRRELEVANT = "RELEVANT", "IRRELEVANT"
_LETTER = {ANSWER: "a", REFERENCE: "r"}
CLAIM_TABLES = ("claims", "support", "joint_support")


@dataclass(frozen=True, slots=True)
class QuestionClaims:
    """The claims of a question, ``a1`` …, then ``r1`` … of the reference; matrices are claims × passages."""

    query_id: str
    claim_ids: tuple[str, ...]
    sides: tuple[str, ...]
    claims: tuple[Claim, ...]
    passage_ids: tuple[str, ...]
    readable: Bools  # of each passage; one without a word cannot be judged
    probability: Floats  # of support; NaN = unscored
    agreement: Floats  # of repeated verdicts; NaN where there are none
    sentences: Ints  # (…, 2): range in the passage of the sentence most like the claim; -1 = unknown
    counterparts: tuple[str | None, ...]  # whether the other text entails each claim; None = unknown
    joint: tuple[Joint, ...] = ()

    @property
    def relevant(self) -> Bools:
        """Which claims evidence could support."""
        return np.array([claim.relevant for claim in self.claims], dtype=bool)

    @property
    def cells(self) -> Bools:
        """Which cells exist: relevant claims × passages with words."""
        found: Bools = np.outer(self.relevant, self.readable)
        return found

    @property
    def unscored(self) -> Bools:
        """Which cells have no score."""
        found: Bools = self.cells & np.isnan(self.probability)
        return found


def question_claims(
    query_id: str,
    answer: Sequence[Claim],
    reference: Sequence[Claim],
    passages: Sequence[tuple[str, str]],
) -> QuestionClaims:
    """Put the claims of a question together, numbered; nothing is scored yet."""
    sides = (ANSWER,) * len(answer) + (REFERENCE,) * len(reference)
    numbers = [*range(1, len(answer) + 1), *range(1, len(reference) + 1)]
    shape = len(sides), len(passages)
    return QuestionClaims(
        query_id,
        tuple(f"{_LETTER[side]}{number}" for side, number in zip(sides, numbers, strict=True)),
        sides,
        (*answer, *reference),
        tuple(passage_id for passage_id, _ in passages),
        np.array([has_words(text) for _, text in passages], dtype=bool),
        np.full(shape, np.nan),
        np.full(shape, np.nan),
        np.full((*shape, 2), -1, dtype=np.int64),
        (None,) * len(sides),
    )


def claim_rows(questions: Iterable[QuestionClaims], judge: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the three tables, for questions in the order of the run."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in CLAIM_TABLES}
    for question in questions:
        rows["claims"] += _claim_rows(question)
        rows["support"] += _support_rows(question, judge)
        rows["joint_support"] += _joint_rows(question, judge)
    return rows


def _claim_rows(question: QuestionClaims) -> list[dict[str, Any]]:
    states = matrix.claim_states(question.probability)
    states[[claim for claim, _, _ in question.joint]] = matrix.JOINT
    states[~question.relevant] = matrix.IRRELEVANT
    found = verdicts(states).tolist()
    scored = np.any(question.cells & ~question.unscored, axis=1)
    rows = []
    for i, claim in enumerate(question.claims):
        spans = claim.spans if question.sides[i] == ANSWER else ()
        start, end = spans[0] if spans else (None, None)
        rows.append(
            {
                "query_id": question.query_id,
                "claim_id": question.claim_ids[i],
                "text": claim.text,
                "side": question.sides[i],
                "counterpart": question.counterparts[i],
                "start": start,
                "end": end,
                "spans": [f"{a}:{b}" for a, b in spans] or None,
                "added": list(claim.added),
                "dropped": list(claim.dropped),
                "relevance": RELEVANT if claim.relevant else IRRELEVANT,
                "verdict": found[i] if found[i] in (SUPPORTED, NOT_SUPPORTED) else None,
                "scored": bool(scored[i]),
            }
        )
    return rows


def _support_rows(question: QuestionClaims, judge: str) -> list[dict[str, Any]]:
    rows = []
    for i, j in np.argwhere(question.cells):
        start, end = (int(place) for place in question.sentences[i, j])
        rows.append(
            {
                "query_id": question.query_id,
                "claim_id": question.claim_ids[i],
                "passage_id": question.passage_ids[j],
                "probability": float(question.probability[i, j]),
                # A verifier gives probabilities; other tools read their own meaning into labels.
                "label": None,
                "judge": judge,
                "agreement": float(question.agreement[i, j]),
                "start": start if start >= 0 else None,
                "end": end if start >= 0 else None,
            }
        )
    return rows


def _joint_rows(question: QuestionClaims, judge: str) -> list[dict[str, Any]]:
    return [
        {
            "query_id": question.query_id,
            "claim_id": question.claim_ids[claim],
            "passage_id": question.passage_ids[i],
            "second_passage_id": question.passage_ids[j],
            "probability": probability,
            "judge": judge,
        }
        for claim, (i, j), probability in question.joint
    ]


def read_question(
    query_id: str, rows: Mapping[str, Sequence[Mapping[str, Any]]], passages: Sequence[tuple[str, str]]
) -> QuestionClaims:
    """Return what `claim_rows` wrote of a question, given its rows of each table; missing values are None."""
    claims = [
        Claim(
            row["text"],
            tuple(span for text in row["spans"] or () if (span := read_span(text))),
            row["relevance"] != IRRELEVANT,
            tuple(row["added"] or ()),
            tuple(row["dropped"] or ()),
        )
        for row in rows["claims"]
    ]
    found = replace(
        question_claims(query_id, claims, (), passages),
        claim_ids=tuple(row["claim_id"] for row in rows["claims"]),
        sides=tuple(REFERENCE if row["side"] == REFERENCE else ANSWER for row in rows["claims"]),
        counterparts=tuple(row["counterpart"] for row in rows["claims"]),
    )
    claim, passage = _places(found.claim_ids), _places(found.passage_ids)
    for row in rows["support"]:
        i, j = claim.get(row["claim_id"]), passage.get(row["passage_id"])
        if i is None or j is None:
            continue
        for values, name in ((found.probability, "probability"), (found.agreement, "agreement")):
            values[i, j] = np.nan if row[name] is None else row[name]
        if row["start"] is not None and row["end"] is not None:
            found.sentences[i, j] = row["start"], row["end"]
    joint = []
    for row in rows["joint_support"]:
        i, p = claim.get(row["claim_id"]), row["probability"]
        first, second = passage.get(row["passage_id"]), passage.get(row["second_passage_id"])
        if i is not None and first is not None and second is not None and p is not None:
            joint.append((i, (first, second), float(p)))
    return replace(found, joint=tuple(joint))


def _places(ids: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(ids)}
