"""Answers with each passage left out, read from where their prompts differ, against one call after the other.

Questions of a recorded run with ten passages (five where it must be quick), the packaged model in single
precision, greedy, answers of at most 24 tokens. The other side is the model as transformers loads it and
`generate` for each prompt, eleven calls a question. Sides take turns, question by question; every token of
every answer is compared.

What limits it: eleven prompts with ten passages hold 100 passages, and 55 where what they begin with is read
once, 1.8 times less. The rest is faster arithmetic, and answers written side by side.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from bench.lines import Line, Size, in_turn
from core.influence.step import InfluenceStep
from core.llm.embedded import arithmetic
from core.llm.embedded.llm import EmbeddedLLM
from core.llm.types import Completion, Request
from core.pipeline.rows import questions_of
from core.run import Run

SAMPLES = Path(__file__).parents[1] / "sample_data"


class OneByOne(EmbeddedLLM):
    """The same model without what this measures: plain `generate`, prompt by prompt."""

    def _prefix_reader(self) -> None:
        return None

    def _ready(self) -> Any:
        with mock.patch.object(arithmetic, "speed_up", lambda model: model):
            return super()._ready()


def questions(name: str, n: int) -> list[list[Request]]:
    """Return the calls of n questions of a recorded run: with all passages, and with each one left out."""
    run = Run.load(SAMPLES / name)
    step, question = InfluenceStep(closed_book=False), questions_of(run, ())
    return [[call.request for call in step.calls(question(i))] for i in run.queries["query_id"][:n]]


def lines(size: Size) -> Iterator[Line]:
    """Answers, and log-probabilities of the answer, against naive generation."""
    run, passages = ("recorded_run", 10) if size == Size.FULL else ("recorded_run_short", 5)
    asked = questions(run, size.pick(1, 1, 20))
    if size == Size.SMOKE:
        asked = [[replace(r, messages=r.messages[1:], max_tokens=2) for r in asked[0][:2]]]
    theirs, ours = OneByOne(dtype="float32"), EmbeddedLLM(dtype="float32")
    for llm in (theirs, ours):  # loaded, and what is computed once
        llm.generate([replace(asked[0][0], messages=asked[0][0].messages[-1:], max_tokens=1)])
    faster, scored, n = [], [], 0
    for turn, (one, other, ratio) in enumerate(
        in_turn(lambda turn: timed(theirs, asked[turn]), lambda turn: timed(ours, asked[turn]), len(asked))
    ):
        for a, b in zip(one[0], other[0], strict=True):
            if (a.text, a.completion_tokens, a.finish_reason) != (
                b.text,
                b.completion_tokens,
                b.finish_reason,
            ):
                raise AssertionError(f"question {turn + 1}: {b.text!r} is not {a.text!r}")
        n += len(one[0])
        faster.append(ratio)
        turns, answers = [r.messages for r in asked[turn]], [one[0][0].text] * len(one[0])
        start = time.perf_counter()
        ours.score(turns, answers)
        scored.append(one[1] / (time.perf_counter() - start))
    same = f"{n:,} answers to {len(asked)} questions, every token equal"
    name = f"answers without each of {passages} passages"
    yield Line.of(name, "generate, one by one", faster, same, floor=2.0, goal=3.0)
    close = f"within {furthest(theirs, ours, turns, answers):.1g} nats of one by one, the last question"
    yield Line.of(
        "log-probabilities of the answer", "generate, one by one", scored, close, floor=2.2, goal=3.0
    )


def timed(llm: EmbeddedLLM, requests: list[Request]) -> tuple[list[Completion], float]:
    """Return the answers, and the seconds that they took."""
    start = time.perf_counter()
    return llm.generate(requests), time.perf_counter() - start


def furthest(theirs: EmbeddedLLM, ours: EmbeddedLLM, turns: list[Any], answers: list[str]) -> float:
    """Return how far the log-probabilities of both are apart."""
    pairs = zip(theirs.score(turns, answers), ours.score(turns, answers), strict=True)
    apart = max(abs(sum(a or ()) - sum(b or ())) for a, b in pairs)
    if apart > 1e-3:
        raise AssertionError(f"a log-probability differs by {apart:.2g}")
    return apart
