"""What the claims of a question are taken from, and what is left to be asked about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from core.claims.decomposition.decompose import Decomposition
from core.claims.decomposition.self_contained import self_contained
from core.claims.decomposition.split import split_claims
from core.claims.of_run.counterparts import ENTAILMENT, NEUTRAL, compare_answer, compare_reference
from core.claims.of_run.tables import ANSWER, REFERENCE, QuestionClaims, question_claims
from core.claims.types import Claim
from core.claims.verifiers.features import Group
from core.run import Run
from core.text.abstention import answer_status
from core.text.words import has_words, words


@dataclass(frozen=True, slots=True)
class ClaimQuestion:
    """A question of a run.

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

    def evidence(self, titled: bool) -> tuple[str, ...]:
        """Return the passages as judged; titled: with the title in front, as the model was shown them.

        A passage often says "it" of what only its title names, which a reader understands. A verifier that
        compares words takes those of a title for evidence and is better off without.
        """
        texts = (text for _, text in self.passages)
        return tuple(
            f"{title}: {text}" if titled and title and has_words(text) else text
            for title, text in zip(self.titles, texts, strict=True)
        )

    def in_passages(
        self, columns: Sequence[int], sentences: NDArray[np.int64], titled: bool
    ) -> NDArray[np.int64]:
        """Return character ranges of `evidence` as those of the passages' own texts; -1 within a title."""
        judged = self.evidence(titled)
        shift = np.array([len(judged[j]) - len(self.passages[j][1]) for j in columns], dtype=np.int64)
        moved = np.maximum(sentences - shift[:, None], 0)
        known = (sentences[..., :1] >= 0) & (moved[..., 1:] > 0)
        return np.where(known, moved, -1)

    @property
    def answered(self) -> bool:
        """Whether the answer states something."""
        return self.status == "answered"

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts to be broken into claims: the answer, if it states something, and the first reference.

        The other reference answers of a data set are other spellings of the first, or shorter: their claims
        would be the same ones again. They count where claims are compared with "the" reference.
        """
        return (*((self.answer,) if self.answered else ()), *self.references[:1])

    def claims(self, found: Sequence[Decomposition]) -> QuestionClaims:
        """Return the claims, self-contained and numbered, from what came of `texts`."""
        rest = list(found)
        if self.answered:
            answer = self._contained(rest.pop(0).claims)
        else:
            # An answer that declines as a whole states nothing to be judged, whatever it mentions.
            said = split_claims(self.answer) if self.status == "abstained" else ()
            answer = [replace(claim, relevant=False) for claim in said]
        reference = self._contained(rest.pop().claims) if self.references else []
        return question_claims(self.query_id, answer, reference, self.passages)

    def _contained(self, claims: Sequence[Claim]) -> list[Claim]:
        return [self_contained(claim, self.question) for claim in claims]


def claim_questions(run: Run, references: bool) -> list[ClaimQuestion]:
    """Return the questions of a run, in its order; without references where they are not wanted."""
    passages: dict[str, list[tuple[str, str]]] = {}
    titles: dict[str, list[str]] = {}
    ranked = run.passages.sort_values("retrieval_rank", kind="stable")
    named = (ranked[name] for name in ("query_id", "passage_id"))
    said = (ranked[name].astype("object").where(ranked[name].notna(), "") for name in ("text", "title"))
    for query_id, passage_id, text, title in zip(*named, *said, strict=True):
        passages.setdefault(query_id, []).append((passage_id, text))
        titles.setdefault(query_id, []).append(title.strip())
    found = []
    columns = ("query_id", "question", "answer", "answer_status", "reference_answers")
    for row in zip(*(run.queries[name].astype("object") for name in columns), strict=True):
        query_id, question, answer, status, right = row
        text = answer if isinstance(answer, str) else ""
        found.append(
            ClaimQuestion(
                query_id,
                question,
                text,
                status if isinstance(status, str) else answer_status(text),
                _different(right if references and isinstance(right, list) else ()),
                tuple(passages.get(query_id, ())),
                tuple(titles.get(query_id, ())),
            )
        )
    return found


def _different(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple({tuple(words(text)): text for text in reversed(texts) if has_words(text)}.values())[::-1]


@dataclass(slots=True)
class Asked:
    """What is asked about one question: groups for the verifier, and where their results belong.

    ``cells`` are rows and columns of the matrix, one for each of the first groups; ``compared`` are rows, one
    for each of the others. ``settled`` needs no verifier.
    """

    groups: list[Group] = field(default_factory=list)
    cells: list[tuple[list[int], list[int]]] = field(default_factory=list)
    compared: list[list[int]] = field(default_factory=list)
    settled: dict[int, str] = field(default_factory=dict)

    @property
    def rows(self) -> set[int]:
        """The claims of which some cell is asked about."""
        return {i for rows, _ in self.cells for i in rows}


def asked_about(question: ClaimQuestion, known: QuestionClaims, *, reads: bool) -> Asked:
    """Return what is not known yet of a question's claims.

    Claims of the answer and of the reference are never in one group: what a judge says of an answer must not
    depend on whether a reference answer is there.
    """
    asked = Asked()
    texts = question.evidence(titled=reads)
    for rows, columns in _unscored(known):
        asked.cells.append((rows, columns))
        asked.groups.append(([known.claims[i].text for i in rows], [texts[j] for j in columns]))
    if missing_counterparts(question, known):
        for side, compare in ((ANSWER, compare_answer), (REFERENCE, compare_reference)):
            places = [
                i for i, there in enumerate(known.sides) if there == side and known.counterparts[i] is None
            ]
            claims = [known.claims[i] for i in places]
            found = compare(question.question, question.answer, claims, question.references, not reads)
            for i, said in found.settled.items():
                asked.settled[places[i]] = ENTAILMENT if said else NEUTRAL
            for premises, chosen in found.asked.items():
                asked.compared.append([places[i] for i in chosen])
                asked.groups.append(([claims[i].text for i in chosen], premises))
    return asked


def missing_counterparts(question: ClaimQuestion, known: QuestionClaims) -> int:
    """Return how many claims are not compared with the other side, where both sides say something."""
    if not (question.answered and question.references):
        return 0
    return sum(
        claim.relevant and label is None
        for claim, label in zip(known.claims, known.counterparts, strict=True)
    )


def _unscored(known: QuestionClaims) -> Iterator[tuple[list[int], list[int]]]:
    """Yield rectangles of unscored cells: rows of one side, and the columns that lack the same rows."""
    for side in (ANSWER, REFERENCE):
        missing = known.unscored & np.array([there == side for there in known.sides], dtype=bool)[:, None]
        alike: dict[tuple[int, ...], list[int]] = {}
        for j in range(len(known.passage_ids)):
            rows = tuple(int(i) for i in np.flatnonzero(missing[:, j]))
            if rows:
                alike.setdefault(rows, []).append(j)
        yield from ((list(rows), columns) for rows, columns in alike.items())
