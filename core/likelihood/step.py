"""The step that reads given answers with and without each passage; nothing is generated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from core.errors import InputError
from core.likelihood.screening import (
    CHECKED,
    CHOICES,
    EXACT,
    EXPECTED,
    Cost,
    agreement,
    costs,
    n_approximate,
    to_check,
)
from core.llm.prompts import DEFAULT_STYLE, STYLES, leave_one_out, prompt_style
from core.llm.types import Message, Request
from core.pipeline.asking import Asker
from core.pipeline.rows import AskedQuestion, Rows, questions_of
from core.pipeline.steps import Call, Option, PlanChoice, Step, StepPlan, StepWork
from core.run import Run
from core.text.display import count

_Drops = Mapping[str, float | None]
ANSWER, REFERENCE = "logprob_drop", "reference_logprob_drop"
_CHARACTERS = 4  # of a token, roughly
_AGAIN = 6  # tokens of each passage that the screen reads again, on average


@dataclass(frozen=True)
class LikelihoodStep(Step):
    """Read the answer, and the first reference answer, with all passages and without each.

    ``style`` is the prompt, where the run does not say which one its answers had. ``exactness``: ``exact``;
    ``screen`` for the quick screen alone, which is approximate; or ``screen+3``, which then reads exactly
    what the screen puts first, and two others at random to tell how far it is off.

    ``logprob_drop`` = log p(answer | all passages) − log p(answer | all but this one), in nats: the sum over
    the answer's tokens, without the token that ends it. ``reference_logprob_drop`` is the same of the first
    reference answer: the first, not the likeliest, since which one that is depends on the passages, so that a
    reference chosen by it would fall too often when one is left out.

    A question without an answer, or with a passage whose text is not known, is not read. What cannot be
    scored (it does not fit into the context) has no value and is tried again by the next run. The screen
    reads the prompt once and needs a model with ``capabilities.screen``; what it cannot estimate is read
    exactly. It puts passages in order by the answer, without one by the reference.

    Cost: k + 1 forward passes for a question with k passages, and as many for a reference; no generation.
    With the screen two, and those of what is then read exactly. `InputError` for an unknown style or
    exactness; on opening, for a model that cannot give the log-probability of a given answer.
    """

    name: ClassVar[str] = "likelihood"
    title: ClassVar[str] = "Log-probability of the answer without each passage"
    noun: ClassVar[str] = "question"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "passages": (ANSWER, REFERENCE, "approximate_drop", "screened_drop")
    }
    needs_llm = True

    style: str = DEFAULT_STYLE
    exactness: Annotated[
        str,
        Option(
            "--exactness",
            f"How log-probabilities are read: {', '.join(name for name, _ in CHOICES)}.",
            title="Log-probabilities",
            choices=CHOICES,
        ),
    ] = EXACT

    def __post_init__(self) -> None:
        prompt_style(self.style)
        if self.exactness not in dict(CHOICES):
            known = ", ".join(dict(CHOICES))
            raise InputError(f"exactness must be one of {known}, got {self.exactness!r}.")

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the step at work, with the prompt that the run was answered with."""
        llm = asker.llm
        if llm is not None and not llm.capabilities.answer_logprob:
            raise InputError(
                f"The step {self.name} needs a model that gives the log-probability of a given answer; "
                f"{llm.name} does not: choose the back end embedded (--llm embedded)."
            )
        used = str((run.manifest.get("prompt") or {}).get("style"))
        return _Work(run, asker, used if used in STYLES else self.style, self.exactness)


