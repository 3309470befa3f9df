"""What each validator catches and what it objects to wrongly, on answers with known errors.

Run from the repository root: ``PYTHONPATH=. python bench/validation.py [--data FOLDER]``. HaluEval has a
right and a hallucinated answer to each question, with the knowledge that decides. RAGTruth comes without its
passages, so only what needs none is measured: how often words of certainty and hedges go with hallucination.
Of the sample run and the worked answers, an answer is bad where no reference answer is in it; of the worked
answers also what was planted in each claim is known. A share has Wilson's 95 % interval behind it; "says" is
how many answers a validator applies to, p what as many flags at random would give (Fisher, one side).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from core.diagnosis import Diagnosis
from core.run import Run
from core.stats import wilson_interval
from core.text import words
from core.text.abstention import certainty
from core.text.display import p_text
from core.validation import ValidationOutcome, validate
from core.validation.metrics import flags_of

SAMPLES = Path(__file__).resolve().parents[1] / "sample_data"
DATA = SAMPLES.parents[1] / "shared" / "data"
VALIDATORS = ("CitationRequired", "EvidenceOverlap", "NumericUnits", "ConfidenceValidator")
COLUMNS = ("precision", "recall", "false positives")


def share(count: int, n: int) -> str:
    if not n:
        return f"{'undefined, n = 0':>24}"
    low, high = wilson_interval(count / n, n)
    return f"{count / n:.2f} ({low:.2f} to {high:.2f}) {count}/{n}".rjust(30)


def print_flags(flagged: np.ndarray, bad: np.ndarray, name: str, says: int) -> None:
    found = flags_of(flagged, bad)
    shares = (share(one.count, one.n) for one in (found.precision, found.wrong, found.right))
    print(f"{name:<22}{says:>5} " + " ".join(shares) + f"  {p_text(found.p_value)}")


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
    print_validators(outcomes, bad)
    middle, most = np.quantile(np.array(seconds) * 1e3, [0.5, 0.95])
    print(f"Time of one call: median {middle:.1f} ms, 95 % below {most:.1f} ms, n = {len(seconds)}.")


def print_validators(outcomes: list[ValidationOutcome], bad: np.ndarray) -> None:
    for i, name in enumerate(VALIDATORS):
        said = [outcome.verdicts[i].passed for outcome in outcomes]
        applies = np.array([one is not None for one in said])
        flagged = np.array([one is False for one in said])
        print_flags(flagged, bad, name, int(applies.sum()))
        if name == "NumericUnits":  # the rest of the answers has no number to be wrong
            print_flags(flagged[applies], bad[applies], "  where it applies", int(applies.sum()))
    found = flags_of(np.array([outcome.critical for outcome in outcomes]), bad)
    print(
        f"Validators on against off: bad answers shown {found.off.rate:.2f} -> {found.on.rate:.2f}, "
        f"difference {found.on.rate - found.off.rate:+.3f} "
        f"({found.change[0]:+.3f} to {found.change[1]:+.3f}), "
        f"{p_text(found.p_value)};\nstopped {share(found.wrong.count, found.wrong.n).strip()} "
        f"of the bad and {share(found.right.count, found.right.n).strip()} of the right ones."
    )


def print_run(name: str) -> None:
    """Validate the answers of a sample run; those without a reference answer are left out."""
    run = Run.load(SAMPLES / name)
    correct = Diagnosis(run)["answers"].queries["correct"]
    texts = run.passages.sort_values(["slot", "retrieval_rank"]).groupby("query_id")["text"].apply(list)
    known = run.queries[correct.notna()]
    outcomes = [validate(row.question, row.answer, texts[row.query_id]) for row in known.itertuples()]
    bad = ~correct[correct.notna()].to_numpy(dtype=bool)
    print_head(f"{name}: {bad.sum()} incorrect and {(~bad).sum()} correct answers")
    print_validators(outcomes, bad)
    print_planted(run, dict(zip(known["query_id"], outcomes, strict=True)))


def print_planted(run: Run, outcomes: dict[str, ValidationOutcome]) -> None:
    """Print how many of the composed claims a failed verdict marks, by what was planted in them."""
    claims = run["planted_claims"]
    if claims.empty:
        return
    print(f"{'planted':<22}{'claims':>6}", *(f"{name:>30}" for name in VALIDATORS))
    for kind, rows in claims.groupby("planted"):
        marked = dict.fromkeys(VALIDATORS, 0)
        for row in rows.itertuples():
            for verdict in outcomes[row.query_id].failed:
                marked[verdict.validator] += any(a < row.end and b > row.start for a, b in verdict.spans)
        print(f"{kind:<22}{len(rows):>6}", *(share(n, len(rows)) for n in marked.values()))


def print_ragtruth(rows: list[Any]) -> None:
    bad = np.array([bool(row["hallucinated"]) for row in rows])
    found = [certainty(row["response"]) for row in rows]
    print_head(f"RAGTruth: {bad.sum()} hallucinated and {(~bad).sum()} other answers, no passages")
    print_flags(np.array([bool(one.certain) for one in found]), bad, "words of certainty", len(rows))
    print_flags(np.array([bool(one.hedges) for one in found]), bad, "hedges", len(rows))


def print_time(n: int | None) -> None:
    """Time calls with five passages that were never read before; a program that serves answers knows some."""
    validate("Who?", "First call: loads tables.", ["資料"])
    for name in ("recorded_run", "worked_answers"):
        run = Run.load(SAMPLES / name)
        texts = run.passages.sort_values(["slot", "retrieval_rank"]).groupby("query_id")["text"].apply(list)
        milliseconds, n_words = [], []
        for row in run.queries.head(n or len(run.queries)).itertuples():
            # They were read above; a word in front makes others of them.
            passages = [f"Note: {text}" for text in texts[row.query_id][:5]]
            n_words.append([len(words(row.answer)), np.mean([len(words(text)) for text in passages])])
            start = time.thread_time()
            validate(row.question, row.answer, passages)
            milliseconds.append((time.thread_time() - start) * 1e3)
        middle, most = np.quantile(milliseconds, [0.5, 0.9])
        answer, passage = np.median(n_words, axis=0)
        print(
            f"{name}: answers of {answer:.0f} words, five new passages of {passage:.0f}: median {middle:.1f} "
            f"ms of the processor's time, 90 % below {most:.1f} ms, n = {len(milliseconds)}."
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
    for name in ("recorded_run", "worked_answers"):
        print_run(name)
    print()
    print_time(5 if given.smoke else None)


if __name__ == "__main__":
    main()
