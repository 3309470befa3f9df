"""Fit the weights of the verifier gain to development data, and print what it is worth beside the others.

Run from the repository root: ``PYTHONPATH=. python bench/fit_gain.py [--data FOLDER] [--answers N]
[--pairs N] [--cache FILE] [--write]``. The packaged model reads N answers of ExpertQA, drawn with a fixed
seed, and the first N pairs of HaluEval. All of them take hours on two cores: ``--cache`` keeps what was read,
and the default is a taste. ``--write`` puts weights and figures into core/claims/verifiers/gain_weights.json.

How: as `bench.fit_claims`, with the features chosen among `CANDIDATES` anew in every fold: by the mean of the
AUROC on ExpertQA and on the pairs of HaluEval with the question in front, most of them bare values. A sum of
nats alone would fail there: a value has fewer tokens than a sentence that is made up. All measures are
printed for the same claims and pairs; the offline verifier is cross-validated on these alone.
"""

from __future__ import annotations

import argparse
import datetime
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench import claims
from bench.fit_claims import (
    DATA,
    EXPERTQA,
    FILES,
    HALUEVAL,
    RIDGE,
    ROOT,
    TIE,
    WITH_QUESTION,
    Example,
    Features,
    cross_validated,
    fitted,
    fitted_on,
    held_out,
    load,
    missing,
    ordered,
    read_lines,
    shrink,
)
from core.claims.self_contained import bare_value
from core.claims.verifiers.features import FEATURES
from core.claims.verifiers.gain import GAIN_FEATURES, GainVerifier
from core.claims.verifiers.offline import LogisticWeights
from core.llm import CompletionCache, open_llm
from core.pipeline.asking import Asker
from core.stats import auroc

TARGET = ROOT / "core" / "claims" / "verifiers" / "gain_weights.json"
# In order of preference; the first one that is within TIE of the best is taken.
CANDIDATES = (
    ("gain_per_token", "passage_cosine"),
    ("gain", "passage_cosine"),
    ("gain_per_token",),
    ("gain",),
)


class Model(NamedTuple):
    """Weights that read the columns of an example's gain features."""

    weights: LogisticWeights

    def probabilities(self, values: np.ndarray) -> np.ndarray:
        """Return the probability for each passage."""
        return self.weights.logistic(
            values[..., [GAIN_FEATURES.index(name) for name in self.weights.features]]
        )


def sample(folder: Path, answers: int, pairs: int) -> list[Example]:
    """Return the claims of some answers, drawn with a fixed seed, and the first pairs."""
    examples, n = load(folder), len(read_lines(folder / FILES[0]))
    chosen = set(np.random.default_rng(0).permutation(n)[:answers].tolist())
    return [e for e in examples if (e.question in chosen if e.data_set == EXPERTQA else e.question < pairs)]


def measured(examples: Sequence[Example], verifier: GainVerifier) -> list[Example]:
    """Return the examples with the features of the gain in place of those of the offline verifier."""
    place = FEATURES.index("passage_cosine")
    found: dict[int, Example] = {}
    for key in dict.fromkeys((e.data_set, e.question) for e in examples):
        rows = [i for i, e in enumerate(examples) if (e.data_set, e.question) == key]
        group = [examples[i].claim for i in rows], examples[rows[0]].passages
        (gains,) = verifier.measure([group])
        cosines = np.array([examples[i].measured.values[0][:, place] for i in rows])
        for i, values in zip(rows, gains.values(GAIN_FEATURES, cosines), strict=True):
            found[i] = examples[i]._replace(measured=values[None])
    return [found[i] for i in range(len(examples))]


def fit(examples: Sequence[Example], features: Features) -> Model:
    columns = [GAIN_FEATURES.index(name) for name in features]
    some = [e for e in examples if e.data_set == EXPERTQA]
    numbers = fitted([e.measured[0][:, columns] for e in some], [e.label for e in some])
    return Model(LogisticWeights(features, *numbers))


def compared(examples: Sequence[Example]) -> list[tuple[float, float, float]]:
    """Return what each candidate is worth: the mean of two AUROC, then both: of sentences, of bare values."""
    kinds = [[i for i, e in enumerate(examples) if e.data_set == kind] for kind in (EXPERTQA, WITH_QUESTION)]
    found = []
    for features in CANDIDATES:
        scores = held_out(examples, lambda some, features=features: fit(some, features))
        best = np.array([score.max() for score in scores])
        values = [auroc([examples[i].label for i in places], best[places]) for places in kinds]
        found.append((float(np.mean(values)), *values))
    return found


def choose(examples: Sequence[Example]) -> Features:
    worth = [value for value, _, _ in compared(examples)]
    return CANDIDATES[next(i for i, value in enumerate(worth) if value >= max(worth) - TIE)]


