"""How well the offline verifier tells supported claims from others, beside simpler measures.

Run from the repository root: ``PYTHONPATH=. python bench/claims.py [--data FOLDER]``. Prints AUROC with 95 %
intervals (bootstrap over whole questions); the verifier is cross-validated by question, the simpler measures
have nothing to fit.

- ExpertQA, all: a claim against all passages of its answer, the most likely one counts. Missing claims cite
  nothing, so only this protocol treats all claims alike.
- ExpertQA, cited: against the cited passages only, Missing claims against all. Closer to what the experts
  judged, and harsh: a Missing claim has more passages to be found in.
- HaluEval: the right answer against the made-up one, over all and as the share of pairs ordered rightly (a
  tie counts half); and in pairs of about equal length, of which there are few.
- FActScore has no evidence. Each fact was taken from its sentence, so a check that calls the two
  contradictory raises a false alarm: counted here.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from bench.fit_claims import CAPPING, DATA, FILES, Example, cross_validated, load, missing, read_lines
from core.claims.checks import CHECKS
from core.claims.features import FEATURES
from core.text.words import words

BOOTSTRAPS = 1_000
NEAR = 1.5  # longer answer / shorter answer
SPLITS = 5
SIMPLE = {
    "unigram coverage": "coverage",
    "trigram overlap": "trigrams",
    "MiniLM sentence cosine": "sentence_cosine",
    "MiniLM passage cosine": "passage_cosine",
}

Scores = list[np.ndarray]  # one number for each passage of each claim


def auroc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Probability that a supported claim scores higher than another; ties count half."""
    n = labels.sum()
    if n in (0, len(labels)):
        return float("nan")
    return float((rankdata(scores)[labels].sum() - n * (n + 1) / 2) / (n * (len(labels) - n)))


def interval(questions: np.ndarray, measure: Callable[[np.ndarray], float]) -> tuple[float, float, float]:
    """Value and 95 % interval of a measure of rows, whole questions resampled."""
    rows = [np.flatnonzero(questions == q) for q in np.unique(questions)]
    rng = np.random.default_rng(0)
    draws = [
        measure(np.concatenate([rows[i] for i in rng.integers(len(rows), size=len(rows))]))
        for _ in range(BOOTSTRAPS)
    ]
    low, high = np.nanpercentile(draws, (2.5, 97.5))
    return measure(np.concatenate(rows)), float(low), float(high)


def proportion(share: float, n: int) -> tuple[float, float, float]:
    """Return a share of n pairs with its 95 % Wilson interval; a bootstrap of equal values has none."""
    z = 1.96
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)))
    return share, centre - half, centre + half


def scores_of(examples: Sequence[Example]) -> dict[str, Scores]:
    found = {"offline verifier (cross-validated)": cross_validated(examples)}
    for title, name in SIMPLE.items():
        found[title] = [e.measured.values[0, :, FEATURES.index(name)] for e in examples]
    found["length in words"] = [
        np.full(e.measured.values.shape[1], float(len(words(e.claim)))) for e in examples
    ]
    return found


