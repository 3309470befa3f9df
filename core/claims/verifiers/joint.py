"""Claims that no single passage supports, but two together do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from core.claims.types import Floats, Verifier
from core.errors import InputError

Joint = tuple[int, tuple[int, int], float]


def joint_support(
    claims: Sequence[str],
    passages: Sequence[str],
    M: Floats,
    verifier: Verifier,
    top: int = 3,
    threshold: float = 0.5,
) -> list[Joint]:
    """Find the pairs of passages that support a claim which neither supports alone.

    Only claims that have a score and none at or above ``threshold`` are tried, with the pairs among the
    ``top`` passages most likely to support them: at most top · (top - 1) / 2 judgements for each, three with
    the default. A passage pair is one text, in the passages' order. Returns claim, (i, j) with i < j, and
    probability, ordered by claim, best first.
    """
    matrix = np.asarray(M, dtype=np.float64)
    if matrix.shape != (len(claims), len(passages)):
        wanted = (len(claims), len(passages))
        raise InputError(f"M must have the shape {wanted}, claims by passages, got {matrix.shape}.")
    if top < 2:
        raise InputError(f"top must be at least 2, got {top}.")
    tried = [(c, pairs) for c, row in enumerate(matrix) if (pairs := _pairs(row, top, threshold))]
    together = [[f"{passages[i].rstrip()}\n\n{passages[j].lstrip()}" for i, j in pairs] for _, pairs in tried]
    groups = [([claims[c]], texts) for (c, _), texts in zip(tried, together, strict=True)]
    found: list[Joint] = []
    for (c, pairs), scores in zip(tried, _judged(verifier, groups), strict=True):
        good = [(c, pair, float(p)) for pair, p in zip(pairs, scores[0], strict=True) if p >= threshold]
        found += sorted(good, key=lambda joint: -joint[2])
    return found


def _pairs(row: Floats, top: int, threshold: float) -> list[tuple[int, int]]:
    scored = np.flatnonzero(~np.isnan(row))
    if scored.size < 2 or row[scored].max() >= threshold:
        return []
    best = scored[np.argsort(-row[scored], kind="stable")][:top]
    return list(combinations(sorted(int(i) for i in best), 2))


def _judged(verifier: Verifier, groups: Sequence[tuple[list[str], list[str]]]) -> list[Floats]:
    many = getattr(verifier, "support_many", None)
    if many is not None:
        judged: list[Floats] = many(groups)
        return judged
    return [verifier.support(claims, texts) for claims, texts in groups]
