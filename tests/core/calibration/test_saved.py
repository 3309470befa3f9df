"""Calibrations come back as they were kept, and what is none is not taken for one."""

import copy
import hashlib
import json
import math

import numpy as np
import pytest

from core.calibration.mapping import ConfidenceMap
from core.calibration.provenance import Provenance
from core.calibration.saved import Method, SavedCalibration, digest, read_store
from core.calibration.store import CalibrationCase, CalibrationStore, query_hash
from core.calibration.weighted import Weighting
from core.errors import InputError

SEEN = Provenance("confidence.confidence · 0a", "M · 1", "short · 2", "bm25 · 3")
WEIGHTING = Weighting({"llm": 0.25, "a.b": 0.75, "lexical": 0.0}, {
    "llm": (0.0, 1.0), "a.b": (-1.0, 1.0), "lexical": (0.0, 100.0), "other": (0.0, 1.0)
})  # fmt: skip
METHOD = Method(WEIGHTING, ConfidenceMap("isotonic", x=(0.0, 0.5), y=(0.25, 1.0)), frozenset({"b2", "a1"}))
WRITTEN = {
    "weights": {"llm": 0.25, "a.b": 0.75, "lexical": 0.0},
    "ranges": {"llm": [0.0, 1.0], "a.b": [-1.0, 1.0], "lexical": [0.0, 100.0]},
    "map": {"kind": "isotonic", "slope": 0.0, "intercept": 0.0, "x": [0.0, 0.5], "y": [0.25, 1.0]},
    "learned_from": "a1 b2",
}
KEPT = SavedCalibration(
    "c.db", SEEN, np.array([0.5, 0.25, 1.0]), np.array([1.0, math.nan, 0.0]), ("who", None, "why"), 2, METHOD
)


def test_a_method_comes_back_as_it_was():
    assert METHOD.to_json() == WRITTEN
    found = Method.from_json(json.loads(json.dumps(WRITTEN)))
    assert found.weighting.weights == WRITTEN["weights"]
    assert found.weighting.ranges == {"llm": (0, 1), "a.b": (-1, 1), "lexical": (0, 100)}
    assert found.map == METHOD.map and found.learned_from == {"a1", "b2"}
    # A line is used as such, whatever text its name was read from.
    line = json.loads('{"kind": "platt", "slope": 1.5, "intercept": -1, "x": [], "y": []}')
    found = Method.from_json({**WRITTEN, "map": line, "learned_from": ""})
    assert found.map == ConfidenceMap("platt", 1.5, -1.0) and found.learned_from == frozenset()
    assert found.map(2 / 3) == 0.5


def test_only_signals_with_a_weight_are_used():
    used = Method(Weighting(WEIGHTING.weights, WEIGHTING.ranges, 0.3), METHOD.map, METHOD.learned_from).used()
    assert used.weighting.weights == {"llm": 0.25, "a.b": 0.75}
    assert used.weighting.ranges == {"llm": (0, 1), "a.b": (-1, 1)} and used.weighting.threshold == 0.3
    assert (used.map, used.learned_from) == (METHOD.map, METHOD.learned_from)


def test_a_question_is_recognised_by_ten_digits():
    assert digest("Wer? \u00e9") == hashlib.sha256("Wer? \u00e9".encode()).hexdigest()[:10]
    assert len(digest("a\ud800")) == 10


def test_a_calibration_comes_back_as_it_was():
    written = KEPT.to_json()
    assert written == {
        "store": "c.db",
        "provenance": {
            "score": "confidence.confidence · 0a", "model": "M · 1", "prompt": "short · 2",
            "retriever": "bm25 · 3",
        },
        "scores": [0.5, 0.25, 1.0],
        "correct": [1, None, 0],
        "kinds": ["who", None, "why"],
        "n_excluded": 2,
        "method": WRITTEN,
    }  # fmt: skip
    found = SavedCalibration.from_json(json.loads(json.dumps(written)))
    assert (found.store, found.provenance, found.kinds, found.n_excluded) == ("c.db", SEEN, KEPT.kinds, 2)
    np.testing.assert_array_equal(found.scores, KEPT.scores)
    np.testing.assert_array_equal(found.correct, KEPT.correct)
    assert found.method.to_json() == WRITTEN and found.score == KEPT.score == "confidence.confidence"


