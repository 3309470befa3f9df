import numpy as np
import pandas as pd
import pytest
from scipy import stats

from core.charts.influence import influence_by_rank
from core.charts.influence.by_rank import _data
from core.charts.theme import alt_text
from core.influence import analyse
from core.run import Run
from tests.core.charts.chart_runs import make_run


def test_means_and_intervals():
    data = _data(analyse(make_run([[0.52, 0, 0.1], [0.5, 0, None], [0.48, 0, None]])))
    assert data.n_queries == 3
    assert data.means["mean"].tolist() == pytest.approx([0.5, 0, 0.1])
    assert data.means["n"].tolist() == [3, 3, 1]
    expected = stats.t.interval(0.95, 2, loc=0.5, scale=stats.sem([0.52, 0.5, 0.48]))
    assert data.means.loc[0, ["low", "high"]].tolist() == pytest.approx(expected)
    assert data.means.loc[2, ["low", "high"]].isna().all()  # one question has no interval
    assert np.isnan(data.noise)


def test_an_interval_of_influence_stays_within_what_influence_can_be():
    data = _data(analyse(make_run([[0.9, 0, 0.5], [0.1, 0, 1]])))
    assert data.means.loc[0, ["low", "high"]].tolist() == [0, 1]


def test_passages_that_share_a_place_count_once_per_question():
    data = _data(analyse(make_run([[0.2, 0.4, 0.9], [0.5, 0.1, 0.1]], ranks=[[1, 1, 2], [1, 2, 3]])))
    assert data.means["order"].tolist() == [1, 1.5, 2, 3]
    assert data.means["mean"].tolist() == pytest.approx([0.5, 0.3, 0.1, 0.5])
    assert data.means["n"].tolist() == [1, 1, 1, 2]


def test_the_band_of_random_orders_by_hand():
    # Dealt at random, a place gets 0, 0.3 or 0.6 alike: mean 0.3, variance 0.06; two questions halve it.
    data = _data(analyse(make_run([[0.6, 0.3, 0], [0, 0.3, 0.6]])))
    half = 1.96 * np.sqrt(0.06 / 2)
    assert data.means["chance_low"].tolist() == pytest.approx([max(0, 0.3 - half)] * 3)
    assert data.means["chance_high"].tolist() == pytest.approx([0.3 + half] * 3)


def test_passages_that_share_a_place_vary_less_by_chance():
    # The mean of two of 0, 0.3, 0.6 is 0.15, 0.3 or 0.45: variance 0.015.
    data = _data(analyse(make_run([[0.6, 0.3, 0]], ranks=[[1, 1, 3]])))
    assert data.means.loc[0, "chance_high"] == pytest.approx(0.3 + 1.96 * np.sqrt(0.015))


def test_noise_floor():
    # The repeat shares three of four words with the baseline: 1 - F1 = 0.25.
    run = Run.create(
        {"source": "live"},
        queries=pd.DataFrame({"query_id": ["q1"], "question": ["?"], "answer": ["one two three four"]}),
        passages=pd.DataFrame(
            {"query_id": "q1", "passage_id": ["a", "b", "c"], "retrieval_rank": [1, 2, 3],
             "ablated_answer": ["one two three four", "one two", "five"]}
        ),
        repeats=pd.DataFrame({"query_id": ["q1"], "repeat": [1], "answer": ["one two three nine"]}),
    )  # fmt: skip
    analysis = analyse(run)
    assert _data(analysis).noise == pytest.approx(0.25)
    figure = influence_by_rank(analysis)
    assert figure.layout.shapes[0].y0 == pytest.approx(0.25)
    assert figure.layout.shapes[0].name == "Mean noise floor (1 question)"


def test_figure():
    figure = influence_by_rank(analyse(make_run([[0.9, 0, 0.1], [0.5, 0, None]])))
    band, chance, trace = figure.data
    assert band.name == "Middle 95 % by chance"
    assert list(trace.x) == [1, 2, 3]
    assert list(trace.y) == pytest.approx([0.7, 0, 0.1])
    assert trace.error_y.array[2] == 0
    assert trace.customdata[2][1].startswith(
        "Retrieved 3: mean influence 0.100 of 1 question<br>95 %: — to —<br>By chance "
    )
    assert chance.y[0] == pytest.approx((1 / 3 + 0.25) / 2)
    door = "where=influence.passages.retrieval_order%3A1%2Cinfluence_rank%3A1"
    assert [point[0] for point in trace.customdata] == [door, "", ""]
    assert not figure.layout.shapes
    assert "over 2 questions: 0.70 at place 1 (0.29 by chance), 0.10 at place 3 (0.33 by chance)" in alt_text(
        figure
    )


def test_no_influence_known():
    figure = influence_by_rank(analyse(make_run([[None, None, None]])))
    assert not figure.data
    assert "no influence is known" in alt_text(figure)
