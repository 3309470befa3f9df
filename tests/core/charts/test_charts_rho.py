from urllib.parse import parse_qsl

import numpy as np
import pytest

from core.charts.influence import rho_histogram
from core.charts.influence.rho import _counts, _data, _edges
from core.charts.theme import alt_text
from core.conditions import matching
from core.diagnosis import Diagnosis
from core.influence import analyse
from tests.core.charts.chart_runs import make_run

# rho 1, -1, 0.5 (ranks 1 3 2), undefined (all 0)
FOUR = [[0.9, 0.5, 0.1], [0.1, 0.5, 0.9], [0.9, 0.1, 0.5], [0, 0, 0]]


def test_edges_are_twenty_equal_bins_where_the_threshold_is_one_of_them():
    assert _edges(0.7) == pytest.approx(np.arange(-10, 11) / 10)


def test_a_threshold_inside_a_bin_splits_it():
    edges = _edges(0.65)
    assert len(edges) == 22
    assert 0.65 in edges and 0.6 in edges and 0.7 in edges


def test_a_threshold_close_to_an_edge_takes_its_place():
    edges = _edges(0.69)
    assert len(edges) == 21
    assert 0.69 in edges and 0.7 not in edges


@pytest.mark.parametrize("threshold", [-1, 1, 0.995, -0.995])
def test_edges_span_the_range_whatever_the_threshold(threshold):
    edges = _edges(threshold)
    assert edges[0] == -1 and edges[-1] == 1 and threshold in edges
    assert (np.diff(edges) > 0).all()


def test_a_rho_that_rounding_puts_beside_an_edge_falls_on_its_right_side():
    assert _counts(np.array([0.7 - 1e-13, 0.7, 1.0]), np.array([-1, 0.7, 0.8, 1.0])).tolist() == [0, 2, 1]


def test_counts_by_hand():
    data = _data(analyse(make_run(FOUR), 0.5))
    divergent, aligned = data.counts["Divergent"], data.counts["Aligned"]
    assert divergent.sum() == 1 and divergent[0] == 1
    assert aligned.sum() == 2 and aligned[-1] == 1
    assert aligned[list(data.edges).index(0.5)] == 1


def test_expected_counts_by_hand():
    # Three untied questions of three passages: ρ is 1 or −1 with 1/6 each, 0.5 or −0.5 with 1/3 each.
    data = _data(analyse(make_run(FOUR)))
    found = {round(float(edge), 1): n for edge, n in zip(data.edges, data.expected, strict=False) if n}
    assert found == pytest.approx({-1.0: 0.5, -0.5: 1, 0.5: 1, 0.9: 0.5})
    half = 1.96 * np.sqrt(3 * (1 / 3) * (2 / 3))
    assert data.high[list(data.edges).index(0.5)] == pytest.approx(1 + half)
    assert (data.low == 0).all()


def test_chance_follows_the_ties_of_each_question():
    # One influential passage of ten: ten possible ρ, none above 0.523.
    data = _data(analyse(make_run([[0, 1] + [0] * 8])))
    assert data.expected.sum() == pytest.approx(1)
    assert data.expected[data.edges[:-1] >= 0.6].sum() == 0
    assert data.counts["Undefined"].sum() == 1


@pytest.mark.parametrize(("threshold", "aligned"), [(1, 1), (-1, 3)])
def test_every_question_is_drawn_at_the_outermost_thresholds(threshold, aligned):
    figure = rho_histogram(analyse(make_run(FOUR), threshold))
    counts = {bars.name.split()[0]: sum(bars.y) for bars in figure.data[1:-1]}
    assert counts == {"Aligned": aligned} | ({"Divergent": 3 - aligned} if aligned < 3 else {})
    assert all((bars.width > 0).all() for bars in figure.data[1:-1])


def test_figure():
    figure = rho_histogram(analyse(make_run(FOUR), 0.65))
    band, divergent, aligned, expected = figure.data
    assert band.name == "Middle 95 % by chance" and len(band.x) == len(band.y) == 4 * len(divergent.x)
    assert (divergent.name, aligned.name) == ("Divergent (2)", "Aligned (1)")
    drawn = divergent.x[np.flatnonzero(divergent.y)], aligned.x[np.flatnonzero(aligned.y)]
    assert drawn[0].max() < 0.65 < drawn[1].min()
    assert 0.65 in (divergent.x - divergent.width / 2).round(9)
    assert divergent.marker.pattern.shape == "/" and aligned.marker.pattern.shape == ""
    (line,) = figure.layout.shapes
    assert line.x0 == line.x1 == 0.65
    assert divergent.customdata[0][1] == (
        "ρ −1.00 to −0.90<br>1 divergent question<br>By chance 0.5 in all, 95 %: 0.0 to 1.8<br>"
        "Click to list these questions"
    )
    assert sum(expected.y) == pytest.approx(2 * 3)  # both ends of each step


def test_every_bar_leads_to_as_many_questions_as_it_has():
    diagnosis = Diagnosis(make_run([[0, 1] + [0] * 8, *FOUR]), {"influence_threshold": 0.5})
    figure = rho_histogram(diagnosis["influence"])
    for bars in figure.data[1:-1]:
        for n, (door, _) in zip(bars.y, bars.customdata, strict=True):
            assert (len(matching(diagnosis, parse_qsl(door)[0][1])) if door else 0) == n


def test_the_description_names_what_chance_gives():
    figure = rho_histogram(analyse(make_run(FOUR), 0.65))
    assert "3 questions: 2 divergent below the threshold of 0.65, 1 aligned, 1 undefined" in alt_text(figure)
    assert alt_text(figure).endswith("chance alone puts 2.5 below the threshold.")
    assert any(a.text == "n = 3 · 1 undefined" for a in figure.layout.annotations)


def test_questions_that_ties_keep_below_the_threshold_are_drawn_apart():
    figure = rho_histogram(analyse(make_run([[0, 1] + [0] * 8, *FOUR])))
    assert "Too tied for a label (1)" in [trace.name for trace in figure.data]
    assert "1 too tied for a label" in alt_text(figure)


def test_nothing_defined():
    figure = rho_histogram(analyse(make_run([[0, 0, 0]])))
    assert not figure.data
    assert alt_text(figure) == "No question has a rank agreement (1 undefined)."