def expertqa(
    examples: Sequence[Example], scores: Scores, cited: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return question, label and score of each ExpertQA claim."""
    rows = [(e, s) for e, s in zip(examples, scores, strict=True) if e.data_set == 0]
    best = [s[list(e.cited)].max() if cited else s.max() for e, s in rows]
    return np.array([e.question for e, _ in rows]), np.array([e.label for e, _ in rows]), np.array(best)


def halueval(examples: Sequence[Example], scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (right, made up) of each pair, and how many times the longer is longer."""
    rows = [(e, s[0]) for e, s in zip(examples, scores, strict=True) if e.data_set == 1]
    pairs = np.array([s for _, s in rows]).reshape(-1, 2)
    lengths = np.array([max(1, len(words(e.claim))) for e, _ in rows]).reshape(-1, 2)
    return pairs, lengths.max(axis=1) / lengths.min(axis=1)


def _ordered(pairs: np.ndarray) -> float:
    return float(((pairs[:, 0] > pairs[:, 1]) + 0.5 * (pairs[:, 0] == pairs[:, 1])).mean())


def _pair_auroc(pairs: np.ndarray) -> float:
    return auroc(np.repeat([True, False], len(pairs)), pairs.T.ravel())


def figures(examples: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Return AUROC and interval of the cross-validated verifier, for the record beside its weights."""
    return _figures(examples, cross_validated(examples))


def _figures(examples: Sequence[Example], scores: Scores) -> dict[str, dict[str, float]]:
    measures = {}
    for cited in (False, True):
        q, y, s = expertqa(examples, scores, cited)
        measures[f"ExpertQA {'cited' if cited else 'all'} AUROC"] = interval(
            q, lambda r, y=y, s=s: auroc(y[r], s[r])
        )
    pairs, ratio = halueval(examples, scores)
    for title, some in (("HaluEval all", pairs), ("HaluEval equal length", pairs[ratio <= NEAR])):
        numbers = np.arange(len(some))
        measures[f"{title} AUROC"] = interval(numbers, lambda r, p=some: _pair_auroc(p[r]))
        measures[f"{title} pairs ordered"] = proportion(_ordered(some), len(some))
    return {
        title: dict(zip(("value", "low", "high"), (round(v, 3) for v in found), strict=True))
        for title, found in measures.items()
    }


def gains(examples: Sequence[Example], ours: Scores, theirs: Scores) -> tuple[float, float, float]:
    """Return the difference of AUROC on ExpertQA (all), the same questions resampled for both."""
    q, y, a = expertqa(examples, ours, cited=False)
    b = expertqa(examples, theirs, cited=False)[2]
    return interval(q, lambda r: auroc(y[r], a[r]) - auroc(y[r], b[r]))


def false_alarms(folder: Path) -> tuple[dict[str, int], int]:
    """How often a hard check calls a fact and the sentence it was taken from contradictory."""
    pairs = [
        (fact, sentence["text"])
        for bio in read_lines(folder / FILES[2])
        for sentence in bio["sentences"]
        for fact in [f if isinstance(f, str) else f["text"] for f in sentence["model_atomic_facts"] or []]
    ]
    return {name: sum(CHECKS[name](f, s, s) == 0 for f, s in pairs) for name in CHECKS}, len(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    absent = missing(options.data)
    if absent:
        print(absent)
        return
    examples = load(options.data)
    found = scores_of(examples)
    ours, *others = found
    ratio = halueval(examples, found[ours])[1]
    _, labels, _ = expertqa(examples, found[ours], cited=False)
    print(f"ExpertQA: {len(labels)} claims, {labels.sum()} Complete; HaluEval: {len(ratio)} pairs, "
          f"{(ratio <= NEAR).sum()} of about equal length (at most {NEAR} times)\n")  # fmt: skip
    for title, scores in found.items():
        print(title)
        for measure, value in _figures(examples, scores).items():
            print(f"   {measure:<38}{value['value']:6.3f}   [{value['low']:.3f}, {value['high']:.3f}]")
    print(f"\n{ours}, AUROC on ExpertQA (all) minus that of")
    for title in others:
        gain, low, high = gains(examples, found[ours], found[title])
        print(f"   {title:<38}{gain:+6.3f}   [{low:+.3f}, {high:+.3f}]")
    splits = [cross_validated(examples, seed) for seed in range(1, 1 + SPLITS)]
    again = [auroc(y, s) for _, y, s in (expertqa(examples, scores, cited=False) for scores in splits)]
    print(f"   over {SPLITS} other splits into folds: {min(again):.3f} to {max(again):.3f}")
    alarms, n = false_alarms(options.data)
    print(f"\nFalse alarms of the checks on {n:,} facts of FActScore against their own sentences:")
    print(
        "   "
        + ", ".join(
            f"{name} {count}{'' if name in CAPPING else ' (does not cap)'}" for name, count in alarms.items()
        )
    )


if __name__ == "__main__":
    main()
