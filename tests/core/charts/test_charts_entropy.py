import math
from urllib.parse import parse_qsl

import pytest

from core.charts.influence import entropy_dominance
from core.charts.theme import alt_text
from core.conditions import matching
from core.diagnosis import Diagnosis
from core.influence import analyse
from tests.core.charts.chart_runs import make_run


def test_data_by_hand():
    analysis = analyse(make_run([[0.5, 0.5, 0], [0.4, 0.4, 0.4], [0, 0, 0]]))
    figure = entropy_dominance(analysis)
    assert alt_text(figure).endswith("; 1 without these numbers.")
    drawn = {trace.name.split()[0]: (trace.x[0], trace.y[0]) for trace in figure.data}
    assert drawn == {  # all equal: spread known, order not
        "Aligned": pytest.approx((math.log(2), 1 / 2), abs=5e-4),
        "Undefined": pytest.approx((math.log(3), 1 / 3), abs=5e-4),
    }


def test_one_trace_per_label_with_ids_for_selection():
    figure = entropy_dominance(analyse(make_run([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9], [0.4, 0.4, 0.4]])))
    assert [t.name for t in figure.data] == [
        "Aligned (1 question)", "Divergent (1 question)", "Undefined (1 question)",
    ]  # fmt: skip
    assert [t.customdata[0][0] for t in figure.data] == ["question=q1", "question=q2", "question=q3"]
    assert len({t.marker.symbol for t in figure.data}) == len({t.marker.color for t in figure.data}) == 3
    assert {t.type for t in figure.data} == {"scatter"}
    assert figure.data[1].customdata[0][1] == (
        "Question q2?<br>Divergent<br>Entropy 0.85, dominance 0.60<br>ρ −1.00<br>Click to open it"
    )


def test_questions_at_one_place_share_a_marker_that_lists_them():
    diagnosis = Diagnosis(make_run([[0.9, 0.5, 0.1]] * 5 + [[0.8, 0.5, 0.1]]))
    (trace,) = entropy_dominance(diagnosis["influence"]).data
    doors = {hover.split("<br>")[0]: door for door, hover in trace.customdata}
    assert len(trace.x) == 2 and max(trace.marker.size) > min(trace.marker.size)
    assert doors["Question q6?"] == "question=q6"
    assert matching(diagnosis, parse_qsl(doors["Question q1?"])[0][1]) == ("q1", "q2", "q3", "q4", "q5")
    assert any("and 2 more: 5 questions" in hover for _, hover in trace.customdata)


def test_many_points_are_drawn_by_webgl():
    figure = entropy_dominance(analyse(make_run([[0.9, 0.5, 0.1]] * 1_001)))
    assert [t.type for t in figure.data] == ["scattergl"]
    assert list(figure.data[0].x) == [0.853]


def test_very_many_become_counts():
    analysis = analyse(make_run([[0.9, 0.5, 0.1]] * 5_001))
    figure = entropy_dominance(analysis)
    assert [t.type for t in figure.data] == ["heatmap"]
    assert figure.data[0].customdata.sum() == 5_001


def test_cells_by_hand():
    # All on one: entropy 0, dominance 1. Two halves: the largest entropy, dominance 0.5.
    (cells,) = entropy_dominance(analyse(make_run([[1, 0, 0]] + [[0.5, 0.5, 0]] * 5_000))).data
    assert cells.customdata.shape == (40, 40)  # rows are dominance
    assert cells.customdata[39, 0] == 1 and cells.customdata[20, 39] == 5_000
    assert cells.y[20] == pytest.approx(0.5125)


def test_one_passage_questions_have_no_entropy_at_all_but_a_figure():
    figure = entropy_dominance(analyse(make_run([[1]] * 5_001)))
    assert figure.data[0].type == "heatmap"


def test_nothing_to_spread():
    figure = entropy_dominance(analyse(make_run([[0, 0, 0]])))
    assert not figure.data
    assert "undefined" in alt_text(figure)
