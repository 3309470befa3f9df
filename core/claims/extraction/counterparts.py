"""Whether the reference answer says what the answer claims, and the reverse.

A reference answer is often a bare value, "Suez Canal", and so is many an answer. Whether a text contains a
value can be read off without a verifier. Where it does not, a verifier that understands both texts may still
find the same said in other words. One that only compares words would be misled by those of the question,
which both sides share, so for it containment decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from core.claims.language.self_contained import self_contained
from core.claims.three_valued import DEFAULT_SUPPORT
from core.claims.types import Claim, Floats
from core.text.matching import is_correct

ENTAILMENT, NEUTRAL = "Entailment", "Neutral"


class Comparison(NamedTuple):
    """How the claims of one text are to be compared with other texts; claims are named by their places.

    One of the texts that are shown to a verifier is enough to support a claim.
    """

    settled: Mapping[int, bool]  # whether the other text says the claim, where that could be read off
    asked: Mapping[tuple[str, ...], tuple[int, ...]]  # texts to show, with the claims to check


def compare_answer(
    question: str, answer: str, claims: Sequence[Claim], references: Sequence[str], literal: bool
) -> Comparison:
    """Compare the relevant claims of an answer with the reference answers, of which one is enough.

    ``literal``: the verifier compares words rather than meanings.
    """
    if is_value(answer, question):
        said = any(_contains(answer, text) or _contains(text, answer) for text in references)
        if said or literal:
            return _all(claims, said)
    values = {text for text in references if is_value(text, question)}
    settled: dict[int, bool] = {}
    asked: dict[tuple[str, ...], tuple[int, ...]] = {}
    for i, claim in enumerate(claims):
        if not claim.relevant:
            continue
        shown = tuple(
            premise(text, question)
            for text in references
            if not literal or text not in values or _contains(claim.text, text)
        )
        if shown:
            asked[shown] = (*asked.get(shown, ()), i)
        else:
            settled[i] = False
    return Comparison(settled, asked)


def compare_reference(
    question: str, answer: str, claims: Sequence[Claim], references: Sequence[str], literal: bool
) -> Comparison:
    """Compare the claims of the first reference answer with the answer, as `compare_answer`."""
    if is_value(references[0], question):
        # Any spelling of it will do.
        said = any(_contains(answer, text) for text in references if is_value(text, question))
        if said or literal:
            return _all(claims, said)
    by_words = literal and is_value(answer, question)
    relevant = [i for i, claim in enumerate(claims) if claim.relevant]
    asked = tuple(i for i in relevant if not by_words or _contains(claims[i].text, answer))
    settled = {i: False for i in relevant if i not in asked}
    return Comparison(settled, {(premise(answer, question),): asked} if asked else {})


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


def _all(claims: Sequence[Claim], said: bool) -> Comparison:
    return Comparison({i: said for i, claim in enumerate(claims) if claim.relevant}, {})


def _contains(text: str, value: str) -> bool:
    return is_correct(text, [value]) is True
