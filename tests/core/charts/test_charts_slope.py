import pandas as pd
import pytest

from core.charts.influence import rank_slope
from core.charts.influence.slope import _data, _names
from core.charts.theme import alt_text
from core.influence import analyse
from core.influence.definitions import REASONS
from tests.core.charts.chart_runs import make_run

# Retrieval order 1..5; influence ranks 4.5, 2, 3, 4.5, 1.
RUN = make_run([[0, 0.5, 0.2, 0, 0.9]])


def test_lines_by_hand():
    data = _data(analyse(RUN), "q1")
    assert data[["left", "right"]].to_numpy().tolist() == [[1, 4.5], [2, 2], [3, 3], [4, 4.5], [5, 1]]
    assert data["style"].tolist() == ["lowered", "neutral", "neutral", "neutral", "raised"]
    assert data["hover"][0] == (
        "p1<br>Retrieved as 1, used as 4.5<br>Influence 0.00<br>The same ranks in 1 question"
    )
    assert data["door"][0] == "where=influence.passages.retrieval_order%3A1%2Cinfluence_rank%3A4.5"


def test_lines_stand_in_retrieval_order_whatever_the_order_of_rows():
    data = _data(analyse(make_run([[0.1, 0.5, 0.9]], ranks=[[3, 2, 1]])), "q1")
    assert data[["left", "right"]].to_numpy().tolist() == [[1, 1], [2, 2], [3, 3]]


def test_an_unused_passage_is_not_raised_by_its_tie():
    # One of eight is used; the others tie at rank 5, above the places of the last three.
    data = _data(analyse(make_run([[0.9, 0, 0, 0, 0, 0, 0, 0]])), "q1")
    assert data["style"].tolist() == ["neutral", "lowered"] + ["neutral"] * 6


@pytest.mark.parametrize(
    ("orders", "expected"),
    [([1], "#1"), ([1, 2, 3], "= #1, #2, #3"), ([1, 2, 3, 4], "4 tied")],
)
def test_names(orders, expected):
    assert _names(pd.Series(orders)) == expected


def test_figure():
    figure = rank_slope(analyse(RUN), "q1")
    assert [t.name for t in figure.data] == [
        "Less than 3 places, or unused (3)",
        "Used higher (1)",
        "Used lower (1)",
    ]
    assert list(figure.data[1].y) == [5, 1, None]
    assert len({(t.line.color, t.line.dash, t.marker.symbol) for t in figure.data}) == 3
    assert {a.text for a in figure.layout.annotations} == {"#5", "#2", "#3", "= #1, #4"}
    assert alt_text(figure).endswith(
        "1 used at least three places higher than retrieved, 1 at least three lower, 2 tied."
    )


@pytest.mark.parametrize(
    ("k", "height", "step"),
    [(3, 300, 1), (6, 300, 1), (12, 466, 1), (29, 942, 1), (30, 970, 2), (45, 1200, 3)],
)
def test_a_figure_grows_with_its_passages_up_to_a_limit(k, height, step):
    figure = rank_slope(analyse(make_run([[i / 50 for i in range(1, k + 1)]])), "q1")
    up = figure.layout.yaxis
    assert (figure.layout.height, up.range) == (height, (k + 0.7, 0.3))
    assert list(up.tickvals) == list(range(1, k + 1, step))


@pytest.mark.parametrize(
    ("influences", "columns", "reason"),
    [
        ([0, 0, 0], {}, "inert"),
        ([0.5, 0.5, 0.5], {}, "all_equal"),
        ([0.5, 0.4], {}, "too_few_passages"),
        ([0.5, None, 0.4], {}, "incomplete"),
        ([0.5, 0.3, 0.4], {"query_answer_status": ["empty"]}, "empty_baseline"),
    ],
)
def test_undefined_says_why(influences, columns, reason):
    figure = rank_slope(analyse(make_run([influences], **columns)), "q1")
    assert not figure.data
    assert alt_text(figure) == f"Ranks by influence undefined: {REASONS[reason].meaning}"


def test_unknown_question():
    assert alt_text(rank_slope(analyse(RUN), "nobody")) == "This run has no such question."
