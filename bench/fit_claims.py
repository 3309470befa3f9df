"""Fit the weights of the offline verifier to development data.

Run from the repository root: ``PYTHONPATH=. python bench/fit_claims.py [--data FOLDER] [--write]``. Prints
the weights; ``--write`` puts them, with their cross-validated figures, into core/claims/offline_weights.json.

How: a logistic model with a few features, no weight below 0 (likeness never counts against a claim), a strong
ridge penalty, both outcomes counted as equally common, and an intercept of its own for each data set.

- ExpertQA: Complete against Missing and Incomplete; Partial and N/A are left out. A claim meets all passages
  of its answer and takes the most likely one, as it will in use, so the model is fitted to the passage that
  the model itself prefers, a few times over. The experts judged cited passages only; a Missing claim cites
  none.
- HaluEval: right and made-up answer against the knowledge. Length tells them apart, so each counts little:
  just enough to keep the model from preferring long claims that are merely on the subject.
- FActScore has no evidence text: nothing to fit. ``bench/claims.py`` uses its facts to count false alarms.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from core.claims.features import PairFeatures
from core.claims.offline import OfflineVerifier, OfflineWeights

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
TARGET = ROOT / "core" / "claims" / "offline_weights.json"
FILES = ("expertqa_claims_dev.jsonl", "halueval_qa_dev.jsonl", "factscore_dev.jsonl")

FEATURES = ("sentence_match", "passage_match", "bigrams", "passage_cosine", "names")
CAPPING = ("numbers", "dates", "negation", "opposites")
CAP = 0.3
RIDGE = 30.0
HALUEVAL_WEIGHT = 0.05  # of one answer, where a claim of ExpertQA counts 1
ROUNDS = 5
FOLDS = 10


class Example(NamedTuple):
    """A claim with all passages it may rest on, one row of its group's measurements."""

    data_set: int  # 0 ExpertQA, 1 HaluEval
    question: int
    label: bool
    claim: str
    measured: PairFeatures
    cited: tuple[int, ...]  # columns; all where the claim cites none


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def missing(folder: Path) -> str | None:
    """Say in one line what is not there."""
    absent = [name for name in FILES if not (folder / name).is_file()]
    return (
        f"The development data is not here ({folder}: no {', '.join(absent)}); --data names a folder."
        if absent
        else None
    )


def load(folder: Path) -> list[Example]:
    """Measure both data sets; all texts are read in one go."""
    answers, pairs = read_lines(folder / FILES[0]), read_lines(folder / FILES[1])
    groups = [([c["claim"] for c in a["claims"]], [p["text"] for p in a["passages"]]) for a in answers]
    groups += [([p["right_answer"], p["hallucinated_answer"]], [p["knowledge"]]) for p in pairs]
    # The weights are not used here, so that the first ones can be fitted.
    measured = OfflineVerifier(weights=OfflineWeights((), (), (), (), 0.0, 1.0, ())).measure(groups)
    examples = []
    for question, (answer, found) in enumerate(zip(answers, measured, strict=False)):
        refs = [passage["ref"] for passage in answer["passages"]]
        for row, claim in enumerate(answer["claims"]):
            if claim["support"] in ("Complete", "Missing", "Incomplete"):
                cited = tuple(j for j, ref in enumerate(refs) if ref in claim["cited"])
                one = PairFeatures(
                    *(part[row : row + 1] for part in (found.values, found.checks, found.sentences))
                )
                complete = claim["support"] == "Complete"
                examples.append(
                    Example(0, question, complete, claim["claim"], one, cited or tuple(range(len(refs))))
                )
    for question, found in enumerate(measured[len(answers) :]):
        for row, right in enumerate((True, False)):
            one = PairFeatures(
                *(part[row : row + 1] for part in (found.values, found.checks, found.sentences))
            )
            examples.append(Example(1, question, right, groups[len(answers) + question][0][row], one, (0,)))
    return examples


