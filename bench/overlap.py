"""ROUGE-L here against rouge_score, on the same pairs in the same process; only equality is asserted."""

from __future__ import annotations

import argparse
import random
import statistics
import time

from rouge_score.rouge_scorer import RougeScorer

from core.text.overlap import rouge_l

PAIRS, ROUNDS = 2_000, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: only whether it runs")
    n_pairs, rounds = (20, 1) if parser.parse_args().smoke else (PAIRS, ROUNDS)
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    words = [f"word{i}" for i in range(400)]
    print(f"{n_pairs} pairs, {rounds} rounds in turn; ratio = rouge_score / ours, higher = ours is faster")
    for length in (8, 25, 100):
        ratios, equal = [], 0
        for turn in range(rounds):
            # New texts every round: none of them is in a cache, only their words may be.
            rng = random.Random(length * 100 + turn)
            pairs = [tuple(" ".join(rng.choices(words, k=length)) for _ in range(2)) for _ in range(n_pairs)]
            start = time.perf_counter()
            ours = [rouge_l(a, b).f1 for a, b in pairs]
            middle = time.perf_counter()
            theirs = [scorer.score(a, b)["rougeL"].fmeasure for a, b in pairs]
            end = time.perf_counter()
            ratios.append((end - middle) / (middle - start))
            equal += sum(a == b for a, b in zip(ours, theirs, strict=True))
        low, mid, high = min(ratios), statistics.median(ratios), max(ratios)
        same = f"{equal}/{n_pairs * rounds} equal to the last digit"
        print(f"{length:4d} words: ratio {mid:.1f} (min {low:.1f}, max {high:.1f}); {same}")
        if equal != n_pairs * rounds:
            raise SystemExit("The two disagree.")


if __name__ == "__main__":
    main()
