"""What labelled answers teach: weights, a comparison on other answers, a map, and the file."""

import hashlib
import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import core.confidence.learning
from core.calibration.saved import digest
from core.confidence import WEIGHTS, Method, Weighting, calibrate_weights, labelled_run, learn
from core.confidence.labelled import teaches
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.run import Run
from tests.core.confidence.confidence_rows import made, planted, reordered

QUICK = (200, 20)


def test_planted_weights_are_kept_and_compared_on_other_answers():
    rows = planted(1, 300, weights=(0, 0.1, 0.9))
    found = learn(rows, Weighting(threshold=0.5), *QUICK)
    best = found.weights.best
    assert best is not None and found.proposed is best
    assert found.method.weighting == Weighting(best.weights, threshold=0.5)
    assert found.method.learned_from == frozenset(map(digest, rows.questions))
    accuracy, brier, ranking = found.compared
    unit = np.column_stack([*rows.signals.values()]) / [1, 100, 1]
    start = unit @ [0.45, 0.35, 0.20]
    assert ranking.a == pytest.approx(roc_auc_score(rows.correct, start))
    assert ranking.b == pytest.approx(roc_auc_score(rows.correct, best.confidences))
    assert brier.b == pytest.approx(((best.confidences - rows.correct) ** 2).mean())
    # Both have the threshold of the default; no confidence is within rounding of it here.
    assert accuracy.a == pytest.approx(((start >= 0.495) == rows.correct).mean())
    # The maps are fitted to the same confidences.
    assert all(one.before.brier == pytest.approx(brier.b) for one in found.maps.values())
    kept = Method.from_json(found.method.to_json())
    assert (kept.weighting.weights, kept.map) == (found.method.weighting.weights, found.method.map)


def test_without_information_the_default_is_kept_and_nothing_is_gained_on_other_answers():
    rng = np.random.default_rng(2)
    seen, gained = [], []
    for _ in range(8):
        rows = made(rng.random((40, 3)), rng.random(40) < 0.5)
        found = learn(rows, Weighting(), *QUICK)
        assert found.weights.best is None and dict(found.method.weighting.weights) == dict(WEIGHTS)
        learned = found.weights.learned[0]
        unit = np.column_stack([*rows.signals.values()]) / [1, 100, 1]
        own = roc_auc_score(rows.correct, unit @ [*learned.weights.values()])
        ranking = found.compared[2]
        seen.append(own - ranking.a)
        gained.append(ranking.difference)
        assert found.proposed is max(found.weights.learned, key=lambda one: one.auroc)
        start = unit @ [0.45, 0.35, 0.20]
        assert all(
            one.before.brier == pytest.approx(((start - rows.correct) ** 2).mean())
            for one in found.maps.values()
        )
    # The grid always finds something in the answers that it saw.
    assert min(seen) >= 0 and np.mean(seen) > 0.05 > np.mean(gained)


def test_the_map_is_saved_where_it_is_better_and_only_there():
    # Confidences of about a half where nine in ten are correct: any map is better.
    rng = np.random.default_rng(3)
    found = learn(made(0.5 + 0.02 * rng.random((200, 3)), np.arange(200) % 10 > 0), Weighting(), *QUICK)
    lowest = min(found.maps, key=lambda kind: found.maps[kind].after.brier)
    assert found.method.map == found.maps[lowest].map and found.method.map.kind == lowest
    assert found.maps[lowest].after.brier == pytest.approx(0.09, abs=0.005)  # 0.9 · 0.1
    assert found.maps[lowest].before.brier > 0.2
    # A confidence that is 1 for the correct and 0 for the wrong ones cannot be repaired.
    right = np.arange(40) % 2
    found = learn(made(np.column_stack([right] * 3), right), Weighting(), *QUICK)
    assert found.method.map.kind == "none" and found.maps["isotonic"].before.brier == 0


@pytest.mark.parametrize("n_right", [0, 30])
def test_too_few_labels_leave_the_default_without_a_map(n_right):
    rows = made(np.random.default_rng(4).random((30, 3)), np.arange(30) < n_right)
    found = learn(rows, Weighting(), *QUICK)
    assert found.proposed is None and found.compared == ()
    assert "too few labels" in found.weights.reason
    assert found.method.weighting == Weighting() and found.method.map.kind == "none"
    assert {*found.maps} == {"platt", "isotonic"} and all(not one.after.n for one in found.maps.values())


def test_what_is_compared_is_what_is_kept_though_another_has_a_higher_auroc(monkeypatch):
    rows = planted(6, 40)
    whole = calibrate_weights(rows, Weighting(), *QUICK)
    kept, other = whole.learned
    kept, other = replace(kept, auroc=0.8), replace(other, auroc=0.9)
    changed = replace(whole, learned=(kept, other), best=kept, reason="")
    monkeypatch.setattr(core.confidence.learning, "calibrate_weights", lambda *_: changed)
    found = learn(rows, Weighting(), *QUICK)
    assert found.proposed is kept and found.method.weighting.weights == kept.weights


