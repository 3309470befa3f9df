"""Certificates on data whose truth is known: how often one is found, and what is said where none is."""

import numpy as np
import pytest

from core.conformal import certify_threshold

pytestmark = pytest.mark.slow


def linear(rng, n):
    """Confidence uniform, P(correct) = 0.55 + 0.42 c: the risk from λ on is 0.24 − 0.21 λ."""
    confidence = rng.random(n)
    return confidence, (rng.random(n) < 0.55 + 0.42 * confidence).astype(float)


def stepped(rng, n):
    """Two answers in five are sure and right in 99 of 100 cases, the others are right in half."""
    confidence = rng.choice([0.95, 0.2], size=n, p=[0.4, 0.6])
    return confidence, (rng.random(n) < np.where(confidence > 0.5, 0.99, 0.5)).astype(float)


def sharp(rng, n):
    """Only the surest tenth is good."""
    confidence = rng.random(n)
    return confidence, (rng.random(n) < np.where(confidence > 0.9, 0.99, 0.5)).astype(float)


def test_four_hundred_labels_certify_where_there_is_something_to_certify():
    """Five starts on a fixed grid certified 185 of 400, one start at the 60 surest answers 342 with 22 violations."""
    rng = np.random.default_rng(0)
    found = [certify_threshold(*linear(rng, 400), 0.15, 0.1).threshold for _ in range(400)]
    certified = [one for one in found if one is not None]
    assert len(certified) >= 300
    assert sum(0.24 - 0.21 * one > 0.15 for one in certified) <= 40


@pytest.mark.parametrize("n", [50, 100])
@pytest.mark.parametrize(
    ("draw", "alpha"), [(linear, 0.1), (linear, 0.15), (stepped, 0.1), (stepped, 0.05), (sharp, 0.1)]
)
def test_more_labels_would_not_help_is_not_said_where_they_do(draw, alpha, n):
    """It was said in 73 to 99 % of sets of 50 labels and in 11 to 56 % of 100 where 2,000 labels certify."""
    rng = np.random.default_rng(n)
    many = [certify_threshold(*draw(rng, 2_000), alpha, 0.1).threshold for _ in range(20)]
    assert sum(one is not None for one in many) >= 15, "2,000 labels certify here"
    said = sum(certify_threshold(*draw(rng, n), alpha, 0.1).out_of_reach for _ in range(300))
    assert said <= 0.05 * 300


def test_it_is_said_where_nothing_can_be_certified():
    """Nine in ten are wrong whatever the confidence: of 60 labels almost every set says so."""
    rng = np.random.default_rng(2)
    said = sum(
        certify_threshold(rng.random(60), (rng.random(60) < 0.1).astype(float), 0.1, 0.1).out_of_reach
        for _ in range(200)
    )
    assert said >= 0.6 * 200
