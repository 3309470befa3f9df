import numpy as np
import pytest

from core.charts.compare import DOTS_AT_MOST, compare_figure
from core.charts.theme import alt_text
from core.influence import analyse
from tests.core.charts.chart_runs import HOSTILE, make_run, shown_strings


def rho_side_by_side(runs):
    return compare_figure([(name, found.queries["rho"]) for name, found in runs], "Rank agreement ρ", (-1, 1))


# ρ 1, 0.5 (ranks 1 3 2), undefined
MIXED = [[0.9, 0.5, 0.1], [0.9, 0.1, 0.5], [0, 0, 0]]


def test_means_intervals_and_dots_by_hand():
    figure = rho_side_by_side(
        [("One", analyse(make_run(MIXED))), ("Two", analyse(make_run([[0.1, 0.5, 0.9]])))]
    )
    dots_one, dots_two, means = figure.data
    assert list(dots_one.x) == [1.0, 0.5] and list(dots_two.x) == [-1.0]
    assert list(means.x) == [0.75, -1.0]
    assert list(means.y) == [1, 0]  # the first run on top
    # t(0.975, 1) = 12.706; the half width 12.706 · 0.3536 / √2 is cut at the bounds of ρ.
    assert means.error_x.array[0] == pytest.approx(0.25)
    assert means.error_x.arrayminus[0] == pytest.approx(1.75)
    assert means.error_x.array[1] == means.error_x.arrayminus[1] == 0  # one question has no interval
    assert list(figure.layout.yaxis.ticktext) == ["A", "B"]
    assert alt_text(figure) == (
        "Rank agreement ρ, mean of A: 0.75 (−1.00 to 1.00) on 2 questions; B: −1.00 on 1 question."
    )


def test_a_run_without_any_rho_keeps_its_line():
    figure = rho_side_by_side([("None", analyse(make_run([[0, 0, 0]]))), ("Some", analyse(make_run(MIXED)))])
    assert list(figure.layout.yaxis.ticktext) == ["A", "B"]
    assert [trace.name for trace in figure.data if trace.showlegend is not False] == [
        "One question",
        "Mean with its 95 % interval",
    ]
    assert list(figure.data[-1].y) == [0]
    assert "A: none, 1 question undefined" in alt_text(figure)


@pytest.mark.parametrize("runs", [[], [("x", None)]])
def test_nothing_to_draw(runs, empty_analysis):
    figure = rho_side_by_side([(name, empty_analysis) for name, _ in runs])
    assert not figure.data
    assert alt_text(figure) == "Rank agreement ρ: undefined for every question of these runs."


def test_thousands_of_questions_are_not_drawn_one_by_one(large):
    figure = rho_side_by_side([("Large", large)] * 4)
    assert len(figure.data) == 1
    assert len(figure.to_json()) < 20_000
    assert len(large.defined) > DOTS_AT_MOST


def test_dots_lie_within_their_run_and_stay_where_they_are():
    runs = [("One", analyse(make_run(MIXED * 30)))]
    first, second = rho_side_by_side(runs), rho_side_by_side(runs)
    assert np.abs(np.asarray(first.data[0].y)).max() <= 0.16
    assert list(first.data[0].y) == list(second.data[0].y)


def test_names_of_runs_are_shown_as_they_are():
    figure = rho_side_by_side([(HOSTILE, analyse(make_run(MIXED)))])
    shown = [text for _, text in shown_strings(figure)]
    assert any("&lt;script&gt;" in text for text in shown)
    assert not any("<script>" in text or "$" in text for text in shown)
