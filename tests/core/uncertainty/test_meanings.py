"""How probable it is that the answer is not of the most common meaning, from sizes of groups by hand."""

import numpy as np
import pytest

from core.uncertainty.meanings import Meanings


@pytest.mark.parametrize(
    ("sizes", "baseline_size", "expected"),
    [
        # The answer is one more of its own meaning: 4 of 4, 3 of 4, or 2 of 4 that are of the one largest.
        ([3, 0, 0], 3, 0.0),
        ([2, 1, 0], 2, 1 / 4),
        ([1, 1, 1], 1, 1 / 2),
        # A meaning of its own: 1 of 4.
        ([3, 0, 0], 0, 1 / 4),
        # Where two meanings are the largest, whichever text is the answer, another is more common.
        ([2, 1, 0], 1, 1.0),
        ([1, 1, 1], 0, 1.0),
    ],
)
def test_the_chance_to_differ_from_the_largest_meaning(sizes, baseline_size, expected):
    found = Meanings(np.zeros((1, 3)), np.array([sizes]), np.array([baseline_size]))
    assert found.differs_by_chance.tolist() == [expected]
