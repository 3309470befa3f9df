"""Attribution by random subsets: the surrogate against context-cite 0.0.4, and how well each method predicts.

Natural Questions of the development file with ten passages, the packaged model in single precision, greedy.
Speed: both sides explain the same given answer, with the masks that context-cite draws; it runs as published,
on the model as transformers loads it. *All subsets* measures 1,024 masks and predicts each from the others.

LDS: Spearman's ρ of predicted and measured log-probabilities of the answer over 32 random masks, except those
used for a fit; mean over questions with its 95 % bootstrap interval, 0 by chance. All methods read the
measurements in `bench/results/attribution_masks.jsonl`, which `record` makes. context-cite's Lasso has no
pairs; below 48 masks the surrogate is the same. Shapley values are left out: they share credit and are not
meant to predict, and their masks are not among those measured.

What limits the speed: the 32 masks keep 155 passages, and 87 where what prompts begin with is read once, 1.8
times less, beside question and answer of every mask. The rest is faster arithmetic.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.context_cite import fitted, game, mean, package, questions, under_masks, with_mask
from bench.engine import OneByOne
from bench.lines import Line, Size, in_turn
from bench.page import RESULTS
from bench.prompts import Item
from bench.screen import answered
from core.arrays import Bools, Floats
from core.attribution import METHODS, Faithfulness, Fit, attribute, interacting, judged, settled
from core.attribution.measured import kept_text
from core.llm.embedded.llm import EmbeddedLLM
from core.stats import lasso, wilson_interval
from core.stats.designs import one_left_out, random_masks

K, ALPHA = 10, 0.01
MASKS = RESULTS / "attribution_masks.jsonl"
BUDGETS = (11, 32, 48, 64)
LEFT_OUT, DRAWN, HELD_OUT = slice(0, 11), 12, slice(76, 108)  # of the masks of a question; 11 keeps none


def masks_of(k: int) -> Bools:
    """Return the masks to measure: with all, without each, with none, 64 random ones, and 32 to judge by."""
    held_out = np.random.default_rng([0, 1]).random((32, k)) < 0.5
    return np.vstack([one_left_out(k), np.zeros((1, k), dtype=bool), random_masks(k, 64), held_out])


def record(path: Path = MASKS, n: int = 40) -> None:
    """Measure the answers to n questions under `masks_of`; about 100 s each. Goes on where it stopped."""
    done = {row["question"] for row in recorded(path)}
    llm = EmbeddedLLM(dtype="float32")
    for item in questions(K, n)[1]:
        if item.question in done:
            continue
        answer, masks = _answer(llm, item, K), masks_of(K)
        start = time.perf_counter()
        found = llm.score([with_mask(item, K, mask) for mask in masks], [answer] * len(masks))
        row = {
            "question": item.question,
            "answer": answer,
            "answers": item.answers,
            "n_tokens": len(found[0] or ()),
            "masks": [kept_text(mask) for mask in masks],
            "logprobs": [round(sum(one or ()), 6) for one in found],
            "seconds": round(time.perf_counter() - start, 1),
        }
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def recorded(path: Path = MASKS) -> list[dict[str, Any]]:
    """Return what was measured, question by question."""
    texts = path.read_text(encoding="utf-8").splitlines() if path.exists() else ()
    return [json.loads(text) for text in texts]


def lines(size: Size) -> Iterator[Line]:
    """Judge every method on what was recorded; then time the surrogate, and all subsets once."""
    rows = recorded()[: size.pick(2, 8, None)]
    yield from faithfulness(rows)
    yield from decided(rows)
    k, n_masks = size.pick(2, 3, K), size.pick(4, 6, 32)
    title, items = questions(k, size.pick(1, 1, 6))
    plain, ours = OneByOne(dtype="float32"), EmbeddedLLM(dtype="float32")
    nobody = Item("Who?", [(place, "", "Nobody.") for place in range(1, k + 1)], [])
    answers = [_answer(ours, item, k) for item in items]
    if package() is not None:
        yield from speed(title, list(zip(items, answers, strict=True)), (plain, ours), k, n_masks, nobody)
    if size is not Size.QUICK:
        start = time.perf_counter()
        found = attribute(game(ours, items[0], k, answers[0]), "exact")
        note = f"LDS {found.faithfulness.lds:.2f}, each predicted from the others; {title}"
        took = time.perf_counter() - start
        yield Line.of(f"all subsets, {found.n_calls:,} masks", "the clock", [took], note, unit="s")


def speed(
    title: str,
    asked: Sequence[tuple[Item, str]],
    llms: tuple[OneByOne, EmbeddedLLM],
    k: int,
    n_masks: int,
    nobody: Item,
) -> Iterator[Line]:
    """Yield how many times as long context-cite takes for the same scores, and our seconds."""
    plain, ours = llms
    drawn = np.array([package().utils._create_mask(k, 0.5, seed) for seed in range(n_masks)])
    seconds: list[float] = []

    def theirs(item: Item, answer: str) -> tuple[Bools, Floats]:
        kept, logits = under_masks(plain, item, k, answer, n_masks)
        return kept, fitted(kept, logits)

    def surrogate(item: Item, answer: str) -> Floats:
        start = time.perf_counter()
        tokens = len(ours._chat.encode_answer(with_mask(item, k, drawn[0]), answer)[1])
        scores = METHODS["surrogate"].fit(drawn, logit(game(ours, item, k, answer)(drawn)), tokens).scores
        seconds.append(time.perf_counter() - start)
        return scores

    theirs(nobody, "Nobody"), surrogate(nobody, "Nobody")  # loaded, and warm
    ratios, furthest = [], 0.0
    for (kept, weights), scores, ratio in in_turn(
        lambda i: theirs(*asked[i]), lambda i: surrogate(*asked[i]), len(asked)
    ):
        furthest = max(furthest, float(np.abs(weights - scores).max()))
        if furthest > 1e-3 or not (kept == drawn).all():
            raise AssertionError(f"scores differ by {furthest:.2g}, or masks differ")
        ratios.append(ratio)
        print(f"  {len(ratios)} of {len(asked)} questions", flush=True)
    what = f"surrogate, {n_masks} masks"
    same = f"{title}, {k} passages; same masks, scores within {furthest:.1g}"
    yield Line.of(what, f"context-cite, {n_masks} masks", ratios, same, floor=3.0, goal=5.0)
    yield Line.of(f"seconds a question: {what}", "the clock", seconds[1:], same, unit="s")


def faithfulness(rows: Sequence[dict[str, Any]]) -> Iterator[Line]:
    """Yield the mean LDS of every method by its number of masks, and paired differences."""
    by_name: dict[str, list[Faithfulness]] = {}
    for row in rows:
        for name, one in judgements(row).items():
            by_name.setdefault(name, []).append(one)
    lds = {name: np.array([one.lds for one in found]) for name, found in by_name.items()}
    for name, values in lds.items():
        if name.endswith("logits"):
            continue
        known = values[np.isfinite(values)]
        lost = len(values) - len(known)
        note = f"; {lost} undefined as all scores are equal" if lost else ""
        floor = 0.75 if name == "surrogate, 32 masks" else None
        yield mean(f"LDS: {name}", "held-out masks", known, "ρ", f"by chance 0{note}", floor)
    for name in ("surrogate, 32 masks", "surrogate, 64 masks"):
        found = by_name.get(name, ())
        right = np.array([one.concordance for one in found if one.readable is not None])
        if right.size:
            unread = sum(one.readable is False for one in found)
            note = (
                f"share of pairs in the right order; by chance 0.5; {unread} of {right.size} cannot be read"
            )
            yield mean(f"of two removals, the worse one: {name}", "held-out masks", right, "", note)
    for ours, other, floor in (
        ("surrogate, 64 masks", "Lasso of context-cite, 64 masks", 0.03),
        ("surrogate, 64 masks", "Banzhaf, 64 masks", None),
        ("surrogate, 32 masks", "Banzhaf, 32 masks", None),
        ("surrogate, 32 masks, logits", "surrogate, 32 masks", None),
        ("surrogate, 64 masks, logits", "surrogate, 64 masks", None),
        ("surrogate, 32 masks", "leave one out, 11 masks", None),
        ("surrogate, 64 masks", "leave one out, 11 masks", None),
    ):
        if lds:
            apart = lds[ours] - lds[other]
            note = "paired by question; 0 = the same"
            yield mean(f"LDS: {ours}, minus", other, apart[np.isfinite(apart)], "ρ", note, floor)


def decided(rows: Sequence[dict[str, Any]]) -> Iterator[Line]:
    """Yield in how many questions 64 masks find a pair, and settle the order."""
    drawn = slice(DRAWN, DRAWN + BUDGETS[-1])
    games = [(bits(row)[drawn], np.array(row["logprobs"])[drawn]) for row in rows]
    paired = [len(interacting(*one)) > 0 for one in games]
    places = [settled(*one, METHODS["banzhaf"].fit(*one, 1.0).scores) for one in games]
    for name, yes, chance in (
        ("a pair of passages that does not add up", paired, "by chance at most 0.05"),
        ("first place settled", [one > 0 for one in places], "wrong in at most 0.05"),
        ("first three places settled", [one > 2 for one in places], "wrong in at most 0.05"),
    ):
        if rows:
            share, n = float(np.mean(yes)), len(yes)
            ends, told = wilson_interval(share, n), f"{sum(yes)} of {n} questions; {chance}"
            yield Line(f"{name}, 64 masks", "all questions", share, *ends, n, told, "", None, None, False, "")


def bits(row: dict[str, Any]) -> Bools:
    """Return the masks of a question."""
    return np.array([[one == "1" for one in text] for text in row["masks"]])


def judgements(row: dict[str, Any]) -> dict[str, Faithfulness]:
    """Return how well each method predicts the held-out masks of a question."""
    masks, values, tokens = bits(row), np.array(row["logprobs"]), float(row["n_tokens"])
    own = set(row["masks"][: HELD_OUT.start])
    test = [i for i in range(HELD_OUT.start, HELD_OUT.stop) if row["masks"][i] not in own]
    odds = logit(values)
    fits = {"leave one out, 11 masks": METHODS["leave_one_out"].fit(masks[LEFT_OUT], values[LEFT_OUT], 1.0)}
    for n in BUDGETS:
        of = slice(DRAWN, DRAWN + n)
        x, y = masks[of], values[of]
        weights = lasso(x.astype(float), y / tokens, ALPHA) * tokens
        nothing = np.zeros((x.shape[1], x.shape[1]))
        fits[f"Lasso of context-cite, {n} masks"] = Fit(weights, nothing, nothing[:, :2])
        fits[f"Banzhaf, {n} masks"] = METHODS["banzhaf"].fit(x, y, tokens)
        if n > BUDGETS[0]:
            fits[f"surrogate, {n} masks"] = METHODS["surrogate"].fit(x, y, tokens)
            fits[f"surrogate, {n} masks, logits"] = METHODS["surrogate"].fit(x, odds[of], tokens)
    return {name: judged(fit.predict(masks[test]), values[test]) for name, fit in fits.items()}


def logit(logprobs: Floats) -> Floats:
    """Return log p − log(1 − p)."""
    return np.asarray(logprobs - np.log1p(-np.exp(np.minimum(logprobs, -1e-12))))


def _answer(llm: EmbeddedLLM, item: Item, k: int) -> str:
    [answer] = answered(llm, [with_mask(item, k, np.ones(k, dtype=bool))])
    return answer.strip()
