"""Which signals a run's confidence is made of and where their weights come from, without the other diagnostics."""

import hashlib
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from core.analyses import Analyses
from core.calibration.in_use import (
    WEIGHTED,
    WEIGHTS_SETTING,
    in_use,
    kept_method,
    provenance,
    read_weights,
    shares_of,
    threshold_in_use,
    write_weights,
)
from core.calibration.mapping import ConfidenceMap
from core.calibration.provenance import Provenance
from core.calibration.saved import Method, SavedCalibration
from core.calibration.weighted import THRESHOLD_VARIABLE, WEIGHTS, Weighting
from core.errors import InputError
from core.run import Run
from core.socket import EARLIER, Diagnostic, QuestionColumn

NAN = math.nan
STATUS = ["answered", "answered", "abstained", "empty", "error"]
ALL = {
    "similarity": [0.89, 1 / 3, 0.9, 0.9, 0.9],
    "lexical": [38.5, 100 / 3, 90, 90, 90],
    "llm_score": [0.92, 1 / 3, 0.9, 0.9, 0.9],
}
AGREEMENT, ENTROPY, STATED = "uncertainty.agreement_rouge_l", "uncertainty.entropy", "uncertainty.llm_score"
OTHERS = {
    "entropy": [0.0, math.log(2), 1.0, NAN, 1.0],
    "agreement_rouge_l": [0.8, 0.3, 0.5, NAN, 0.5],
    "length": [3.0, 4.0, 5.0, 6.0, 7.0],
    "right": [True, False, None, True, None],
}
COLUMNS = (
    QuestionColumn("entropy", "Entropy", higher_is="more uncertain"),
    QuestionColumn(
        "agreement_rouge_l", "Agreement", bounds=(0.0, 1.0), higher_is="more confident", is_secondary=True
    ),
    QuestionColumn("length", "Length", higher_is="more confident"),
    QuestionColumn("right", "Correct", pattern="bool", higher_is="better", needs_labels=True),
)


def run_of(signals=ALL, own=(), status=STATUS, steps=None):
    """One question per status; ``own`` are the names of confidences that the file has, 0.7 for each question."""
    ids = [f"q{i}" for i in range(len(status))]
    queries = {"query_id": ids, "question": ids, "answer": "alpha", "answer_status": status}
    tables = {"signals": pd.DataFrame({"query_id": ids} | signals)} if signals else {}
    if own:
        rows = [{"query_id": one, "name": name, "value": 0.7} for name in own for one in ids]
        tables["confidences"] = pd.DataFrame(rows)
    manifest = {"source": "upload"} | ({"steps": steps} if steps else {})
    return Run.create(manifest, queries=pd.DataFrame(queries), **tables)


def used_by(run, weights="auto", columns=COLUMNS, method=None):
    """The confidence in use where one other diagnostic has these columns."""
    n = len(run.queries)
    values = {name: OTHERS[name][:n] for name in ("entropy", "agreement_rouge_l", "length")}
    frame = pd.DataFrame(values).assign(right=pd.array(OTHERS["right"][:n], dtype="boolean"))
    other = Diagnostic(
        "uncertainty",
        "Sampling",
        "?",
        lambda _: SimpleNamespace(queries=frame),
        lambda _: (),
        columns=columns,
    )
    reader = Diagnostic(
        "conformal",
        "Conformal",
        "?",
        lambda _: None,
        lambda _: (),
        reads=EARLIER,
        settings=(WEIGHTS_SETTING,),
    )
    return in_use(Analyses(run, {"weights": weights}, (other, reader)), method)


def keeping(run, method, score=WEIGHTED, **source):
    """The run with a calibration; ``source`` is what was another model, prompt or retriever."""
    found = replace(provenance(run.manifest, score, method), **source)
    kept = SavedCalibration("c.db", found, np.empty(0), np.empty(0), (), 0, method)
    return run.derive({"steps": {"conformal": {"options": {"calibration": kept.to_json()}}}})


