"""Calibration files: read back as they were, and nothing else is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.confidence import ConfidenceMap, SavedCalibration, Weighting, configured, from_json, to_json
from core.confidence.saved import digest
from core.errors import InputError

PLAIN = SavedCalibration(Weighting(), ConfidenceMap(), 0, 0, "grid", frozenset({"00ff", "abcd"}))
KNOTS = st.lists(st.floats(0, 1), min_size=1, max_size=5, unique=True).map(sorted)
MAPS = st.one_of(
    st.just(ConfidenceMap()),
    st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(lambda one: ConfidenceMap("platt", *one)),
    KNOTS.flatmap(
        lambda x: st.lists(st.floats(0, 1), min_size=len(x), max_size=len(x)).map(
            lambda y: ConfidenceMap("isotonic", x=tuple(x), y=tuple(sorted(y)))
        )
    ),
)


@given(MAPS, st.floats(0, 1), st.floats(0, 1), st.integers(0, 10**6))
def test_a_file_is_read_back(mapped, weight, threshold, n):
    way = configured(
        {"lexical": weight, "Größe": 1 - weight}, {"lexical": (0, 1e-3), "Größe": (-1.5, 2)}, threshold
    )
    found = from_json(to_json(SavedCalibration(way, mapped, n, n // 2)))
    assert dict(found.weighting.weights) == dict(way.weights)
    assert found.weighting.ranges == {name: way.ranges[name] for name in way.weights}
    assert found.weighting.threshold == threshold
    assert (found.map, found.n, found.n_correct) == (mapped, n, n // 2)


def test_the_file_is_small_and_plain():
    assert json.loads(to_json(PLAIN)) == {
        "format": "leadline confidence calibration", "version": 2,
        "weights": {"similarity": 0.45, "lexical": 0.35, "llm": 0.2},
        "ranges": {"similarity": [0, 1], "lexical": [0, 100], "llm": [0, 1]},
        "threshold": 0.6,
        "map": {"kind": "none", "slope": 0, "intercept": 0, "x": [], "y": []},
        "n": 0, "n_correct": 0, "method": "grid", "learned_from": "00ff abcd",
    }  # fmt: skip
    assert len(to_json(PLAIN)) < 1_000


ISOTONIC = {"kind": "isotonic", "slope": 0, "intercept": 0, "x": [0.1, 0.9], "y": [0.2, 0.2]}


def test_the_maps_below_differ_from_a_good_one_in_one_thing():
    record = {**json.loads(to_json(PLAIN)), "map": ISOTONIC}
    assert from_json(json.dumps(record).encode()).map([0.5]).tolist() == [0.2]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"format": "other"}, "no calibration"),
        ({"version": 3}, "version 3; this program reads 1 and 2"),
        ({"method": "magic"}, "method must be empty or one of grid, logistic, got 'magic'"),
        ({"method": ["grid"]}, "method must be"),
        ({"learned_from": "What is it?"}, "learned_from must be digests"),
        ({"learned_from": None}, "learned_from must be digests"),
        ({"version": "1"}, "version must be a whole number"),
        ({"version": True}, "version must be a whole number"),
        ({"code": "import os"}, "check code"),
        ({"weights": {}}, "weights must be an object"),
        ({"weights": [1]}, "weights must be an object"),
        ({"weights": {"similarity": 1}}, "same signals"),
        ({"weights": {"similarity": 0.5, "lexical": 0.5, "llm": 0.5}}, "sum to 1"),
        (
            {"weights": {"similarity": "1", "lexical": 0, "llm": 0}},
            "weights.similarity must be a finite number",
        ),
        (
            {"weights": {"similarity": True, "lexical": 0, "llm": 0}},
            "weights.similarity must be a finite number",
        ),
        ({"weights": {"similarity": 10**400, "lexical": 0, "llm": 0}}, "weights.similarity must be a finite"),
        (
            {"ranges": {"similarity": [0, 1], "lexical": [0], "llm": [0, 1]}},
            "ranges.lexical must be two numbers",
        ),
        ({"ranges": {"similarity": [0, 1], "lexical": "01", "llm": [0, 1]}}, "ranges.lexical must be a list"),
        ({"ranges": {"similarity": [0, 1], "lexical": [1, 1], "llm": [0, 1]}}, "range of lexical"),
        ({"threshold": 2}, "threshold must lie"),
        ({"threshold": None}, "threshold must be a finite number"),
        ({"n": -1}, "n must be a whole number"),
        ({"n": 1.0}, "n must be a whole number"),
        ({"n_correct": 1}, "n_correct must be at most"),
        ({"map": None}, "map must be an object"),
        ({"map": {**ISOTONIC, "kind": "exec"}}, "map.kind must be one of none, platt, isotonic, got 'exec'"),
        ({"map": {**ISOTONIC, "kind": ["platt"]}}, "map.kind must be one of"),
        ({"map": {**ISOTONIC, "kind": "none"}}, "equal length, and empty"),
        ({"map": {**ISOTONIC, "x": [], "y": []}}, "equal length, and empty"),
        ({"map": {**ISOTONIC, "y": [0.2]}}, "equal length"),
        ({"map": {**ISOTONIC, "x": [0.9, 0.1]}}, "map.x must rise"),
        ({"map": {**ISOTONIC, "x": [0.1, 0.1]}}, "map.x must rise"),
        ({"map": {**ISOTONIC, "y": [0.3, 0.2]}}, "map.y must not fall"),
        ({"map": {**ISOTONIC, "y": [0.2, 1.2]}}, r"lie in \[0, 1\]"),
        ({"map": {**ISOTONIC, "x": [-0.1, 0.9]}}, r"lie in \[0, 1\]"),
        ({"map": {**ISOTONIC, "slope": 1}}, "slope and map.intercept must be 0"),
        ({"map": {"kind": "none"}}, "map must have the keys"),
    ],
)
def test_every_other_value_is_refused(changed, message):
    record = {**json.loads(to_json(PLAIN)), **changed}
    with pytest.raises(InputError, match=message):
        from_json(json.dumps(record).encode())


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, to_json(PLAIN).replace(b"0.6", b"NaN"),
     to_json(PLAIN).replace(b"0.6", b"Infinity"), to_json(PLAIN).replace(b'"n":', b'"n": 1, "n":'),
     to_json(PLAIN).replace(b"0.6", b"9" * 5_000)],
)  # fmt: skip
def test_what_is_no_json_is_refused(content):
    with pytest.raises(InputError, match="not valid JSON"):
        from_json(content)


def test_other_json_large_files_and_missing_keys_are_refused():
    for content in (b"[]", b"null", b'"text"', b"{}"):
        with pytest.raises(InputError, match="no calibration"):
            from_json(content)
    with pytest.raises(InputError, match="larger than 5 MB"):
        from_json(to_json(PLAIN) + b" " * 5_000_000)
    record = json.loads(to_json(PLAIN))
    for name in set(record) - {"format", "version"}:
        with pytest.raises(InputError, match=f"check {name}"):
            from_json(json.dumps({key: value for key, value in record.items() if key != name}).encode())


def test_files_of_the_first_version_are_read_and_do_not_say_what_they_were_learned_from():
    old = SavedCalibration(Weighting(), ConfidenceMap(), 3, 2)
    record = json.loads(to_json(old))
    assert record["version"] == 1 and "learned_from" not in record
    assert from_json(to_json(old)) == old and old.learned_from is None
    assert from_json(to_json(PLAIN)) == PLAIN
    # A question is recognised and not given away.
    assert digest("Who?") == digest("Who?") != digest("Who") and len(digest("Who?")) == 10
