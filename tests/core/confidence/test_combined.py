"""Combined uncertainty, context score and bands by hand."""

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

import core.confidence
from core.confidence import (
    Failure,
    band,
    combined_decision,
    combined_uncertainty,
    context_score,
    retrieval_uncertainty,
)
from core.errors import InputError

NAN = math.nan
UNIT = st.floats(0, 1)


def test_uncertainty_of_retrieval_by_hand():
    # softmax(log 3, 0) = ¾, ¼: its entropy is log 4 − ¾ log 3.
    assert retrieval_uncertainty([math.log(3), 0]) == pytest.approx(2 - 0.75 * math.log2(3))
    # Of five equal scores the entropy is above log 5 by rounding.
    assert retrieval_uncertainty([7, 7, 7, 7]) == retrieval_uncertainty([7] * 5) == 1
    assert retrieval_uncertainty([1_000, 0]) == 0
    for scores in ([], [3], [1, NAN], [1, math.inf]):
        assert math.isnan(retrieval_uncertainty(scores))


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=12), st.floats(-50, 50))
def test_uncertainty_of_retrieval_is_an_entropy_that_a_shift_does_not_change(scores, shift):
    found = retrieval_uncertainty(scores)
    weights = np.exp(np.array(scores) - max(scores))
    assert 0 <= found <= 1
    assert found == pytest.approx(entropy(weights / weights.sum()) / math.log(len(scores)), abs=1e-9)
    assert retrieval_uncertainty(np.array(scores) + shift) == pytest.approx(found, abs=1e-9)
    assert retrieval_uncertainty(scores[::-1]) == pytest.approx(found, abs=1e-9)


def test_combined_by_hand():
    # 0.2 · 0.5 + 0.4 · 0.25 + 0.4 · (1 − 0.75)
    assert combined_uncertainty(0.5, 0.25, 0.75) == pytest.approx(0.3)
    assert combined_uncertainty([0, 1], [0, 1], [1, 0]).tolist() == [0, 1]
    assert combined_uncertainty(1, 0, 0.5, (0.5, 0.25, 0.25)) == pytest.approx(0.625)
    assert math.isnan(combined_uncertainty(NAN, 0.2, 0.9))
    assert combined_uncertainty(NAN, 0.2, 0.9, (0, 0.5, 0.5)) == pytest.approx(0.15)
    # Weights may sum to 1 but for a millionth, the result is 1 at most.
    assert combined_uncertainty(1, 1, 0, (0.2, 0.4, 0.4 + 9e-7)) == 1


@given(UNIT, UNIT, UNIT, UNIT, st.integers(0, 2))
def test_combined_rises_with_each_part(a, b, c, other, which):
    parts = [a, b, c]
    found = combined_uncertainty(*parts)
    parts[which] = max(parts[which], other)
    above = combined_uncertainty(*parts)
    assert 0 <= found <= 1
    # More confidence of conformal prediction is less uncertainty.
    assert above <= found if which == 2 else above >= found


@pytest.mark.parametrize(
    "lambdas", [(0.5, 0.5, 0.5), (1, 1, 0), (0.2, 0.4, 0.400002), (1.2, -0.2, 0), (NAN, 0.5, 0.5)]
)
def test_weights_that_are_none_are_refused(lambdas):
    with pytest.raises(InputError, match="sum to 1"):
        combined_uncertainty(0.5, 0.5, 0.5, lambdas)


@pytest.mark.parametrize(
    ("parts", "name"), [((1.1, 0, 0), "retrieval"), ((0, -0.1, 0), "sampling"), ((0, 0, 2), "conf")]
)
def test_parts_outside_their_range_are_refused(parts, name):
    with pytest.raises(InputError, match=name):
        combined_uncertainty(*parts)


def test_the_combined_decision():
    # What fails decides, also beside what is unknown.
    expected = {
        (0.71, True): True, (0.71, False): False, (0.71, None): None,
        (0.7, True): False, (0.7, False): False, (0.7, None): False,
        (NAN, True): None, (NAN, False): False, (NAN, None): None,
    }  # fmt: skip
    sampling, reliable = zip(*expected, strict=True)
    found = combined_decision(sampling, pd.Series(reliable, dtype="boolean"))
    assert [None if one is pd.NA else bool(one) for one in found] == [*expected.values()]


CITATION, OVERLAP, UNCERTAIN, OTHER = (
    Failure.MISSING_CITATION, Failure.LOW_OVERLAP, Failure.MISSING_UNCERTAINTY, Failure.OTHER,
)  # fmt: skip


