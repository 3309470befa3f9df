"""The weighted confidence by hand, in decimals, and what must hold for any signals."""

import math
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.weighted import whatif
from core.confidence import (
    RANGES,
    THRESHOLD_VARIABLE,
    WEIGHTS,
    Weighting,
    calculate_confidence,
    confidences,
    configured,
    half_up,
    normalised,
    range_warning,
)
from core.errors import InputError

NAN = math.nan
UNIT = st.integers(0, 1_000).map(lambda i: i / 1_000)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv(THRESHOLD_VARIABLE, raising=False)


def test_the_worked_example():
    found = calculate_confidence(0.89, 38.5, 0.92)
    assert found.score == 0.72
    assert found.components == {"similarity": 0.89, "lexical": 0.39, "llm": 0.92}
    assert found.contributions == pytest.approx({"similarity": 0.4005, "lexical": 0.13475, "llm": 0.184})
    assert found.weights == {"similarity": 0.45, "lexical": 0.35, "llm": 0.20}
    assert (found.threshold, found.passes, found.reason) == (0.6, True, "")


@pytest.mark.parametrize(
    ("signals", "score"),
    [
        ((1, 100, 1), 1),
        ((0, 0, 0), 0),
        ((0.5, 50, 0.5), 0.5),
        ((7, 250, 3), 1),  # clamped
        ((-1, -5, -0.1), 0),
        ((1, 0, 0), 0.45),
        ((0, 100, 0), 0.35),
        ((0, 0, 1), 0.20),
        ((0.3, 20, 0.5), 0.31),  # 0.135 + 0.07 + 0.1 = 0.305, of which the half goes up
        ((0.1, 40, 0), 0.19),  # 0.045 + 0.14 = 0.185
    ],
)
def test_scores_by_hand(signals, score):
    assert calculate_confidence(*signals).score == score


@given(UNIT, st.integers(0, 1_000).map(lambda i: i / 10), UNIT)
def test_scores_are_those_of_decimal_arithmetic(similarity, lexical, llm):
    a, b, c = (Decimal(str(one)) for one in (similarity, lexical, llm))
    exact = Decimal("0.45") * a + Decimal("0.35") * b / 100 + Decimal("0.2") * c
    found = calculate_confidence(similarity, lexical, llm)
    rounded = [one.quantize(Decimal("0.01"), ROUND_HALF_UP) for one in (exact, a, b / 100, c)]
    assert [found.score, *found.components.values()] == [float(one) for one in rounded]
    assert found.passes == (rounded[0] >= Decimal("0.6"))
    many = confidences({"similarity": [similarity], "lexical": [lexical], "llm": [llm]}, Weighting())
    assert many.tolist() == pytest.approx([float(exact)])
    assert float(half_up(many[0])) == found.score


@given(
    st.tuples(UNIT, UNIT, UNIT), st.integers(0, 2), UNIT, st.lists(st.integers(1, 9), min_size=3, max_size=3)
)
def test_more_of_a_signal_never_lowers_the_score(signals, which, more, parts):
    weights = dict(zip(WEIGHTS, (part / sum(parts) for part in parts), strict=True))
    ranges = {"lexical": (0.0, 1.0)}
    raised = [one + more * (i == which) for i, one in enumerate(signals)]
    low, high = (
        calculate_confidence(*one, weights=weights, ranges=ranges).score for one in (signals, raised)
    )
    assert 0 <= low <= high <= 1


@pytest.mark.parametrize("missing", [None, NAN, math.inf, -math.inf])
def test_a_missing_signal_leaves_the_score_undefined(missing):
    found = calculate_confidence(0.9, missing, 0.8)
    assert math.isnan(found.score) and found.passes is None
    assert found.reason == "no value for lexical"
    assert found.components["similarity"] == 0.9 and math.isnan(found.components["lexical"])
    assert calculate_confidence(None, missing, 0.8).reason == "no value for similarity, lexical"


def test_a_signal_without_weight_is_not_needed():
    found = calculate_confidence(0.9, None, 0.5, weights={"similarity": 0.75, "lexical": 0, "llm": 0.25})
    assert (found.score, found.reason) == (0.8, "")
    assert found.contributions["lexical"] == 0
    way = configured({"similarity": 0.75, "lexical": 0, "llm": 0.25})
    assert confidences({"similarity": [0.9], "llm": [0.5]}, way).tolist() == pytest.approx([0.8])


