"""Signals as scores: orientation, range, choice; and the distance from the truth."""

import math

import numpy as np
import pandas as pd
import pytest

from core.conformal.analysis import distance
from core.signals import Signal, confidence, label_free, nonconformity

NAN = math.nan


def signal(key="toy.x", values=(0.2, 0.9, NAN), higher_is="more confident", **parts):
    source, name = key.split(".")
    return Signal(source, name, name, source, "{:.2f}", higher_is, np.array(values, dtype=float), **parts)


@pytest.mark.parametrize(
    ("given", "score", "sure"),
    [
        (signal(bounds=(0.0, 1.0)), [0.8, 0.1, NAN], [0.2, 0.9, NAN]),
        (signal(bounds=(0.0, 1.0), higher_is="worse"), [0.2, 0.9, NAN], [0.8, 0.1, NAN]),
        (
            signal(values=(20, 90, NAN), bounds=(0.0, 100.0), higher_is="better"),
            [0.8, 0.1, NAN],
            [0.2, 0.9, NAN],
        ),
        (signal(values=(-1, 0, 1), bounds=(-1.0, 1.0), higher_is="better"), [1, 0.5, 0], [0, 0.5, 1]),
        (
            signal(values=(0, 2, NAN), higher_is="more uncertain"),
            [0, 2, NAN],
            [1, math.exp(-2), NAN],
        ),
    ],
)
def test_a_score_is_high_for_strange_answers_and_a_confidence_low(given, score, sure):
    np.testing.assert_allclose(nonconformity(given), score, atol=1e-9)
    np.testing.assert_allclose(confidence(given), sure, atol=1e-9)


def test_ties_stay_ties():
    third = signal(values=(1 / 3, 1 - 2 / 3, 0.1 + 0.2, 0.3), bounds=(0.0, 1.0))
    assert len(set(nonconformity(third))) == 2


def test_what_needs_a_label_or_has_no_direction_is_no_score():
    usable = signal()
    others = [
        signal("toy.a", needs_labels=True),
        signal("toy.b", is_outcome=True),
        signal("toy.c", higher_is=""),
        signal("toy.d", values=(NAN, NAN)),
    ]
    assert label_free([*others, usable]) == (usable,)


def test_distance_is_that_to_the_nearest_reference():
    answers = pd.Series(["red fox", "red fox", "", None, "red", "I don't know"])
    references = pd.Series([["a red fox", "blue"], ["blue"], ["red"], ["red"], None, ["red"]])
    # ROUGE-L F1 of "red fox" and "a red fox": 2 · 1 · (2/3) / (1 + 2/3) = 0.8.
    np.testing.assert_allclose(distance(answers, references), [0.2, 1, 1, NAN, NAN, 1], atol=1e-9)
