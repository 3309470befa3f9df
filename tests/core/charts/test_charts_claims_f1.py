import pytest

from core.charts.claims import f1_at_k_chart
from core.charts.claims.f1 import ks_of
from core.charts.theme import alt_text
from tests.core.charts.chart_claims import claims_analysis

YES, NO, OPEN = [0.9], [0.1], [None]


def test_mean_over_answers_by_hand():
    # S, N = (1, 1) and (2, 0). At K = 1: P 0.5, R 1, F1 2/3; and 1. At K = 2: 0.5 and 1.
    # At K = 10: 2·0.5·0.1/0.6 = 1/6; 2·1·0.2/1.2 = 1/3; mean 1/4.
    figure = f1_at_k_chart(claims_analysis([[YES, NO], [YES, YES], [OPEN]]))
    line = next(t for t in figure.data if t.name == "Mean of 2 answers")
    assert list(line.x) == list(range(1, 21))
    assert list(line.y[:2]) == pytest.approx([5 / 6, 3 / 4])
    assert line.y[9] == pytest.approx(1 / 4)
    star = next(t for t in figure.data if t.mode == "markers")
    assert (list(star.x), list(star.y)) == ([10], [pytest.approx(1 / 4)])
    assert star.name == "F1@10 = 0.25"
    assert line.customdata[0] == [
        "",
        "F1@1: 0.833<br>95 %: 0.00 to 1.00<br>2 answers, 1 left out<br>Fewer than 1 supported claim: 0",
    ]
    door, text = line.customdata[1]
    assert door == "where=claims.queries.n_supported%3A..2%2Cgrounding%3A.."
    assert text.endswith("Fewer than 2 supported claims: 1<br>Click to list these questions")
    assert alt_text(figure).startswith("Mean F1@K over 2 answers: 0.83 at K = 1, 0.25 at K = 10, ")
    assert alt_text(figure).endswith("; 1 undefined and left out.")


def test_the_interval_encloses_the_mean():
    figure = f1_at_k_chart(claims_analysis([[YES, NO], [YES, YES], [NO, NO]]))
    band, line = figure.data[0], figure.data[1]
    assert band.name == "95 % interval" and band.fill == "toself"
    k = len(line.x)
    high, low = band.y[:k], band.y[k:][::-1]
    assert all(a <= b <= c for a, b, c in zip(low, line.y, high, strict=True))


def test_one_answer_has_no_interval():
    figure = f1_at_k_chart(claims_analysis([[YES, NO]]))
    assert not [t for t in figure.data if t.name == "95 % interval"]
    assert "95 %" not in figure.data[0].customdata[0][1]


@pytest.mark.parametrize(("n", "last"), [(1, 20), (10, 20), (15, 30), (80, 100)])
def test_the_curve_ends_at_twice_the_largest_number_of_claims_within_bounds(n, last):
    analysis = claims_analysis([[YES] * n, [YES]])
    assert ks_of(analysis) == tuple(range(1, last + 1))
    assert f1_at_k_chart(analysis).layout.xaxis.tickvals[-1] == last


@pytest.mark.parametrize("matrices", [[], [[]], [[OPEN]]])
def test_no_answer_with_a_verdict(matrices):
    figure = f1_at_k_chart(claims_analysis(matrices))
    assert not figure.data
    assert "undefined" in alt_text(figure)


@pytest.mark.parametrize(
    ("n", "top", "step"), [(1, 20, 5), (15, 30, 5), (16, 32, 10), (30, 60, 10), (31, 62, 20), (60, 100, 20)]
)
def test_the_curve_ends_at_twice_the_most_claims_within_limits(n, top, step):
    figure = f1_at_k_chart(claims_analysis([[[0.9]] * n]))
    across = figure.layout.xaxis
    assert (across.range, across.tickvals) == ((0.5, top + 0.5), (1, *range(step, top + 1, step)))
