"""Whether answers that stay the same when asked again are also supported by passages."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.arrays import Floats
from core.uncertainty.definitions import QUADRANTS, STABLE, UNDEFINED

UNGROUNDED = 0.5  # share of an answer's claims below which it is ungrounded


def quadrant(stability: pd.Series, grounding: Floats) -> pd.Series:
    """Return the quadrant of each question, missing where stability or grounding is.

    ``stability``: the label of each question; ``grounding``, (n,): the share of the answer's claims that a
    passage supports, NaN where unknown. Returns names of `QUADRANTS`.

    >>> labels = pd.Series(["Stable", "Stable", "Varies", "Undefined"])
    >>> quadrant(labels, np.array([1.0, 0.2, 0.5, 1.0])).to_list()
    ['Stable, grounded', 'Stable, ungrounded', 'Not stable, grounded', nan]
    """
    known = ((stability != UNDEFINED) & ~np.isnan(grounding)).to_numpy()
    which = 2 * (stability != STABLE).to_numpy() + (grounding < UNGROUNDED)
    return pd.Series(np.array([*QUADRANTS], dtype=object)[which], dtype="str").where(known)


def quadrant_counts(quadrants: pd.Series) -> pd.DataFrame:
    """Count the questions of each quadrant, beside what chance gives.

    Columns ``quadrant, n, of, expected``: the questions in it, all that have one, and how many there would be
    if stability and grounding had nothing to do with each other (row total × column total / all).

    >>> names = pd.Series(["Stable, grounded"] * 3 + ["Not stable, ungrounded"])
    >>> quadrant_counts(names)[["n", "expected"]].values.tolist()
    [[3.0, 2.25], [0.0, 0.75], [0.0, 0.75], [1.0, 0.25]]
    """
    n = quadrants.value_counts().reindex([*QUADRANTS], fill_value=0).to_numpy()
    table, of = n.reshape(2, 2), int(n.sum())
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)).ravel() / max(of, 1)
    return pd.DataFrame({"quadrant": [*QUADRANTS], "n": n, "of": of, "expected": expected})
