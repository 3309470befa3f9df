"""What a claim is, and what a verifier must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.object_]
# Claims and the passages that each of them is checked against.
ClaimGroup = tuple[Sequence[str], Sequence[str]]

OFFLINE = "offline"  # the verifier that asks no model


@dataclass(frozen=True, slots=True)
class Claim:
    """One atomic, self-contained statement of an answer."""

    text: str  # not empty
    # Where the answer says it: half-open character ranges in order, none where its words cannot be found.
    spans: tuple[tuple[int, int], ...] = ()
    relevant: bool = True  # False for refusals and talk about the answer itself: there is nothing to support
    added: tuple[str, ...] = ()  # content words that are not in that span: signs that a model strayed
    dropped: tuple[str, ...] = ()  # the reverse


class Judgement(NamedTuple):
    """What a verifier says of claims × passages."""

    probability: Floats  # of support; NaN = unscored
    agreement: Floats  # share of the majority among repeated verdicts, 0.5 to 1; NaN where there are none
    reason: str | None = None  # why cells are unscored, if any are


class Verifier(Protocol):
    """Verifies whether passages support claims."""

    @property
    def name(self) -> str:
        """Name that the run records."""
        ...

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> Floats:
        """Return the probability that each passage supports each claim, shape (n_claims, n_passages).

        In [0, 1]; NaN where the verifier failed, which is not the same as no support.
        """
        ...
