"""Maps from confidence to probability: by hand, on answers they were not fitted to, and what is no map."""

import math

import numpy as np
import pytest

from core.calibration.mapping import ConfidenceMap, ConfidenceQuality, calibrate_map, fit_map, quality
from core.errors import InputError
from core.stats import brier_score

NAN = math.nan
RISING = {"x": (0.0, 0.5, 1.0), "y": (0.0, 0.0, 1.0)}


@pytest.mark.parametrize(
    ("parts", "given", "probability"),
    [
        ({}, [0.3, NAN], [0.3, NAN]),
        # Also the name of a kind that was read from a file.
        ({"kind": "".join(["pla", "tt"]), "slope": math.log(4), "intercept": -math.log(2)},
         [0, 0.5, 1, NAN], [1 / 3, 1 / 2, 2 / 3, NAN]),
        ({"kind": "platt"}, [0.1, 0.9], [0.5, 0.5]),
        ({"kind": "".join(["iso", "tonic"]), **RISING}, [0, 0.4, 0.75, 1, NAN], [0, 0, 0.5, 1, NAN]),
        ({"kind": "isotonic", "x": (0.3,), "y": (0.8,)}, [0, 0.3, 1], [0.8, 0.8, 0.8]),
        ({"kind": "isotonic", "x": tuple(i / 300 for i in range(301)), "y": (0.0,) * 301}, [0.2], [0]),
    ],
)  # fmt: skip
def test_probabilities_by_hand(parts, given, probability):
    assert ConfidenceMap(**parts)(given) == pytest.approx(probability, nan_ok=True)


LENGTHS = "x and y of a map must be of equal length, and empty but for isotonic."
LINE = "slope and intercept of a map must be numbers, and 0 but for platt."
UNIT = "x and y of a map must lie in [0, 1]."
ORDER = "x of a map must rise, and y must not fall."


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"kind": "beta" * 20}, f"There is no map '{('beta' * 20)[:39]}; there are none, platt, isotonic."),
        ({"kind": "isotonic"}, LENGTHS),
        ({"kind": "platt", **RISING}, LENGTHS),
        ({"kind": "isotonic", **RISING, "y": (0.0, 1.0)}, LENGTHS),
        ({"y": (0.0,)}, LENGTHS),
        ({"kind": "platt", "slope": NAN}, LINE),
        ({"kind": "platt", "slope": 1.0, "intercept": math.inf}, LINE),
        ({"slope": 1.0}, LINE),
        ({"kind": "isotonic", **RISING, "intercept": 1.0}, LINE),
        ({"kind": "isotonic", **RISING, "x": (-0.1, 0.5, 1.0)}, UNIT),
        ({"kind": "isotonic", **RISING, "y": (0.0, 0.5, 1.1)}, UNIT),
        ({"kind": "isotonic", **RISING, "y": (0.0, NAN, 1.0)}, UNIT),
        ({"kind": "isotonic", **RISING, "x": (0.0, 0.6, 0.5)}, ORDER),
        ({"kind": "isotonic", **RISING, "x": (0.0, 0.5, 0.5)}, ORDER),
        ({"kind": "isotonic", **RISING, "y": (0.0, 0.6, 0.5)}, ORDER),
    ],
)
def test_what_is_no_map_is_refused(parts, sentence):
    with pytest.raises(InputError) as error:
        ConfidenceMap(**parts)
    assert str(error.value) == sentence


def test_quality_by_hand():
    found = quality([0.1, 0.9, 0.8, 0.4, NAN, 0.5], [0, 1, 0, 1, 1, NAN])
    assert found.n == 4 and found.brier == pytest.approx((0.01 + 0.01 + 0.64 + 0.36) / 4)
    # Each is alone in its bin.
    assert (found.ece, found.mce) == pytest.approx(((0.1 + 0.1 + 0.8 + 0.6) / 4, 0.8))
    # Correct over wrong: 0.9 over both, 0.4 over one. Errors of the first 1, 2, 3, 4: 0, 1, 1, 2.
    assert (found.auroc, found.aurc) == pytest.approx((3 / 4, (0 + 1 / 2 + 1 / 3 + 1 / 2) / 4))


