"""The scores of a run: how unlike what calibration saw an answer is, known with and without its truth."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from core.arrays import Floats
from core.text.overlap import rouge_l


def distance(answers: pd.Series, references: pd.Series) -> Floats:
    """Return how far each answer is from its nearest reference answer: 1 − ROUGE-L F1.

    Known only where a reference is, so it is no score of a new answer. An empty answer has the distance 1.

    Parameters
    ----------
    answers, references : Series
        Of equal length: texts, and lists of texts; either may be missing.

    Returns
    -------
    ndarray, shape (n_questions,)
        In [0, 1], high = far; NaN without a reference or an answer.
    """
    found = []
    for answer, known in zip(answers, references, strict=True):
        likeness = [rouge_l(one, answer).f1 for one in known or ()] if isinstance(answer, str) else []
        likeness = [0.0 if math.isnan(one) else one for one in likeness]
        found.append(1 - max(likeness, default=math.nan))
    return np.array(found, dtype=np.float64).round(9)