def test_a_signal_as_it_is_has_no_method():
    plain = SavedCalibration("c.db", SEEN, np.array([0.5]), np.array([1.0]), (None,), 0)
    written = plain.to_json()
    assert written["method"] is None and SavedCalibration.from_json(written).method is None
    del written["method"]
    assert SavedCalibration.from_json(written).method is None
    # Runs of earlier versions may have a group that is no text.
    assert SavedCalibration.from_json({**written, "kinds": [7]}).kinds == (None,)


@pytest.mark.parametrize(
    "changed",
    [
        {"scores": [[0.5], [0.25], [1.0]]},
        {"scores": 0.5},
        {"scores": [0.5, 0.25]},
        {"correct": [1, None]},
        {"kinds": ["who", None]},
        {"scores": [0.5, 0.25], "correct": [1, None]},
        {"correct": [1, None, 2]},
        {"correct": [0.5, None, 0]},
        {"scores": ["high", 0.25, 1.0]},
        {"provenance": {"score": "s"}},
        {"provenance": None},
        {"provenance": {}},
        {"n_excluded": math.inf},
        {"method": {}},
        {"method": {**WRITTEN, "map": {**WRITTEN["map"], "kind": "beta"}}},
        {"method": {**WRITTEN, "weights": {"llm": 2.0}}},
        {"kinds": None},
    ],
)
def test_what_is_no_calibration_is_not_taken_for_one(changed):
    assert SavedCalibration.from_json({**copy.deepcopy(KEPT.to_json()), **changed}) is None


def test_all_that_is_missing_makes_it_none():
    whole = KEPT.to_json()
    for name in whole.keys() - {"method"}:
        assert SavedCalibration.from_json({key: one for key, one in whole.items() if key != name}) is None


def case(number, **values):
    return CalibrationCase(f"Q{number}", "C", "P", "T", number / 10, **{"correct": True, **values})


def test_a_store_is_read_without_what_is_excluded(tmp_path):
    path = tmp_path / "c.db"
    with CalibrationStore(path) as store:
        cases = [case(1, kind="who"), case(2), case(3, correct=None), case(4, correct=False)]
        store.add(cases, SEEN, method=json.dumps(WRITTEN))
        store.exclude([2], "why")
    kept, hashes = read_store(str(path))
    assert (kept.store, kept.provenance, kept.kinds, kept.n_excluded) == (
        "c.db",
        SEEN,
        ("who", None, None),
        1,
    )
    np.testing.assert_array_equal(kept.scores, [0.1, 0.3, 0.4])
    np.testing.assert_array_equal(kept.correct, [1, math.nan, 0])
    assert hashes == {query_hash(f"Q{number}", "C") for number in (1, 3, 4)}
    assert kept.method.to_json() == WRITTEN


def test_a_store_without_a_method_or_without_any_score(tmp_path):
    path = str(tmp_path / "c.db")
    with pytest.raises(InputError) as error:
        read_store(path)
    assert str(error.value) == (
        f"There is no calibration store {path}; make one with python -m core calibrate."
    )
    empty = f"The calibration store {path} holds no score that is used."
    with CalibrationStore(path) as store:
        with pytest.raises(InputError) as error:
            read_store(path)
        assert str(error.value) == empty
        store.add([case(1)], SEEN)
        assert read_store(path)[0].method is None
        store.exclude([1], "why")
        with pytest.raises(InputError) as error:
            read_store(path)
        assert str(error.value) == empty


@pytest.mark.parametrize("method", ["{", "{}", "[]", json.dumps({**WRITTEN, "weights": {"llm": 2}})])
def test_a_method_that_cannot_be_read_is_said(tmp_path, method):
    path = str(tmp_path / "c.db")
    with CalibrationStore(path) as store:
        store.add([case(1)], SEEN, method=method)
    with pytest.raises(InputError) as error:
        read_store(path)
    assert str(error.value) == f"The weights in the calibration store {path} cannot be read."
