"""How well and how fast the offline verifier judges claims, beside simpler measures.

Run from the repository root: ``PYTHONPATH=. python bench/claims.py [--data FOLDER]``. First the time for 60
questions of the recorded run and what becomes of its bare values; then, where the development data is, AUROC
with 95 % intervals (bootstrap over whole questions). The verifier is cross-validated by question and its
features are chosen anew in every fold; the simpler measures have nothing to fit.

- ExpertQA, all: a claim against all passages of its answer, the most likely one counts. Missing claims cite
  nothing, so only this protocol treats all claims alike.
- ExpertQA, cited: against the cited passages only, Missing claims against all. Closer to what the experts
  judged, and harsh: a Missing claim has more passages to be found in.
- ExpertQA, within answers: pairs of claims of the same answer, the supported one first. Without the part that
  comes from some answers having better passages than others.
- HaluEval: the right answer against the made-up one, over all and as the share of pairs ordered rightly (a
  tie counts half); in pairs of about equal length, of which there are few; and with the question in front of
  answers that are bare values, as the pipeline states them. The correct answers are mostly bare values, the
  made-up ones sentences: over all, a measure is also paid for telling these apart. Trust the equal pairs.
- FActScore has no evidence. Each fact was taken from its sentence, so a check that calls the two
  contradictory raises a false alarm: counted here.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.claims_run import QUESTIONS, print_run
from bench.fit_claims import (
    DATA,
    EXPERTQA,
    FILES,
    HALUEVAL,
    NEAR,
    WITH_QUESTION,
    Example,
    choose,
    cross_validated,
    fit,
    held_out,
    load,
    missing,
    near_pairs,
    ordered,
    read_lines,
    shrink,
)
from core.claims.self_contained import is_bare
from core.claims.verifiers.checks import CHECKS
from core.claims.verifiers.features import FEATURES
from core.stats import auroc, bootstrap_interval, wilson_interval
from core.text.reading import content_stems, stems
from core.text.words import words

BOOTSTRAPS = 1_000
SPLITS = 5
OURS = "offline verifier (nested)"
COSINES = ("MiniLM sentence cosine", "MiniLM passage cosine")

Scores = list[np.ndarray]  # one number for each passage of each claim


def interval(
    questions: np.ndarray, measure: Callable[..., float], *arrays: np.ndarray
) -> tuple[float, float, float]:
    """Value and 95 % interval of a measure of arrays, whole questions resampled."""
    return measure(*arrays), *bootstrap_interval(arrays, measure, BOOTSTRAPS, groups=questions)


def simple(example: Example) -> dict[str, np.ndarray]:
    """Return the measures that have nothing to fit, one number for each passage."""
    plain, content = _triples(stems(example.claim)), set(content_stems(example.claim))
    values = example.measured.values[0]
    return {
        COSINES[0]: values[:, FEATURES.index("sentence_cosine")],
        COSINES[1]: values[:, FEATURES.index("passage_cosine")],
        "unigram coverage": np.array([_share(content, set(stems(p))) for p in example.passages]),
        "trigram overlap": np.array([_share(plain, _triples(stems(p))) for p in example.passages]),
        "length in words": np.full(len(values), float(len(words(example.claim)))),
    }


def _triples(found: tuple[str, ...]) -> set[tuple[str, ...]]:
    n = min(3, len(found))
    return set(zip(*(found[i:] for i in range(n)), strict=False))


def _share(ours: set, theirs: set) -> float:
    return len(ours & theirs) / len(ours) if ours else 0.0


def scores_of(examples: Sequence[Example]) -> dict[str, Scores]:
    features = choose(examples)
    found = {
        OURS: cross_validated(examples),
        "the same, features fixed": held_out(examples, lambda some: fit(some, features)),
    }
    others = [simple(example) for example in examples]
    return found | {title: [one[title] for one in others] for title in others[0]}


def expertqa(
    examples: Sequence[Example], scores: Scores, cited: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return question, label and score of each ExpertQA claim."""
    rows = [(e, s) for e, s in zip(examples, scores, strict=True) if e.data_set == EXPERTQA]
    best = [s[list(e.cited)].max() if cited else s.max() for e, s in rows]
    return np.array([e.question for e, _ in rows]), np.array([e.label for e, _ in rows]), np.array(best)