def fit(examples: Sequence[Example]) -> OfflineWeights:
    """Fit the model; see the top of this file."""
    n = len(FEATURES)
    rows = [_rows(example) for example in examples]
    likeliest = np.array([row.max(axis=0) for row in rows])
    means, scales = likeliest.mean(axis=0), likeliest.std(axis=0)
    rows = [(row - means) / scales for row in rows]
    labels = np.array([example.label for example in examples], dtype=float)
    sets = np.array([example.data_set for example in examples])
    counts = np.where(sets == 0, 1.0, HALUEVAL_WEIGHT)
    for which in (0, 1):
        for outcome in (0, 1):
            some, both = (sets == which) & (labels == outcome), sets == which
            counts[some] *= both.sum() / (2 * max(1, some.sum()))
    found = np.ones(n + 2)
    for _ in range(ROUNDS):
        chosen = np.array([row[np.argmax(row @ found[:n])] for row in rows])
        found = _logistic(chosen, labels, counts, np.eye(2)[sets])
    numbers = [tuple(round(float(v), 4) for v in values) for values in (means, scales, found[:n])]
    return OfflineWeights(FEATURES, *numbers, round(float(found[n]), 4), CAP, CAPPING)


def _rows(example: Example) -> np.ndarray:
    """Return the features the model reads, shape (n_passages, n_features)."""
    identity = [
        OfflineWeights((name,), (0.0,), (1.0,), (1.0,), 0.0, 1.0, ()).probabilities(example.measured)[0]
        for name in FEATURES
    ]
    values = np.stack(identity, axis=1)
    return np.log(values / (1 - values))


def _logistic(x: np.ndarray, y: np.ndarray, counts: np.ndarray, sets: np.ndarray) -> np.ndarray:
    n = x.shape[1]

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        z = x @ b[:n] + sets @ b[n:]
        residual = counts * (expit(z) - y)
        value = (counts * (np.logaddexp(0, z) - y * z)).sum() + RIDGE / 2 * (b[:n] ** 2).sum()
        return float(value), np.r_[x.T @ residual + RIDGE * b[:n], sets.T @ residual]

    bounds = [(0, None)] * n + [(None, None)] * sets.shape[1]
    return minimize(loss, np.zeros(n + sets.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds).x


def cross_validated(examples: Sequence[Example], seed: int = 0) -> list[np.ndarray]:
    """Return the probabilities, one for each passage, from models that saw no claim of the same question."""
    rng = np.random.default_rng(seed)
    folds = [
        rng.permutation(1 + max(e.question for e in examples if e.data_set == s)) % FOLDS for s in (0, 1)
    ]
    fold = np.array([folds[e.data_set][e.question] for e in examples])
    found: list[np.ndarray] = [np.zeros(0)] * len(examples)
    for k in range(FOLDS):
        model = fit([e for e, f in zip(examples, fold, strict=True) if f != k])
        for i in np.flatnonzero(fold == k):
            found[i] = model.probabilities(examples[i].measured)[0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    absent = missing(options.data)
    if absent:
        print(absent)
        return
    examples = load(options.data)
    model = fit(examples)
    for name, weight in zip(model.features, model.weights, strict=True):
        print(f"{name:<18}{weight:8.3f}")
    print(f"{'intercept':<18}{model.intercept:8.3f}")
    if options.write:
        from bench.claims import figures

        record = {name: getattr(model, name) for name in model.__slots__} | {
            "fitted_on": {
                "ExpertQA": f"{sum(e.data_set == 0 for e in examples)} claims of 40 answers (MIT)",
                "HaluEval": f"{sum(e.data_set == 1 for e in examples)} answers, weight {HALUEVAL_WEIGHT} "
                "(MIT)",
            },
            "cross_validated": figures(examples),
            "note": "Features, ridge and the weight of HaluEval were chosen by looking at figures of the "
            "same data: "
            "on other data they will be lower.",
            "ridge": RIDGE,
            "date": datetime.date.today().isoformat(),
        }
        TARGET.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        print(f"written to {TARGET.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
