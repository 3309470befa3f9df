"""How well each estimator finds wrong answers, on sampled answers to TriviaQA, and how fast it is.

Run from the repository root: ``PYTHONPATH=. python bench/uncertainty.py [--data FOLDER]``. An answer is the
first of 5, 10 or 20 samples and counts as right where its ROUGE-L with the reference is above 0.3, as in the
paper that published these samples (Lin, Trivedi, Sun 2023). Measures of the question read all samples,
measures of the answer compare the first with the rest. Prints AUROC with 95 % intervals; what can be told
apart; whether choosing or combining estimators gains anything on questions that it was not fitted to; and the
time for 400 questions against a loop over pairs with rouge_score.

The thresholds of the groups and the weights of ``agreement_typical`` were chosen with these samples in sight,
among about fifty variants: believe their figures on other questions only.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rouge_score.rouge_scorer import RougeScorer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from core.llm.embeddings import shared_embedder
from core.stats import auroc, bootstrap_interval
from core.text.overlap import rouge_l_matrix
from core.uncertainty import ESTIMATORS, TEXT_ONLY, Samples, comparisons, leaderboard, score

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FILE = "triviaqa_generations_dev.jsonl"
RIGHT_ABOVE = 0.3
SIZES = (5, 10, 20)
MAIN = 10
EMBEDDED = tuple(name for name, one in ESTIMATORS.items() if one.needs == ("embeddings",))
# Those whose differences are of interest: every further one costs power.
COMPARED = (
    "agreement_text", "agreement_typical", "agreement_jaccard", "agreement_rouge_l",
    "agreement_cosine_jaccard", "degree_jaccard", "mean_pairwise_rouge", "semantic_entropy_exact",
    "distinct_answers", "answer_length",
)  # fmt: skip
SPLITS, TIMED = 200, 400


def load(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def questions_of(rows: list[Any], n: int, start: int = 0) -> list[Samples]:
    """Return n samples of each question from one place on, in a ring."""
    texts = [[row["generations"][(start + i) % len(row["generations"])] for i in range(n)] for row in rows]
    vectors = embedded(tuple(dict.fromkeys(text for row in rows for text in row["generations"])))
    return [Samples(group, embeddings=[vectors[text] for text in group]) for group in texts]


@cache
def embedded(texts: tuple[str, ...]) -> dict[str, np.ndarray]:
    return dict(zip(texts, shared_embedder().embed(texts), strict=True))


def right(rows: list[Any], place: int = 0) -> np.ndarray:
    return np.array([row["rouge_l"][place] > RIGHT_ABOVE for row in rows], dtype=float)


def print_sizes(tables: Mapping[int, Mapping[str, np.ndarray]], label: np.ndarray) -> None:
    boards = {n: {q.name: q for q in leaderboard(table, label)} for n, table in tables.items()}
    for heading, names in (("only the texts", TEXT_ONLY), ("texts and embeddings", EMBEDDED)):
        print(f"AUROC of finding wrong answers, {heading}; {len(label)} questions, {label.mean():.0%} right")
        print(f"{'':<28}" + "".join(f"{n} samples".center(24) for n in tables))
        for name in sorted(names, key=lambda name: -boards[MAIN][name].auroc[0]):
            cells = [boards[n][name].auroc for n in tables]
            mark = " (trivial)" if ESTIMATORS[name].is_baseline else ""
            print(f"{name + mark:<28}" + "".join(f"  {v:.3f} [{lo:.3f}, {hi:.3f}]  " for v, lo, hi in cells))


def print_pairs(table: Mapping[str, np.ndarray], label: np.ndarray) -> None:
    pairs = comparisons({name: table[name] for name in COMPARED}, label)
    told = [pair for pair in pairs if pair.distinguishable]
    print(f"{len(told)} of {len(pairs)} pairs can be told apart at {MAIN} samples (Holm, 5 %):")
    for pair in told:
        print(f"   {pair.first} > {pair.second}: +{pair.difference:.3f} [{pair.low:.3f}, {pair.high:.3f}]")


def print_beyond(rows: list[Any], n_places: int) -> None:
    """Choose or combine estimators on half of the questions, and judge that on the other half.

    Every sample is the answer in turn, so that the figures do not hang on which came first.
    """
    names = [*TEXT_ONLY, *EMBEDDED]
    tables = []
    for place in range(n_places):
        scores = score(questions_of(rows, MAIN, place), names)
        tables.append(np.column_stack([scores[name].uncertainty for name in names]))
    x = np.nan_to_num(np.array(tables))  # places, questions, estimators
    wrong = 1 - np.array([right(rows, place) for place in range(n_places)])
    exact = 1 - np.array([[row["exact_match"][place] for row in rows] for place in range(n_places)])

    def worth(values: np.ndarray, chosen: np.ndarray, label: np.ndarray = wrong) -> float:
        return float(np.nanmean([auroc(w[chosen], v[chosen]) for v, w in zip(values, label, strict=True)]))

    every = np.arange(len(rows))
    print(
        f"Every one of {n_places} samples as the answer in turn: mean AUROC at {MAIN} samples, by both labels"
    )
    order = sorted(range(len(names)), key=lambda i: -worth(x[:, :, i], every))
    plain, weighted = (names.index(name) for name in ("agreement_text", "agreement_typical"))
    for i in order[:7]:
        by_exact = worth(x[:, :, i], every, exact)
        print(f"   {names[i]:<28} {worth(x[:, :, i], every):.3f} (exact match {by_exact:.3f})")
    for title, label in (("ROUGE-L", wrong), ("exact match", exact)):
        low, high = bootstrap_interval(
            every, lambda q, y=label: worth(x[:, :, weighted], q, y) - worth(x[:, :, plain], q, y), SPLITS
        )
        gain = worth(x[:, :, weighted], every, label) - worth(x[:, :, plain], every, label)
        print(f"agreement_typical minus agreement_text, {title}: {gain:+.4f} [{low:+.4f}, {high:+.4f}]")
    gains: dict[str, list[float]] = {"the best one": [], "a logistic model of all": []}
    rng = np.random.default_rng(0)
    for _ in range(SPLITS):
        shuffled = rng.permutation(len(rows))
        fit, test = np.array_split(shuffled, 2)
        best = max(range(len(names)), key=lambda i: worth(x[:, :, i], fit))
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
        model.fit(x[:, fit].reshape(-1, len(names)), wrong[:, fit].ravel())
        combined = model.decision_function(x.reshape(-1, len(names))).reshape(wrong.shape)
        base = worth(x[:, :, plain], test)
        for title, values in zip(gains, (x[:, :, best], combined), strict=True):
            gains[title].append(worth(values, test) - base)
    for title, found in gains.items():
        low, high = np.quantile(found, [0.025, 0.975])
        print(
            f"{title}, fitted to half the questions, minus agreement_text on the other half: "
            f"{np.mean(found):+.3f} (middle 95 % of {SPLITS} splits {low:+.3f} to {high:+.3f})"
        )


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def print_speed(rows: list[Any], n_questions: int) -> None:
    """Time all text-only estimators, and ROUGE-L alone against a loop over pairs."""
    n = max(SIZES)
    # A word of its own makes every text new to all caches.
    texts = [
        [f"{text} no{q}x{i}" for i, text in enumerate(rows[q % len(rows)]["generations"][:n])]
        for q in range(n_questions)
    ]
    total = timed(lambda: score([Samples(group) for group in texts], TEXT_ONLY))
    print(f"{n_questions} questions x {n} samples, {len(TEXT_ONLY)} text-only estimators: {total:.1f} s")
    fresh = [[text.replace(" no", " nr") for text in group] for group in texts]
    ours = timed(lambda: [rouge_l_matrix(group) for group in fresh])
    some = fresh[: max(1, n_questions // 20)]
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    pairs = [(a, b) for group in some for i, a in enumerate(group) for b in group[:i]]
    loop = timed(lambda: [scorer.score(a, b) for a, b in pairs]) * len(fresh) / len(some)
    print(f"ROUGE-L of all pairs: {ours:.2f} s; a loop with rouge_score {loop:.0f} s; {loop / ours:.0f} x")


def main() -> None:
    global SPLITS, TIMED
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--smoke", action="store_true", help="only whether it runs; give tiny --data")
    options = parser.parse_args()
    if options.smoke:
        SPLITS, TIMED = 2, 4
    path = options.data / FILE
    if not path.is_file():
        print(f"The development data is not here ({path}); --data names a folder.")
        return
    rows = load(path)
    label = right(rows)
    tables = {
        n: {name: found.uncertainty for name, found in score(questions_of(rows, n)).items()} for n in SIZES
    }
    print_sizes(tables, label)
    print_pairs(tables[MAIN], label)
    print_beyond(rows, 2 if options.smoke else len(rows[0]["generations"]))
    print_speed(rows, TIMED)


if __name__ == "__main__":
    main()
