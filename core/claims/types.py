"""What a claim is, and what a verifier must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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
    """One atomic, self-contained statement of an answer.

    Attributes
    ----------
    text : str
        The claim; not empty.
    spans : tuple of (int, int)
        Where the answer says it: half-open character ranges, in order; more than one where it is said twice,
        none where the words of the answer cannot be found.
    relevant : bool
        False for refusals and talk about the answer itself: there is nothing to support.
    added, dropped : tuple of str
        Content words of the claim that are not in that answer span, and the reverse: signs that a model
        strayed from the answer.
    """

    text: str
    spans: tuple[tuple[int, int], ...] = ()
    relevant: bool = True
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class Verifier(Protocol):
    """Verifies whether passages support claims."""

    @property
    def name(self) -> str:
        """Name that the run records."""
        ...

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> Floats:
        """Return the probability that each passage supports each claim.

        Returns
        -------
        ndarray of float64, shape (n_claims, n_passages)
            In [0, 1]; NaN where the verifier failed, which is not the same as no support.
        """
        ...
