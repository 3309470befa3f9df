"""The page Signal agreement: few and many signals, doors, the choice of the coefficient, hostile data."""

import numpy as np
import pandas as pd
import pytest

from core.diagnosis import Diagnosis
from core.report.signals import answer, signal_agreement
from core.run import Run


def confident_run(n=30, seed=0):
    """Questions with references and confidence signals: high where the answer is right."""
    rng = np.random.default_rng(seed)
    right = rng.random(n) < 0.6
    ids = [f"q{i}" for i in range(n)]
    queries = pd.DataFrame(
        {
            "query_id": ids,
            "question": [f"Question {i}?" for i in range(n)],
            "answer": ["Paris" if one else "Rome" for one in right],
            "answer_status": "answered",
            "reference_answers": [["Paris"]] * n,
        }
    )
    signals = pd.DataFrame(
        {
            "query_id": ids,
            "similarity": rng.random(n),
            "lexical": 100 * rng.random(n),
            "llm_score": np.where(right, 0.7, 0.2) + 0.2 * rng.random(n),
        }
    )
    passages = pd.DataFrame({"query_id": ids, "passage_id": "p1", "retrieval_rank": 1, "text": "A passage."})
    return Run.create(
        {"source": "upload", "name": "Confident"}, queries=queries, passages=passages, signals=signals
    )


@pytest.fixture
def opened(open_app, healthy, tmp_path):
    def go(run):
        run.save(tmp_path / "samples" / "recorded_run")
        return healthy(open_app("signals"))

    return go


def shown(texts, app):
    return texts(app).replace("\\", "").replace("\u2060", "").replace("\u00a0", " ")


@pytest.fixture
def unfolded(healthy):
    """Open the values of each signal, which are drawn only there: in a browser they take a second."""

    def go(app):
        app.session_state["signals_values"] = True
        return healthy(app.run())

    return go


def test_confidence_signals_are_compared_with_correctness(opened, unfolded, texts):
    run = confident_run()
    app = opened(run)
    said = answer(signal_agreement(Diagnosis(run)))
    assert "Stated confidence, higher where correct" in said[-1]
    for sentence in said:
        assert sentence in shown(texts, app)
    assert "Correlation is agreement, not truth" in texts(app)
    # The heat map; where it is asked for, a histogram of correctness and of each signal.
    assert len(app.get("plotly_chart")) == 1
    assert len(unfolded(app).get("plotly_chart")) == 6
    (table,) = app.dataframe
    assert len(table.value) == 10 and table.value["n"].tolist() == [30] * 10
    # Beyond chance first.
    assert table.value["signals"].iloc[0] == "Correct · Stated confidence"
    assert [one.label for one in app.get("download_button")] == ["Download pairs (CSV)"]


def test_pearson_can_be_chosen(opened, healthy, texts):
    app = opened(confident_run())
    assert "(Spearman, adjusted for all pairs" in shown(texts, app)
    healthy(app.segmented_control(key="signals_kind").set_value("Pearson").run())
    assert "(Pearson, adjusted for all pairs" in shown(texts, app)


def test_three_questions_say_why_nothing_is_defined(opened, texts):
    app = opened(confident_run(3, seed=1))
    assert "No correlation is defined" in shown(texts, app)
    assert "3 questions have both, 10 are needed" in shown(texts, app)


def test_a_run_without_numbers_says_so(opened, texts):
    run = confident_run()
    bare = Run.create({"source": "upload"}, queries=run.queries.assign(reference_answers=None))
    app = opened(bare)
    assert "The run has no signal" in shown(texts, app)
    assert not app.get("plotly_chart") and not app.dataframe


def test_a_single_signal_has_its_histogram(opened, unfolded, texts):
    run = confident_run()
    app = opened(Run.create({"source": "upload"}, queries=run.queries))
    assert "only one signal, Correct" in shown(texts, app)
    assert not app.get("plotly_chart") and not app.dataframe
    assert len(unfolded(app).get("plotly_chart")) == 1


def test_many_questions(opened, texts):
    app = opened(confident_run(5_000))
    # The confidence with each signal that it is made of, and two of these with correctness.
    assert "5 of 10 pairs of signals correlate beyond chance" in shown(texts, app)