def test_without_a_choice_it_is_the_three_signals_and_all_others_are_named():
    used = used_by(run_of())
    assert (used.origin, used.reason, used.saved, used.stale) == ("default", "", None, ())
    assert used.method.weighting.weights == WEIGHTS and used.method.map.kind == "none"
    assert used.method.weighting.ranges == {
        "similarity": (0, 1), "lexical": (0, 100), "llm": (0, 1), AGREEMENT: (0, 1), ENTROPY: (0, 1)
    }  # fmt: skip
    assert used.titles == {
        "similarity": "Similarity", "lexical": "Lexical score", "llm": "Stated confidence",
        AGREEMENT: "Agreement", ENTROPY: "Entropy",
    }  # fmt: skip
    # More of a length says nothing in [0, 1], and a label nothing of a new answer.
    assert [one.key for one in used.choices] == [
        ENTROPY, AGREEMENT, "uncertainty.similarity", "uncertainty.lexical", STATED
    ]  # fmt: skip
    assert list(used.signals) == ["similarity", "lexical", "llm", ENTROPY, AGREEMENT]
    np.testing.assert_allclose(used.signals["lexical"], ALL["lexical"])
    np.testing.assert_allclose(used.signals[AGREEMENT], [0.8, 0.3, 0.5, NAN, 0.5])
    np.testing.assert_allclose(used.signals[ENTROPY], [1, 0.5, math.exp(-1), NAN, math.exp(-1)], atol=1e-9)
    assert pd.Series(used.correct).fillna(-1).tolist() == [1, 0, -1, 1, -1]


def test_several_signals_become_one_with_all_that_people_read_of_it():
    used = used_by(run_of())
    # 0.45 · 0.89 + 0.35 · 0.385 + 0.2 · 0.92; a third of everything, to nine decimals; three without an answer.
    np.testing.assert_array_equal(used.score.values, [0.71925, 0.333333333, NAN, NAN, NAN])
    parts = (
        "source",
        "name",
        "title",
        "owner",
        "pattern",
        "higher_is",
        "bounds",
        "is_outcome",
        "needs_labels",
    )
    assert [getattr(used.score, part) for part in parts] == [
        "confidence", "confidence", "Confidence", "Confidence", "{:.2f}", "more confident", (0.0, 1.0),
        False, False,
    ]  # fmt: skip
    assert json.loads(kept_method(used)) == {
        "weights": {"similarity": 0.45, "lexical": 0.35, "llm": 0.2},
        "ranges": {"similarity": [0, 1], "lexical": [0, 100], "llm": [0, 1]},
        "map": {"kind": "none", "slope": 0, "intercept": 0, "x": [], "y": []},
        "learned_from": "",
    }


def test_where_no_answer_has_all_three_there_is_no_confidence():
    for run in (run_of(status=STATUS[2:], signals={name: ALL[name][2:] for name in ALL}), run_of({})):
        used = used_by(run, columns=COLUMNS[3:])
        assert used.score is None and used.reason == "" and used.method.weighting.weights == WEIGHTS
        assert kept_method(used) is None
    assert np.isnan([used.signals[name] for name in ("similarity", "lexical", "llm")]).all()
    assert used.choices == () and list(used.titles) == list(used.signals) == ["similarity", "lexical", "llm"]


TWO = {name: ALL[name] for name in ("similarity", "lexical")}


@pytest.mark.parametrize(
    ("signals", "own", "columns", "name", "key"),
    [
        (TWO, (), COLUMNS, AGREEMENT, AGREEMENT),
        (TWO, (), COLUMNS[:1], ENTROPY, ENTROPY),
        (TWO, (), (), "similarity", "uncertainty.similarity"),
        (ALL, ("second", "first"), COLUMNS, "uncertainty.second", "uncertainty.second"),
        # A confidence of the file that has the name of one of the three is that one.
        ({}, ("llm_score",), (), "llm", STATED),
    ],
)
def test_without_the_three_it_is_one_signal_as_it_is(signals, own, columns, name, key):
    used = used_by(run_of(signals, own), columns=columns)
    assert (used.origin, used.reason, used.method.weighting.weights) == ("default", "", {name: 1.0})
    assert used.score.key == key and used.score in used.choices and kept_method(used) is None


def test_a_confidence_that_is_named_like_one_of_the_three_does_not_displace_them():
    used = used_by(run_of(TWO, ("llm_score",)), columns=())
    assert used.method.weighting.weights == WEIGHTS
    # 0.45 · 0.89 + 0.35 · 0.385 + 0.2 · 0.7
    assert used.score.values[0] == pytest.approx(0.67525)


