"""From tables to influence: why a question has no rank agreement, and which have ties."""

import math

import numpy as np
import pandas as pd
import pytest

from core.influence.measured import has_ties, undefined_reasons

NAN = math.nan
# Status, influences, retrieval order, reason: the first that applies.
UNDEFINED = [
    ("answered", [0.1, 0.2, 0.3], [1, 2, 3], None),
    ("abstained", [0.1, 0.2, 0.2], [1, 2.5, 2.5], None),
    ("answered", [1, -1, 0], [1, 2, 3], None),
    ("error", [0.1, 0.2], [1, 2], "error"),
    ("empty", [NAN, NAN, NAN], [1, 2, 3], "empty_baseline"),
    ("answered", [0.1, 0.2], [1, 2], "too_few_passages"),
    ("answered", [0], [1], "too_few_passages"),
    ("answered", [], [], "too_few_passages"),
    ("answered", [NAN, NAN, NAN], [1, 2, 3], "not_asked"),
    ("answered", [0.1, NAN, 0.3], [1, 2, 3], "incomplete"),
    ("answered", [0.1, 0.2, 0.3], [1, 2, NAN], "incomplete"),
    ("answered", [0.1, NAN, 0.3], [1, NAN, 3], "incomplete"),
    ("answered", [0, 0, 0], [1, 1, 1], "inert"),
    ("answered", [0.2, 0.2, 0.2], [1, 1, 1], "all_equal"),
    ("answered", [0.1, 0.2, 0.3], [2, 2, 2], "no_retrieval_order"),
]


def joined(lists):
    """Return lists as one array, and of each element the number of its list."""
    values = np.array([value for one in lists for value in one], float)
    return values, np.repeat(np.arange(len(lists)), [len(one) for one in lists])


def test_the_first_reason_that_applies():
    status, influences, orders, reasons = zip(*UNDEFINED, strict=True)
    influence, group = joined(influences)
    order, _ = joined(orders)
    k = np.array([len(one) for one in influences])
    found = undefined_reasons(
        pd.DataFrame({"answer_status": status}), influence, order, group, k, "not_asked"
    )
    assert [None if pd.isna(one) else one for one in found] == list(reasons)


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([3, 1, 2], False),
        ([1, 2.5, 2.5], True),
        ([1.5, 1.5], True),
        ([2.5, 2.5, 1, 4], True),
        ([1], False),
        ([], False),
        ([1, NAN, 2], False),
        ([1.5, NAN, 1.5], True),
        ([NAN, NAN], False),
    ],
)
def test_equal_influences_are_ties_and_missing_ones_are_not(ranks, expected):
    # Beside a question with ties and one without.
    rank, group = joined([[1, 2.5, 2.5], ranks, [2, 1]])
    assert has_ties(rank, group, 3).tolist() == [True, expected, False]
