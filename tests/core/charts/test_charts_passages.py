import numpy as np
import pandas as pd
import pytest

from core.charts.influence import passage_bars
from core.charts.influence.passages import _data
from core.charts.theme import alt_text
from core.influence import analyse
from core.run import Run
from tests.core.charts.chart_runs import make_run


@pytest.fixture
def live():
    """Four words answered; the repeat changes one, so the noise floor is 0.25."""
    return analyse(
        Run.create(
            {"source": "live"},
            queries=pd.DataFrame({"query_id": ["q1"], "question": ["?"], "answer": ["one two three four"]}),
            passages=pd.DataFrame(
                {
                    "query_id": "q1",
                    "passage_id": ["c", "a", "b"],
                    "retrieval_rank": [3, 1, 2],
                    "retrieval_score": [4.0, 16.0, 8.0],
                    "is_gold": [True, False, None],
                    "ablated_answer": ["five six seven eight", "one two three four", "one two three five"],
                }
            ),
            repeats=pd.DataFrame({"query_id": ["q1"], "repeat": [1], "answer": ["one two three nine"]}),
        )
    )


def test_data_by_hand(live):
    data = _data(live, "q1")
    assert data.noise == pytest.approx(0.25)
    assert data.bars["influence"].tolist() == pytest.approx([0, 0.25, 1])
    assert data.bars["share"].tolist() == [1, 0.5, 0.25]
    assert data.bars["gold"].tolist() == [False, False, True]
    assert data.bars["above"].tolist() == [False, False, True]
    assert data.bars["high"].tolist() == pytest.approx([0.25, 0.25, 1])
    assert data.bars["hover"][2] == "c<br>Retrieved as 3<br>Influence 1.000, rank 1"


@pytest.mark.parametrize("scores", [[0.0, 0.0, 0.0], [-1.0, -2.0, -3.0], [None, None, None]])
def test_no_share_of_a_best_score_that_is_not_positive(scores):
    data = _data(analyse(make_run([[0.9, 0.5, 0.1]], retrieval_score=scores)), "q1")
    assert data.bars["share"].isna().all()


def test_a_share_is_not_clipped():
    analysis = analyse(make_run([[0.9, 0.5, 0.1]], retrieval_score=[2.0, 1.0, -1.0]))
    assert _data(analysis, "q1").bars["share"].tolist() == [1, 0.5, -0.5]
    assert passage_bars(analysis, "q1").layout.xaxis.range[0] < -0.5


def test_figure(live):
    figure = passage_bars(live, "q1")
    traces = {t.name: t for t in figure.data}
    assert list(traces) == [
        "Influence",
        "Within the noise",
        "Retrieval score, share of the best",
        "Gold passage",
    ]
    assert list(traces["Influence"].y) == [3] and list(traces["Influence"].x) == [1]
    assert list(traces["Within the noise"].y) == [1, 2]
    assert traces["Within the noise"].error_x.array == pytest.approx([0.25, 0])
    assert traces["Within the noise"].marker.pattern.shape != traces["Influence"].marker.pattern.shape
    assert list(traces["Gold passage"].y) == [3]
    assert traces["Gold passage"].marker.symbol == "star"
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0, pytest.approx(0.25))
    assert alt_text(figure) == (
        "Influence of 3 passages in retrieval order: largest 1.00, 1 above the noise floor of 0.25; "
        "1 gold passage, 0 of unknown influence."
    )


def test_unknown_influence_is_said_not_drawn_as_zero():
    figure = passage_bars(analyse(make_run([[0.9, None, 0.1]])), "q1")
    (bars,) = figure.data
    assert list(bars.y) == [1, 3]
    assert [(a.text, a.y) for a in figure.layout.annotations] == [("unknown", 2)]
    assert not figure.layout.shapes  # no repeats, no noise floor


def test_nothing_known_at_all():
    figure = passage_bars(analyse(make_run([[None, None, None]])), "q1")
    assert not figure.data
    assert len(figure.layout.annotations) == 3


def test_many_passages_keep_a_bounded_height():
    figure = passage_bars(analyse(make_run([np.linspace(0, 1, 500).tolist()])), "q1")
    assert figure.layout.height == 1_600
    assert len(figure.layout.yaxis.tickvals) <= 70


def test_unknown_question():
    assert not passage_bars(analyse(make_run([[0.9, 0.5, 0.1]])), "nobody").data