def test_how_often_is_drawn_unless_told(monkeypatch):
    rows, drawn = planted(6, 40), {}
    few = calibrate_weights(rows, Weighting(), *QUICK)
    monkeypatch.setattr(
        core.confidence.learning, "calibrate_weights", lambda *given: drawn.update(of=given) or few
    )
    learn(rows, Weighting())
    assert drawn["of"][2:] == (2_000, 500)

    def once(sample, statistic, n_resamples, *rest):
        drawn["gain"] = n_resamples
        return (0.0, 0.0)

    def each(sample, statistic, n_values, n_refits, *rest):
        drawn["weights"] = n_refits
        return [(0.0, 0.0)] * n_values

    monkeypatch.setattr("core.confidence.weights.bootstrap_interval", once)
    monkeypatch.setattr("core.confidence.weights.bootstrap_intervals", each)
    calibrate_weights(rows, Weighting())
    assert (drawn["gain"], drawn["weights"]) == (2_000, 500)


def test_confidences_are_in_the_order_of_the_rows():
    rows = planted(5, 60)
    order = random.Random(5).sample(range(60), 60)
    first, second = (learn(one, Weighting(), *QUICK).proposed for one in (rows, reordered(rows, order)))
    assert second.confidences == pytest.approx(first.confidences[order])


# A run


def run_of(signals, references):
    n = len(references)
    ids = [f"q{i}" for i in range(n)]
    queries = pd.DataFrame(
        {
            "query_id": ids,
            "question": [f"Question {i}?" for i in range(n)],
            "answer": ["Paris"] * n,
            "answer_status": ["answered"] * n,
            "reference_answers": references,
        }
    )
    named = pd.DataFrame(signals, columns=["query_id", "similarity", "lexical", "llm_score"])
    return Run.create({"source": "live", "name": "A run"}, queries=queries, signals=named)


def test_answers_of_a_run():
    signals = [("q3", 0.4, 40, 0.1), ("q1", 0.2, 20, 0.3), ("q0", 0.1, 10, None), ("q2", 0.3, 30, 0.2)]
    run = run_of(signals, [["Paris"], ["Paris"], None, ["Rome"], ["Rome"], ["Rome"]])
    found = labelled_run(Diagnosis(run))
    # q0, q4 and q5 lack a signal, q2 a reference.
    assert found.questions == ("Question 1?", "Question 3?")
    assert {name: values.tolist() for name, values in found.signals.items()} == {
        "similarity": [0.2, 0.4], "lexical": [20, 40], "llm": [0.3, 0.1],
    }  # fmt: skip
    assert found.correct.tolist() == [1, 0]
    assert (found.n_unlabelled, found.n_without_signal) == (1, 3)
    # Any signal that is chosen will do.
    assert labelled_run(Diagnosis(run, {"weights": "lexical"})).signals["lexical"].tolist() == [10, 20, 40]


def test_half_of_the_questions_teach_and_all_answers_to_one_are_on_the_same_side():
    signals = [(f"q{i}", i / 100, i, 0.5) for i in range(100)]
    run = run_of(signals, [["Paris"]] * 100)
    run = run.derive(queries=run.queries.assign(question=[f"Question {i // 2}?" for i in range(100)]))
    teaching = labelled_run(Diagnosis(run), teaching=True)
    assert 20 < teaching.n < 80 and all(teaching.questions.count(one) == 2 for one in teaching.questions)
    assert labelled_run(Diagnosis(run), teaching=True).questions == teaching.questions


def test_which_questions_teach_is_told_by_their_digest_alone():
    # The tenth of the hexadecimal digits is the lower half of the fifth byte.
    asked = [f"Question {i}?" for i in range(12)]
    expected = [hashlib.sha256(one.encode()).digest()[4] % 2 == 0 for one in asked]
    assert [teaches(one) for one in asked] == expected and 0 < sum(expected) < 12


def test_what_was_left_out_is_said():
    rows = made(np.zeros((2, 3)), [1, 0])
    assert rows.n == 2 and rows.left_out("; ") == ""
    said = replace(rows, n_unlabelled=1_200, n_without_signal=1).left_out("; ")
    assert said == "; 1,200 without a label, 1 without all signals left out"
    assert replace(rows, n_without_signal=2).left_out(" ") == " 2 without all signals left out"


def test_a_run_without_labels_teaches_nothing():
    with pytest.raises(InputError, match="has no labelled answer"):
        labelled_run(Diagnosis(run_of([("q0", 0.1, 10, 0.5)], [None])))