@pytest.mark.parametrize(
    ("text", "weights", "score"),
    [
        (f"{AGREEMENT}=1,{ENTROPY}=1", {AGREEMENT: 0.5, ENTROPY: 0.5}, [0.9, 0.4]),
        (f" {STATED} = 3, {AGREEMENT}=1", {"llm": 0.75, AGREEMENT: 0.25}, [0.89, 0.325]),
        # One signal is shown in its own unit, be it by its name among weights or by its key.
        ("lexical", {"lexical": 1.0}, [38.5, 100 / 3]),
        (STATED, {"llm": 1.0}, [0.92, 1 / 3]),
        (ENTROPY, {ENTROPY: 1.0}, [0.0, math.log(2)]),
    ],
)
def test_weights_of_the_setting(text, weights, score):
    used = used_by(run_of(), text)
    assert (used.origin, used.reason, used.method.weighting.weights) == ("setting", "", weights)
    np.testing.assert_allclose(used.score.values[:2], score, atol=1e-9)


def test_the_name_of_the_setting_that_chooses_by_itself_may_have_spaces_around_it():
    assert used_by(run_of(), " auto ").origin == "default"


def test_weights_that_cannot_be_used_are_a_reason():
    used = used_by(run_of(), "similarity=1,nobody.there=1")
    assert used.reason == (
        f"The run has no signal nobody.there; it has similarity, lexical, llm, {ENTROPY}, {AGREEMENT}."
    )
    assert used.score is None and np.isnan(used.signals["nobody.there"]).all()
    assert used.titles["nobody.there"] == "nobody.there"
    used = used_by(run_of(), "similarity=much")
    assert used.reason == (
        "Weights must read name=number,name=number, numbers of at least 0; got 'similarity=much'."
    )
    assert used.score is None and used.method.weighting.weights == WEIGHTS


HALF = Method(Weighting({"similarity": 1.0}, {"similarity": (0.0, 2.0)}))


def test_a_method_that_is_given_goes_before_the_setting():
    used = used_by(run_of(), "llm", method=HALF)
    assert (used.origin, used.method.weighting.weights) == ("calibration", {"similarity": 1.0})
    assert used.method.weighting.ranges["similarity"] == (0, 2) and used.score.key == WEIGHTED
    np.testing.assert_array_equal(used.score.values[:2], [0.445, 0.166666667])
    mapped = Method(Weighting({"similarity": 1.0}), ConfidenceMap("isotonic", x=(0.0, 1.0), y=(0.0, 0.5)))
    used = used_by(run_of(), method=mapped)
    assert used.score.key == WEIGHTED and used.score.values[0] == pytest.approx(0.445)
    used = used_by(run_of(), method=Method(Weighting({"similarity": 1.0, "llm": 0.0})))
    assert used.score.key == "uncertainty.similarity"


def test_a_calibration_that_the_run_keeps():
    run = keeping(run_of(), HALF)
    used = used_by(run)
    assert (used.origin, used.stale, used.saved.store) == ("calibration", (), "c.db")
    assert used.score.key == WEIGHTED and used.score.values[0] == 0.445
    # Of a signal as it is.
    used = used_by(keeping(run_of(), None, AGREEMENT))
    assert (used.origin, used.stale, used.score.key) == ("calibration", (), AGREEMENT)
    used = used_by(keeping(run_of(), None, STATED))
    assert used.stale == () and used.method.weighting.weights == {"llm": 1.0} and used.score.key == STATED
    # Other weights: the declared ranges stay.
    used = used_by(run, "similarity")
    assert (used.origin, used.score.key, used.score.values[0]) == ("setting", WEIGHTED, 0.445)
    used = used_by(keeping(run_of(), None, AGREEMENT), "similarity")
    assert used.score.key == "uncertainty.similarity"


def test_why_a_calibration_no_longer_fits():
    run = keeping(run_of(), HALF)
    assert used_by(run, "llm").stale == (f"calibrated with the score {WEIGHTED}, chosen is {STATED}",)
    assert used_by(keeping(run_of(), HALF, model="M · 1")).stale == (
        "calibrated with the model M · 1, this one is unknown",
    )
    # Also where no answer has a confidence, or the weights cannot be used.
    none = {name: ALL[name][2:] for name in ALL}
    used = used_by(keeping(run_of(none, status=STATUS[2:]), HALF, prompt="short · 2"))
    assert used.score is None
    assert used.stale == ("calibrated with the prompt short · 2, this one is unknown",)
    odd = run_of(steps={"conformal": {"options": {"calibration": {"scores": "many"}}}})
    used = used_by(odd)
    assert (used.saved, used.origin) == (None, "default")
    assert used.stale == ("what the run keeps of it cannot be read",)


