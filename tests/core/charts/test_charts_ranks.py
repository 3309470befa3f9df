import numpy as np
import pytest

from core.charts.influence import rank_against_rank
from core.charts.influence.ranks import _cells, _data, _ticks
from core.charts.theme import alt_text
from core.influence import analyse
from tests.core.charts.chart_runs import make_run

STRAIGHT = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
UPSIDE_DOWN = STRAIGHT[::-1]


def test_passages_that_share_a_place_share_a_row():
    data = _data(analyse(make_run([STRAIGHT, STRAIGHT, [0] * 6])), None)
    assert (data.n_passages, data.n_queries, data.top) == (12, 2, 6)
    assert data.places["kind"].tolist() == ["other"] * 6
    assert data.places["n"].tolist() == [2] * 6
    assert data.places["order"].tolist() == data.places["rank"].tolist() == [1, 2, 3, 4, 5, 6]


def test_kinds_by_hand():
    # k = 6: first three used in the last three places, and the other way round.
    data = _data(analyse(make_run([UPSIDE_DOWN])), None)
    kinds = dict(zip(data.places["order"], data.places["kind"], strict=True))
    assert kinds == {
        **dict.fromkeys((1, 2, 3), "ignored_top_hit"),
        **dict.fromkeys((4, 5, 6), "buried_evidence"),
    }


def test_only_the_chosen_questions():
    analysis = analyse(make_run([STRAIGHT, UPSIDE_DOWN]))
    assert _data(analysis, ["q2", "unknown"]).n_queries == 1
    assert "6 passages from 1 question: 3 ignored top hits" in alt_text(rank_against_rank(analysis, ["q2"]))


def test_cells_by_hand():
    # (1, 1), (2, 2.5), (3, 2.5): the tied ranks count half in 2 and half in 3.
    cells = _cells(np.array([1.0, 2, 3]), np.array([1.0, 2.5, 2.5]), np.zeros(3, int), 3)
    assert cells.centres.tolist() == [1, 2, 3]
    assert cells.counts.tolist() == [[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]]
    # Dealt at random, each rank is as likely at each place.
    assert cells.expected == pytest.approx(np.full((3, 3), 1 / 3))


def test_expected_cells_keep_the_ties_of_each_question():
    # Both questions leave rank 2 to no passage, so none is expected there.
    order, rank = np.array([1.0, 2, 3, 3, 1, 2]), np.array([1.0, 1, 3, 1, 1, 3])
    cells = _cells(order, rank, np.array([0, 0, 0, 1, 1, 1]), 3)
    assert cells.expected.sum(axis=0) == pytest.approx([2, 2, 2])
    assert cells.expected.sum(axis=1) == pytest.approx([4, 0, 2])
    assert cells.expected[2] == pytest.approx([2 / 3] * 3)


def test_many_ranks_share_cells():
    ranks = np.arange(1.0, 201)
    cells = _cells(ranks, ranks, np.zeros(200, int), 200)
    assert cells.counts.shape == (50, 50)
    assert np.diag(cells.counts).tolist() == [4] * 50
    assert cells.centres[0] == 2.5  # ranks 1 to 4
    assert cells.expected == pytest.approx(np.full((50, 50), 4 * 4 / 200))


def test_markers_grow_with_their_number_and_kinds_differ():
    figure = rank_against_rank(analyse(make_run([STRAIGHT, STRAIGHT, STRAIGHT, UPSIDE_DOWN])))
    assert [t.name for t in figure.data] == ["Passages (18)", "Ignored top hit (3)", "Buried evidence (3)"]
    assert len({t.marker.symbol for t in figure.data}) == 3
    assert min(figure.data[0].marker.size) > max(figure.data[1].marker.size)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # 1 on top


def test_flagged_passages_of_one_question_are_named():
    figure = rank_against_rank(analyse(make_run([UPSIDE_DOWN])), ["q1"])
    assert list(figure.data[0].text) == ["p1", "p2", "p3"]
    assert figure.data[0].mode == "markers+text"


def test_above_four_hundred_passages_the_excess_over_chance_lies_below():
    figure = rank_against_rank(analyse(make_run([STRAIGHT] * 70 + [UPSIDE_DOWN])))
    assert [t.type for t in figure.data] == ["heatmap", "scatter", "scatter"]
    counts, expected = np.moveaxis(figure.data[0].customdata, 2, 0)
    assert counts[0][0] == 70 and counts.sum() == 71 * 6
    assert expected[0][0] == pytest.approx(71 / 6, abs=0.1)
    assert figure.data[0].z[0][0] == pytest.approx(70 - 71 / 6, abs=0.1)


@pytest.mark.parametrize(
    ("top", "expected"),
    [(3, [1, 2, 3]), (10, list(range(1, 11))), (30, [1, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30])],
)
def test_ticks(top, expected):
    assert _ticks(top) == expected


@pytest.mark.parametrize("query_ids", [None, [], ["unknown"]])
def test_nothing_to_draw(query_ids):
    figure = rank_against_rank(analyse(make_run([[0, 0, 0]])), query_ids)
    assert not figure.data
    assert "No question" in alt_text(figure)
