"""What each validator catches and what it objects to wrongly, on answers with known hallucinations.

Run from the repository root: ``PYTHONPATH=. python bench/validation.py [--data FOLDER]``. HaluEval has a
right and a hallucinated answer to each question, with the knowledge that decides. RAGTruth comes without its
passages, so only what needs none is measured: how often words of certainty and hedges go with hallucination.
A share has Wilson's 95 % interval behind it; "says" is how many answers a validator applies to.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from core.stats import wilson_interval
from core.text import words
from core.text.certainty import certainty
from core.validation import ValidationOutcome, trial, validate

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
VALIDATORS = ("CitationRequired", "EvidenceOverlap", "NumericUnits", "ConfidenceValidator")
COLUMNS = ("precision", "recall", "false positives")


def share(count: int, n: int) -> str:
    if not n:
        return f"{'undefined, n = 0':>24}"
    low, high = wilson_interval(count / n, n)
    return f"{count / n:.2f} ({low:.2f} to {high:.2f}) {count}/{n}".rjust(30)


def print_flags(flagged: np.ndarray, bad: np.ndarray, name: str, says: int) -> None:
    hit, false = int((flagged & bad).sum()), int((flagged & ~bad).sum())
    found = (share(hit, int(flagged.sum())), share(hit, int(bad.sum())), share(false, int((~bad).sum())))
    print(f"{name:<22}{says:>5} " + " ".join(found))


def print_head(title: str) -> None:
    print(f"\n{title}\n{'flagged by':<22}{'says':>5}", *(f"{name:>30}" for name in COLUMNS))


def print_halueval(rows: list[Any]) -> None:
    outcomes: list[ValidationOutcome] = []
    seconds: list[float] = []
    validate("Who?", "First call: loads tables.", ["資料"])
    for row in rows:
        for answer in (row["right_answer"], row["hallucinated_answer"]):
            start = time.perf_counter()
            outcomes.append(validate(row["question"], answer, [row["knowledge"]]))
            seconds.append(time.perf_counter() - start)
    bad = np.arange(len(outcomes)) % 2 == 1
    print_head(f"HaluEval: {bad.sum()} hallucinated and {(~bad).sum()} right answers, one passage each")
    for i, name in enumerate(VALIDATORS):
        said = [outcome.verdicts[i].passed for outcome in outcomes]
        applies = np.array([one is not None for one in said])
        flagged = np.array([one is False for one in said])
        print_flags(flagged, bad, name, int(applies.sum()))
        if name == "NumericUnits":  # the rest of the answers has no number to be wrong
            print_flags(flagged[applies], bad[applies], "  where it applies", int(applies.sum()))
    stopped = np.array([outcome.critical for outcome in outcomes])
    found = trial(bad, stopped)
    print(
        f"Validators on against off: hallucinated answers shown {found.off.rate:.2f} -> {found.on.rate:.2f}, "
        f"difference {found.difference:+.3f} ({found.interval[0]:+.3f} to {found.interval[1]:+.3f}), "
        f"p = {found.p_value:.3g};\nstopped {share(found.reduction.count, found.reduction.n).strip()} "
        f"of the hallucinated and {share(found.lost.count, found.lost.n).strip()} of the right ones."
    )
    middle, most = np.quantile(np.array(seconds) * 1e3, [0.5, 0.95])
    print(f"Time of one call: median {middle:.1f} ms, 95 % below {most:.1f} ms, n = {len(seconds)}.")
    print_time(rows)


def print_ragtruth(rows: list[Any]) -> None:
    bad = np.array([bool(row["hallucinated"]) for row in rows])
    found = [certainty(row["response"]) for row in rows]
    print_head(f"RAGTruth: {bad.sum()} hallucinated and {(~bad).sum()} other answers, no passages")
    print_flags(np.array([bool(one.certain) for one in found]), bad, "words of certainty", len(rows))
    print_flags(np.array([bool(one.hedges) for one in found]), bad, "hedges", len(rows))


def print_time(rows: list[Any]) -> None:
    """Time calls with five passages that were never read before; a program that serves answers knows some."""
    milliseconds, n_words = [], []
    validate("Who?", "First call: loads tables.", ["資料"])
    for first in range(0, len(rows) - 4, 5):
        five = rows[first : first + 5]
        # The same passages were read above; a word in front makes others of them.
        passages = [f"Note: {row['knowledge']}" for row in five]
        answer = " ".join(f"{row['hallucinated_answer']} [1]" for row in five[:3])
        n_words.append(sum(len(words(text)) for text in (answer, *passages)))
        start = time.thread_time()
        validate(five[0]["question"], answer, passages)
        milliseconds.append((time.thread_time() - start) * 1e3)
    middle, most = np.quantile(milliseconds, [0.5, 0.9])
    print(
        f"Five passages that are new, {np.median(n_words):.0f} words in all: median {middle:.1f} ms of the "
        f"processor's time, 90 % below {most:.1f} ms, n = {len(milliseconds)}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the development files")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: only whether it runs")
    given = parser.parse_args()
    for name, measure in (("halueval_qa", print_halueval), ("ragtruth", print_ragtruth)):
        path = given.data / f"{name}_dev.jsonl"
        if not path.is_file():
            print(f"Skipped: {path} is not there.")
            continue
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        measure(rows[:10] if given.smoke else rows)


if __name__ == "__main__":
    main()
