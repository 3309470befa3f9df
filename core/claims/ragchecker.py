"""RAGChecker's metrics: an answer, its passages and a reference answer, compared claim by claim.

Each metric is a mean of yes / no facts over claims or passages. A fact that follows from the scored cells is
used even where other cells are unscored (one passage that supports a claim settles it); a fact that cannot
be known is left out of its mean and counted. Where nothing is left the metric is undefined, with a reason,
and not 0.

References
----------
Ru et al. 2024, RAGChecker: A Fine-grained Framework for Diagnosing Retrieval-Augmented Generation,
arXiv 2408.08067, section 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from core.claims.known import DEFAULT_SUPPORT, Share, any_known, checked, decided, share
from core.claims.types import Floats

OVERALL = ("precision", "recall", "f1")
RETRIEVER = ("claim_recall", "context_precision")
GENERATOR = (
    "context_utilization",
    "noise_sensitivity_in_relevant",
    "noise_sensitivity_in_irrelevant",
    "hallucination",
    "self_knowledge",
    "faithfulness",
)
METRICS = OVERALL + RETRIEVER + GENERATOR
# What a metric cannot do without. An answer without claims covers nothing of the reference, but that does not
# make it a bad answer: an abstention is an outcome of its own.
_NEEDS = {
    "precision": ("answer", "reference"),
    "recall": ("answer", "reference"),
    "claim_recall": ("reference", "passages"),
    "context_precision": ("reference", "passages"),
    "faithfulness": ("answer", "passages"),
}
_EVERYTHING = ("answer", "reference", "passages")


@dataclass(frozen=True, slots=True)
class RagCheckerMetrics:
    """The metrics of one question, as shares in [0, 1]; None where undefined.

    Attributes
    ----------
    precision : float or None
        Share of the answer's claims that the reference answer entails. Higher is better.
    recall : float or None
        Share of the reference's claims that the answer entails. Higher is better.
    f1 : float or None
        Their harmonic mean; 0 when both are 0.
    claim_recall : float or None
        Share of the reference's claims that some passage entails. Higher is better.
    context_precision : float or None
        Share of the passages that entail some claim of the reference (*relevant* passages). Higher is better.
    context_utilization : float or None
        Of the reference's claims that some passage entails, the share that the answer entails. Higher is
        better.
    noise_sensitivity_in_relevant, noise_sensitivity_in_irrelevant : float or None
        Share of the answer's claims that are wrong and come from a relevant passage, or from irrelevant
        passages only. Lower is better.
    hallucination : float or None
        Share of the answer's claims that are wrong and in no passage. Lower is better.
    self_knowledge : float or None
        Share of the answer's claims that are right and in no passage.
    faithfulness : float or None
        Share of the answer's claims that some passage entails. Higher is better.
    reasons : Mapping of str to str
        For each undefined metric why: ``no_answer_claims``, ``no_reference_claims``, ``no_reference`` (no
        reference was compared), ``no_passages``, ``nothing_retrieved`` (no claim of the reference is in the
        passages) or ``unscored``.
    n, n_left_out : Mapping of str to int
        For each metric but f1, how many claims or passages it rests on and how many are unknown.
    bounds : Mapping of str to (float, float)
        For each defined metric but f1 its lowest and highest value, whatever the unknown ones are.
    """

    precision: float | None
    recall: float | None
    f1: float | None
    claim_recall: float | None
    context_precision: float | None
    context_utilization: float | None
    noise_sensitivity_in_relevant: float | None
    noise_sensitivity_in_irrelevant: float | None
    hallucination: float | None
    self_knowledge: float | None
    faithfulness: float | None
    reasons: Mapping[str, str]
    n: Mapping[str, int]
    n_left_out: Mapping[str, int]
    bounds: Mapping[str, tuple[float, float]]


def ragchecker_metrics(
    retrieved_to_reference: ArrayLike | None,
    retrieved_to_answer: ArrayLike,
    answer_correct: ArrayLike | None,
    reference_covered: ArrayLike | None,
    threshold: float = DEFAULT_SUPPORT,
) -> RagCheckerMetrics:
    """Compute all metrics of one question from its entailment matrices.

    Parameters
    ----------
    retrieved_to_reference : array_like of float, shape (n_reference_claims, n_passages), or None
        Whether each passage entails each claim of the reference answer.
    retrieved_to_answer : array_like of float, shape (n_answer_claims, n_passages)
        Whether each passage entails each claim of the answer.
    answer_correct : array_like of float, shape (n_answer_claims,), or None
        Whether the reference answer entails each claim of the answer.
    reference_covered : array_like of float, shape (n_reference_claims,), or None
        Whether the answer entails each claim of the reference answer.
    threshold : float
        In (0, 1]; a probability from here on counts as entailment.

    Returns
    -------
    RagCheckerMetrics
        Entries are 0 / 1 or probabilities, NaN = unscored. None for the three arguments about the reference
        leaves only faithfulness defined.

    Raises
    ------
    ValueError
        Sizes do not fit, or a value or the threshold is out of range.

    Notes
    -----
    Where every cell is scored: precision + both noise sensitivities + hallucination = 1, and
    faithfulness + hallucination + self-knowledge = 1.
    """
    b = decided(checked(retrieved_to_answer, "retrieved_to_answer"), threshold)
    if retrieved_to_reference is None and answer_correct is None and reference_covered is None:
        facts = _facts(np.empty((0, b.shape[1])), b, np.full(len(b), np.nan), np.empty(0))
        return _assemble(facts, _lacking(b, "no_reference"))
    if retrieved_to_reference is None or answer_correct is None or reference_covered is None:
        raise ValueError(
            "retrieved_to_reference, answer_correct, reference_covered go together: give all of them or none."
        )
    a = decided(checked(retrieved_to_reference, "retrieved_to_reference"), threshold)
    ok = _entries(answer_correct, "answer_correct", len(b), threshold)
    got = _entries(reference_covered, "reference_covered", len(a), threshold)
    # A matrix without rows may come without columns too.
    a = a if len(a) else np.empty((0, b.shape[1]))
    b = b if len(b) else np.empty((0, a.shape[1]))
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            "retrieved_to_reference and retrieved_to_answer must have one column per passage, "
            f"got {a.shape[1]} and {b.shape[1]}."
        )
    return _assemble(_facts(a, b, ok, got), _lacking(b, None if len(a) else "no_reference_claims"))


def ragchecker_means(metrics: Sequence[RagCheckerMetrics]) -> pd.DataFrame:
    """Average over the questions of a run: one row per metric, ``metric, mean, n, n_undefined``.

    A question's value counts where it is defined; the mean is NaN where none is.
    """
    values = np.array([[getattr(m, name) for name in METRICS] for m in metrics], dtype=np.float64)
    shares = [share(column) for column in values.reshape(-1, len(METRICS)).T]
    return pd.DataFrame(
        {
            "metric": METRICS,
            "mean": [s.value for s in shares],
            "n": [s.n for s in shares],
            "n_undefined": [s.n_left_out for s in shares],
        }
    )


def _facts(a: Floats, b: Floats, ok: Floats, got: Floats) -> dict[str, Floats]:
    """1, 0 or NaN for each claim or passage that a metric is the mean of."""
    relevant = any_known(a, axis=0)  # of each passage: it entails a claim of the reference
    retrieved = any_known(a, axis=1)  # of each claim of the reference: some passage entails it
    found = any_known(b, axis=1)  # of each claim of the answer: some passage entails it
    in_relevant = any_known(_and(b, relevant[None, :]), axis=1)
    return {
        "precision": ok,
        "recall": got,
        "claim_recall": retrieved,
        "context_precision": relevant,
        # Claims known not to be retrieved do not count; those that may be are unknown.
        "context_utilization": np.where(retrieved == 1, got, np.nan)[retrieved != 0],
        "noise_sensitivity_in_relevant": _and(1 - ok, in_relevant),
        "noise_sensitivity_in_irrelevant": _and(1 - ok, _and(found, 1 - in_relevant)),
        "hallucination": _and(1 - found, 1 - ok),
        "self_knowledge": _and(1 - found, ok),
        "faithfulness": found,
    }


def _and(a: Floats, b: Floats) -> Floats:
    """Logical and of 0 / 1 / NaN: a 0 settles it whatever the other is."""
    return np.where((a == 0) | (b == 0), 0.0, a * b)


def _lacking(b: Floats, reference: str | None) -> dict[str, str | None]:
    return {
        "answer": None if len(b) else "no_answer_claims",
        "reference": reference,
        "passages": None if b.shape[1] else "no_passages",
    }


def _assemble(facts: Mapping[str, Floats], lacking: Mapping[str, str | None]) -> RagCheckerMetrics:
    shares = {}
    for name, of_each in facts.items():
        reasons = [lacking[need] for need in _NEEDS.get(name, _EVERYTHING) if lacking[need]]
        shares[name] = Share(np.nan, 0, 0, reasons[0]) if reasons else share(of_each, "nothing_retrieved")
    values: dict[str, float | None] = {name: None if s.reason else s.value for name, s in shares.items()}
    why = {name: s.reason for name, s in shares.items() if s.reason}
    p, r = values["precision"], values["recall"]
    if p is None or r is None:
        values["f1"], why["f1"] = None, why["precision"] if p is None else why["recall"]
    else:
        values["f1"] = 2 * p * r / (p + r) if p + r else 0.0
    return RagCheckerMetrics(
        **values,
        reasons=MappingProxyType(why),
        n=MappingProxyType({name: s.n for name, s in shares.items()}),
        n_left_out=MappingProxyType({name: s.n_left_out for name, s in shares.items()}),
        bounds=MappingProxyType({name: (s.low, s.high) for name, s in shares.items() if not s.reason}),
    )


def _entries(values: ArrayLike, name: str, size: int, threshold: float) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise ValueError(f"{name} must have {size} entries, one per claim, got shape {array.shape}.")
    return decided(checked(array[None, :], name)[0], threshold)
