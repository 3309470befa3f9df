from urllib.parse import parse_qsl

import numpy as np
import pytest

from core.charts.influence import rank_against_rank
from core.charts.influence.ranks import _means, _ticks
from core.charts.theme import alt_text, has_doors
from core.conditions import matching
from core.diagnosis import Diagnosis
from core.influence import analyse
from tests.core.charts.chart_runs import make_run

STRAIGHT = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
UPSIDE_DOWN = STRAIGHT[::-1]
ONE_OF_SIX = [0, 0.9, 0, 0, 0, 0]


def parts(figure):
    """The heat map, the squares that lead from its cells, and the means by label."""
    cells, squares, *means = figure.data
    return cells, squares, {trace.name.split()[0]: trace for trace in means}


def test_cells_show_the_count_and_the_colour_is_what_chance_does_not_give():
    figure = rank_against_rank(analyse(make_run([STRAIGHT] * 5 + [UPSIDE_DOWN])))
    cells, squares, _ = parts(figure)
    assert cells.text[0][0] == "5" and cells.text[0][5] == "1" and cells.text[0][2] == "0"
    assert np.diag(cells.z).tolist() == [4.0] * 6  # 5 observed, 6 / 6 by chance
    assert cells.zmin == -cells.zmax
    assert alt_text(figure) == (
        "Influence rank against retrieval rank of 36 passages from 6 questions: 30.0 passages on the diagonal, 6.0 "
        "by chance; at retrieval rank 1 and influence rank 1 5.0, 1.0 by chance."
    )
    assert squares.customdata[0][1] == (
        "Retrieved 1, used 1<br>5.0 passages, 1.0 by chance<br>5 questions, ties included<br>"
        "Click to list these questions"
    )
    assert squares.customdata[2][0] == ""  # nothing there: no door, and no invitation
    assert squares.customdata[2][1].endswith("0 questions, ties included")


@pytest.mark.parametrize("ranks", [None, [[1, 1, 3, 4, 5, 6]] * 4])
def test_every_cell_leads_to_as_many_questions_as_it_says(ranks):
    # The last question has no ρ, so it is in no cell.
    run = make_run([STRAIGHT, UPSIDE_DOWN, ONE_OF_SIX, [0] * 6], ranks=ranks)
    diagnosis = Diagnosis(run, {"influence_threshold": 0.5})
    for label in (None, "Aligned", "Divergent"):
        _, squares, _ = parts(rank_against_rank(diagnosis["influence"], label))
        for door, hover in squares.customdata:
            n = int(hover.split("<br>")[2].split()[0])
            assert (len(matching(diagnosis, parse_qsl(door)[0][1])) if door else 0) == n


def test_labels_differ_in_form_and_the_split_moves_with_the_threshold():
    analysis = analyse(make_run([STRAIGHT, UPSIDE_DOWN, UPSIDE_DOWN, [0.9, 0.7, 0.8, 0.6, 0.5, 0.4]]))
    figure = rank_against_rank(analysis)
    assert has_doors(figure)
    *_, means = parts(figure)
    assert means["Aligned"].name == "Aligned (2), mean"
    assert list(means["Aligned"].y) == pytest.approx([1, 2.5, 2.5, 4, 5, 6])
    assert list(means["Divergent"].y) == [6, 5, 4, 3, 2, 1]
    assert len({(t.marker.symbol, t.marker.color, t.line.dash) for t in means.values()}) == 2
    assert parse_qsl(means["Divergent"].customdata[0][0]) == [("where", "influence.queries.label:Divergent")]
    # At ρ = 1 one question is aligned: a mean over one is no mean.
    *_, means = parts(rank_against_rank(analysis.labelled(1.0)))
    assert list(means) == ["Divergent"] and means["Divergent"].name == "Divergent (3), mean"


def test_only_questions_with_a_label():
    analysis = analyse(make_run([STRAIGHT, UPSIDE_DOWN, UPSIDE_DOWN]))
    cells, _, means = parts(rank_against_rank(analysis, "Divergent"))
    assert [row[::-1][i] for i, row in enumerate(cells.text)] == ["2"] * 6
    assert list(means) == ["Divergent"]
    assert "12 passages from 2 divergent questions: 0.0 passages on the diagonal, 2.0 by chance" in alt_text(
        rank_against_rank(analysis, "Divergent")
    )
    figure = rank_against_rank(analysis.labelled(-1.0), "Divergent")
    assert alt_text(figure) == "No question is divergent at this threshold." and not figure.data


def test_passages_that_share_a_retrieval_rank_count_behind_it():
    means = _means(analyse(make_run([STRAIGHT], ranks=[[1, 1, 3, 4, 5, 6]])), None)
    assert means["order"].tolist() == [2, 3, 4, 5, 6]
    assert means["n"].tolist() == [2, 1, 1, 1, 1]


def test_many_ranks_have_no_counts_written_on_them():
    cells, squares, _ = parts(rank_against_rank(analyse(make_run([[1 - i / 100 for i in range(40)]]))))
    assert cells.text is None
    assert squares.customdata[0][1].startswith("Retrieved 1 to 2, used 1 to 2<br>2.0 passages, ")


def test_a_cell_of_several_ranks_leads_to_all_of_them():
    # Used first: once what was retrieved first, once second, where the first is used last.
    run = make_run([[1 - i / 100 for i in range(40)], [0, *(1 - i / 100 for i in range(39))]])
    diagnosis = Diagnosis(run, {"influence_threshold": -1.0})
    _, squares, _ = parts(rank_against_rank(diagnosis["influence"]))
    assert set(matching(diagnosis, parse_qsl(squares.customdata[0][0])[0][1])) == {"q1", "q2"}


def test_chance_is_that_of_the_first_place():
    # One question of three passages and two of six: a third and two sixths at each place among the first three.
    figure = rank_against_rank(
        analyse(
            make_run(
                [[0.9, 0.8, 0.7], STRAIGHT, STRAIGHT],
                ranks=[[1, 2, 3], [1, 2, 3, 4, 5, 6], [2, 1, 3, 4, 5, 6]],
            )
        )
    )
    assert "at retrieval rank 1 and influence rank 1 2.0, 0.7 by chance" in alt_text(figure)


@pytest.mark.parametrize(
    ("top", "expected"),
    [(3, [1, 2, 3]), (10, list(range(1, 11))), (30, [1, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30])],
)
def test_ticks(top, expected):
    assert _ticks(top) == expected


def test_nothing_to_draw():
    figure = rank_against_rank(analyse(make_run([[0, 0, 0]])))
    assert not figure.data
    assert alt_text(figure) == "No question has a defined rank agreement."
