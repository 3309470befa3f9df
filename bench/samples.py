"""Ten samples of an answer, as the uncertainty step asks for them, against ten calls of one sample each.

The packaged model in this process, with the prompts of the recorded run: together, the prompt is read once.

What limits it: ten answers side by side take longer than one, because each attends to the prompt separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bench.lines import Line, Size, in_turn
from bench.server_order import drop_one
from core.llm.embedded.llm import EmbeddedLLM
from core.llm.types import Completion, Request
from core.pipeline.sampling import drawn

SAMPLES = 10


def lines(size: Size) -> Iterator[Line]:
    """Measure one question in each round."""
    n, k, n_words = size.pick(1, 1, 5), size.pick(2, 5, 10), size.pick(5, 30, 100)
    prompts = [calls[0] for calls in drop_one(n, k, n_words)]
    asked = [[drawn(prompt, number) for number in range(1, SAMPLES + 1)] for prompt in prompts]
    for dtype in size.pick(("float32",), ("float32",), ("float32", "bfloat16")):
        llm = EmbeddedLLM(dtype=dtype)
        llm.generate(asked[0][:1])  # loads the model
        found = list(in_turn(partial(one_by_one, llm, asked), partial(together, llm, asked), n))
        pairs = [
            pair for alone, drawn_together, _ in found for pair in zip(alone, drawn_together, strict=True)
        ]
        equal = sum(a.text == b.text for a, b in pairs)
        yield Line.of(
            f"{SAMPLES} samples in {dtype}, {k} passages of {n_words} words",
            "one by one",
            [ratio for _, _, ratio in found],
            f"{equal} of {len(pairs)} samples equal",
            floor=3,
            goal=6,
        )


def one_by_one(llm: EmbeddedLLM, asked: Sequence[Sequence[Request]], turn: int) -> list[Completion]:
    return [llm.generate([request])[0] for request in asked[turn]]


def together(llm: EmbeddedLLM, asked: Sequence[Sequence[Request]], turn: int) -> list[Completion]:
    return llm.generate(asked[turn])
