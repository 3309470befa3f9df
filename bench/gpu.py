"""A GPU against this machine's processor; and what half precision changes, and the company of other prompts.

Questions of a recorded run with ten passages, the packaged model, greedy, answers of at most 24 tokens: with
all passages, and without each one. The processor computes in single precision, prompts together as they are
there. Answers are compared word for word; on a GPU sums depend on the other prompts of a batch, in half
precision by enough that a near tie may go the other way. A passage counts as influential where the answer
without it is another. Without a GPU there is nothing to measure.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.engine import OneByOne, questions, timed
from bench.lines import Line, Size, in_turn
from core.llm.embedded.llm import EmbeddedLLM
from core.llm.types import Completion

Answers = list[Completion]


def lines(size: Size) -> Iterator[Line]:
    """Answers of a GPU in both precisions; no line without a GPU."""
    if not torch.cuda.is_available():
        print("no GPU in this machine: nothing to measure", flush=True)
        return
    asked = questions("recorded_run", size.pick(1, 2, 8))
    single, half = (EmbeddedLLM(dtype=dtype, device="cuda") for dtype in ("float32", "bfloat16"))
    alone = OneByOne(dtype="bfloat16", device="cuda", batch_size=1)
    processor = EmbeddedLLM(dtype="float32", device="cpu")
    for llm in (single, half, alone, processor):  # loaded, and what is computed once
        llm.generate(asked[0][:2])
    for ours, theirs, dtype, against in (
        (single, processor, "float32", "the processor"),
        (half, single, "bfloat16", "float32 on the GPU"),
        (half, alone, "bfloat16", "one prompt at a time on the GPU"),
    ):
        pairs, ratios = [], []
        for one, other, _ in in_turn(
            lambda turn, llm=theirs: timed(llm, asked[turn]),  # type: ignore[misc]
            lambda turn, llm=ours: timed(llm, asked[turn]),  # type: ignore[misc]
            len(asked),
        ):
            pairs.append((one[0], other[0]))
            ratios.append(one[1] / other[1])
        yield Line.of(f"answers without each of 10 passages, {dtype}", against, ratios, compared(pairs))


def compared(pairs: list[tuple[Answers, Answers]]) -> str:
    """Return in words how many answers are equal, and how many passages are influential on both sides."""
    equal = sum(a.text == b.text for pair in pairs for a, b in zip(*pair, strict=True))
    n = sum(len(theirs) for theirs, _ in pairs)
    theirs, ours = ([changed(side) for side in sides] for sides in zip(*pairs, strict=True))
    flat = [(a, b) for one, other in zip(theirs, ours, strict=True) for a, b in zip(one, other, strict=True)]
    return (
        f"{equal:,} of {n:,} answers equal; {sum(a for a, _ in flat)} passages influential there, "
        f"{sum(b for _, b in flat)} here, {sum(a and b for a, b in flat)} in both, of {len(flat)}"
    )


def changed(answers: Answers) -> list[bool]:
    """Return for each passage whether the answer without it is another."""
    whole, *without = answers
    return [one.text != whole.text for one in without]