class _Work(StepWork):
    apart = "rows"

    def __init__(self, run: Run, asker: Asker, style: str, exactness: str) -> None:
        self.settings = {"style": style} | ({} if exactness == EXACT else {"exactness": exactness})
        self._asker, self._style, self._exactness = asker, style, exactness
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
        screened = self._screened(prompts, texts)
        exact = self._to_read(screened, next(iter(texts)), question.query_id)
        read = self._read([prompts[0], *(prompts[i + 1] for i in exact)], texts) if exact else []
        for i, passage in enumerate(question.passages):
            drops = read[exact.index(i)] if i in exact else screened[i]
            yield {
                "query_id": question.query_id,
                "passage_id": passage["passage_id"],
                ANSWER: drops.get(ANSWER),
                REFERENCE: drops.get(REFERENCE),
                "approximate_drop": i not in exact,
                "screened_drop": screened[i].get(ANSWER),
            }

    def _screened(self, prompts: Sequence[tuple[Message, ...]], texts: Mapping[str, str]) -> list[_Drops]:
        """Return the estimated drops of each passage; None where there is no estimate."""
        llm = self._asker.llm
        if self._exactness == EXACT or llm is None or not llm.capabilities.screen:
            return [dict.fromkeys(texts) for _ in prompts[1:]]
        return _drops(texts, self._asker.screen(prompts[0], prompts[1:], list(texts.values())))

    def _read(self, prompts: Sequence[tuple[Message, ...]], texts: Mapping[str, str]) -> list[_Drops]:
        """Return the exact drops without each passage; the first prompt is the whole one."""
        # In one call, all texts after one prompt together: what prompts share is read once.
        pairs = [(prompt, text) for prompt in prompts for text in texts.values()]
        read = iter(self._asker.score(*zip(*pairs, strict=True), at_once=True))
        return _drops(texts, [[next(read) for _ in texts] for _ in prompts])

    def _to_read(self, screened: Sequence[_Drops], leading: str, query_id: str) -> list[int]:
        """Return the passages to read exactly: what was not estimated, and where asked for the check."""
        missing = [i for i, drops in enumerate(screened) if None in drops.values()]
        if missing or self._exactness != CHECKED:
            return missing
        return to_check([drops[leading] or 0.0 for drops in screened], query_id)

    def plan(self, ids: Sequence[str]) -> StepPlan:
        found = [self._costs(self._question(one)) for one in ids]
        choices = tuple(
            PlanChoice(
                name,
                sum(one[name].passes for one in found),
                sum(one[name].tokens for one in found),
                EXPECTED[name],
                name == self._exactness,
            )
            for name, _ in CHOICES
        )
        chosen = next(choice for choice in choices if choice.chosen)
        note = "forward passes: each text with all passages and without each; nothing is generated"
        read = next(filter(None, (self._prompts(self._question(one)) for one in ids)), [])[:2]
        timed = tuple(Call("read", i, Request(one, max_tokens=1)) for i, one in enumerate(read, start=1))
        return StepPlan((), chosen.calls, chosen.tokens, timed, notes=(note,), choices=choices)

    def _costs(self, question: AskedQuestion) -> Mapping[str, Cost]:
        prompts = self._prompts(question)
        lengths = [sum(len(turn.content) for turn in prompt) // _CHARACTERS for prompt in prompts]
        texts = _texts(question).values()
        tail = len(str(question.query["question"])) + max(map(len, texts), default=0)
        return costs(lengths, len(_expected(question)), tail // _CHARACTERS + _AGAIN * len(prompts))

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
        if self._exactness == EXACT:
            return {"notes": notes}
        found, estimated = agreement(run.passages), n_approximate(run.passages)
        if estimated:
            of = f"{estimated:,} of {count(len(run.passages), 'drop')} of log-probability"
            checked = f" On {found}." if found.n else " None was checked."
            notes.append(f"Approximate, estimated by the quick screen: {of}.{checked}")
        return {"notes": notes, "approximate": estimated, "agreement": found.facts}

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


def _drops(texts: Mapping[str, str], read: Sequence[Sequence[tuple[float, ...] | None]]) -> list[_Drops]:
    """Return the drops of each text without each passage; ``read`` has those with all passages first."""
    with_all, *without = [[_sum(one) for one in of_prompt] for of_prompt in read]
    return [
        {name: _drop(one, other) for name, one, other in zip(texts, with_all, left, strict=True)}
        for left in without
    ]


def _sum(logprobs: tuple[float, ...] | None) -> float:
    return math.nan if logprobs is None else sum(logprobs)


def _drop(with_all: float, without: float) -> float | None:
    """Return the difference; None where a text could not be read, or is impossible."""
    drop = with_all - without
    return drop if math.isfinite(drop) else None
