"""Which questions are labelled: the one place where a calibration reads labels.

Whether an answer is correct is asked of the diagnostics (`core.calibration.in_use`).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.arrays import Bools

_LABELS = ("correct", "reference_answers")  # a person's word, where the table has it, and references


def is_labelled(queries: pd.DataFrame) -> Bools:
    """Return for each question whether something says what a correct answer is."""
    there = [queries[name].notna().to_numpy(dtype=np.bool_) for name in _LABELS if name in queries]
    return np.any(there, axis=0)