def column(examples: Sequence[Example], *names: str) -> claims.Scores:
    """Return the sum of features, each divided by its spread over ExpertQA: standardised."""
    places = [GAIN_FEATURES.index(name) for name in names]
    best = np.array([e.measured[0].max(axis=0) for e in examples if e.data_set == EXPERTQA])
    return [(e.measured[0] / best.std(axis=0))[:, places].sum(axis=1) for e in examples]


def timed(examples: Sequence[Example], verifier: Callable[[], GainVerifier]) -> str:
    """Compare the claims of an answer read together with the same claims read one by one."""
    first = [e for e in examples if e.data_set == EXPERTQA and e.question == examples[0].question]
    texts, passages = [e.claim for e in first], first[0].passages
    fresh = verifier()
    fresh.measure([(["A word."], ["A word."])])
    start = time.perf_counter()
    fresh.measure([(texts, passages)])
    together = time.perf_counter() - start
    for text in texts:
        fresh.measure([([text], passages)])
    alone = time.perf_counter() - start - together
    return (
        f"{len(texts)} claims x {len(passages)} passages: {together:.1f} s with each passage read once, "
        f"{alone:.1f} s with each read for every claim"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--answers", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="only whether it runs; give tiny --data")
    options = parser.parse_args()
    if options.smoke:
        claims.BOOTSTRAPS = 20
        shrink()
    if absent := missing(options.data):
        print(absent)
        return
    llm = open_llm("embedded")
    plain = sample(options.data, options.answers, options.pairs)
    print(timed(plain, lambda: GainVerifier(llm)))
    with CompletionCache(options.cache) as cache:
        examples = measured(plain, GainVerifier(llm, Asker(llm, cache).score))
    print(f"ExpertQA: {fitted_on(examples)}; HaluEval: {options.pairs} pairs")
    print("Candidates, cross-validated: mean AUROC, that on ExpertQA (all), on HaluEval with question")
    for features, (mean, *parts) in zip(CANDIDATES, compared(examples), strict=True):
        print(f"   {mean:.3f}  {parts[0]:.3f}  {parts[1]:.3f}  {' + '.join(features)}")
    ours = held_out(examples, lambda some: fit(some, choose(some)))
    offline = cross_validated(plain)
    found = {
        "gain (nested)": ours,
        "gain in nats": column(examples, "gain"),
        "gain per token": column(examples, "gain_per_token"),
        "gain in nats + passage cosine, standardised": column(examples, "gain", "passage_cosine"),
        claims.OURS: offline,
    }
    others = [claims.simple(example) for example in plain]
    found |= {title: [one[title] for one in others] for title in others[0]}
    for title, scores in found.items():
        print(title)
        for measure, value in claims.figures_of(examples, scores).items():
            print(f"   {measure:<40}{value['value']:6.3f}   [{value['low']:.3f}, {value['high']:.3f}]")
    for title in (claims.OURS, *claims.COSINES):
        value, low, high = claims.gain(examples, ours, found[title])
        print(f"gain (nested) minus {title}, AUROC on ExpertQA (all): {value:+.3f} [{low:+.3f}, {high:+.3f}]")
    model = fit(examples, choose(examples)).weights
    print(model)
    best = np.array([score.max() for score in ours])
    for which, name in ((HALUEVAL, "as it is"), (WITH_QUESTION, "with the question")):
        shares = [
            np.mean(best[[e.data_set == which and e.label == right for e in examples]] >= 0.5)
            for right in (True, False)
        ]
        print(f"HaluEval {name}, supported at 0.5: right {shares[0]:.2f}, made up {shares[1]:.2f}")
    pairs = np.array([i for i, e in enumerate(examples) if e.data_set == WITH_QUESTION]).reshape(-1, 2)
    bare = np.array([[bare_value(examples[i].claim) is not None for i in pair] for pair in pairs])
    per_token = np.array([score.max() for score in found["gain per token"]])
    for other, name in ((True, "a bare value"), (False, "a sentence")):
        some = pairs[bare[:, 0] & (bare[:, 1] == other)]
        share = ordered(per_token[some])
        print(f"gain per token, right bare value against {name}: {share:.2f} of {len(some)} pairs ordered")
    if options.write:
        record = asdict(model) | {
            "fitted_on": {"ExpertQA": fitted_on(examples), "model": llm.name},
            "chosen_with": {"HaluEval": f"{options.pairs} pairs with the question in front (MIT)"},
            "cross_validated": claims.figures_of(examples, ours),
            "note": "Cross-validated by question, the features chosen anew in every fold, as read by the "
            "model named; a larger model tells more. The answers were drawn with a fixed seed.",
            "ridge": RIDGE,
            "date": datetime.date.today().isoformat(),
        }
        TARGET.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        print(f"written to {TARGET.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
