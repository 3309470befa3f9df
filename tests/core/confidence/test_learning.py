"""What labelled answers teach: weights, a comparison on other answers, a map, and the file."""

import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import core.confidence.learning
from core.confidence import WEIGHTS, Weighting, calibrate_weights, from_json, labelled_run, learn, to_json
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
    assert found.saved.weighting == Weighting(best.weights, threshold=0.5)
    assert (found.saved.n, found.saved.n_correct) == (300, int(rows.correct.sum()))
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
    assert from_json(to_json(found.saved)) == found.saved


def test_without_information_the_default_is_kept_and_nothing_is_gained_on_other_answers():
    rng = np.random.default_rng(2)
    seen, gained = [], []
    for _ in range(8):
        rows = made(rng.random((40, 3)), rng.random(40) < 0.5)
        found = learn(rows, Weighting(), *QUICK)
        assert found.weights.best is None and dict(found.saved.weighting.weights) == dict(WEIGHTS)
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
    assert found.saved.map == found.maps[lowest].map and found.saved.map.kind == lowest
    assert found.maps[lowest].after.brier == pytest.approx(0.09, abs=0.005)  # 0.9 · 0.1
    assert found.maps[lowest].before.brier > 0.2
    # A confidence that is 1 for the correct and 0 for the wrong ones cannot be repaired.
    right = np.arange(40) % 2
    found = learn(made(np.column_stack([right] * 3), right), Weighting(), *QUICK)
    assert found.saved.map.kind == "none" and found.maps["isotonic"].before.brier == 0


@pytest.mark.parametrize("n_right", [0, 30])
def test_too_few_labels_leave_the_default_without_a_map(n_right):
    rows = made(np.random.default_rng(4).random((30, 3)), np.arange(30) < n_right)
    found = learn(rows, Weighting(), *QUICK)
    assert found.proposed is None and found.compared == ()
    assert "too few labels" in found.weights.reason
    assert found.saved.weighting == Weighting() and found.saved.map.kind == "none"


def test_what_is_compared_is_what_is_kept_though_another_has_a_higher_auroc(monkeypatch):
    rows = planted(6, 40)
    whole = calibrate_weights(rows, Weighting(), *QUICK)
    kept, other = whole.learned
    kept, other = replace(kept, auroc=0.8), replace(other, auroc=0.9)
    changed = replace(whole, learned=(kept, other), best=kept, reason="")
    monkeypatch.setattr(core.confidence.learning, "calibrate_weights", lambda *_: changed)
    found = learn(rows, Weighting(), *QUICK)
    assert found.proposed is kept and found.saved.weighting.weights == kept.weights


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
    run = run_of(signals, [["Paris"], ["Paris"], None, ["Rome"], ["Rome"]])
    found = labelled_run(Diagnosis(run))
    # q0 and q4 lack a signal, q2 a reference.
    assert found.questions == ("Question 1?", "Question 3?")
    assert {name: values.tolist() for name, values in found.signals.items()} == {
        "similarity": [0.2, 0.4], "lexical": [20, 40], "llm": [0.3, 0.1],
    }  # fmt: skip
    assert found.correct.tolist() == [1, 0]
    assert (found.n_by_reference, found.n_unlabelled, found.n_without_signal) == (2, 1, 2)


@pytest.mark.parametrize(
    ("signals", "references", "message"),
    [
        ([], [["Paris"]], "has no confidence signals"),
        ([("q0", 0.1, 10, 0.5)], [None], "has no answer with a label or a reference answer"),
    ],
)
def test_a_run_that_teaches_nothing(signals, references, message):
    with pytest.raises(InputError, match=message):
        labelled_run(Diagnosis(run_of(signals, references)))