@pytest.mark.parametrize(
    ("n", "passed", "failures", "score"),
    [
        (0, None, (), 0.2),
        (1, None, (), 0.5),
        (2, None, (), 0.8),
        (9, None, (), 0.8),
        (0, True, (), 0.3),
        (1, True, (), 0.6),
        (5, True, (), 0.9),
        (0, False, (UNCERTAIN,), 0.1),
        (0, False, (UNCERTAIN, CITATION, OVERLAP), 0.1),
        (1, False, (CITATION,), 0.3),
        (2, False, (CITATION,), 0.6),
        (1, False, (OVERLAP,), 0.35),
        (2, False, (OVERLAP,), 0.65),
        (2, False, (OTHER,), 0.7),
        (2, False, (), 0.7),
        (2, False, (OTHER, OTHER), 0.7),
        (0, False, (CITATION,), 0.1),  # nothing to cite: it failed otherwise
        (1, False, (UNCERTAIN,), 0.4),  # there are passages
        (2, False, (CITATION, OVERLAP, OTHER), 0.35),
        (1, False, (CITATION, OVERLAP, OTHER), 0.05),
        (0, False, (OVERLAP, OTHER), 0.0),  # −0.05, clamped
    ],
)
def test_context_scores(n, passed, failures, score):
    found = context_score(n, passed, failures)
    assert found.score == pytest.approx(score, abs=1e-12)
    assert max(0, sum(one.change for one in found.reasons)) == pytest.approx(score, abs=1e-12)
    assert all(one.sentence for one in found.reasons)


def test_reasons_are_visible():
    assert [tuple(one) for one in context_score(1, True).reasons] == [
        ("1 passage", 0.5),
        ("validation passed", 0.1),
    ]
    found = context_score(0, False, [UNCERTAIN]).reasons
    assert [tuple(one) for one in found] == [
        ("no passages", 0.2), ("no passages and no uncertainty stated: 0.1 in all", -0.1),
    ]  # fmt: skip
    found = context_score(3, False, [OTHER, OVERLAP, CITATION]).reasons
    assert [one.sentence for one in found] == [
        "3 passages", "passages, but none is cited", "little of the answer is in the passages",
        "another objection of validation",
    ]  # fmt: skip


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="at least 0"):
        context_score(-1, None)
    for passed in (True, None):
        with pytest.raises(InputError, match="failed validation"):
            context_score(1, passed, [OVERLAP])


def test_bands_are_closed_and_tell_apart_without_colour():
    found = [band(one) for one in (0, 0.3999, 0.4, 0.5 - 0.1, 0.6999, 0.7, 0.8 - 0.1, 0.1 * 7, 1)]
    assert [one.colour for one in found] == ["red"] * 2 + ["orange"] * 3 + ["green"] * 4
    # What is 0.7 but for its last bit is 0.7.
    assert band(math.nextafter(0.7, 0)).colour == "green"
    bands = {band(one) for one in (0, 0.5, 1, NAN)}
    assert len({one.icon for one in bands}) == len({one.word for one in bands}) == 4
    for wrong in (-0.01, 1.01):
        with pytest.raises(InputError, match=r"\[0, 1\]"):
            band(wrong)


def test_the_decision_of_two_numbers_and_of_arrays():
    """Reproduction: `combined_decision(0.8, True)` failed, and so did `([0.9, 0.1], True)`."""
    assert combined_decision(0.8, True) is True and combined_decision(np.float64(0.7), True) is False
    assert combined_decision(0.9, False) is False and combined_decision(0.5, None) is False
    assert combined_decision(0.9, None) is None and combined_decision(math.nan, True) is None
    found = combined_decision(np.array([0.9, 0.9, math.nan]), np.array([True, False, True]))
    assert not isinstance(found, pd.Series) and found.isna().tolist() == [False, False, True]
    assert found[:2].tolist() == [True, False]
    # One value goes with all of the other; a number may come as an array without a dimension.
    assert combined_decision([0.9, 0.1], True).tolist() == [True, False]
    assert combined_decision(0.9, [True, False]).tolist() == [True, False]
    assert combined_decision(np.array(0.9), np.array(True)) is True
    # In a Series the index stays, whichever of the two has it.
    rows = pd.Series([True, None], ["b", "a"], dtype="boolean")
    assert combined_decision([0.9, 0.9], rows).index.tolist() == ["b", "a"]
    assert combined_decision(pd.Series([0.9, 0.1], ["b", "a"]), [True, True]).to_dict() == {
        "b": True,
        "a": False,
    }
    assert combined_decision([0, 1], [True, True]).tolist() == [False, True]
    for one, other in ((2, 1), (1, 2)):
        with pytest.raises(InputError, match=f"of equal length, got {one} and {other}"):
            combined_decision([0.9] * one, [True] * other)
    for outside in (1.2, -0.2):
        with pytest.raises(InputError, match=r"mc_confidence must lie in \[0, 1\]"):
            combined_decision(outside, True)


def test_a_name_that_is_none_of_them_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = core.confidence.nothing


def test_the_names_of_rag_uq_are_found_where_its_users_look():
    """Reproduction: `from core.confidence import MCDropoutConfidence, ConformalRAG` was an ImportError."""
    from core.confidence import ConfidenceResult, ConformalRAG, ConformalResult, MCDropoutConfidence
    from core.conformal import rag
    from core.uncertainty import mc_dropout

    assert (ConformalRAG, ConformalResult) == (rag.ConformalRAG, rag.ConformalResult)
    assert (MCDropoutConfidence, ConfidenceResult) == (
        mc_dropout.MCDropoutConfidence,
        mc_dropout.ConfidenceResult,
    )
    code = (
        "import sys, core.confidence; print(*[m for m in sys.modules if 'conformal' in m or 'core.llm' in m])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "", "they load with their first use"
