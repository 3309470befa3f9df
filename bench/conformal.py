"""Promises kept and broken on sampled answers to TriviaQA, beside those of published code.

Run from the repository root: ``PYTHONPATH=. python bench/conformal.py [--data FOLDER]``. The answer of a
question is the first of 11 samples, right where its ROUGE-L with the reference is above 0.3 (Lin, Trivedi,
Sun 2023); its score is 1 − mean ROUGE-L with the other ten. Half of the questions calibrates, the other half
tests, at random and many times; printed are means over the splits. *Published* is the threshold of rag_uq: an
interpolated quantile that is never infinite.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from core.conformal import (
    calibrate_sets,
    certify_threshold,
    conformal_threshold,
    coverage_band,
    drift_martingale,
    online_p_values,
    p_values,
    rarity,
)
from core.text.overlap import rouge_l_matrix

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FILE = "triviaqa_generations_dev.jsonl"
RIGHT_ABOVE, SAMPLES = 0.3, 10
ALPHAS, DELTA = (0.05, 0.1, 0.2, 0.3), 0.1
SPLITS = 1_000


def published_threshold(scores: np.ndarray, alpha: float) -> float:
    """Return the quantile of rag_uq: between scores, and the largest where there is none."""
    return float(np.quantile(scores, min(1.0, math.ceil((len(scores) + 1) * (1 - alpha)) / len(scores))))


def print_small_sets(n_draws: int) -> None:
    """Coverage of both thresholds for uniform scores, by simulation."""
    rng = np.random.default_rng(0)
    print("Coverage of a new case by n labels (uniform scores); the exact one is infinite where it says so")
    print(f"{'n':>4} {'promised':>9} {'published':>10} {'exact':>8}  band of one set of labels")
    for n in (5, 9, 19, 50):
        for alpha in (0.05, 0.1, 0.2):
            draws = rng.random((n_draws, n))
            theirs = np.mean([published_threshold(one, alpha) for one in draws])
            ours = np.mean([min(1.0, conformal_threshold(one, alpha)) for one in draws])
            low, high = coverage_band(n, alpha)
            print(f"{n:>4} {1 - alpha:>9.0%} {theirs:>10.3f} {ours:>8.3f}  {low:.2f} to {high:.2f}")


def scores_of(rows: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the score of each answer and whether it is right."""
    texts = [row["generations"][: SAMPLES + 1] for row in rows]
    score = np.array([1 - rouge_l_matrix(group)[0, 1:].mean() for group in texts])
    return score, np.array([row["rouge_l"][0] > RIGHT_ABOVE for row in rows], dtype=float)


def groups_of(rows: list[Any]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the rarity of each different answer among ten samples, and whether it is right."""
    scores, labels = [], []
    for row in rows:
        own = list(zip(row["generations"][1 : SAMPLES + 1], row["rouge_l"][1 : SAMPLES + 1], strict=True))
        different = dict(own)
        scores.append(rarity([sum(text == one for text, _ in own) for one in different]))
        labels.append(np.array([value > RIGHT_ABOVE for value in different.values()], dtype=float))
    return scores, labels


def print_flags(rows: list[Any], n_splits: int) -> None:
    score, right = scores_of(rows)
    print(f"\n{len(rows)} questions, {right.mean():.0%} right; share flagged in the tested half")
    print(f"{'α':>6}{'of the right':>14}{'of the wrong':>14}")
    rng = np.random.default_rng(1)
    splits = [np.array_split(rng.permutation(len(rows)), 2) for _ in range(n_splits)]
    for alpha in ALPHAS:
        flagged: list[list[float]] = []
        for fit, test in splits:
            p = p_values(score[fit[right[fit] == 1]], score[test])
            flagged.append([float((p[right[test] == k] <= alpha).mean()) for k in (1, 0)])
        print(f"{alpha:>6}" + "".join(f"{value:>14.3f}" for value in np.mean(flagged, axis=0)))
    print("Promised: at most α of the right ones.")

    print(f"\nCertified at δ = {DELTA}: splits with a threshold, share answered, tested risk, risk above α")
    for alpha in ALPHAS:
        found = []
        for fit, test in splits:
            one = certify_threshold(1 - score[fit], right[fit], alpha, DELTA)
            if one.threshold is not None:
                answered = 1 - score[test] >= one.threshold
                risk = 1 - right[test][answered].mean() if answered.any() else math.nan
                found.append((answered.mean(), risk, risk > alpha))
        shown = "".join(f"{value:>9.3f}" for value in np.nanmean(found, axis=0)) if found else "        –"
        print(f"{alpha:>6}{len(found) / n_splits:>9.1%}{shown}")


def print_sets(rows: list[Any], n_splits: int) -> None:
    scores, labels = groups_of(rows)
    without = sum(not one.any() for one in labels)
    print(f"\nSets of sampled answers; in {without} of {len(rows)} questions no sample is right")
    print(f"{'α':>6} {'promised':>9} {'covered':>9} {'size':>7} {'of':>6} {'infinite':>9}")
    rng = np.random.default_rng(2)
    splits = [np.array_split(rng.permutation(len(rows)), 2) for _ in range(n_splits)]
    for alpha in ALPHAS:
        found = []
        for fit, test in splits:
            rule = calibrate_sets([scores[i] for i in fit], [labels[i] for i in fit], alpha)
            kept = [rule.holds(scores[i]) for i in test]
            covered = np.mean([(labels[i][one] == 1).any() for i, one in zip(test, kept, strict=True)])
            found.append((covered, np.mean([one.sum() for one in kept]), rule.threshold == math.inf))
        covered, size, infinite = np.mean(found, axis=0)
        most = np.mean([one.size for one in scores])
        print(f"{alpha:>6} {1 - alpha:>9.0%} {covered:>9.3f} {size:>7.2f} {most:>6.2f} {infinite:>9.1%}")


def print_drift(rows: list[Any], n_splits: int) -> None:
    score, right = scores_of(rows)
    rng = np.random.default_rng(3)
    alarms: dict[str, list[int | None]] = {
        "questions like those of the calibration": [],
        "only hard ones": [],
    }
    for seed in range(n_splits):
        fit, test = np.array_split(rng.permutation(len(rows)), 2)
        hard = rng.choice(np.flatnonzero(right == 0), 2 * len(test))
        for title, stream in zip(alarms, (test, hard), strict=True):
            alarms[title].append(drift_martingale(online_p_values(score[fit], score[stream], seed)).alarm)
    print("\nDrift alarms at 5 %")
    for title, found in alarms.items():
        places = [one for one in found if one is not None]
        middle = f", in the middle at question {np.median(places) + 1:.0f}" if places else ""
        print(f"   {title:<42} {len(places) / n_splits:.1%}{middle}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--smoke", action="store_true", help="only whether it runs; give tiny --data")
    options = parser.parse_args()
    n_splits = 5 if options.smoke else SPLITS
    print_small_sets(50 if options.smoke else 20_000)
    path = options.data / FILE
    if not path.is_file():
        print(f"The development data is not here ({path}); --data names a folder.")
        return
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    print_flags(rows, n_splits)
    print_sets(rows, min(n_splits, 200))
    print_drift(rows, min(n_splits, 200))


if __name__ == "__main__":
    main()
