"""All arms of a question (*Where answers are lost*), against its answers with each passage left out.

Questions of the recorded runs, the packaged model in single precision, greedy. Both sides ask what their step
asks, a prompt that two arms share once; they take turns, question by question. *As it is, again* is greedy,
too: it must say what the answer with all passages says.

What limits it: an arm that keeps all passages in another order, or begins with another one, shares little of
its prompt with the others and is read from there on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.lines import Line, Size, in_turn
from core.influence.step import BASELINE, InfluenceStep
from core.llm.embedded.llm import EmbeddedLLM
from core.losses.arms import AGAIN
from core.losses.step import LossesStep
from core.pipeline.asking import Asker
from core.pipeline.rows import questions_of
from core.pipeline.steps import Call
from core.run import Run

SAMPLES = Path(__file__).parents[1] / "sample_data"
RUNS = {"recorded_run_facts": 3, "recorded_run_short": 5, "recorded_run": 10}  # with so many passages


def questions(run: Run, llm: EmbeddedLLM, n: int) -> list[tuple[list[Call], list[Call]]]:
    """Return the calls of all arms and those of the leave-one-out pass, for n questions spread evenly."""
    again = run.derive(arms=run["arms"].iloc[:0])
    work, question = LossesStep().open(again, Asker(llm)), questions_of(run)
    without = InfluenceStep(repeats=0, closed_book=False, max_tokens=work.settings["max_tokens"])
    ids = run.queries["query_id"].tolist()
    chosen = [ids[i * len(ids) // n] for i in range(n)]
    return [(list(work.plan([one]).calls), list(without.calls(question(one)))) for one in chosen]


def asked(llm: EmbeddedLLM, calls: list[Call]) -> dict[str, str]:
    """Ask all calls of a question in one batch; return the answers, the last of each kind."""
    found = Asker(llm).ask([call.request for call in calls])
    return {call.kind: one.text for call, one in zip(calls, found, strict=True)}


def lines(size: Size) -> Iterator[Line]:
    """Time all arms as a ratio to the leave-one-out pass, for runs with few and many passages."""
    llm = EmbeddedLLM(dtype="float32")
    for name, k in RUNS.items():
        if size is not Size.FULL and name != "recorded_run_facts":
            continue
        pairs = questions(Run.load(SAMPLES / name), llm, size.pick(1, 2, 12))
        if size is Size.SMOKE:
            pairs = [([shortened(one) for one in arms[-2:]], [shortened(all_[0])]) for arms, all_ in pairs]
        llm.generate([shortened(pairs[0][1][0]).request])  # loads the model
        ratios = []
        sides = [lambda turn, side=side, pairs=pairs: asked(llm, pairs[turn][side]) for side in (0, 1)]
        for arms, without, ratio in in_turn(*sides, len(pairs)):
            if arms[AGAIN] != without[BASELINE]:
                raise AssertionError(f"asked as it is, {arms[AGAIN]!r} is not {without[BASELINE]!r}")
            ratios.append(ratio)
        calls = [sum(len(pair[side]) for pair in pairs) / len(pairs) for side in (0, 1)]
        said = f"{calls[0]:.1f} calls a question against {calls[1]:.1f}; asked as it is, the same answer"
        yield Line.of(f"all arms, {k} passages", "each passage left out", ratios, said, goal=1.0, less=True)


def shortened(call: Call) -> Call:
    """Return the call with one answer token."""
    return replace(call, request=replace(call.request, max_tokens=1))