def within(questions: np.ndarray, labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the share of pairs (Complete, not) of the same answer that are ordered rightly."""
    pairs = [
        (a, b)
        for q in np.unique(questions)
        for a in scores[(questions == q) & labels]
        for b in scores[(questions == q) & ~labels]
    ]
    return ordered(np.array(pairs)) if pairs else float("nan")


def figures(examples: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Return figures and intervals of the nested cross-validation, for the record beside the weights."""
    return figures_of(examples, cross_validated(examples))


def figures_of(examples: Sequence[Example], scores: Scores) -> dict[str, dict[str, float]]:
    measures = {}
    for cited in (False, True):
        q, y, s = expertqa(examples, scores, cited)
        measures[f"ExpertQA {'cited' if cited else 'all'} AUROC"] = interval(q, auroc, y, s)
    q, y, s = expertqa(examples, scores, cited=False)
    measures["ExpertQA within answers pairs ordered"] = interval(q, within, q, y, s)
    best = np.array([score.max() for score in scores])
    forms = {
        title: best[[e.data_set == which for e in examples]].reshape(-1, 2)
        for title, which in (("HaluEval all", HALUEVAL), ("HaluEval with question", WITH_QUESTION))
    }
    forms["HaluEval equal length"] = best[near_pairs(examples)]
    for title, pairs in forms.items():
        measures[f"{title} AUROC"] = interval(np.arange(len(pairs)), _pair_auroc, pairs)
        share = ordered(pairs)
        measures[f"{title} pairs ordered"] = (share, *wilson_interval(share, len(pairs)))
    return {
        title: dict(zip(("value", "low", "high"), (round(v, 3) for v in found), strict=True))
        for title, found in measures.items()
    }


def _pair_auroc(pairs: np.ndarray) -> float:
    return auroc(np.repeat([True, False], len(pairs)), pairs.T.ravel())


def gain(examples: Sequence[Example], ours: Scores, theirs: Scores) -> tuple[float, float, float]:
    """Return the difference of AUROC on ExpertQA (all), the same questions resampled for both."""
    q, y, a = expertqa(examples, ours, cited=False)
    b = expertqa(examples, theirs, cited=False)[2]
    return interval(q, lambda y, a, b: auroc(y, a) - auroc(y, b), y, a, b)


def conclusion(examples: Sequence[Example], scores: dict[str, Scores] | None = None) -> str:
    """Say in words whether the verifier is better than a cosine alone."""
    found = scores_of(examples) if scores is None else scores
    says = []
    for title in COSINES:
        value, low, high = gain(examples, found[OURS], found[title])
        verdict = "better" if low > 0 else "worse" if high < 0 else "neither better nor worse beyond chance"
        says.append(f"{verdict} than {title} alone ({value:+.3f}, 95 % {low:+.3f} to {high:+.3f})")
    return f"On ExpertQA (all) the offline verifier is {', and '.join(says)}."


def false_alarms(folder: Path) -> tuple[dict[str, int], int, int]:
    """How often a check contradicts a fact and its own sentence, how many there are, how many seem bare."""
    pairs = [
        (fact, sentence["text"])
        for bio in read_lines(folder / FILES[2])
        for sentence in bio["sentences"]
        for fact in [f if isinstance(f, str) else f["text"] for f in sentence["model_atomic_facts"] or []]
    ]
    alarms = {name: sum(CHECKS[name](f, s, s) == 0 for f, s in pairs) for name in CHECKS}
    return alarms, len(pairs), sum(is_bare(fact) for fact, _ in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: only whether it runs")
    options = parser.parse_args()
    if options.smoke:
        global BOOTSTRAPS
        BOOTSTRAPS = 20
        shrink()
    print_run(2 if options.smoke else QUESTIONS)
    absent = missing(options.data)
    if absent:
        print(absent)
        return
    examples = load(options.data)
    found = scores_of(examples)
    _, labels, _ = expertqa(examples, found[OURS], cited=False)
    pairs = sum(e.data_set == HALUEVAL for e in examples) // 2
    near = len(near_pairs(examples))
    print(f"\nExpertQA: {len(labels)} claims, {labels.sum()} Complete")
    print(f"HaluEval: {pairs} pairs, {near} of about equal length (at most {NEAR} times)")
    print(f"Features, chosen on all of it: {', '.join(choose(examples))}\n")
    for title, scores in found.items():
        print(title)
        for measure, value in figures_of(examples, scores).items():
            print(f"   {measure:<40}{value['value']:6.3f}   [{value['low']:.3f}, {value['high']:.3f}]")
    print(f"\n{OURS}, AUROC on ExpertQA (all) minus that of")
    for title, scores in list(found.items())[2:]:
        value, low, high = gain(examples, found[OURS], scores)
        print(f"   {title:<40}{value:+6.3f}   [{low:+.3f}, {high:+.3f}]")
    splits = [cross_validated(examples, seed) for seed in range(1, 2 if options.smoke else 1 + SPLITS)]
    again = [auroc(y, s) for _, y, s in (expertqa(examples, scores, cited=False) for scores in splits)]
    print(f"   over {len(splits)} other splits into folds: {min(again):.3f} to {max(again):.3f}")
    print(conclusion(examples, found))
    alarms, n, bare = false_alarms(options.data)
    print(f"\nFalse alarms of the checks on {n:,} facts of FActScore against their own sentences:")
    print("   " + ", ".join(f"{name} {count}" for name, count in alarms.items()))
    print(f"   facts taken for bare values: {bare}")


if __name__ == "__main__":
    main()
