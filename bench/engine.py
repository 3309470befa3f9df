"""Answers with each passage left out, read from where their prompts differ, against one call after the other.

Ten-passage questions of the recorded run, the packaged model in single precision, at most 24 tokens of answer,
greedy. The other side is the model as transformers loads it, and `generate` for each prompt: eleven calls a
question. Sides take turns, question by question. Every token of every answer is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from bench.lines import Line, Size, in_turn
from core.influence.step import InfluenceStep
from core.llm.embedded import arithmetic
from core.llm.embedded.llm import EmbeddedLLM
from core.llm.types import Request
from core.pipeline.rows import questions_of
from core.run import Run

RECORDED = Path(__file__).parents[1] / "sample_data" / "recorded_run"


class OneByOne(EmbeddedLLM):
    """The same model without what this measures: plain `generate`, prompt by prompt."""

    def _prefix_reader(self) -> None:
        return None

    def _ready(self) -> Any:
        with mock.patch.object(arithmetic, "speed_up", lambda model: model):
            return super()._ready()


def questions(n: int) -> list[list[Request]]:
    """Return the calls of n questions of the recorded run: with all passages, and with each one left out."""
    run = Run.load(RECORDED)
    step, question = InfluenceStep(closed_book=False), questions_of(run, ())
    return [[call.request for call in step.calls(question(i))] for i in run.queries["query_id"][:n]]


def lines(size: Size) -> Iterator[Line]:
    """Answers, and log-probabilities of the answer, against naive generation."""
    asked = questions(size.pick(1, 1, 24))
    if size == Size.SMOKE:
        asked = [asked[0][:3]]
    theirs, ours = OneByOne(dtype="float32"), EmbeddedLLM(dtype="float32")
    for llm in (theirs, ours):  # loaded, and what is computed once
        llm.generate([Request(asked[0][0].messages[:1], max_tokens=1)])
    answers, ratios, n = [], [], 0
    for one, other, ratio in in_turn(
        lambda turn: theirs.generate(asked[turn]), lambda turn: ours.generate(asked[turn]), len(asked)
    ):
        for call, (a, b) in enumerate(zip(one, other, strict=True)):
            if (a.text, a.completion_tokens, a.finish_reason) != (b.text, b.completion_tokens, b.finish_reason):
                raise AssertionError(f"question {len(answers)}, call {call}: {a.text!r} is not {b.text!r}")
        n += len(one)
        answers.append(one[0].text)
        ratios.append(ratio)
    same = f"{n:,} answers of {len(asked)} questions, every token equal"
    yield Line.of("answers without each passage", "generate, one by one", ratios, same, floor=2.0, goal=3.0)

    ratios, furthest = [], 0.0
    for turn, requests in enumerate(asked):
        turns, given = [request.messages for request in requests], [answers[turn]] * len(requests)
        again = in_turn(lambda _, r=requests: theirs.generate(r), lambda _, t=turns, g=given: ours.score(t, g), 1)
        for _, scored, ratio in again:
            ratios.append(ratio)
        if turn < size.pick(1, 1, 4):
            for a, b in zip(theirs.score(turns, given), scored, strict=True):
                if a is None or b is None:
                    raise AssertionError(f"question {turn} has no score")
                furthest = max(furthest, abs(sum(a) - sum(b)))
    if furthest > 1e-3:
        raise AssertionError(f"a log-probability differs by {furthest:.2g}")
    close = f"within {furthest:.1g} nats of one by one"
    yield Line.of("log-probabilities of the answer", "generate, one by one", ratios, close, floor=2.2, goal=3.0)