@pytest.mark.parametrize(("gap", "auroc"), [(4e-10, 0.5), (4e-9, 1.0)])
def test_confidences_that_differ_by_a_rounding_error_are_tied(gap, auroc):
    assert quality([0.5, 0.5 + gap], [0, 1]).auroc == auroc


FEW = ([1] * 4 + [0] * 4, [1, 1, 1, 0, 1, 0, 0, 0])


def test_fitted_maps_by_hand():
    platt = fit_map(*FEW, "".join(["pla", "tt"]))
    # Targets of 4/6 and 2/6 at each end: slope 2 log 2 and intercept −log 2.
    assert platt.kind == "platt" and (platt.x, platt.y) == ((), ())
    assert (platt.slope, platt.intercept) == pytest.approx((math.log(4), -math.log(2)), abs=1e-4)
    isotonic = fit_map(*FEW, "".join(["iso", "tonic"]))
    assert isotonic.kind == "isotonic" and isotonic.x == (0, 1)
    assert isotonic.y == pytest.approx((1 / 4, 3 / 4))
    assert fit_map(*FEW, "none") == ConfidenceMap()
    with pytest.raises(InputError, match=r"^There is no map 'beta'; there are none, platt, isotonic\.$"):
        fit_map(*FEW, "beta")


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
@pytest.mark.parametrize("correct", [[1, 1, 1], [0, 0, 0]])
def test_nothing_is_fitted_where_all_or_none_are_correct(kind, correct):
    assert fit_map([0.4, 0.5, 0.6], correct, kind) == ConfidenceMap()


def test_a_line_that_would_reverse_the_order_is_not_taken():
    assert fit_map(FEW[0], [1 - right for right in FEW[1]], "platt") == ConfidenceMap()


@pytest.mark.parametrize(("n_right", "n_wrong"), [(0, 0), (3, 12), (12, 3), (9, 30), (30, 9)])
def test_too_few_labels_give_no_map(n_right, n_wrong):
    n = n_right + n_wrong
    found = calibrate_map([0.5] * n, [1] * n_right + [0] * n_wrong, "platt")
    assert found.reason == (
        f"too few labels: {n_right} correct and {n_wrong} wrong, at least 10 of each are needed"
    )
    assert found.map == ConfidenceMap() and found.before.n == n
    after = found.after
    assert isinstance(after, ConfidenceQuality) and after.n == 0
    assert np.isnan([after.ece, after.mce, after.brier, after.auroc, after.aurc]).all()


def test_a_confidence_that_tells_nothing_becomes_the_share_of_correct_answers_in_each_fold():
    # Of 40 correct and 20 wrong answers each fold leaves 32 and 16 to learn from: two thirds.
    found = calibrate_map([0.9] * 60, [1] * 40 + [0] * 20, "isotonic")
    assert found.reason == "" and found.map.x == (0.9,) and found.map.y == pytest.approx((2 / 3,))
    assert found.before.n == found.after.n == 60
    assert found.before.brier == pytest.approx((40 * 0.01 + 20 * 0.81) / 60)
    assert found.after.brier == pytest.approx((40 / 9 + 20 * 4 / 9) / 60)
    assert found.after.ece == pytest.approx(0)


def test_ten_of_each_are_enough_and_the_order_does_not_matter():
    # Labels are chance and no confidence comes twice: on its own answers an isotonic map is far better than ¼.
    confidence, correct = np.random.default_rng(9).random(20), np.repeat([0, 1], 10)
    found = calibrate_map(confidence, correct, "isotonic")
    assert brier_score(found.map(confidence), correct) < 0.25 < found.after.brier
    assert found.after.n == 20 and found.map == fit_map(confidence, correct, "isotonic")
    assert found == calibrate_map(confidence[::-1], correct[::-1], "isotonic", seed=0)
    assert found.after != calibrate_map(confidence, correct, "isotonic", seed=1).after
    same = calibrate_map(confidence, correct, "none")
    assert same.map == ConfidenceMap() and same.before == same.after
