"""Answers that are lost at planted stages, for the ladder to find: a run that no model answered."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from core.losses.arms import (
    ADDED,
    AGAIN,
    ARMS,
    FEWER,
    FIRST,
    GOLD_ALONE,
    LABELLED,
    PLACEBO,
    REVERSED,
    SENTENCES,
    Case,
    Shown,
)
from core.losses.ladder import (
    BURIED,
    CHANGED,
    DISTRACTED,
    DOUBTFUL,
    KEPT,
    LUCK,
    NONE,
    PLACE,
    RETRIEVAL,
    UNCHANGED,
    WITHOUT,
)
from core.pipeline.begin import PassageFinder, RunOptions
from core.run import Run
from core.sources.dataset import load_dataset
from core.sources.question import Document, Question, document_from_text
from core.text import answer_status

NAME = "Worked losses with planted stages"
NOTE = (
    "Composed for demonstration, no model run: all answers, also those to the fixes, were written so that "
    "each is lost at a planted stage; gold passages were put in their places or left out on purpose."
)
# No question finds its answer in these: they are not in the collection of this run.
WITHHELD = ("lighthouses-and-the-fresnel-lens", "penicillin", "voyager-probes")
K, PASSAGE_WORDS = 5, 100
_NOT_KNOWN = "I don't know."
_FIXED_BY: Mapping[str, tuple[str, ...]] = {
    RETRIEVAL: (ADDED, GOLD_ALONE, SENTENCES),
    PLACE: (FIRST, GOLD_ALONE, SENTENCES),
    DISTRACTED: (GOLD_ALONE, SENTENCES),
    BURIED: (SENTENCES,),
}


@dataclass(frozen=True, slots=True)
class _Made:
    """A composed question: its line in the file, and what an arm sees of it."""

    line: Mapping[str, Any]
    case: Case
    language: str | None

    @property
    def right(self) -> bool:
        """Whether the answer of the run was made to be judged correct."""
        return self.line["planted"] in KEPT

    @property
    def answer(self) -> str:
        """The answer of the run."""
        return str((self.case.references if self.right else self.line["answers"])[0])

    @property
    def entails(self) -> bool:
        """Whether it says the reference answer in other words."""
        return self.line["planted"] == DOUBTFUL and answer_status(self.answer) == "answered"


def composed_losses(
    lines: Sequence[Mapping[str, Any]], questions: Mapping[str, Question], documents: tuple[Document, ...]
) -> Run:
    """Compose a run, marked as such, of answers that are lost at known stages.

    Each line names a question: ``id``; ``planted``, one of `core.losses.ladder.STAGES`; ``gold_at``, the
    place of its gold passages among the five of the prompt, 0 where they are left out; ``answers``, the wrong
    ones; ``flips``, the arms whose outcome noise turns round. The other passages are the first that BM25
    finds among ``documents``; `core.losses.arms.ARMS` make the prompts.
    """
    finder = PassageFinder(RunOptions(k=2 * K, passage_words=PASSAGE_WORDS))
    made = [_made(line, replace(questions[line["id"]], documents=documents), finder) for line in lines]
    tables = {
        "queries": [_query(one) for one in made],
        "passages": [row for one in made for row in _passages(one)],
        "gold": [row for one in made for row in _gold(one)],
        "arms": [row for one in made for row in _arms(one)],
        "claims": [row for one in made if one.entails for row in _claims(one)],
        "support": [row for one in made if one.entails for row in _support(one)],
    }
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items() if rows}
    return Run.create({"source": "composed", "name": NAME, "notes": [NOTE]}, **frames)


def _made(line: Mapping[str, Any], question: Question, finder: PassageFinder) -> _Made:
    """Put the gold passages of a question where its line wants them."""
    found, at = finder.find(question), line["gold_at"]
    gold = [Shown(one.passage_id, one.title, one.text) for one, _ in found.gold]
    ids = frozenset(one.passage_id for one in gold)
    others = [Shown(one.passage_id, one.title, one.text) for one in found.passages]
    others = [one for one in others if one.passage_id not in ids]
    placed = (*others[: at - 1], *gold, *others[at - 1 :]) if at else others
    shown = tuple(replace(one, label=label) for label, one in enumerate(placed[:K], start=1))
    case = Case(
        question.query_id,
        question.question,
        shown,
        gold=ids if at else frozenset(),
        missing=() if at else tuple(gold),
        gold_by=LABELLED if gold else "",
        evidence={one.passage_id: fragments for one, fragments in found.gold},
        references=question.reference_answers,
    )
    return _Made(line, case, question.language)


def _is_right(one: _Made, arm: str) -> bool:
    """Tell whether the answer to an arm was made to be correct."""
    planted, at = one.line["planted"], one.line["gold_at"]
    if arm in (PLACEBO, REVERSED):
        # In the reverse order the last passage comes first.
        right = (one.right and planted != LUCK) or (arm == REVERSED and planted == PLACE and at == K)
    elif arm == FEWER:
        in_half = 0 < at <= (K + 1) // 2
        right = planted == WITHOUT or (one.right and in_half) or (planted == DISTRACTED and at == 1)
    else:
        right = one.right or arm in _FIXED_BY.get(planted, ())
    return right != (arm in one.line["flips"])


def _query(one: _Made) -> dict[str, object]:
    planted, status = one.line["planted"], answer_status(one.answer)
    return {
        "query_id": one.case.query_id,
        "question": one.case.question,
        "answer": one.answer,
        "answer_status": status,
        "closed_book_answer": one.answer if planted == WITHOUT else _NOT_KNOWN,
        "reference_answers": list(one.case.references),
        "n_gold": len(one.case.every_gold),
        "language": one.language,
        "planted_case": planted,
        "planted_correct": one.right or one.entails if status == "answered" else None,
    }


def _passages(one: _Made) -> Iterator[dict[str, object]]:
    for shown in one.case.passages:
        yield {
            "query_id": one.case.query_id,
            "passage_id": shown.passage_id,
            "title": shown.title,
            "text": shown.text,
            "retrieval_rank": float(shown.label),
            "slot": shown.label,
            "is_gold": shown.passage_id in one.case.gold,
        }


def _gold(one: _Made) -> Iterator[dict[str, object]]:
    for shown in one.case.every_gold:
        yield {
            "query_id": one.case.query_id,
            "passage_id": shown.passage_id,
            "title": shown.title,
            "text": None if shown.label else shown.text,
            "evidence": list(one.case.evidence[shown.passage_id]),
        }


def _arms(one: _Made) -> Iterator[dict[str, object]]:
    """Yield the rows that the step writes; where an arm has nothing to change, there is no answer."""
    for place, arm in enumerate(ARMS):
        shown = tuple(arm.make(one.case) or ())
        asked = bool(shown) and (arm.again or shown != one.case.passages)
        right, answer = _is_right(one, arm.name), None
        if asked and right == one.right and arm.name in (AGAIN, PLACEBO):
            answer = one.answer
        elif asked:
            texts = one.case.references if right else one.line["answers"]
            answer = texts[place % len(texts)]
        yield {
            "query_id": one.case.query_id,
            "arm": arm.name,
            "repeat": 1,
            "prompt": CHANGED if asked else UNCHANGED if shown else NONE,
            "passages": [passage.passage_id for passage in shown] or None,
            "gold_by": one.case.gold_by or None,
            "answer": answer,
            "answer_status": None if answer is None else answer_status(answer),
        }


def _claims(one: _Made) -> Iterator[dict[str, object]]:
    """Yield the claim of the answer and that of the reference answer, which say the same."""
    for side, text in (("answer", one.answer), ("reference", one.case.references[0])):
        yield {
            "query_id": one.case.query_id,
            "claim_id": f"{side[0]}1",
            "text": text,
            "side": side,
            "counterpart": "Entailment",
        }


def _support(one: _Made) -> Iterator[dict[str, object]]:
    """Yield that only the gold passages support the claim of the answer."""
    for shown in one.case.passages:
        yield {
            "query_id": one.case.query_id,
            "claim_id": "a1",
            "passage_id": shown.passage_id,
            "probability": float(shown.passage_id in one.case.gold),
            "judge": "composed",
        }


def composed(folder: Path) -> Run:
    """Compose the run from the sample data in a folder."""
    lines = [json.loads(line) for line in (folder / "worked_losses.jsonl").read_text("utf-8").splitlines()]
    given = [load_dataset(folder / name).questions for name in ("facts.jsonl", "questions.jsonl")]
    questions = {one.query_id: one for part in given for one in part}
    kept = [file for file in sorted((folder / "articles").glob("*.md")) if file.stem not in WITHHELD]
    documents = tuple(document_from_text(file.read_text("utf-8")) for file in kept)
    return composed_losses(lines, questions, documents)


if __name__ == "__main__":
    composed(Path(sys.argv[1])).save(sys.argv[2])
