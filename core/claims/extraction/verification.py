"""Verify what is not known yet of the claims of questions, then try pairs of passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.claims.extraction.counterparts import (
    ENTAILMENT,
    NEUTRAL,
    compare_answer,
    compare_reference,
    entailment_label,
)
from core.claims.extraction.question_claims import ANSWER, REFERENCE, QuestionClaims
from core.claims.extraction.texts import QuestionTexts
from core.claims.types import ClaimGroup, Ints, Verifier
from core.claims.verifiers.checked import CheckedVerifier, SupportScores, VerifierError, most_alike_sentences
from core.claims.verifiers.joint import joint_support
from core.claims.verifiers.offline import OfflineVerifier
from core.errors import BackendError


@dataclass(slots=True)
class Pairings:
    """What a verifier is asked about one question, and where the results belong.

    ``cells`` are rows and columns of the matrix, one for each of the first groups; ``compared`` are rows, one
    for each of the others. ``settled`` needs no verifier.
    """

    groups: list[ClaimGroup] = field(default_factory=list)
    cells: list[tuple[list[int], list[int]]] = field(default_factory=list)
    compared: list[list[int]] = field(default_factory=list)
    settled: dict[int, str] = field(default_factory=dict)

    @property
    def rows(self) -> set[int]:
        """The claims that have a cell among those asked about."""
        return {i for rows, _ in self.cells for i in rows}


def missing_pairings(texts: QuestionTexts, known: QuestionClaims, *, titled: bool) -> Pairings:
    """Return what is not known yet of a question's claims.

    Claims of the answer and of the reference are never in one group: the verdict on an answer must not depend
    on whether a reference answer exists. ``titled``: the verifier reads, rather than compares words.
    """
    asked = Pairings()
    evidence = texts.evidence(titled)
    for rows, columns in _unscored(known):
        asked.cells.append((rows, columns))
        asked.groups.append(([known.claims[i].text for i in rows], [evidence[j] for j in columns]))
    for side, compare in ((ANSWER, compare_answer), (REFERENCE, compare_reference)):
        places = [i for i, there in enumerate(known.sides) if there == side and known.counterparts[i] is None]
        if texts.is_compared and any(known.claims[i].relevant for i in places):
            claims = [known.claims[i] for i in places]
            found = compare(texts.question, texts.answer, claims, texts.references, not titled)
            for i, said in found.settled.items():
                asked.settled[places[i]] = ENTAILMENT if said else NEUTRAL
            for premises, chosen in found.asked.items():
                asked.compared.append([places[i] for i in chosen])
                asked.groups.append(([claims[i].text for i in chosen], premises))
    return asked


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


class Verification:
    """Verifies the claims of questions and remembers what failed.

    ``again`` verifies what failed before. ``joint_left`` are the questions whose pairs of passages are still
    to be verified; ``reasons`` counts, for each question, the cells without a score by reason. Errors are
    those of `core.claims.verifiers.checked.CheckedVerifier.judge`.
    """

    def __init__(
        self, verifier: Verifier, again: Verifier, joint: bool, joint_left: Iterable[str] = ()
    ) -> None:
        self.name = verifier.name
        self.joint_left = set(joint_left)
        self.reasons: dict[str, Counter[str]] = {}
        self._verifier, self._joint = verifier, joint
        # The offline verifier compares words, every other is assumed to understand what it reads.
        self._titled = not isinstance(verifier, OfflineVerifier)
        self._first = CheckedVerifier(verifier)
        # Cells that failed before may always fail: that does not mean that the model cannot be reached.
        self._again = CheckedVerifier(again, is_alive=True)

    def failed(self, known: QuestionClaims, reason: str) -> None:
        """Record that the cells of a question have no score."""
        self.reasons[known.query_id] = Counter({reason: int(known.unscored.sum())})

    def verified(
        self, listed: Sequence[tuple[QuestionTexts, QuestionClaims]], again: bool
    ) -> list[QuestionClaims]:
        """Return the claims of questions with their support; again: an earlier drive left them incomplete."""
        verifier = self._again if again else self._first
        pairings = [missing_pairings(texts, known, titled=self._titled) for texts, known in listed]
        scores = iter(verifier.judge([group for one in pairings for group in one.groups]))
        cells = [group for one in pairings for group in one.groups[: len(one.cells)]]
        sentences = iter(most_alike_sentences(self._verifier, cells) if cells else ())
        found = []
        for (texts, known), one in zip(listed, pairings, strict=True):
            said = [next(scores) for _ in one.groups]
            places = [texts.in_passages(columns, next(sentences), self._titled) for _, columns in one.cells]
            self.reasons[texts.query_id] = _why(said[: len(one.cells)])
            filled = _filled(known, one, said, places)
            if self._joint and one.cells:
                self.joint_left.add(texts.query_id)
            if texts.query_id in self.joint_left:
                filled = self._joined(texts, filled, one.rows, verifier)
            found.append(filled)
        return found

    def _joined(
        self, texts: QuestionTexts, known: QuestionClaims, changed: set[int], verifier: CheckedVerifier
    ) -> QuestionClaims:
        """Try pairs of passages for answer claims with new cells, or for all where it failed before."""
        rows = [
            i
            for i, side in enumerate(known.sides)
            if side == ANSWER and known.claims[i].relevant and (i in changed or not changed)
        ]
        columns = np.flatnonzero(known.readable)
        evidence, n_failed = texts.evidence(titled=self._titled), verifier.n_failed
        try:
            pairs = joint_support(
                [known.claims[i].text for i in rows],
                [evidence[j] for j in columns],
                known.probability[np.ix_(np.array(rows, dtype=np.int64), columns)],
                verifier,
            )
        except (BackendError, VerifierError):  # the cells are known all the same
            return known
        if verifier.n_failed == n_failed:
            self.joint_left.discard(texts.query_id)
        joint = [one for one in known.joint if one[0] not in rows]
        joint += [(rows[i], (int(columns[a]), int(columns[b])), p) for i, (a, b), p in pairs]
        return replace(known, joint=tuple(sorted(joint, key=lambda one: one[0])))


def _filled(
    known: QuestionClaims, asked: Pairings, found: Sequence[SupportScores], sentences: Sequence[Ints]
) -> QuestionClaims:
    """Put the scores into place."""
    for (rows, columns), scores, places in zip(asked.cells, found, sentences, strict=False):
        area = np.ix_(np.array(rows), np.array(columns))
        known.probability[area] = scores.probability
        known.agreement[area] = scores.agreement
        known.sentences[area] = places
    labels = list(known.counterparts)
    for place, label in asked.settled.items():
        labels[place] = label
    for rows, scores in zip(asked.compared, found[len(asked.cells) :], strict=True):
        for place, probabilities in zip(rows, scores.probability, strict=True):
            labels[place] = entailment_label(probabilities)
    return replace(known, counterparts=tuple(labels))


def _why(found: Sequence[SupportScores]) -> Counter[str]:
    """Count unscored cells by reason."""
    reasons: Counter[str] = Counter()
    for scores in found:
        if scores.reason:
            reasons[scores.reason] += int(np.isnan(scores.probability).sum())
    return reasons
