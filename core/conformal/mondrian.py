"""A threshold for each group, so that the promise is kept in every group and not only on average."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.arrays import Floats
from core.conformal.arguments import column, same_length
from core.conformal.split import conformal_threshold, label_shortage, p_values

UNKNOWN_GROUP = "No calibration label belongs to this group."


class GroupThreshold(NamedTuple):
    """The threshold of one group.

    Attributes
    ----------
    n : int
        Calibration scores of the group.
    threshold : float
        As `conformal_threshold` of these; NaN for a group without one.
    reason : str
        Why the threshold is infinite or undefined; empty where it is neither.
    """

    n: int
    threshold: float
    reason: str


def group_thresholds(
    scores: ArrayLike, groups: Sequence[Hashable], alpha: float, asked: Iterable[Hashable] = ()
) -> dict[Hashable, GroupThreshold]:
    """Return a threshold for each group (Mondrian conformal prediction, Vovk et al. 2005).

    Parameters
    ----------
    scores : array_like, shape (n,)
        Of the calibration cases; NaN is left out.
    groups : sequence of hashable, length n
        The group of each; must be known without the label.
    alpha : float
        Between 0 and 1, in every group.
    asked : iterable of hashable
        Groups of new cases: those without a calibration score are undefined.

    Returns
    -------
    dict of group to GroupThreshold
        In the order of their first appearance.

    Raises
    ------
    InputError
        An argument is outside its range.

    Examples
    --------
    >>> found = group_thresholds([0.1, 0.2, 0.3, 0.4], ["who", "who", "who", "when"], 0.25, ["why"])
    >>> found["who"].threshold, found["when"].reason, found["why"].threshold
    (0.3, '1 label cannot certify α = 0.25; you need at least 3.', nan)
    """
    values = column("scores", scores)
    found = {}
    for group, rows in _rows([*groups, *asked], values, len(groups)).items():
        known = values[rows]
        n = int(np.count_nonzero(~np.isnan(known)))
        threshold = conformal_threshold(known, alpha) if n else math.nan
        found[group] = GroupThreshold(n, threshold, label_shortage(n, alpha) if n else UNKNOWN_GROUP)
    return found


def group_p_values(
    scores: ArrayLike,
    groups: Sequence[Hashable],
    new: ArrayLike,
    new_groups: Sequence[Hashable],
    seed: int | None = None,
) -> Floats:
    """Return the p-value of each new score among the calibration scores of its own group.

    Parameters
    ----------
    scores, groups
        As for `group_thresholds`.
    new : array_like, shape (m,)
        Scores of new cases.
    new_groups : sequence of hashable, length m
        Their groups.
    seed : int, optional
        As for `core.conformal.p_values`.

    Returns
    -------
    ndarray, shape (m,)
        In (0, 1], low = unlike the group; NaN for a group without a calibration score.

    Raises
    ------
    InputError
        An argument is outside its range.
    """
    values, asked = column("scores", scores), column("new", new)
    known, found = _rows(groups, values, len(groups)), np.full(asked.size, math.nan)
    for number, (group, rows) in enumerate(_rows(new_groups, asked, len(new_groups)).items()):
        calibration = values[known.get(group, [])]
        if not np.isnan(calibration).all():
            # Each group draws numbers of its own: shared ones would make the groups' p-values depend.
            found[rows] = p_values(calibration, asked[rows], seed=None if seed is None else seed + number)
    return found


def _rows(groups: Sequence[Hashable], values: Floats, n: int) -> dict[Hashable, NDArray[np.intp]]:
    """Return the rows of each group; groups from the n-th on have none."""
    same_length("the values", values.size, "their groups", n)
    rows: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).extend([row] if row < n else [])
    return {group: np.array(found, dtype=np.intp) for group, found in rows.items()}