def test_any_named_signal_can_join():
    way = configured({"similarity": 0.5, "agreement": 0.5}, {"agreement": (-1, 1)})
    assert confidences({"similarity": [0.6], "agreement": [0.0]}, way).tolist() == pytest.approx([0.55])
    with pytest.raises(InputError, match="no signal agreement; there are similarity"):
        confidences({"similarity": [0.6]}, way)


def test_many_at_once():
    found = confidences({"similarity": [1, NAN, 2], "lexical": [100, 1, 0], "llm": [1, 1, 1]}, Weighting())
    assert found.tolist() == pytest.approx([1, NAN, 0.65], nan_ok=True)


def test_the_threshold_is_given_or_of_the_environment_or_the_default(monkeypatch):
    assert configured().threshold == 0.6
    monkeypatch.setenv(THRESHOLD_VARIABLE, "0.8")
    assert calculate_confidence(0.89, 38.5, 0.92).passes is False
    assert calculate_confidence(0.89, 38.5, 0.92, threshold=0.72).passes is True
    assert calculate_confidence(0.89, 38.5, 0.92, threshold=0.73).passes is False
    monkeypatch.setenv(THRESHOLD_VARIABLE, " ")
    assert configured().threshold == 0.6
    for wrong in ("high", "1.1", "nan", "-0.1"):
        monkeypatch.setenv(THRESHOLD_VARIABLE, wrong)
        with pytest.raises(InputError, match=f"{THRESHOLD_VARIABLE} must be a number in .* got '{wrong}'"):
            configured()
        assert configured(threshold=0.5).threshold == 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": {"similarity": 0.5}}, "sum to 1, got 0.5"),
        ({"weights": {"similarity": 1.5, "llm": -0.5}}, "weight of llm"),
        ({"weights": {"similarity": NAN}}, "weight of similarity"),
        ({"weights": {"agreement": 1}}, "range of agreement"),
        ({"ranges": {"lexical": (3, 3)}}, "range of lexical"),
        ({"ranges": {"lexical": (5, 3)}}, r"range of lexical must be two numbers, low < high, got \(5, 3\)"),
        ({"ranges": {"lexical": (0, math.inf)}}, "range of lexical"),
        ({"threshold": 1.5}, r"\[0, 1\]"),
        ({"threshold": NAN}, r"\[0, 1\]"),
    ],
)
def test_what_is_no_weighting_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        configured(**given)


def test_rounding_and_ranges_by_hand():
    assert half_up([0.385, 0.125, 0.005, 0.004999, 0.995, 1]).tolist() == [0.39, 0.13, 0.01, 0, 1, 1]
    assert half_up([0.25, 0.35], 1).tolist() == [0.3, 0.4]
    assert math.isnan(half_up(NAN))
    assert normalised([-2, -1, 0, 3, 4, NAN, math.inf], -1, 3).tolist() == pytest.approx(
        [0, 0, 0.25, 1, 1, NAN, NAN], nan_ok=True
    )


def test_a_lexical_score_that_is_a_cosine_is_seen():
    found = range_warning([0.7, 0.9, 0.8, 0.75, 0.85, NAN], RANGES["lexical"], "lexical")
    assert (found.n, found.n_outside) == (5, 0)
    assert found.sentence == (
        "lexical is declared as 0 to 100, but all 5 values lie between 0.7 and 0.9: it looks like a share or a "
        "cosine. Declare its real range."
    )
    # Four are too few to tell; one that is not so low is enough to let it pass.
    assert range_warning([0.7, 0.9, 0.8, 0.75], RANGES["lexical"]) is None
    assert range_warning([0.7, 0.9, 0.8, 0.75, 5], RANGES["lexical"]) is None
    assert "cosine" not in range_warning([2, 0.9, 0.8, 0.75, 4.9], RANGES["lexical"]).sentence


def test_values_outside_the_range_are_seen():
    found = range_warning([92, 0.8, -1], (0, 1), "llm")
    assert (found.n, found.n_outside) == (3, 2)
    assert "llm is declared as 0 to 1, but 2 of 3 values lie outside, from -1 to 92" in found.sentence
    assert range_warning([0, 1, 1, 1, 1, 1], (0, 1)) is None
    assert range_warning([NAN, math.inf], (0, 1)) is None


def test_what_a_threshold_lets_through():
    found = whatif(np.array([0.895, 0.894, math.nan, 0.5]), np.array([1, 0, 1, math.nan]), 0.9)
    assert found[:5] == (0.9, 3, 1, 1, 1) and found.coverage == pytest.approx(1 / 3)
    assert whatif(np.array([math.nan]), np.array([1.0]), 0.0)[1:5] == (0, 0, 0, 0)
