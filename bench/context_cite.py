"""Influence without each passage against the package context-cite, with 32 and 64 random masks.

Natural Questions with ten passages where the development files are, else the sample's questions with those of
the recorded run; the packaged model in single precision, greedy. All methods explain the same answer to the
same prompt. context-cite (arXiv 2409.00729) runs as published, on the model as transformers loads it; only
prompt and passages are ours. LDS: Spearman's ρ, over held-out random masks that are the same for all methods,
of the sum of the kept passages' scores with the log-probability of the answer.

What limits it: leaving out one passage at a time says little of passages that hold the same evidence, so sums
of such scores predict random masks less well than a regression on random masks does.
"""

from __future__ import annotations

import os
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from bench.engine import OneByOne
from bench.lines import Line, Size
from bench.prompts import DATA, FILE, Item, natural_questions, sample, some
from bench.screen import answered, drops, prompts_of, screened
from core.llm.embedded.llm import EmbeddedLLM
from core.llm.prompts import answer_messages, prompt_style
from core.llm.types import Message, Request
from core.stats import bootstrap_interval
from core.text.overlap import rouge_l

INSTALLED = Path(sys.prefix) / "peers"  # see requirements-peers.txt
TOP = (1, 3, 5)
Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Found:
    """What a method finds for one question: scores of its passages, and the seconds that it took."""

    answer: str
    scores: Floats
    seconds: float


@dataclass(frozen=True, slots=True)
class Judged:
    """Faithfulness of one method's scores of one question.

    ``lds`` is nan where all scores are equal. ``drops`` are nats that the answer loses without the passages
    of the m highest scores, for each m of `TOP`.
    """

    lds: float
    drops: tuple[float, ...]


