"""Claims that no single passage supports, but two together do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from core.claims.three_valued import DEFAULT_SUPPORT
from core.claims.types import Floats
from core.claims.verifiers.checked import CheckedVerifier

Joint = tuple[int, tuple[int, int], float]
_TOP = 3  # passages that pairs are made of


def joint_support(
    claims: Sequence[str], passages: Sequence[str], M: Floats, verifier: CheckedVerifier
) -> list[Joint]:
    """Find the pairs of passages that support a claim which neither supports alone.

    Only claims that have a score and no support are tried, with the pairs among the three passages most
    likely to support them: at most three judgements for each. Returns claim, (i, j) with i < j, and
    probability, ordered by claim, best first.
    """
    tried = [(c, pairs) for c, row in enumerate(M) if (pairs := _pairs(row))]
    together = [[f"{passages[i].rstrip()}\n\n{passages[j].lstrip()}" for i, j in pairs] for _, pairs in tried]
    groups = [([claims[c]], texts) for (c, _), texts in zip(tried, together, strict=True)]
    found: list[Joint] = []
    for (c, pairs), scores in zip(tried, verifier.judge(groups), strict=True):
        of_pairs = zip(pairs, scores.probability[0], strict=True)
        good = [(c, pair, float(p)) for pair, p in of_pairs if p >= DEFAULT_SUPPORT]
        found += sorted(good, key=lambda joint: -joint[2])
    return found


def _pairs(row: Floats) -> list[tuple[int, int]]:
    scored = np.flatnonzero(~np.isnan(row))
    if scored.size < 2 or row[scored].max() >= DEFAULT_SUPPORT:
        return []
    best = scored[np.argsort(-row[scored], kind="stable")][:_TOP]
    return list(combinations(sorted(int(i) for i in best), 2))
