"""The arms: every one makes the passages of a new prompt, the way one fix would.

An arm is a value in a table, so that a re-ranker, a smaller k or another prompt style is one more line:

>>> shorter = Arm("three", "Three passages", lambda case: case.passages[:3])
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.text.matching import says
from core.text.reading import content_stems
from core.text.sentences import sentences
from core.text.words import words

LABELLED, SUFFICIENT, BY_REFERENCE = "labelled", "sufficient", "reference"  # how gold was found


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage as a prompt shows it; ``label`` is its number in the run's prompt, 0 if it was not there."""

    passage_id: str
    title: str
    text: str
    label: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """A question as an arm sees it.

    ``passages`` are those of the run's prompt, in its order. Of the gold passages, ``gold`` are the ids of
    those in the prompt and ``missing`` those that were not retrieved; ``whole`` is False where some gold
    passage has no known text; ``gold_by`` says how they were found, "" where none is known. ``evidence`` has
    the fragments that make a passage gold, by id.
    """

    query_id: str
    question: str
    passages: tuple[Shown, ...]
    gold: frozenset[str] = frozenset()
    missing: tuple[Shown, ...] = ()
    whole: bool = True
    gold_by: str = ""
    evidence: Mapping[str, Sequence[str]] = field(default_factory=dict)
    references: tuple[str, ...] = ()

    @property
    def every_gold(self) -> tuple[Shown, ...]:
        """All gold passages: those in the prompt in its order, then the missing ones."""
        return (*(one for one in self.passages if one.passage_id in self.gold), *self.missing)


Make = Callable[[Case], Sequence[Shown] | None]


@dataclass(frozen=True, slots=True)
class Arm:
    """A question asked again, the way one fix would.

    ``make`` is a pure function: the passages of the new prompt; the same ones where this fix has nothing to
    change (the question is then not asked again), None where it does not apply. ``style`` is another prompt
    style, ``again`` asks the same prompt once more under another seed. ``fix`` names what the arm tries, as
    `core.socket.Finding.fix`; empty for one that only measures what any change does. ``beyond`` is the arm
    that already does most of it: without a difference from that one, this fix brings nothing of its own.
    """

    name: str
    title: str
    make: Make
    meaning: str = ""
    fix: str = ""
    style: str | None = None
    again: bool = False
    beyond: str = ""

    def __str__(self) -> str:
        return self.name


def _known(case: Case) -> bool:
    return bool(case.gold or case.missing) and case.whole


def gold_added(case: Case) -> Sequence[Shown] | None:
    """Missing gold takes the places of the last passages that are not gold; their number stays."""
    if not _known(case):
        return None
    room = min(len(case.missing), len(case.passages))
    others = [one.passage_id for one in case.passages if one.passage_id not in case.gold]
    leave = {*others[len(others) - min(room, len(others)) :]}
    kept = [one for one in case.passages if one.passage_id not in leave]
    return (*kept, *case.missing[: len(case.passages) - len(kept)])


def gold_first(case: Case) -> Sequence[Shown] | None:
    """Return the same passages with gold moved to the front."""
    if not (case.gold or case.missing):
        return None
    return tuple(sorted(case.passages, key=lambda one: one.passage_id not in case.gold))


def gold_alone(case: Case) -> Sequence[Shown] | None:
    """Only the gold passages, all of them."""
    return case.every_gold if _known(case) else None


def gold_sentences(case: Case) -> Sequence[Shown] | None:
    """Of the gold passages, only the sentences that hold the evidence."""
    if not _known(case):
        return None
    return tuple(Shown(one.passage_id, one.title, evidence_in(one.text, case)) for one in case.every_gold)


def evidence_in(text: str, case: Case) -> str:
    """Return the sentences of a gold passage that hold the evidence.

    Those that overlap a gold fragment; where none is known, those that say a reference answer; else the one
    that shares most words of content with the question and its reference answers.
    """
    found = sentences(text) or [text]
    fragments = [part for given in case.evidence.values() for part in given]
    holding = [one for one in found if any(_overlap(one, part) for part in fragments)]
    holding = holding or [one for one in found if says(one, case.references)]
    if not holding:
        wanted = {*content_stems(" ".join((case.question, *case.references)))}
        holding = [max(found, key=lambda one: len(wanted & {*content_stems(one)}))]
    return " ".join(holding)


def _overlap(sentence: str, fragment: str) -> bool:
    a, b = " ".join(sentence.split()), " ".join(fragment.split())
    # A fragment may go over several sentences, or end within one; a single word of it says nothing.
    parts = [part for part in sentences(b) if len(words(part)) > 1]
    return bool(b) and (b in a or a in b or any(part in a for part in parts))


def fewer(case: Case) -> Sequence[Shown]:
    """Return the better half by retrieval, rounded up."""
    return case.passages[: (len(case.passages) + 1) // 2]


def reversed_order(case: Case) -> Sequence[Shown]:
    """Return the passages in the reverse order."""
    return case.passages[::-1]


def placebo(case: Case) -> Sequence[Shown] | None:
    """Return the passages that are not gold in another order, gold where it was; None for fewer than two."""
    places = [i for i, one in enumerate(case.passages) if one.passage_id not in case.gold]
    if len(places) < 2:
        return None
    rng = np.random.default_rng(zlib.crc32(case.query_id.encode()))
    dealt = rng.permutation(len(places))
    while (dealt == np.arange(len(places))).all():
        dealt = rng.permutation(len(places))
    shown = list(case.passages)
    for place, other in zip(places, dealt.tolist(), strict=True):
        shown[place] = case.passages[places[other]]
    return tuple(shown)


def _same(case: Case) -> Sequence[Shown]:
    return case.passages


AS_IT_IS, AGAIN, PLACEBO, ALONE = "as_it_is", "again", "placebo", "alone"
ADDED, FIRST, GOLD_ALONE, SENTENCES = "gold_added", "gold_first", "gold_alone", "gold_sentences"
FEWER, REVERSED = "fewer", "reversed"

ARMS: tuple[Arm, ...] = (
    Arm(ADDED, "Gold added", gold_added,
        "Missing gold passages take the places of the last passages; k stays.", "retrieval:improve"),
    Arm(FIRST, "Gold first", gold_first,
        "The same passages, gold moved to the front.", "ranking:improve"),
    Arm(GOLD_ALONE, "Gold alone", gold_alone, "Only the gold passages.", "distractors:remove"),
    Arm(SENTENCES, "Gold sentences alone", gold_sentences,
        "Of the gold passages, only the sentences with the evidence.", "chunks:shorter",
        beyond=GOLD_ALONE),
    Arm(FEWER, "Fewer passages", fewer, "The first half of the passages.", "passages:fewer"),
    Arm(REVERSED, "Reversed order", reversed_order,
        "The same passages in the reverse order.", "order:reverse"),
    Arm(PLACEBO, "Placebo", placebo,
        "The other passages in another order, gold where it was: what any change of the prompt does."),
    Arm(AGAIN, "As it is, again", _same,
        "The same prompt once more: the noise of the model or server.", again=True),
)  # fmt: skip


def own_titles(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the titles of arms that are not among `ARMS`, by name, as the facts of the step tell them."""
    return {name: said[0] for name, said in (facts.get("own_arms") or {}).items() if said}
