"""How far an attribution can be believed: what it says of subsets that it was not fitted to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtrit

from core.arrays import Bools, Floats

_TELLING = 16
LEAST = 8  # masks: of fewer, ranks tell nothing
TOP = (1, 3, 5)


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """Linear datamodelling score (LDS) of an attribution, and what leaving out its first passages does.

    ``lds``: Spearman's ρ, ties at their mean, of the predicted and the measured scores of ``n`` masks that
    were not used to make the prediction, in [−1, 1], higher = better, 0 by chance; ``low`` and ``high``, 95 %
    (Fisher's z with the variance of Bonett & Wright 2000 and quantiles of Student's t). ``concordance`` in
    [0, 1]: how often, of two removals, it says which one costs the answer more; ½ by chance. ``ceiling``
    is the LDS that measuring the same masks again reaches, 1 where the score does not vary. ``drops``
    by number of passages left out: what the answer loses without the first so many, and without as many
    random ones. NaN with a ``reason`` (`core.attribution.definitions.REASONS`) where undefined.
    Cohen-Wang et al. 2024, §3.
    """

    lds: float = math.nan
    low: float = math.nan
    high: float = math.nan
    concordance: float = math.nan
    n: int = 0
    ceiling: float = math.nan
    drops: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    reason: str | None = None

    @property
    def readable(self) -> bool | None:
        """Whether the scores predict better than chance: the interval lies above 0.

        None where undefined, and where it does not but fewer than 16 masks could hardly have shown it.
        """
        if self.low > 0:
            return True
        untold = self.n < _TELLING and not self.high < 0
        return None if math.isnan(self.lds) or untold else False


def left_out_one_by_one(masks: Bools, values: Floats, pairs: Sequence[tuple[int, int]] = ()) -> Floats:
    """Predict each of all 2^k masks from the others, by least squares on passages and ``pairs`` of them.

    In closed form (PRESS): all masks are alike, so each has the leverage (number of columns) / 2^k.
    """
    n, z = len(masks), masks - 0.5
    x = np.column_stack([np.ones(n), z, *(z[:, i] * z[:, j] for i, j in pairs)])
    leverage = x.shape[1] / n
    fitted = x @ np.linalg.lstsq(x, values)[0]
    return np.asarray((fitted - leverage * values) / (1 - leverage) if leverage < 1 else np.full(n, np.nan))


def judged(
    predicted: Floats,
    values: Floats,
    again: Floats | None = None,
    drops: Mapping[int, tuple[float, float]] | None = None,
) -> Faithfulness:
    """Compare predictions, (n,), with scores, (n,).

    ``again`` are the scores of the same masks measured once more, NaN where they were not; ``drops``: see
    `Faithfulness`.

    >>> judged(np.arange(10.0), np.arange(10.0) ** 3).lds
    1.0
    """
    n, drops = len(values), drops or {}
    predicted, values = predicted.round(9), values.round(9)  # equal sums may differ in their last digits
    if n < LEAST:
        return Faithfulness(n=n, drops=drops, reason="too_few_masks")
    if np.ptp(values) == 0:
        return Faithfulness(n=n, drops=drops, reason="constant")
    ceiling = math.nan
    if again is not None and (known := ~np.isnan(again)).sum() >= LEAST:
        ceiling = _rho(values[known], again[known])
    if np.isnan(predicted).any() or np.ptp(predicted) == 0:
        return Faithfulness(n=n, ceiling=ceiling, drops=drops, reason="all_equal")
    rho = _rho(predicted, values)
    at = np.arctanh(np.clip(rho, -1 + 1e-9, 1 - 1e-9))
    width = stdtrit(n - 3, 0.975) * math.sqrt((1 + rho**2 / 2) / (n - 3))
    low, high = float(np.tanh(at - width)), float(np.tanh(at + width))
    return Faithfulness(rho, low, high, _concordance(predicted, values), n, ceiling, drops)


def _rho(a: Floats, b: Floats) -> float:
    from scipy.stats import rankdata

    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(np.clip(np.corrcoef(rankdata(a), rankdata(b))[0, 1], -1, 1).round(12))


def _concordance(predicted: Floats, values: Floats) -> float:
    """Return the share of pairs of masks in the right order; a predicted tie is half right."""
    i, j = np.triu_indices(len(values), 1)
    really = np.sign(values[i] - values[j])
    said = np.sign(predicted[i] - predicted[j])
    apart = really != 0
    return float(((said * really)[apart] + 1).mean() / 2)