def digits(value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def test_what_identifies_a_confidence_by_hand():
    manifest = {"steps": {"uncertainty": {"samples": 10}, "confidence": {"samples": 1}}}
    ten, one = (digits({"model": {}, "samples": n}) for n in (10, 1))
    unknown = ["unknown"] * 3
    weighting = Weighting({"similarity": 0.25, AGREEMENT: 0.75, "llm": 0.0}, {
        "similarity": (0.0, 1.0), AGREEMENT: (0.0, 1.0), "llm": (0.0, 1.0)
    })  # fmt: skip
    method = Method(weighting, learned_from=frozenset({"abc"}))
    signal = Provenance(f"{AGREEMENT} · {ten}", *unknown)
    assert provenance(manifest, AGREEMENT, None) == provenance(manifest, AGREEMENT, method) == signal
    assert provenance(manifest, "claims.mean", method) == Provenance("claims.mean", *unknown)
    known = {
        "model": {},
        "weights": {"similarity": 0.25, AGREEMENT: 0.75},
        "ranges": {"similarity": [0.0, 1.0], AGREEMENT: [0.0, 1.0]},
        "map": {"kind": "none", "slope": 0.0, "intercept": 0.0, "x": [], "y": []},
        "learned_from": None,
        "signals": [f"similarity · {one}", f"{AGREEMENT} · {ten}"],
    }
    assert provenance(manifest, WEIGHTED, method) == Provenance(f"{WEIGHTED} · {digits(known)}", *unknown)
    assert provenance(manifest, WEIGHTED, None) == Provenance(f"{WEIGHTED} · {one}", *unknown)


def test_the_threshold_is_that_of_the_environment_unless_another_is_set(monkeypatch):
    monkeypatch.delenv(THRESHOLD_VARIABLE, raising=False)
    assert threshold_in_use({"confidence_threshold": 0.6}) == 0.6
    assert threshold_in_use({"confidence_threshold": 0.5}) == 0.5
    monkeypatch.setenv(THRESHOLD_VARIABLE, "0.8")
    assert threshold_in_use({"confidence_threshold": 0.6}) == 0.8
    assert threshold_in_use({"confidence_threshold": 0.5}) == 0.5


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("similarity", {"similarity": 1}),
        (" a.b = 3 , c=1", {"a.b": 0.75, "c": 0.25}),
        ("a=0,b=2", {"b": 1}),
        ("a=0.5,b=0.5", {"a": 0.5, "b": 0.5}),
    ],
)
def test_weights_are_read_as_shares(text, weights):
    assert read_weights(text) == weights
    assert read_weights(write_weights(weights)) == weights


@pytest.mark.parametrize(
    "text", ["", "a=", "a=b", "a=-1", "a=2,b=-1", "a=nan", "a=inf", "=1", "a=1,", "a=1,a=2", "a,b", "a=1=1"]
)
def test_what_are_no_weights_is_said_as_it_was_given(text):
    with pytest.raises(InputError) as error:
        read_weights(text)
    assert str(error.value) == (
        f"Weights must read name=number,name=number, numbers of at least 0; got {text!r}."
    )


@pytest.mark.parametrize("weights", [{}, {"a": 0.0}, {"a": 2.0, "b": -1.0}, {"a": math.inf}, {"a": NAN}])
def test_only_numbers_of_at_least_0_have_shares(weights):
    with pytest.raises(InputError) as error:
        shares_of(weights)
    assert str(error.value) == "Weights must be numbers of at least 0, and one of them above 0."


def test_shares_by_hand_and_as_they_are_written():
    assert shares_of({"a": 0.5, "b": 1.5, "c": 0}) == {"a": 0.25, "b": 0.75, "c": 0}
    assert write_weights({"a": 1 / 3, "b.c": 2 / 3}) == "a=0.3333,b.c=0.6667"
