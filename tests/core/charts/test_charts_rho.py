import numpy as np
import pytest

from core.charts import alt_text, rho_histogram
from core.charts.influence.rho import _bars, _data, _edges
from core.influence import analyse, chance_band
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
    bars = _bars(np.array([0.7 - 1e-13, 0.7, 1.0]), np.array([0.7, 0.8, 0.9, 1.0]))
    assert bars.counts.tolist() == [2, 0, 1]


def test_counts_by_hand():
    data = _data(analyse(make_run(FOUR), 0.5))
    assert data.n_undefined == 1
    assert data.divergent.edges[-1] == data.aligned.edges[0] == 0.5
    assert data.divergent.counts.sum() == 1 and data.divergent.counts[0] == 1
    assert data.aligned.counts.sum() == 2
    assert data.aligned.counts[0] == 1 and data.aligned.counts[-1] == 1
    assert data.band == chance_band(3)


def test_the_commonest_number_of_passages_gives_the_band():
    run = make_run([[0.9, 0.5, 0.1], [0.9, 0.5, 0.2, 0.1], [0.1, 0.2, 0.5, 0.9]])
    assert _data(analyse(run)).band.k == 4


@pytest.mark.parametrize(("threshold", "aligned"), [(1, 1), (-1, 3)])
def test_every_question_is_drawn_at_the_outermost_thresholds(threshold, aligned):
    figure = rho_histogram(analyse(make_run(FOUR), threshold))
    divergent, right = figure.data
    assert (sum(divergent.y), sum(right.y)) == (3 - aligned, aligned)
    assert (right.width > 0).all()


def test_figure():
    figure = rho_histogram(analyse(make_run(FOUR), 0.65))
    divergent, aligned = figure.data
    assert (divergent.name, aligned.name) == ("Divergent (2)", "Aligned (1)")
    assert divergent.x[-1] + divergent.width[-1] / 2 == pytest.approx(0.65)
    assert aligned.x[0] - aligned.width[0] / 2 == pytest.approx(0.65)
    assert divergent.marker.pattern.shape == "/" and aligned.marker.pattern.shape == ""
    band, line = figure.layout.shapes
    assert (band.x0, band.x1) == (chance_band(3).low, chance_band(3).high)
    assert line.x0 == line.x1 == 0.65
    assert "k = 3" in band.name
    assert "3 questions: 2 divergent below the threshold of 0.65, 1 aligned, 1 undefined" in alt_text(figure)
    assert any("n = 3 · 1 undefined" == a.text for a in figure.layout.annotations)


def test_nothing_defined():
    figure = rho_histogram(analyse(make_run([[0, 0, 0]])))
    assert not figure.data
    assert alt_text(figure) == "No question has a rank agreement (1 undefined)."
