"""The table of estimators: what each measures, what it needs, what it costs, and who proposed it.

Adding one is one entry; everything that scores, compares or shows estimators reads this table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.arrays import Floats, Ints
from core.socket import REASON, Definition, by_name
from core.uncertainty import measures, spectral
from core.uncertainty.samples import WHOLE, Batch, Samples, batches
from core.uncertainty.similarity import agreement, mean_off_diagonal, typical_agreement

QUESTION, ANSWER = "question", "answer"

REASONS = by_name(
    Definition("not_measured", "Not measured", "This run lacks what the estimator reads.", REASON),
    Definition("one_sample", "One sample", "Fewer than two answers: nothing can agree or differ.", REASON),
    Definition("all_empty", "All empty", "No sample holds a word.", REASON),
    Definition("all_abstained", "No answer sampled",
        "Every sample is a refusal or empty: there is no answer to judge.", REASON),
    Definition("empty_answer", "Empty answer", "The answer holds no word.", REASON),
    Definition("abstained_answer", "Refusal", "The answer is a refusal: it claims nothing.", REASON),
    Definition("missing_values", "Missing values", "A value that the estimator needs is missing.", REASON),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Estimator:
    """One way to tell how uncertain an answer is.

    ``measure`` takes a `Batch` of questions that hold what it ``needs``, fields beside the texts, and returns
    a value for each. ``range``: of its values, n is the number of samples. ``rises_with`` says what a higher
    value means, ``level`` whether it judges the question (all samples) or the first answer. ``samples``:
    whether it needs two answers or more, as many calls as samples, shared by all that need them;
    ``extra_calls`` come on top. ``is_baseline``: it is trivial, and an estimator that does not beat it is not
    worth its cost.
    """

    name: str
    title: str
    meaning: str
    measure: Callable[[Batch], ArrayLike]
    range: str
    paper: str = ""
    rises_with: str = "uncertainty"
    level: str = QUESTION
    needs: tuple[str, ...] = ()
    samples: bool = True
    extra_calls: int = 0
    is_baseline: bool = False

    @property
    def definition(self) -> Definition:
        """The entry of the glossary."""
        return Definition(
            self.name,
            self.title,
            self.meaning,
            range=self.range,
            direction=f"higher = more {self.rises_with}",
            undefined_when="what it needs was not measured, or there is no answer to judge",
            source=self.paper,
        )

    def calls(self, n_samples: int) -> int:
        """Return how many calls of the model it needs beside the answer itself."""
        return (n_samples if self.samples else 0) + self.extra_calls

    def estimate(self, batch: Batch) -> tuple[Floats, NDArray[np.object_]]:
        """Return its values, one per question, and the reasons why they are undefined, None where not."""
        n = len(batch.questions)
        values, reasons = np.full(n, math.nan), self._undefined(batch)
        known = np.array([reason is None for reason in reasons], dtype=bool)
        if known.any():
            values = np.where(known, np.asarray(self.measure(batch), dtype=np.float64), math.nan)
        reasons[known & np.isnan(values)] = "missing_values"
        return values, reasons

    def _undefined(self, batch: Batch) -> NDArray[np.object_]:
        first = batch.questions[0]
        if any(getattr(first, need) is None for need in self.needs):
            return self._all(batch, "not_measured")
        # A failed check is no "they differ".
        if any(not np.isfinite(batch.array(need)).all() for need in self.needs if need in WHOLE):
            return self._all(batch, "missing_values")
        # An answer is compared with at least one more text; a question needs two samples.
        n_texts = batch.n_texts if self.level == ANSWER else batch.n_samples
        if n_texts < (2 if self.samples else 1):
            return self._all(batch, "one_sample")
        found = self._all(batch, None)
        if self.samples:
            sampled = batch.status[:, batch.start :]
            none = ~(sampled == "answered").any(axis=1)
            refused = (sampled == "abstained").any(axis=1)
            found[none & refused], found[none & ~refused] = "all_abstained", "all_empty"
        if self.level == ANSWER:
            for status in ("abstained", "empty"):
                found[batch.status[:, 0] == status] = f"{status}_answer"
        return found

    @staticmethod
    def _all(batch: Batch, reason: str | None) -> NDArray[np.object_]:
        return np.full(len(batch.questions), reason, dtype=object)


Measure = Callable[[Batch], ArrayLike]
# Name, title, meaning, measure by kind, range, paper, other fields of `Estimator`.
_Family = tuple[str, str, str, Callable[[Batch, str], ArrayLike], str, str, dict[str, Any]]

_LIN = "Lin, Trivedi, Sun 2023, arXiv 2305.19187"
_FARQUHAR = "Farquhar et al. 2024, Nature 630"
_KUHN = "Kuhn, Gal, Farquhar 2023, arXiv 2302.09664"
_NIKITIN = "Nikitin et al. 2024, arXiv 2405.20003"
_OWN = "own; after Lin, Trivedi, Sun 2023"

# What two answers may share, and what must have been measured for it.
_KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "jaccard": ("shared words", ()),
    "rouge_l": ("ROUGE-L", ()),
    "cosine": ("cosine", ("embeddings",)),
    "entailment": ("entailment", ("entailment",)),
}
_RULES = {"exact": ("same words", ()), "content": ("words of content", ())} | {
    kind: _KINDS[kind] for kind in ("rouge_l", "cosine", "entailment")
}

# Measures of how alike the samples are, for every kind of likeness, and of their groups, for every rule.
_BY_LIKENESS: tuple[_Family, ...] = (
    ("sum_eigen", "SumEigen", "Soft number of meanings among the samples.",
        lambda s, kind: spectral.sum_eigen(s.graph(kind)), "[1, n]", _LIN, {}),
    ("degree", "Degree", "Mean dissimilarity of the samples.",
        lambda s, kind: spectral.degree_uncertainty(s.graph(kind)), "[0, 1 − 1/n]", _LIN, {}),
    ("eccentricity", "Eccentricity", "Spread of the samples over the leading eigenvectors of their graph.",
        lambda s, kind: spectral.eccentricity(s.graph(kind)), "[0, √n)", _LIN, {}),
    ("kernel_entropy", "Kernel language entropy", "Entropy of the heat kernel of the samples' graph.",
        lambda s, kind: spectral.kernel_language_entropy(s.graph(kind)), "(0, ln n]", _NIKITIN, {}),
    ("agreement", "Agreement", "Mean likeness of this answer to its samples.",
        lambda s, kind: agreement(s.similarity(kind)), "[0, 1]", _OWN,
        {"rises_with": "confidence", "level": ANSWER}),
    ("answer_eccentricity", "Eccentricity of the answer",
        "Distance of this answer from the centre of the graph's leading eigenvectors.",
        lambda s, kind: spectral.answer_eccentricity(s.similarity(kind))[:, 0], "[0, 1)", _LIN,
        {"level": ANSWER}),
)  # fmt: skip
_BY_RULE: tuple[_Family, ...] = (
    ("semantic_sets", "Number of meanings", "Groups of samples that mean the same.",
        lambda s, rule: measures.number_of_semantic_sets(s.clusters(rule)), "1 to n", _LIN, {}),
    ("semantic_entropy", "Semantic entropy", "Entropy of the share of samples in each group of one meaning.",
        lambda s, rule: measures.discrete_semantic_entropy(s.clusters(rule)), "[0, ln n]", _FARQUHAR, {}),
    ("weighted_entropy", "Semantic entropy by probability",
        "Entropy of groups weighted by the probability of their answers, at equal length.",
        lambda s, rule: measures.semantic_entropy(s.clusters(rule), s.rows("logprobs")), "[0, ln n]", _KUHN,
        {"needs": ("logprobs",)}),
    ("kuhn_entropy", "Semantic entropy, not normalised",
        "Mean over groups of minus the log of their summed probability, as TruthTorchLM has it.",
        lambda s, rule: measures.kuhn_entropy(s.clusters(rule), s.rows("logprobs")), "any number", _KUHN,
        {"needs": ("logprobs",)}),
)  # fmt: skip


def _mix(*kinds: str, measure: Callable[[Floats], ArrayLike] = agreement) -> Measure:
    return lambda s: np.mean([np.asarray(measure(s.similarity(kind))) for kind in kinds], axis=0)


def _each(measure: Callable[[Samples], float]) -> Measure:
    """Measure question by question what has no arrays."""
    return lambda s: [measure(one) for one in s.questions]


def _variance(variant: measures.Variant) -> Measure:
    return lambda s: measures.embedding_variance(s.rows("embeddings"), variant)


def _for_all_kinds() -> Iterator[Estimator]:
    """Yield the measures that exist for every kind of likeness or rule of equivalence."""
    for families, kinds in ((_BY_LIKENESS, _KINDS), (_BY_RULE, _RULES)):
        for kind, (words, needs) in kinds.items():
            for name, title, meaning, measure, limits, paper, more in families:
                yield Estimator(
                    f"{name}_{kind}", f"{title}, {words}", meaning, _of_kind(measure, kind), limits, paper,
                    **{**more, "needs": (*needs, *more.get("needs", ()))},
                )  # fmt: skip


def _of_kind(measure: Callable[[Batch, str], ArrayLike], kind: str) -> Measure:
    return lambda s: measure(s, kind)


_EMBEDDED = ("embeddings",)
_SINGLE = (
    Estimator("embedding_variance", "Embedding variance",
        "Mean squared distance of the samples from their centroid.",
        _variance("mean_squared"), "[0, 1]", needs=_EMBEDDED),
    Estimator("mean_distance", "Mean distance to the centroid", "Another definition of embedding variance.",
        _variance("mean_distance"), "[0, 1]", needs=_EMBEDDED),
    Estimator("std_distance", "Spread of the distances to the centroid",
        "Another definition of embedding variance; 0 for any two answers.",
        _variance("std_distance"), "[0, 1]", needs=_EMBEDDED),
    Estimator("lexical_diversity", "Lexical diversity",
        "Share of different words among all words of the samples.",
        _each(lambda one: measures.lexical_diversity(one.sampled)), "(0, 1]"),
    Estimator("mean_pairwise_rouge", "Mean pairwise ROUGE-L", "Mean ROUGE-L of every two samples.",
        lambda s: mean_off_diagonal(s.graph("rouge_l")), "[0, 1]", _KUHN, "confidence"),
    Estimator("agreement_text", "Agreement, words and ROUGE-L",
        "Mean of the agreement by shared words and by ROUGE-L.",
        _mix("jaccard", "rouge_l"), "[0, 1]", _OWN, "confidence", ANSWER),
    Estimator("agreement_typical", "Agreement with typical samples",
        "As agreement by words and ROUGE-L, but a sample that is like no other counts less.",
        _mix("jaccard", "rouge_l", measure=typical_agreement), "[0, 1]", _OWN, "confidence", ANSWER),
    Estimator("agreement_cosine_jaccard", "Agreement, cosine and words",
        "Mean of the agreement by cosine and by shared words.",
        _mix("cosine", "jaccard"), "[0, 1]", _OWN, "confidence", ANSWER, _EMBEDDED),
    Estimator("agreement_all", "Agreement, all three",
        "Mean of the agreement by cosine, by shared words and by ROUGE-L.",
        _mix("cosine", "jaccard", "rouge_l"), "[0, 1]", _OWN, "confidence", ANSWER, _EMBEDDED),
    Estimator("p_true", "P(True)", "Probability that the model calls its own answer true.",
        lambda s: s.array("p_true"), "[0, 1]", "Kadavath et al. 2022, arXiv 2207.05221",
        "confidence", ANSWER, ("p_true",), samples=False, extra_calls=1),
    Estimator("verbalised", "Stated confidence", "The confidence that the model states when asked.",
        lambda s: s.array("verbalised"), "[0, 1]", "Tian et al. 2023, arXiv 2305.14975",
        "confidence", ANSWER, ("verbalised",), samples=False, extra_calls=1),
    Estimator("contradiction_rate", "Self-check",
        "How often the samples contradict a sentence of the answer.",
        _each(lambda one: measures.contradiction_rate(np.asarray(one.contradiction))), "[0, 1]",
        "Manakul, Liusie, Gales 2023, arXiv 2303.08896", level=ANSWER, needs=("contradiction",)),
    Estimator("distinct_answers", "Different answers", "How many different answers were sampled.",
        _each(lambda one: measures.distinct_answers(one.sampled)), "1 to n", is_baseline=True),
    Estimator("answer_length", "Length of the answer", "Words of the answer.",
        _each(lambda one: measures.answer_length(one.texts[0])), "whole numbers from 1",
        level=ANSWER, samples=False, is_baseline=True),
)  # fmt: skip

ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(
    {estimator.name: estimator for estimator in (*_SINGLE, *_for_all_kinds())}
)
DEFINITIONS = (*(estimator.definition for estimator in ESTIMATORS.values()), *REASONS.values())
# Those that need nothing but the texts of the answers.
TEXT_ONLY = tuple(name for name, estimator in ESTIMATORS.items() if not estimator.needs)


@dataclass(frozen=True, slots=True)
class EstimatorScores:
    """The values of one estimator for many questions.

    ``values``, (n,), NaN where undefined, and ``reasons`` why.
    """

    estimator: Estimator
    values: Floats
    reasons: tuple[str | None, ...]

    @property
    def uncertainty(self) -> Floats:
        """The values, turned so that higher means more uncertain."""
        return -self.values if self.estimator.rises_with == "confidence" else self.values


def score(questions: Sequence[Samples], names: Iterable[str] | None = None) -> dict[str, EstimatorScores]:
    """Score many questions by many estimators.

    ``questions`` has one `Samples` per question; ``names`` are keys of `ESTIMATORS`, all by default. What a
    question lacks is undefined, with a reason.

    >>> questions = [Samples(["Paris", "Paris."]), Samples(["Paris", "Rome"]), Samples(["Paris"])]
    >>> found = score(questions, ["agreement_text"])["agreement_text"]
    >>> found.values.tolist(), found.reasons
    ([1.0, 0.0, nan], (None, None, 'one_sample'))
    """
    chosen = ESTIMATORS if names is None else names
    return scored(batches(questions), len(questions), chosen)


def scored(
    parts: Iterable[tuple[Ints, Batch]], n_questions: int, names: Iterable[str]
) -> dict[str, EstimatorScores]:
    """Score questions that come in batches, each with the places of its questions among all."""
    chosen = [ESTIMATORS[name] for name in names]
    values = {one.name: np.full(n_questions, math.nan) for one in chosen}
    reasons = {one.name: np.full(n_questions, None, dtype=object) for one in chosen}
    for at, batch in parts:
        for one in chosen:
            values[one.name][at], reasons[one.name][at] = one.estimate(batch)
    return {
        one.name: EstimatorScores(one, values[one.name], tuple(reasons[one.name].tolist())) for one in chosen
    }
