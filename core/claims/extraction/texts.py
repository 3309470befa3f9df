"""The texts that the claims of a question are extracted from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.claims.decomposition.decompose import Decomposition
from core.claims.decomposition.split import split_claims
from core.claims.extraction.question_claims import QuestionClaims, question_claims
from core.claims.language.self_contained import self_contained
from core.claims.types import Claim, Ints
from core.text.abstention import answer_status
from core.text.words import has_words, words


@dataclass(frozen=True, slots=True)
class QuestionTexts:
    """The texts of a question.

    ``references`` are the reference answers that have a word, each once; ``passages`` are ids and texts in
    retrieval order, ``titles`` those of their documents, empty where there is none.
    """

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
        """Return the passages for a verifier; titled: with the title in front, as the model got them.

        A passage often says "it" of what only its title names, which a reader understands. A verifier that
        compares words would take those of a title for evidence.
        """
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
        """The answer, if it states something, and the first reference.

        The other references of a data set are other spellings of the first, or shorter, and would give the
        same claims again. They count where claims are compared with "the" reference.
        """
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
    return tuple({tuple(words(text)): text for text in reversed(texts) if has_words(text)}.values())[::-1]
