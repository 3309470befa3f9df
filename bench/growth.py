"""How time grows with the rows of an influence CSV, and with the passages of a question.

Each curve is a power of the size: the exponent is the slope of log(seconds) over log(size) by least squares,
1 where twice the size takes twice the time; its range is two standard errors to either side. Fixed costs
flatten the slope at small sizes, so every curve's times stand beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import linregress

from bench.engine import OneByOne
from bench.influence_csv import PASSAGES, make_frame
from bench.lines import Line, Size
from bench.prompts import Item, sample
from bench.screen import answered, drops, prompts_of, screened
from core.diagnosis import Diagnosis
from core.influence import analyse, summary
from core.llm.embedded.llm import EmbeddedLLM
from core.llm.prompts import prompt_style
from core.llm.types import Request
from core.sources.formats import import_file

_WORDS = 30  # of each passage: forty of them fit into the context of the packaged model
_TOKENS = 8  # of each answer


def fitted(name: str, sizes: Sequence[int], seconds: Sequence[float], what: str) -> Line:
    """Return the line of a curve's exponent."""
    fit = linregress(np.log(sizes), np.log(seconds))
    times = ", ".join(f"{n:,}: {s:.3g} s" for n, s in zip(sizes, seconds, strict=True))
    return Line(
        f"exponent, {name}",
        what,
        fit.slope,
        fit.slope - 2 * fit.stderr,
        fit.slope + 2 * fit.stderr,
        len(sizes),
        f"standard error {fit.stderr:.2g}. {times}",
        "",
        None,
        None,
        False,
        "",
    )


def of_rows(n_rows: int) -> dict[str, float]:
    """Return the seconds that import, analysis, headline numbers and findings take."""
    data = make_frame(n_rows // PASSAGES).to_csv(index=False).encode()
    marks = [time.perf_counter()]
    run = import_file(data, "growth.csv").run
    marks.append(time.perf_counter())
    analysis = analyse(run)
    marks.append(time.perf_counter())
    summary(analysis)
    marks.append(time.perf_counter())
    diagnosis = Diagnosis(run)
    diagnosis["influence"]
    marks.append(time.perf_counter())
    diagnosis.findings()
    marks.append(time.perf_counter())
    took = np.diff(marks)
    return {"import": took[0], "analysis": took[1], "headline numbers": took[2], "findings": took[4]}


def one_by_one(llm: EmbeddedLLM, item: Item, k: int) -> None:
    """Answer with all passages and without each, call by call."""
    for request in _requests(item, k):
        llm.generate([request])


def together(llm: EmbeddedLLM, item: Item, k: int) -> None:
    """Give the same answers in one call."""
    llm.generate(_requests(item, k))


def logprobs(llm: EmbeddedLLM, item: Item, k: int) -> None:
    """Answer once, and score the answer without each passage."""
    prompts = prompts_of(item, k)
    [answer] = answered(llm, prompts[:1])
    drops(llm.score(prompts, [answer] * len(prompts)))


def screen(llm: EmbeddedLLM, item: Item, k: int) -> None:
    """Answer once, and estimate what the scores are."""
    screened(llm, prompts_of(item, k))


def _requests(item: Item, k: int) -> list[Request]:
    stop = prompt_style("short").stop
    return [Request(prompt, stop=stop, max_tokens=_TOKENS) for prompt in prompts_of(item, k)]


METHODS: Mapping[str, tuple[type[EmbeddedLLM], Callable[[EmbeddedLLM, Item, int], None]]] = {
    "generate, one by one": (OneByOne, one_by_one),
    "exact answers, together": (EmbeddedLLM, together),
    "log-probabilities": (EmbeddedLLM, logprobs),
    "quick screen": (EmbeddedLLM, screen),
}


def many_passages(k: int) -> Item:
    """Return a question of the sample with k short passages of several questions."""
    items = list(sample())
    found = [passage for item in items for passage in item.passages][:k]
    short = [
        (place, title, " ".join(text.split()[:_WORDS])) for place, (_, title, text) in enumerate(found, 1)
    ]
    return replace(items[0], passages=short)


def lines(size: Size) -> Iterator[Line]:
    """Yield the exponents over rows, then over passages."""
    sizes = size.pick([100, 200, 400], [1_000, 10_000, 100_000], [1_000, 10_000, 100_000, 300_000, 1_000_000])
    of_rows(sizes[0])  # what is loaded and computed once
    found = [of_rows(n) for n in sizes]
    for name in found[0]:
        yield fitted(name, sizes, [one[name] for one in found], "rows")
    counts = size.pick([2, 3], [2, 3, 5], [5, 10, 20, 40])
    llms = {kind: kind(dtype="float32") for kind in (OneByOne, EmbeddedLLM)}
    for name, (kind, work) in METHODS.items():
        work(llms[kind], many_passages(2), 2)
        seconds = []
        for k in counts:
            start = time.perf_counter()
            work(llms[kind], many_passages(k), k)
            seconds.append(time.perf_counter() - start)
        yield fitted(name, counts, seconds, "passages")
