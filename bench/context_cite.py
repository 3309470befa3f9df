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

from bench.engine import OneByOne
from bench.lines import Line, Size
from bench.prompts import DATA, FILE, Item, natural_questions, sample, some
from bench.screen import answered, drops, prompts_of, screened
from core.arrays import Bools, Floats
from core.attribution import Game, judged
from core.llm.embedded.llm import EmbeddedLLM
from core.llm.prompts import answer_messages, prompt_style
from core.llm.types import Message, Request
from core.stats import bootstrap_interval
from core.text.overlap import rouge_l

INSTALLED = Path(sys.prefix) / "peers"  # see requirements-peers.txt
TOP = (1, 3, 5)


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


def game(llm: EmbeddedLLM, item: Item, k: int, answer: str) -> Game:
    """Return the exact log-probabilities of an answer with any passages of a question, in nats."""

    def score(masks: Bools) -> Floats:
        found = llm.score([with_mask(item, k, mask) for mask in masks], [answer] * len(masks))
        return np.array([np.nan if tokens is None else sum(tokens) for tokens in found])

    return Game(k, score)


def judge(truth: Game, scores: Floats, held_out: Bools) -> Judged:
    """Compare scores with the truth."""
    order = np.argsort(-scores, kind="stable")
    masks = np.array([~np.isin(np.arange(truth.k), order[:m]) for m in (0, *TOP)])
    whole, *without = truth(masks)
    return Judged(judged(held_out @ scores, truth(held_out)).lds, tuple(whole - one for one in without))


def with_mask(item: Item, k: int, mask: Bools) -> tuple[Message, ...]:
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


def under_masks(llm: OneByOne, item: Item, k: int, answer: str, masks: int, seed: int = 0) -> Any:
    """Let context-cite draw masks, (n, k), and measure logits of the answer under each, (n, tokens)."""
    prompt = with_mask(item, k, np.ones(k, dtype=bool))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about autocast without a GPU
        return package().utils.get_masks_and_logit_probs(
            llm._ready(),
            llm._tokenizer,
            masks,
            k,
            lambda mask: llm._chat.encode(with_mask(item, k, mask)),
            llm._chat.encode_answer(prompt, answer)[1],
            0.5,
            1,
            base_seed=seed,
        )


def fitted(kept: Bools, logits: Floats) -> Floats:
    """Return context-cite's weights of passages."""
    peer = package()
    weights, _ = peer.solver().fit(kept, peer.utils.aggregate_logit_probs(logits), logits.shape[1])
    return np.asarray(weights, dtype=float)


def cited(llm: OneByOne, item: Item, k: int, masks: int) -> list[Found]:
    """Let context-cite explain the answer, with so many masks and with twice as many.

    The second half of the masks are those that it would draw next; the answer is counted for both.
    """
    start = time.perf_counter()
    [answer] = answered(llm, [with_mask(item, k, np.ones(k, dtype=bool))])
    halves, found, seconds = [], [], time.perf_counter() - start
    for half in (0, 1):
        start = time.perf_counter()
        halves.append(under_masks(llm, item, k, answer, masks, half * masks))
        weights = fitted(*(np.concatenate(parts) for parts in zip(*halves, strict=True)))
        seconds += time.perf_counter() - start
        found.append(Found(answer, weights, seconds))
    return found


def questions(k: int, n: int) -> tuple[str, list[Item]]:
    """Return what the questions are, and some of them with k passages."""
    if (DATA / FILE).is_file():
        return "Natural Questions", some(list(natural_questions(DATA / FILE, k)), n)
    return "sample", some(list(sample()), n)


def lines(size: Size) -> Iterator[Line]:
    """Time every method on the same questions, in turns, and judge its scores."""
    k, n, masks = size.pick(2, 3, 10), size.pick(1, 1, 6), size.pick(4, 6, 32)
    title, chosen = questions(k, n)
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
    result, held_out = Measured(), np.random.default_rng(1).random((size.pick(8, 8, 32), k)) < 0.5
    for work in methods.values():  # loaded, and warm
        work(Item("Who?", [(place, "", "Nobody.") for place in range(1, k + 1)], []))
    for turn, item in enumerate(chosen):
        order = list(methods)[turn % len(methods) :] + list(methods)[: turn % len(methods)]
        found = in_order(methods, order, item)
        answer = next(iter(found.values())).answer
        if any(one.answer != answer for one in found.values()):
            raise AssertionError(f"question {turn + 1} was answered in several ways")
        truth = game(ours, item, k, answer)
        for name, one in found.items():
            result.add(name, one, judge(truth, one.scores, held_out))
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
    for name, found in result.judged.items():
        lds = np.array([one.lds for one in found])
        known = lds[np.isfinite(lds)]
        left = f", {lds.size - known.size} undefined as all scores are equal" if known.size < lds.size else ""
        if known.size:
            note = f"mean and its 95 % bootstrap interval{left}; by chance 0"
            yield mean(f"LDS: {name}", f"{n_masks} held-out masks", known, "ρ", note)
        for place, m in enumerate(TOP):
            lost = np.array([one.drops[place] for one in found])
            note = "mean log-probability lost, and its 95 % bootstrap interval"
            yield mean(f"without its top {m}: {name}", "all passages", lost, "nats", note)


def mean(
    name: str, against: str, values: Floats, unit: str, checked: str, floor: float | None = None
) -> Line:
    """Return the line of a mean over questions."""
    middle = float(values.mean())
    low, high = (middle, middle)
    if values.size > 1:
        low, high = bootstrap_interval(values, lambda drawn: float(np.mean(drawn)))
    return Line(name, against, middle, low, high, values.size, checked, unit, floor, None, False, "")
