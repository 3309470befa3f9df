"""The step that reads given answers with and without each passage; nothing is generated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from core.errors import InputError
from core.llm.prompts import DEFAULT_STYLE, STYLES, leave_one_out, prompt_style
from core.llm.types import Message
from core.pipeline.asking import Asker
from core.pipeline.rows import AskedQuestion, Rows, questions_of
from core.pipeline.steps import ModelChoice, Step, StepPlan, StepWork
from core.run import Run
from core.text.display import count

ANSWER, REFERENCE = "logprob_drop", "reference_logprob_drop"
_CHARACTERS = 4  # of a token, roughly


@dataclass(frozen=True)
class LikelihoodStep(Step):
    """Read the answer, and the first reference answer, with all passages and without each.

    Attributes
    ----------
    style : str
        The prompt, where the run does not say which one its answers had.

    Raises
    ------
    InputError
        An unknown style; on opening, a model that cannot give the log-probability of a given answer.

    Notes
    -----
    ``logprob_drop`` = log p(answer | all passages) − log p(answer | all but this one), in nats: the sum over
    the answer's tokens, without the token that ends it. ``reference_logprob_drop`` is the same of the first
    reference answer. The first, not the likeliest: which one that is depends on the passages, so that a
    reference chosen by it would fall too often when one is left out; and all conversations of a question can
    be read at once.

    A question without an answer, or with a passage whose text is not known, is not read. What cannot be
    scored (it does not fit into the context) has no value and is tried again by the next run.

    Cost: k + 1 forward passes for a question with k passages, and as many for a reference; no generation.
    """

    name: ClassVar[str] = "likelihood"
    title: ClassVar[str] = "Log-probability of the answer without each passage"
    noun: ClassVar[str] = "question"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"passages": (ANSWER, REFERENCE)}

    style: str = DEFAULT_STYLE

    def __post_init__(self) -> None:
        prompt_style(self.style)

    @property
    def needs_llm(self) -> bool:
        """A model reads the answers."""
        return True

    def model(self, live: ModelChoice) -> ModelChoice | None:
        """Return the model to call: that of the answers."""
        return live

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the step at work, with the prompt that the run was answered with."""
        llm = asker.llm
        if llm is not None and not llm.capabilities.answer_logprob:
            raise InputError(
                f"The step {self.name} needs a model that gives the log-probability of a given answer; "
                f"{llm.name} does not: choose the back end embedded (--llm embedded)."
            )
        used = str((run.manifest.get("prompt") or {}).get("style"))
        return _Work(run, asker, used if used in STYLES else self.style)


class _Work(StepWork):
    def __init__(self, run: Run, asker: Asker, style: str) -> None:
        self.settings = {"style": style}
        self._asker, self._style = asker, style
        self._question = questions_of(run)

    def todo(self, run: Run) -> Sequence[str]:
        p = run.passages
        empty = {name: frozenset(p.loc[p[name].isna(), "query_id"]) for name in (ANSWER, REFERENCE)}
        ids = run.queries["query_id"]
        return [one for one in ids if any(one in empty[name] for name in _expected(self._question(one)))]

    def work(self, ids: Sequence[str]) -> Rows:
        return {"passages": [row for query_id in ids for row in self._rows(self._question(query_id))]}

    def _rows(self, question: AskedQuestion) -> Iterator[dict[str, Any]]:
        texts, prompts = _texts(question), self._prompts(question)
        if not texts:
            return
        # In one call, all texts after one prompt together: what prompts share is read once.
        pairs = [(prompt, text) for prompt in prompts for text in texts.values()]
        read = iter(self._asker.score(*zip(*pairs, strict=True), at_once=True))
        with_all, *without = [{name: _sum(next(read)) for name in texts} for _ in prompts]
        for passage, left in zip(question.passages, without, strict=True):
            row = {"query_id": question.query_id, "passage_id": passage["passage_id"]}
            yield row | {name: _drop(with_all.get(name), left.get(name)) for name in (ANSWER, REFERENCE)}

    def plan(self, ids: Sequence[str]) -> StepPlan:
        passes = characters = 0
        for question in map(self._question, ids):
            lengths = [sum(len(turn.content) for turn in prompt) for prompt in self._prompts(question)]
            n = len(_expected(question))
            passes += n * len(lengths)
            characters += n and sum(lengths)  # a prompt is read once for all texts after it
        note = "forward passes: each text with all passages and without each; nothing is generated"
        return StepPlan(about=passes, about_tokens=characters // _CHARACTERS, notes=(note,))

    def facts(self, run: Run) -> Mapping[str, Any]:
        ids = run.queries["query_id"]
        unread, left = sum(ANSWER not in _texts(self._question(one)) for one in ids), len(self.todo(run))
        notes = []
        if unread:
            why = "there is no answer, or a passage has no text."
            notes.append(f"The answers to {count(unread, 'question')} cannot be scored: {why}")
        if left:
            why = "not read yet, or too long for the model's context. Run the step again to try them again."
            notes.append(f"Log-probabilities of {count(left, 'question')} are missing: {why}")
        return {"notes": notes}

    def _prompts(self, question: AskedQuestion) -> list[tuple[Message, ...]]:
        return leave_one_out(str(question.query["question"]), question.numbered, self._style)


def _texts(question: AskedQuestion) -> Mapping[str, str]:
    """Return the texts to read, by column; none where a passage has no text."""
    if not question.passages or not all((one["text"] or "").strip() for one in question.passages):
        return {}
    query = question.query
    answer = "" if query["answer_status"] == "error" else (query["answer"] or "").strip()
    reference = next((one.strip() for one in query["reference_answers"] or () if one.strip()), "")
    return {name: text for name, text in ((ANSWER, answer), (REFERENCE, reference)) if text}


def _expected(question: AskedQuestion) -> Sequence[str]:
    """Return the columns to fill; also that of an answer that is not there yet."""
    pending = question.query["answer"] is None and question.query["answer_status"] is None
    return [*_texts(question), *([ANSWER] if pending and question.passages else [])]


def _sum(logprobs: tuple[float, ...] | None) -> float:
    return math.nan if logprobs is None else sum(logprobs)


def _drop(with_all: float | None, without: float | None) -> float | None:
    """Return the difference; None where a text was not read, could not be, or is impossible."""
    drop = math.nan if with_all is None or without is None else with_all - without
    return drop if math.isfinite(drop) else None
