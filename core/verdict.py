"""The verdict on a run: one to three sentences made from the findings of its diagnostics.

No diagnostic is known by name here. What is wrong comes first, the gravest first; then what cannot be told;
then what is in order. Findings of one diagnostic that share a topic share a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.analyses import Analyses
from core.html import card
from core.severity import SEVERITIES
from core.socket import BAD, BEYOND_CHANCE, GOOD, UNCLEAR, Finding

N_SENTENCES = 3
N_CLAUSES = 2  # of a sentence


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence, and where its proof is.

    ``text`` has *but* or *and* before a second clause; the first of a sentence has a capital. ``diagnostic``
    and ``finding`` are who says so, both empty where no finding says it; ``query_ids`` the questions to read
    for it.
    """

    text: str
    diagnostic: str = ""
    finding: str = ""
    query_ids: tuple[str, ...] = ()


Sentence = tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The answer before the proof.

    One to three ``sentences``; ``advice`` is what to do about the first that says so, and may be empty.
    """

    sentences: tuple[Sentence, ...]
    advice: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentences as text."""
        return tuple(text_of(sentence) for sentence in self.sentences)

    def _repr_html_(self) -> str:
        return card("Verdict", lines=[*self.texts, *([f"What to do: {self.advice}"] if self.advice else ())])


def text_of(sentence: Sentence) -> str:
    """Return a sentence as text."""
    return ", ".join(clause.text for clause in sentence) + "."


def verdict(diagnosis: Analyses) -> RunVerdict:
    """Say in one to three sentences what is wrong with a run, what cannot be told and what is in order.

    Made from the findings alone; where there are none, it says what is lacking. Findings that matter little
    are left out unless there is room, and those without a clause of their own always. Where nothing is
    seriously wrong, the first sentence says so, or says that nothing can be told from chance.

    >>> from core.diagnosis import Diagnosis
    >>> from core.sources.simulation import simulate
    >>> 1 <= len(verdict(Diagnosis(simulate())).sentences) <= 3
    True
    """
    if not diagnosis.run.has("queries"):
        return RunVerdict(((Clause("The run has no questions"),),))
    found = [
        one
        for diagnostic in diagnosis.diagnostics
        for one in diagnosis.findings_of(diagnostic.name)
        if one.clause or one.severity != "low"
    ]
    topics: dict[tuple[str, str], list[Finding]] = {}
    for one in found:
        topics.setdefault((one.diagnostic, one.topic or one.name), []).append(one)
    told = sorted(topics.values(), key=_weight)
    sentences = [_sentence(topic, "" if i else _opening(told)) for i, topic in enumerate(told[:N_SENTENCES])]
    if not sentences:
        return RunVerdict(_lacking(diagnosis))
    open_ = [one for topic in told for one in sorted(topic, key=_weight_of) if one.tone != GOOD]
    return RunVerdict(tuple(sentences), next((one.advice for one in open_ if one.advice), ""))


def _weight_of(one: Finding) -> tuple[int, int]:
    """Wrong and grave, not to be told, in order, wrong but slight; each by severity."""
    slight = one.tone == BAD and one.severity == "low"
    return (3 if slight else (BAD, UNCLEAR, GOOD).index(one.tone), SEVERITIES.index(one.severity))


def _weight(topic: Sequence[Finding]) -> tuple[int, int]:
    return min(map(_weight_of, topic))


def _opening(told: Sequence[Sequence[Finding]]) -> str:
    """Return how the verdict begins where nothing is seriously wrong."""
    first, *_ = sorted(told[0], key=_weight_of)
    if first.tone == GOOD:
        return "nothing serious was found: "
    found = [one for topic in told for one in topic]
    tested = [one.p_adjusted for one in found if one.p_adjusted is not None]
    open_ = all(one.tone != GOOD and one.severity == "low" for one in found)
    by_chance = first.p_adjusted is not None and min(tested) > BEYOND_CHANCE
    return "nothing here can be told from chance: " if open_ and by_chance else ""


def _sentence(topic: Sequence[Finding], opening: str) -> Sentence:
    """Join the gravest findings of a topic, in the order in which the diagnostic gives them."""
    gravest = sorted(topic, key=_weight_of)[:N_CLAUSES]
    clauses: list[Clause] = []
    for before, one in pairwise([None, *(one for one in topic if one in gravest)]):
        assert one is not None
        text = one.clause or one.sentence.rstrip(".")
        if before is None:
            text = opening + text
            text = text[:1].upper() + text[1:]
        else:
            text = f"{'and' if before.tone == one.tone else 'but'} {text}"
        clauses.append(Clause(text, one.diagnostic, one.name, one.query_ids))
    return tuple(clauses)


def _lacking(diagnosis: Analyses) -> tuple[Sentence, ...]:
    """Say that there is nothing to say, and what the diagnostics would need."""
    lacks: dict[str, str] = {}
    for one in diagnosis.diagnostics:
        if text := one.lacks(diagnosis.run):
            lacks.setdefault(text, one.name)
    why = [(Clause(text.rstrip("."), name),) for text, name in lacks.items()]
    opening = "Nothing can be diagnosed yet" if why else "Nothing stands out"
    return ((Clause(opening),), *why)[:N_SENTENCES]
