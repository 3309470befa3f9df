"""The quick screen against answering once for every passage left out, and how well the two agree.

The other side is ``model.generate`` of transformers, one prompt after the other: the answer and one for every
passage left out. Ours gives the answer and, without generating more, what each passage does to its
log-probability, approximately. Agreement is with the exact log-probabilities of the same answer, on the
development questions, where they are, and on those of the sample: nothing was fitted to either.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from bench.engine import OneByOne
from bench.lines import Line, Size, in_turn
from bench.prompts import DATA, FILE, Item, natural_questions, sample, some
from core.llm.embedded.llm import EmbeddedLLM
from core.llm.prompts import answer_messages, prompt_style
from core.llm.types import Message, Request
from core.stats import wilson_interval

Floats = NDArray[np.float64]
Prompts = list[tuple[Message, ...]]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How the screen's drops of a question's passages agree with the exact ones."""

    exact: Floats
    screened: Floats

    def rho(self, last: int | None = None) -> float:
        """Return Spearman's ρ; without the last passage, which is exact, where ``last`` is -1."""
        return float(spearmanr(self.exact[:last], self.screened[:last]).statistic)

    def same_first(self, last: int | None = None) -> bool:
        """Tell whether both name the same passage as the one with the largest drop."""
        return bool(self.exact[:last].argmax() == self.screened[:last].argmax())


def prompts_of(item: Item, k: int) -> Prompts:
    """Return the prompt with the first k passages, and without each of them."""
    kept = item.passages[:k]
    rest = (kept[:i] + kept[i + 1 :] for i in range(len(kept)))
    return [answer_messages(item.question, some_passages) for some_passages in (kept, *rest)]


def answered(llm: EmbeddedLLM, prompts: Prompts) -> list[str]:
    """Generate answers, one after the other."""
    requests = [Request(prompt, stop=prompt_style("short").stop) for prompt in prompts]
    return [llm.generate([request])[0].text for request in requests]


def screened(llm: EmbeddedLLM, prompts: Prompts) -> tuple[str, Floats, float]:
    """Return the answer to the first prompt, how much less likely each other prompt makes it, and seconds.

    The seconds are those of the screen alone: the step likelihood reads an answer that is there.
    """
    [answer] = answered(llm, prompts[:1])
    start = time.perf_counter()
    found = llm.screen(prompts[0], prompts[1:], [answer])
    return answer, drops([of[0] for of in found]), time.perf_counter() - start


def timed(llm: EmbeddedLLM, prompts: Prompts) -> tuple[list[str], float]:
    """Return the answers to all prompts, and the seconds they took."""
    start = time.perf_counter()
    return answered(llm, prompts), time.perf_counter() - start


def drops(logprobs: Sequence[tuple[float, ...] | None]) -> Floats:
    """Return the log-probability of the first less that of each other, in nats; nan where there is none."""
    sums = [np.nan if tokens is None else sum(tokens) for tokens in logprobs]
    return sums[0] - np.array(sums[1:])


def lines(size: Size) -> Iterator[Line]:
    """Time both on some questions of one set, and compare with exact scores on all of both sets."""
    k, n = size.pick(2, 3, 10), size.pick(1, 1, 20)
    sets = {"sample": some(list(sample()), n)}
    if (DATA / FILE).is_file():
        sets = {"Natural Questions": some(list(natural_questions(DATA / FILE, 10)), n)} | sets
    plain, ours = OneByOne(dtype="float32"), EmbeddedLLM(dtype="float32")
    machine = f"{os.cpu_count()} cores, {platform.machine()}; {ours.name} in float32"
    for number, (title, items) in enumerate(sets.items()):
        prompts = [prompts_of(item, k) for item in items]
        for llm in (plain, ours):  # loaded, and warm
            llm.generate([Request(prompts[0][-1], max_tokens=2)])
        ours.screen(prompts[0][0], prompts[0][1:], ["warm"])
        found: list[tuple[str, Floats]] = []
        if number == 0:
            ratios, alone, same = [], [], 0
            for (texts, naive), (answer, screen, seconds), ratio in in_turn(
                lambda i, prompts=prompts: timed(plain, prompts[i]),
                lambda i, prompts=prompts: screened(ours, prompts[i]),
                min(size.pick(1, 1, 8), len(prompts)),
            ):
                ratios.append(ratio)
                alone.append(naive / seconds)
                same += texts[0] == answer
                found.append((answer, screen))
            checked = f"the same answer with all passages for {same} of {len(ratios)} questions"
            for what, values in (("quick screen of an answer", alone), ("answer and quick screen", ratios)):
                yield Line.of(
                    f"{what}, {k} passages, {title}",
                    f"generate × {k + 1}",
                    values,
                    checked,
                    floor=6 if k == 10 else None,
                    goal=10 if k == 10 else None,
                    note=f"approximate; {machine}",
                )
        found += [screened(ours, one)[:2] for one in prompts[len(found) :]]
        agreed = []
        for one, (answer, screen) in zip(prompts, found, strict=True):
            exact = drops(ours.score(one, [answer] * len(one)))
            if np.isfinite(exact).all() and np.isfinite(screen).all():
                agreed.append(Agreement(exact, screen))
        yield from agreement(title, agreed, k)


def agreement(title: str, found: Sequence[Agreement], k: int) -> Iterator[Line]:
    """Yield rank agreement and agreement on the first passage, with and without the last passage."""
    against = f"exact log-probability drops, {title}"
    apart = np.mean([np.abs(one.exact - one.screened).mean() for one in found])
    for last, which in ((None, f"{k} passages"), (-1, f"the {k - 1} before the last")):
        rhos = np.array([one.rho(last) for one in found])
        known = rhos[np.isfinite(rhos)]
        if known.size:
            yield Line.of(
                f"rank agreement of the screen, {which}",
                against,
                known.tolist(),
                f"mean ρ {known.mean():.2f}; drops differ by {apart:.2f} nats on average",
                unit="ρ",
                floor=0.9 if k == 10 else None,
                note="by chance 0",
            )
        hits = sum(one.same_first(last) for one in found)
        low, high = wilson_interval(hits / len(found), len(found))
        n_passages = k if last is None else k - 1
        yield Line(
            f"same most influential passage, {which}",
            against,
            hits / len(found),
            low,
            high,
            len(found),
            f"{hits} of {len(found)} questions; the range is the 95 % interval",
            "",
            0.85 if k == 10 else None,
            None,
            False,
            f"by chance {1 / n_passages:.2f}",
        )
