"""Which numbers per question are signals, and what a signal says as a confidence."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.run import Run
from core.signals import Signal, confidence, confident, label_free, nonconformity, signals_of
from core.socket import Diagnostic, Need, QuestionColumn

IDS = ["q1", "q2", "q3"]


@dataclass(frozen=True)
class Given:
    queries: pd.DataFrame


def diagnostic(name, *columns, needs=(), **values):
    table = pd.DataFrame({"query_id": IDS, **values})
    return Diagnostic(
        name, name.upper(), "?", lambda _: Given(table), lambda _: (), columns=columns, needs=needs
    )


@pytest.fixture
def diagnosis():
    """Two diagnostics, one that lacks its data, confidence signals and those of an imported file."""
    right = pd.array([True, False, None], dtype="boolean")
    columns = (
        QuestionColumn("right", "Right", "bool", higher_is="better", needs_labels=True),
        QuestionColumn("odd", "Odd", "bool"),
        QuestionColumn("sure", "ρ", higher_is="more confident", bounds=(-1, 1)),
        QuestionColumn("again", "Sure again", higher_is="more confident", is_secondary=True),
        QuestionColumn("doubt", "Doubt", higher_is="more uncertain"),
        QuestionColumn("size", "Size", "{:g}"),
        QuestionColumn("label", "Label"),
        QuestionColumn("parts", "Parts", "list"),
    )
    first = diagnostic(
        "first", *columns, right=right, odd=right, sure=[1.0, 0.0, -1.0], again=[1.0, 0.5, 0.0],
        doubt=[0.0, 2.0, np.inf], size=[1, 2, 3], label=["a", "b", "c"], parts=[[1.0], [2.0], [3.0]],
    )  # fmt: skip
    second = diagnostic(
        "second",
        QuestionColumn("right_too", "Right, too", "bool", higher_is="better"),
        QuestionColumn("llm_score", "Stated", higher_is="more confident", bounds=(0, 1)),
        right_too=right,
        llm_score=[0.1, 0.2, 0.3],
    )
    lacking = diagnostic(
        "third", QuestionColumn("n", "N"), needs=(Need("claims", "No claims."),), n=[1.0, 2.0, 3.0]
    )
    run = Run.create(
        {"source": "upload"},
        queries=pd.DataFrame({"query_id": IDS, "question": "?"}),
        signals=pd.DataFrame({"query_id": ["q3", "q1"], "lexical": [80.0, 20.0]}),
        confidences=pd.DataFrame(
            {"query_id": ["q2", "q1"], "name": ["judge_says", "a_guess"], "value": [0.75, 0.5]}
        ),
    )
    return Diagnosis(run, diagnostics=[first, second, lacking])


def test_signals_are_numbers_of_each_question_and_one_outcome(diagnosis):
    """Of yes and no only whether the answer is correct, and that once; nothing that says the same again."""
    found = signals_of(diagnosis)
    assert [one.key for one in found] == [
        "first.right", "first.sure", "first.doubt", "first.size", "second.llm_score",
        "first.similarity", "first.lexical", "first.judge_says", "first.a_guess",
    ]  # fmt: skip
    assert [one.is_outcome for one in found] == [True] + [False] * 8
    assert [one.owner for one in found] == ["FIRST"] * 4 + ["SECOND"] + ["Confidence signals"] * 4
    assert [one.title for one in found[1:3]] == ["ρ (FIRST)", "Doubt"]
    assert [one.way for one in found] == [1, 1, -1, 0, 1, 1, 1, 1, 1]
    assert [one.bounds for one in found] == [
        None,
        (-1, 1),
        None,
        None,
        (0, 1),
        (0, 1),
        (0, 100),
        (0, 1),
        (0, 1),
    ]
    values = {one.name: one.values.tolist() for one in found}
    nan = pytest.approx(np.nan, nan_ok=True)
    assert values["right"] == [1.0, 0.0, nan] and values["doubt"] == [0.0, 2.0, nan]
    assert values["lexical"] == [20.0, nan, 80.0] and values["judge_says"] == [nan, 0.75, nan]
    assert [one.title for one in found[6:]] == ["Lexical retrieval score", "Judge says", "A guess"]


def test_what_says_the_same_again_and_the_signals_of_some_diagnostics_come_when_asked_for(diagnosis):
    again = [one.name for one in signals_of(diagnosis, secondary=True)]
    assert again[:4] == ["right", "sure", "again", "doubt"]
    some = [one.key for one in signals_of(diagnosis, diagnosis.diagnostics[1:2])]
    assert some[:2] == ["second.right_too", "second.llm_score"] and "first.lexical" in some


def test_only_what_needs_no_label_and_has_a_direction_and_a_value_says_something_of_a_new_answer(diagnosis):
    names = [one.name for one in label_free(signals_of(diagnosis))]
    assert names == ["sure", "doubt", "llm_score", "lexical", "judge_says", "a_guess"]


SIGNAL = Signal(
    "d", "x", "X", "D", "{:.3f}", "more confident", np.array([0.0, 5.0, np.nan]), bounds=(0.0, 20.0)
)


@pytest.mark.parametrize(
    ("changes", "scores", "confidences"),
    [
        ({}, [1.0, 0.75], [0.0, 0.25]),
        ({"higher_is": "more uncertain"}, [0.0, 0.25], [1.0, 0.75]),
        ({"bounds": None}, [0.0, -5.0], [1.0, 1.0]),
        ({"bounds": None, "higher_is": "worse"}, [0.0, 5.0], [1.0, np.exp(-5)]),
    ],
)
def test_a_range_becomes_a_confidence_and_so_does_an_uncertainty_without_one(changes, scores, confidences):
    signal = replace(SIGNAL, **changes)
    assert nonconformity(signal) == pytest.approx([*scores, np.nan], nan_ok=True)
    assert confidence(signal) == pytest.approx([*confidences, np.nan], nan_ok=True)


def test_scores_of_no_signal_are_shares():
    assert confident(np.array([0.25, 1.5]), None).tolist() == [0.75, 0.0]


def test_values_that_differ_by_rounding_errors_are_equal():
    signal = replace(SIGNAL, values=np.array([0.1 + 0.2, 0.3, 0.3 + 4e-10, 0.3 + 1e-9]), bounds=(0.0, 1.0))
    for found in (signal.rounded, nonconformity(signal)):
        assert found[0] == found[1] == found[2] != found[3]
    # Of a wide range the scores are that near, too.
    wide = nonconformity(replace(signal, values=np.array([0.0, 6e-9, 2e-8]), bounds=(0.0, 20.0)))
    assert wide[0] == wide[1] != wide[2]


@pytest.mark.parametrize(("pattern", "text"), [("{:.3f}", "0.125"), ("{:g}", "0.12"), ("bool", "0.12")])
def test_a_mean_of_values_has_decimals(pattern, text):
    assert replace(SIGNAL, pattern=pattern).text(0.125) == text
