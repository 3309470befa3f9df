"""ROUGE-L, BM25 and embeddings here against the libraries that define them.

What limits them: of short answers ROUGE-L takes less time than the call that asks for it; an index of BM25
must split the same texts into words; embeddings are the same products of matrices in the same precision, and
half the precision moves cosines too far.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rank_bm25 import BM25Okapi
from rouge_score.rouge_scorer import RougeScorer

from bench.lines import Line, Size, in_turn
from core.llm.embeddings import SentenceEmbedder
from core.llm.packaged import packaged_embedder
from core.retrieval import FastBM25Retriever, split
from core.sources.question import load_corpus
from core.text.overlap import rouge_l
from core.text.words import passages

SAMPLES = Path(__file__).resolve().parents[1] / "sample_data"
K = 10


def lines(size: Size) -> Iterator[Line]:
    """Measure on the words and passages of the sample articles."""
    windows = [
        piece.text for article in load_corpus(SAMPLES / "articles") for piece in passages(article.text, 100)
    ]
    # rouge_score reads nothing else; other scripts are another definition here.
    vocabulary = [word for text in windows for word in text.split() if word.isascii()]
    questions = [
        json.loads(line)["question"] for line in (SAMPLES / "questions.jsonl").open(encoding="utf-8")
    ]
    for length in (8, 25, 100):
        yield rouge(vocabulary, length, size.pick(10, 24_000 // length, 6_667), size.pick(1, 3, 5))
    yield from bm25(size.pick(100, 5_000, 20_000), size.pick(3, 10, 20), size.pick(1, 3, 3))
    random.Random(0).shuffle(windows)
    yield from embeddings(
        windows[: size.pick(4, 32, 128)], questions[: size.pick(3, 20, None)], size.pick(1, 3, 3)
    )


def rouge(vocabulary: list[str], length: int, n_pairs: int, rounds: int) -> Line:
    """Pairs of new texts in every round: no text is in a cache, only their words may be."""
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    rng = random.Random(length)
    pairs = [
        [tuple(" ".join(rng.choices(vocabulary, k=length)) for _ in "ab") for _ in range(n_pairs)]
        for _ in range(rounds)
    ]
    ratios, equal = [], 0
    for theirs, ours, ratio in in_turn(
        lambda turn: [scorer.score(a, b)["rougeL"].fmeasure for a, b in pairs[turn]],
        lambda turn: [rouge_l(a, b).f1 for a, b in pairs[turn]],
        rounds,
    ):
        ratios.append(ratio)
        equal += sum(a == b for a, b in zip(theirs, ours, strict=True))
    must_agree(equal, n_pairs * rounds)
    checked = f"all {equal:,} pairs equal to the last bit"
    return Line.of(f"ROUGE-L F1, {length} words", "rouge_score", ratios, checked, floor=15, goal=40)


def bm25(n_passages: int, n_queries: int, rounds: int) -> Iterator[Line]:
    """Passages of 100 words, drawn as often as words of a language are (Zipf); 8 words of one ask."""
    rng = random.Random(0)
    words = [f"word{i}" for i in range(50_000)]
    totals = np.cumsum([1 / (i + 1) for i in range(len(words))]).tolist()
    texts = [" ".join(rng.choices(words, cum_weights=totals, k=100)) for _ in range(n_passages)]
    queries = [" ".join(rng.sample(rng.choice(texts).split(), 8)) for _ in range(n_queries)]
    built = list(
        in_turn(
            lambda _: BM25Okapi([split(text) for text in texts]),
            lambda _: FastBM25Retriever(texts, "split"),
            rounds,
        )
    )
    slow, fast, _ = built[-1]
    where = f"{n_passages:,} passages"
    yield Line.of(
        f"BM25 index, {where}",
        "rank_bm25",
        [one[2] for one in built],
        "both split the texts",
        floor=1,
        goal=2,
    )
    asked = list(
        in_turn(lambda i: slow.get_scores(split(queries[i])), lambda i: fast.scores(queries[i]), n_queries)
    )
    equal = sum(np.array_equal(theirs, ours) for theirs, ours, _ in asked)
    must_agree(equal, n_queries)
    checked = f"all scores of {equal} queries equal to the last bit"
    yield Line.of(
        f"BM25 scores, {where}", "rank_bm25", [one[2] for one in asked], checked, floor=50, goal=100
    )
    found = list(
        in_turn(
            lambda i: np.argsort(slow.get_scores(split(queries[i])))[::-1][:K],
            lambda i: fast.top(queries[i], K),
            n_queries,
        )
    )
    # Ties are in no order there.
    same = sum(
        np.allclose(slow.get_scores(split(query))[theirs], fast.scores(query)[ours], rtol=0, atol=1e-9)
        for query, (theirs, ours, _) in zip(queries, found, strict=True)
    )
    must_agree(same, n_queries)
    checked = f"their scores equal for {same} queries"
    yield Line.of(
        f"BM25 first {K}, {where}", "rank_bm25", [one[2] for one in found], checked, floor=50, goal=100
    )


def embeddings(texts: list[str], questions: list[str], rounds: int) -> Iterator[Line]:
    """Passages of 100 words of the sample articles; the model is loaded before."""
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(packaged_embedder()), local_files_only=True)
    ours = SentenceEmbedder()
    ours.embed(texts[:1])

    def encoded(given: list[str]) -> Any:
        return model.encode(given, show_progress_bar=False)

    def rounded(given: list[str]) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return encoded(given)

    exact = list(in_turn(lambda _: encoded(texts), lambda _: ours.embed(texts), rounds))
    plain, own, _ = exact[-1]
    apart = float(np.abs(plain - own).max())
    must_agree(apart <= 1e-6, True)
    yield Line.of(
        f"embeddings, {len(texts)} passages",
        "encode in fp32",
        [one[2] for one in exact],
        f"no value differs by more than {apart:.1e}",
        floor=2,
        goal=4,
    )
    short = list(in_turn(lambda _: encoded(texts), lambda _: rounded(texts), rounds))
    half = short[-1][1]
    cosines, about = encoded(questions) @ plain.T, rounded(questions) @ half.T
    # The five nearest passages of every question, in order.
    order = [np.argsort(-found, axis=1, kind="stable")[:, :5] for found in (cosines, about)]
    kept = int((order[0] == order[1]).all(axis=1).sum())
    off = float(np.abs(about - cosines).max())
    yield Line.of(
        f"bf16, not in use, {len(texts)} passages",
        "encode in fp32",
        [one[2] for one in short],
        f"cosines differ by up to {off:.1e}, same first 5 for {kept} of {len(questions)} questions",
        note="Asked: at most 1e-3, and all",
    )


def must_agree(found: int, n: int) -> None:
    """Raise where results that must be equal are not."""
    if found != n:
        raise ValueError(f"The two sides agree on {found} of {n}.")
