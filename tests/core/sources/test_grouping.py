import numpy as np
import pytest

from core.sources.formats.influence import group_rows, position_within


def group(question, passage):
    array = None if passage is None else np.array(passage, dtype=np.int64)
    g = group_rows(np.array(question, dtype=np.int64), array)
    return g.group.tolist(), g.question.tolist(), g.run.tolist()


@pytest.mark.parametrize(
    ("question", "passage", "expected"),
    [
        # One block each; questions need not be sorted.
        ([0, 0, 1, 1], [0, 1, 0, 1], ([0, 0, 1, 1], [0, 1], [1, 1])),
        ([0, 1, 0, 1], [0, 0, 1, 1], ([0, 1, 0, 1], [0, 1], [1, 1])),
        # Two blocks that repeat passages are two runs …
        ([0, 0, 1, 0, 0], [0, 1, 0, 0, 1], ([0, 0, 1, 2, 2], [0, 1, 0], [1, 1, 2])),
        # … and two blocks that do not are one question.
        ([0, 0, 1, 0, 0], [0, 1, 0, 2, 3], ([0, 0, 1, 0, 0], [0, 1], [1, 1])),
        # All passages again, back to back: two runs.
        ([0, 0, 0, 0], [0, 1, 0, 1], ([0, 0, 1, 1], [0, 0], [1, 2])),
        # A stray repeated row is a duplicate, not a run.
        ([0, 0, 0], [0, 1, 0], ([0, 0, 0], [0], [1])),
        ([0, 0, 0, 0], [0, 0, 1, 1], ([0, 0, 0, 0], [0], [1])),
        ([0, 0, 1, 0], [0, 1, 0, 0], ([0, 0, 1, 0], [0, 1], [1, 1])),
        # Nothing tells runs apart.
        ([0, 0, 1, 0, 0], None, ([0, 0, 1, 0, 0], [0, 1], [1, 1])),
        ([], [], ([], [], [])),
    ],
)
def test_runs_of_the_same_question(question, passage, expected):
    assert group(question, passage) == expected


def test_number_of_repeated_questions():
    g = group_rows(np.array([0, 0, 1, 1, 0, 0, 0, 0]), np.array([0, 1, 0, 1, 0, 1, 0, 1]))
    assert g.n_repeated == 1
    assert g.run.tolist() == [1, 1, 2, 3]


def test_position_within():
    assert position_within(np.array([0, 1, 0, 1, 1])).tolist() == [0, 0, 1, 1, 2]
