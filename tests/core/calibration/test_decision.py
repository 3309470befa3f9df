"""What a threshold lets through, by hand."""

import math

import numpy as np
import pytest

from core.calibration.decision import whatif


def test_what_a_threshold_lets_through():
    found = whatif(np.array([0.895, 0.894, math.nan, 0.5]), np.array([1, 0, 1, math.nan]), 0.9)
    assert found[:5] == (0.9, 3, 1, 1, 1) and found.coverage == pytest.approx(1 / 3)
    assert whatif(np.array([math.nan]), np.array([1.0]), 0.0)[1:5] == (0, 0, 0, 0)
