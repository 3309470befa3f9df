"""Verify what is not known yet of the claims of questions, then try pairs of passages.

A reference answer is often a bare value, "Suez Canal", and so is many an answer. Whether a text contains a
value can be read off without a verifier. Where it does not, a verifier that understands both texts may still
find the same said in other words. One that only compares words would be misled by those of the question,
which both sides share, so for it containment decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from core.claims.matrix import DEFAULT_SUPPORT
from core.claims.questions import ANSWER, REFERENCE, QuestionClaims, QuestionTexts
from core.claims.self_contained import self_contained
from core.claims.types import Claim, ClaimGroup, Floats, Ints, Judgement, Verifier
from core.claims.verifiers.checked import (
    CheckedVerifier,
    VerifierError,
    joint_support,
    most_alike_sentences,
)
from core.claims.verifiers.offline import OfflineVerifier
from core.errors import BackendError
from core.text.matching import is_correct

ENTAILMENT, NEUTRAL = "Entailment", "Neutral"


class Comparison(NamedTuple):
    """How claims, by their places, are compared with texts, of which one is enough to support them."""

    settled: Mapping[int, bool]  # whether the other text says the claim, where that could be read off
    asked: Mapping[tuple[str, ...], tuple[int, ...]]  # texts to show, with the claims to check


def compare(
    side: str, question: str, answer: str, claims: Sequence[Claim], references: Sequence[str], literal: bool
) -> Comparison:
    """Compare the relevant claims of the answer with the references, of which one is enough, or the reverse.

    Claims of the reference are those of the first. ``literal``: the verifier compares words, not meanings.
    """
    own, others = (answer, references) if side == ANSWER else (references[0], (answer,))
    if is_value(own, question):
        if side == ANSWER:
            said = any(_contains(answer, text) or _contains(text, answer) for text in references)
        else:  # any spelling of it will do
            said = any(_contains(answer, text) for text in references if is_value(text, question))
        if said or literal:
            return Comparison({i: said for i, claim in enumerate(claims) if claim.relevant}, {})
    values = {text for text in others if literal and is_value(text, question)}
    settled: dict[int, bool] = {}
    asked: dict[tuple[str, ...], tuple[int, ...]] = {}
    for i, claim in enumerate(claims):
        if claim.relevant:
            told = (text for text in others if text not in values or _contains(claim.text, text))
            if shown := tuple(premise(text, question) for text in told):
                asked[shown] = (*asked.get(shown, ()), i)
            else:
                settled[i] = False
    return Comparison(settled, asked)


def is_value(text: str, question: str) -> bool:
    """Tell whether a text is a bare value that says nothing without its question."""
    plain = " ".join(text.split())
    return bool(plain) and self_contained(Claim(plain), question).text != plain


def premise(text: str, question: str) -> str:
    """Return a text with the question it answers in front."""
    if is_value(text, question):
        return self_contained(Claim(" ".join(text.split())), question).text
    return f"{question.strip()}\n{text.strip()}"


def entailment_label(probabilities: Floats) -> str | None:
    """Return the label of a claim from its probability under each text; None where it is unknown."""
    if (probabilities >= DEFAULT_SUPPORT).any():
        return ENTAILMENT
    return None if np.isnan(probabilities).any() else NEUTRAL


def _contains(text: str, value: str) -> bool:
    return is_correct(text, [value]) is True


@dataclass(slots=True)
class Pairings:
    """What a verifier is asked about one question, and where the results belong.

    ``cells`` (rows and columns) are those of the first groups, ``compared`` (rows) those of the others.
    """

    groups: list[ClaimGroup] = field(default_factory=list)
    cells: list[tuple[list[int], list[int]]] = field(default_factory=list)
    compared: list[list[int]] = field(default_factory=list)
    settled: dict[int, str] = field(default_factory=dict)


def missing_pairings(texts: QuestionTexts, known: QuestionClaims, *, titled: bool) -> Pairings:
    """Return what is not known yet of a question's claims; titled: the verifier reads.

    Claims of answer and reference are never in one group: no verdict must depend on a reference answer.
    """
    asked = Pairings()
    evidence = texts.evidence(titled)
    for rows, columns in _unscored(known):
        asked.cells.append((rows, columns))
        asked.groups.append(([known.claims[i].text for i in rows], [evidence[j] for j in columns]))
    for side in (ANSWER, REFERENCE):
        places = [i for i, there in enumerate(known.sides) if there == side and known.counterparts[i] is None]
        if texts.is_compared and any(known.claims[i].relevant for i in places):
            claims = [known.claims[i] for i in places]
            found = compare(side, texts.question, texts.answer, claims, texts.references, not titled)
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
    """Verifies the claims of questions, by ``again`` what failed before; counts cells without a score."""

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
                filled = self._joined(texts, filled, {i for rows, _ in one.cells for i in rows}, verifier)
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
    known: QuestionClaims, asked: Pairings, found: Sequence[Judgement], sentences: Sequence[Ints]
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


def _why(found: Sequence[Judgement]) -> Counter[str]:
    """Count unscored cells by reason."""
    reasons: Counter[str] = Counter()
    for scores in found:
        if scores.reason:
            reasons[scores.reason] += int(np.isnan(scores.probability).sum())
    return reasons
