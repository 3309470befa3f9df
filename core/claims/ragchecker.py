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

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from core.claims.matrix import DEFAULT_SUPPORT, KnownShare, any_true, as_matrix, share, thresholded
from core.claims.types import Floats

METRICS = (
    "precision", "recall", "f1", "claim_recall", "context_precision", "context_utilization",
    "noise_sensitivity_in_relevant", "noise_sensitivity_in_irrelevant", "hallucination", "self_knowledge",
    "faithfulness",
)  # fmt: skip
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


def ragchecker_metrics(
    retrieved_to_reference: ArrayLike | None,
    retrieved_to_answer: ArrayLike,
    answer_correct: ArrayLike | None,
    reference_covered: ArrayLike | None,
    threshold: float = DEFAULT_SUPPORT,
) -> dict[str, KnownShare]:
    """Compute all metrics of one question from its entailment matrices.

    Entries are 0 / 1 or probabilities, NaN = unscored. None for all three arguments about the reference
    leaves only faithfulness defined.

    Parameters
    ----------
    retrieved_to_reference : array_like of float, shape (n_reference_claims, n_passages), or None
        Whether each passage entails each claim of the reference answer.
    retrieved_to_answer : array_like of float, shape (n_answer_claims, n_passages)
        Whether each passage entails each claim of the answer.
    answer_correct, reference_covered : array_like of float, shape (n_claims,), or None
        Whether the reference answer entails each claim of the answer, and the reverse.
    threshold : float
        In (0, 1]; a probability from here on counts as entailment.

    Returns
    -------
    dict of str to KnownShare
        By name of ``METRICS``, defined in `core.claims.definitions`. Where every cell is scored: precision +
        both noise sensitivities + hallucination = 1, and faithfulness + hallucination + self-knowledge = 1.

    Raises
    ------
    ValueError
        Sizes do not fit, or a value or the threshold is out of range.
    """
    b = thresholded(as_matrix(retrieved_to_answer, "retrieved_to_answer"), threshold)
    if retrieved_to_reference is None and answer_correct is None and reference_covered is None:
        facts = _facts(np.empty((0, b.shape[1])), b, np.full(len(b), np.nan), np.empty(0))
        return _assemble(facts, _lacking(b, "no_reference"))
    if retrieved_to_reference is None or answer_correct is None or reference_covered is None:
        raise ValueError(
            "retrieved_to_reference, answer_correct, reference_covered go together: give all of them or none."
        )
    a = thresholded(as_matrix(retrieved_to_reference, "retrieved_to_reference"), threshold)
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


def _facts(a: Floats, b: Floats, ok: Floats, got: Floats) -> dict[str, Floats]:
    """1, 0 or NaN for each claim or passage that a metric is the mean of."""
    relevant = any_true(a, axis=0)  # of each passage: it entails a claim of the reference
    retrieved = any_true(a, axis=1)  # of each claim of the reference: some passage entails it
    found = any_true(b, axis=1)  # of each claim of the answer: some passage entails it
    in_relevant = any_true(_and(b, relevant[None, :]), axis=1)
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


def _assemble(facts: Mapping[str, Floats], lacking: Mapping[str, str | None]) -> dict[str, KnownShare]:
    shares = {}
    for name, of_each in facts.items():
        reasons = [lacking[need] for need in _NEEDS.get(name, _EVERYTHING) if lacking[need]]
        shares[name] = (
            KnownShare(np.nan, 0, 0, reasons[0]) if reasons else share(of_each, "nothing_retrieved")
        )
    p, r = shares["precision"], shares["recall"]
    total = p.value + r.value
    f1 = 2 * p.value * r.value / total if total else 0.0
    shares["f1"] = KnownShare(f1, 0, 0, p.reason or r.reason)
    return {name: shares[name] for name in METRICS}


def _entries(values: ArrayLike, name: str, size: int, threshold: float) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise ValueError(f"{name} must have {size} entries, one per claim, got shape {array.shape}.")
    return thresholded(as_matrix(array[None, :], name)[0], threshold)