@dataclass(slots=True)
class Measured:
    """What was found for all questions so far, by method."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    judged: dict[str, list[Judged]] = field(default_factory=dict)

    def add(self, name: str, found: Found, judged: Judged) -> None:
        """Keep what one method found for one question."""
        self.seconds.setdefault(name, []).append(found.seconds)
        self.judged.setdefault(name, []).append(judged)


class Truth:
    """Exact log-probabilities of an answer with any passages of a question, each computed once."""

    def __init__(self, llm: EmbeddedLLM, item: Item, k: int, answer: str) -> None:
        self._llm, self._item, self._k, self._answer = llm, item, k, answer
        self._known: dict[bytes, float] = {}

    def logprobs(self, masks: Masks) -> Floats:
        """Return the log-probability of the answer under each mask, in nats."""
        new = {mask.tobytes(): mask for mask in masks if mask.tobytes() not in self._known}
        prompts = [with_mask(self._item, self._k, mask) for mask in new.values()]
        for key, tokens in zip(new, self._llm.score(prompts, [self._answer] * len(new)), strict=True):
            self._known[key] = np.nan if tokens is None else sum(tokens)
        return np.array([self._known[mask.tobytes()] for mask in masks])

    def judge(self, scores: Floats, held_out: Masks) -> Judged:
        """Compare scores with the truth."""
        found = self.logprobs(held_out)
        predicted = held_out @ scores
        lds = np.nan if np.ptp(predicted) == 0 else float(spearmanr(predicted, found).statistic)
        order = np.argsort(-scores, kind="stable")
        masks = np.ones((1 + len(TOP), scores.size), dtype=bool)
        for row, m in enumerate(TOP, start=1):
            masks[row, order[:m]] = False
        whole, *without = self.logprobs(masks)
        return Judged(lds, tuple(whole - one for one in without))


def with_mask(item: Item, k: int, mask: Masks) -> tuple[Message, ...]:
    """Return the prompt with the passages of a mask."""
    chosen = [passage for passage, kept in zip(item.passages[:k], mask, strict=True) if kept]
    return answer_messages(item.question, chosen)


def together(llm: EmbeddedLLM, item: Item, k: int) -> Found:
    """Generate the answer, and one without each passage, in one call."""
    start = time.perf_counter()
    stop = prompt_style("short").stop
    first, *others = [c.text for c in llm.generate([Request(p, stop=stop) for p in prompts_of(item, k)])]
    influence = np.array([1 - rouge_l(first, other).f1 for other in others])
    return Found(first, influence, time.perf_counter() - start)


def by_logprob(llm: EmbeddedLLM, item: Item, k: int) -> Found:
    """Generate the answer, and score it without each passage."""
    start = time.perf_counter()
    prompts = prompts_of(item, k)
    [answer] = answered(llm, prompts[:1])
    scores = drops(llm.score(prompts, [answer] * len(prompts)))
    return Found(answer, scores, time.perf_counter() - start)


def by_screen(llm: EmbeddedLLM, item: Item, k: int) -> Found:
    """Generate the answer, and estimate what `by_logprob` computes."""
    start = time.perf_counter()
    answer, scores, _ = screened(llm, prompts_of(item, k))
    return Found(answer, scores, time.perf_counter() - start)


@cache
def package() -> Any:
    """Import context-cite; None where it is not installed."""
    if not (INSTALLED / "context_cite").is_dir():
        return None
    import nltk

    # It cuts texts into sentences with data that it downloads, and into words with spaCy: not used here.
    spacy = {name: types.ModuleType(name) for name in ("spacy", "spacy.lang", "spacy.lang.en")}
    spacy["spacy.lang.en"].English = object  # type: ignore[attr-defined]
    os.environ["TQDM_DISABLE"] = "1"
    sys.path.append(str(INSTALLED))
    import datasets  # noqa: F401  (looks for spaCy itself)

    sys.modules.update(spacy)
    with mock.patch.object(nltk, "download"):
        from context_cite import solver, utils
    for name in spacy:
        del sys.modules[name]
    return types.SimpleNamespace(solver=solver.LassoRegression, utils=utils)


def cited(llm: OneByOne, item: Item, k: int, masks: int) -> list[Found]:
    """Let context-cite explain the answer, with so many masks and with twice as many.

    The second half of the masks are those that it would draw next; the answer is counted for both.
    """
    peer = package()
    start = time.perf_counter()
    [answer] = answered(llm, [with_mask(item, k, np.ones(k, dtype=bool))])
    generated = time.perf_counter() - start
    tokens = llm._chat.encode_answer(with_mask(item, k, np.ones(k, dtype=bool)), answer)[1]
    solver, halves, found, seconds = peer.solver(), [], [], generated
    for half in (0, 1):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about autocast without a GPU
            halves.append(
                peer.utils.get_masks_and_logit_probs(
                    llm._ready(),
                    llm._tokenizer,
                    masks,
                    k,
                    lambda mask: llm._chat.encode(with_mask(item, k, mask)),
                    tokens,
                    0.5,
                    1,
                    base_seed=half * masks,
                )
            )
        kept, logits = (np.concatenate(parts) for parts in zip(*halves, strict=True))
        weights, _ = solver.fit(kept, peer.utils.aggregate_logit_probs(logits), len(tokens))
        seconds += time.perf_counter() - start
        found.append(Found(answer, np.asarray(weights, dtype=float), seconds))
    return found


def lines(size: Size) -> Iterator[Line]:
    """Time every method on the same questions, in turns, and judge its scores."""
    k, n, masks = size.pick(2, 3, 10), size.pick(1, 1, 6), size.pick(4, 6, 32)
    title, items = "sample", list(sample())
    if (DATA / FILE).is_file():
        title, items = "Natural Questions", list(natural_questions(DATA / FILE, k))
    plain, ours = OneByOne(dtype="float32"), EmbeddedLLM(dtype="float32")
    methods: dict[str, Callable[[Item], list[Found]]] = {
        "exact answers, together": lambda item: [together(ours, item, k)],
        "log-probabilities": lambda item: [by_logprob(ours, item, k)],
        "quick screen": lambda item: [by_screen(ours, item, k)],
    }
    note = f"{title}, {k} passages; the same answer by all methods"
    if package() is not None:
        methods[cite_name(masks)] = lambda item: cited(plain, item, k, masks)
    else:
        note += "; context-cite is not installed, see requirements-peers.txt"
    result, held_out = Measured(), np.random.default_rng(1).random((size.pick(4, 8, 32), k)) < 0.5
    chosen = some(items, n)
    for work in methods.values():  # loaded, and warm
        work(Item("Who?", [(place, "", "Nobody.") for place in range(1, k + 1)], []))
    for turn, item in enumerate(chosen):
        order = list(methods)[turn % len(methods) :] + list(methods)[: turn % len(methods)]
        found = in_order(methods, order, item)
        answer = next(iter(found.values())).answer
        if any(one.answer != answer for one in found.values()):
            raise AssertionError(f"question {turn + 1} was answered in several ways")
        truth = Truth(ours, item, k, answer)
        for name, one in found.items():
            result.add(name, one, truth.judge(one.scores, held_out))
        print(f"  {turn + 1} of {len(chosen)} questions", flush=True)
    yield from times(result, masks, note)
    yield from faithfulness(result, len(held_out))


def in_order(
    methods: Mapping[str, Callable[[Item], list[Found]]], order: Sequence[str], item: Item
) -> dict[str, Found]:
    """Return what each method finds for a question, asked in this order, in the order of the methods."""
    found = {name: methods[name](item) for name in order}
    named = {name: found[name][0] for name in methods}
    more = {cite_name(2 * int(name.split()[1])): found[name][1] for name in methods if len(found[name]) > 1}
    return named | more


def cite_name(masks: int) -> str:
    """Return the name of context-cite with so many masks."""
    return f"context-cite, {masks} masks"


def times(result: Measured, masks: int, note: str) -> Iterator[Line]:
    """Yield seconds a question of every method, and each of ours against context-cite."""
    cite = [name for name in (cite_name(masks), cite_name(2 * masks)) if name in result.seconds]
    for name, seconds in result.seconds.items():
        yield Line.of(f"seconds a question: {name}", "the clock", seconds, note, unit="s")
        for many in cite if name not in cite else ():
            ratios = [a / b for a, b in zip(result.seconds[many], seconds, strict=True)]
            asked = {"floor": 2.5, "goal": 4.0} if many == cite[0] and name.startswith("exact") else {}
            yield Line.of(name, many, ratios, note, **asked)


def faithfulness(result: Measured, n_masks: int) -> Iterator[Line]:
    """Yield the mean LDS and the mean drops of every method, each with its 95 % bootstrap interval."""
    for name, judged in result.judged.items():
        lds = np.array([one.lds for one in judged])
        known = lds[np.isfinite(lds)]
        left = f", {lds.size - known.size} undefined as all scores are equal" if known.size < lds.size else ""
        if known.size:
            note = f"mean and its 95 % bootstrap interval{left}; by chance 0"
            yield mean(f"LDS: {name}", f"{n_masks} held-out masks", known, "ρ", note)
        for place, m in enumerate(TOP):
            lost = np.array([one.drops[place] for one in judged])
            note = "mean log-probability lost, and its 95 % bootstrap interval"
            yield mean(f"without its top {m}: {name}", "all passages", lost, "nats", note)


def mean(name: str, against: str, values: Floats, unit: str, checked: str) -> Line:
    """Return the line of a mean over questions."""
    middle = float(values.mean())
    low, high = (middle, middle)
    if values.size > 1:
        low, high = bootstrap_interval(values, lambda drawn: float(np.mean(drawn)))
    return Line(name, against, middle, low, high, values.size, checked, unit, None, None, False, "")
