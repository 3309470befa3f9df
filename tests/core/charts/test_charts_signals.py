"""The heat map of correlations and the histograms of signals."""

import numpy as np
import pandas as pd
import pytest

from core.charts.bins import round_edges
from core.charts.signals import correlation_heatmap, signal_histogram
from core.charts.theme import alt_text, has_doors
from core.conditions import matching
from core.report.signals import PEARSON, signal_agreement
from core.signals import Signal
from core.socket import QuestionColumn
from tests.core.charts.chart_runs import HOSTILE, shown_strings
from tests.core.report.signal_runs import diagnosis_of

N = 20
UP = np.arange(N, dtype=float)
MIXED = np.array([7, 2, 19, 11, 0, 16, 5, 13, 3, 18, 9, 1, 15, 6, 12, 4, 17, 8, 14, 10], dtype=float)
RIGHT = pd.array([i >= 8 for i in range(N)], dtype="boolean")


@pytest.fixture
def agreement():
    return signal_agreement(diagnosis_of(right=RIGHT, sure=UP, doubt=MIXED, size=[1.0] * 18 + [2.0] * 2))


def test_every_pair_has_one_cell_pale_where_chance_could_explain_it(agreement):
    figure = correlation_heatmap(agreement)
    strong, pale = figure.data
    assert strong.z.shape == (4, 4) and list(figure.layout.yaxis.ticktext) == [
        "Right · 1", "Sureness · 2", "Doubt · 3", "Size · 4",
    ]  # fmt: skip
    filled = lambda trace: {(y + 1, x + 1) for y, x in np.argwhere(~np.isnan(trace.z))}  # noqa: E731
    assert filled(strong) == {(2, 1)}
    # Below the diagonal only, each pair once.
    assert filled(pale) == {(3, 1), (3, 2), (4, 1), (4, 2), (4, 3)}
    value = agreement.pairs[0]["Spearman"].value
    assert strong.z[1, 0] == value and strong.text[1, 0] == f"{value:.2f}"
    assert pale.text[2, 1] == f"({agreement.pairs[3]['Spearman'].value:.2f})".replace("-", "−")
    assert pale.text[3, 0] == "—" and pale.z[3, 0] == 0
    alpha = [float(scale[0][1].split(",")[-1].strip(" )")) for scale in (strong.colorscale, pale.colorscale)]
    assert alpha[0] > 3 * alpha[1]
    assert (strong.zmin, strong.zmax) == (pale.zmin, pale.zmax) == (-1, 1)
    scale = strong.colorbar
    assert strong.showscale and not pale.showscale and scale.tickvals == (-1, -0.5, 0, 0.5, 1)
    assert scale.ticktext == ("−1", "−0.5", "0", "0.5", "1")
    assert not has_doors(figure)


def test_cells_say_n_interval_and_p(agreement):
    strong, pale = correlation_heatmap(agreement).data
    said = strong.customdata[1, 0].split("<br>")
    assert said[:3] == ["Right", "and Sureness", "Spearman 0.85, n = 20 questions"]
    assert said[3].startswith("95 % interval 0.") and said[4] == "p &lt; 0.001"
    assert "Positive expected" in said[5]
    assert "cannot be told from chance" in pale.customdata[2, 1]
    assert "Undefined because Size has one value" in pale.customdata[3, 0]
    assert "Pearson 0." in correlation_heatmap(agreement, PEARSON).data[0].customdata[1, 0]


def test_the_heat_map_says_in_a_sentence_what_it_shows(agreement):
    assert alt_text(correlation_heatmap(agreement)) == (
        "Spearman correlations of 4 signals of 20 questions: 1 of 3 pairs beyond chance, 3 undefined; the "
        "strongest is Right with Sureness, 0.85, n = 20 questions."
    )


def test_a_contrary_correlation_is_marked():
    figure = correlation_heatmap(signal_agreement(diagnosis_of(sure=UP, doubt=UP + 0.1 * MIXED)))
    assert "Contrary to expectation<br>Negative expected" in figure.data[0].customdata[1, 0]


@pytest.mark.parametrize(
    ("n", "template", "across"),
    [(2, "%{text}", [1, 2]), (16, "%{text}", list(range(1, 16, 2))), (17, None, list(range(1, 18, 2)))],
)
def test_more_than_16_signals_have_no_numbers_in_their_cells(n, template, across):
    columns = tuple(QuestionColumn(f"c{i}", f"C{i}") for i in range(n))
    rng = np.random.default_rng(0)
    found = signal_agreement(diagnosis_of(columns, **{c.name: rng.permutation(N) for c in columns}))
    figure = correlation_heatmap(found)
    for trace in figure.data:
        assert (trace.text is None) == (template is None) and trace.texttemplate == template
    x, y = figure.layout.xaxis, figure.layout.yaxis
    assert list(x.tickvals) == across and list(y.tickvals) == list(range(1, n + 1))
    assert x.range == (0.5, n + 0.5) and y.range == (n + 0.5, 0.5)  # the first row on top
    assert x.tickangle == 0 and not x.showgrid and not y.showgrid


@pytest.mark.parametrize("values", [{}, {"sure": UP}])
def test_fewer_than_two_signals_give_a_labelled_empty_figure(values):
    figure = correlation_heatmap(signal_agreement(diagnosis_of(**values)))
    assert not figure.data and alt_text(figure) == "There are fewer than two signals to compare."


def bars(figure):
    bar = figure.data[0]
    return dict(zip(bar.x, bar.y, strict=True))


def test_few_values_have_a_bar_each(agreement):
    figure = signal_histogram(agreement.signals[0])
    assert bars(figure) == {0: 8, 1: 12}
    assert list(figure.layout.xaxis.ticktext) == ["no", "yes"]
    assert alt_text(figure) == "Histogram of Right over 20 questions: mean 0.60, median 1.00."
    mean, median = figure.data[1:]
    assert (mean.name, list(mean.x)) == ("Mean 0.60", [0.6, 0.6])
    assert (median.name, list(median.x)) == ("Median 1.00", [1.0, 1.0])
    assert mean.line.dash != median.line.dash
    # Twelve are the most: lines end above that bar, and the axis above the lines.
    assert list(mean.y) == list(median.y) == pytest.approx([0, 12.6])
    assert figure.layout.yaxis.range == pytest.approx((0, 12.96)) and figure.layout.yaxis.dtick is None
    assert list(figure.layout.xaxis.tickvals) == [0, 1] and list(figure.data[0].width) == [0.8, 0.8]


def test_many_values_have_bars_of_round_ranges(agreement):
    figure = signal_histogram(agreement.signals[1])
    assert bars(figure) == dict.fromkeys(np.arange(1, 20, 2), 2)
    assert figure.data[0].customdata[0][1].startswith("Sureness<br>0 to 2<br>2 questions")


@pytest.mark.parametrize(
    ("low", "high", "edges"),
    [
        (0, 12, np.arange(13.0)),
        (0.32, 0.99, np.arange(0.3, 1.04, 0.1)),
        (-1, 1, np.arange(-1, 1.1, 0.2)),
        (0, 30, np.arange(0, 31, 2.5)),
    ],
)
def test_ranges_have_round_ends_and_hold_all_values(low, high, edges):
    np.testing.assert_allclose(round_edges(low, high), edges, atol=1e-12)


def test_ranges_of_values_that_are_all_but_equal():
    edges = round_edges(1.0, 1.0 + 1e-8)
    assert edges[0] <= 1.0 and edges[-1] >= 1.0 + 1e-8 and (np.diff(edges) > 0).all()


@pytest.mark.parametrize("name", ["right", "sure", "doubt", "similarity"])
def test_every_bar_is_a_door_to_its_questions(name):
    table = pd.DataFrame({"query_id": [f"q{i}" for i in range(N)], "similarity": MIXED / 7})
    diagnosis = diagnosis_of(
        right=RIGHT, sure=UP / 3, doubt=np.round(MIXED / 30, 1) + [0, 0.1 + 0.2 - 0.3] * 10, signals=table
    )
    (signal,) = [one for one in signal_agreement(diagnosis).signals if one.name == name]
    figure = signal_histogram(signal)
    assert has_doors(figure)
    from urllib.parse import parse_qsl

    doors = [
        (str(door), int(n)) for (door, _), n in zip(figure.data[0].customdata, figure.data[0].y, strict=True)
    ]
    assert sum(n for _, n in doors) == N
    for door, n in doors:
        if n:
            ((kind, condition),) = parse_qsl(door)
            assert kind == "where" and len(matching(diagnosis, condition)) == n


def test_a_signal_without_values_is_an_empty_figure():
    from core.signals import Signal

    none = Signal("toy", "x", "X", "Toy", "{:.2f}", "", np.full(3, np.nan))
    figure = signal_histogram(none)
    assert not figure.data and alt_text(figure) == "No question has a value."


def test_titles_from_elsewhere_are_text():
    columns = (QuestionColumn("a", HOSTILE), QuestionColumn("b", "B"))
    found = signal_agreement(diagnosis_of(columns, a=UP, b=MIXED))
    for figure in (correlation_heatmap(found), signal_histogram(found.signals[0])):
        for key, text in shown_strings(figure):
            assert "<script" not in text and "<b>bold" not in text, (key, text)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([0.12345, 999, 1_000, 12_345.6], ("0.1235", "999", "1,000", "12,346")),
        ([-2_000, -0.5], ("−2,000", "−0.5")),
        ([1, 2, 3, 4, 5], tuple("12345")),
        ([1, 2, 3, 4, 5, 6], None),
    ],
)
def test_up_to_five_bars_have_their_values_below(values, names):
    given = np.array(values, dtype=float)
    figure = signal_histogram(Signal("toy", "doubt", "Doubt", "Toy", "{:.5f}", "more uncertain", given))
    assert figure.layout.xaxis.ticktext == names
    assert list(figure.data[0].x) == pytest.approx(sorted(values))


@pytest.mark.parametrize(("n", "bars"), [(12, 12), (13, 12)])
def test_up_to_twelve_values_have_a_bar_each(n, bars):
    figure = signal_histogram(
        Signal("toy", "doubt", "Doubt", "Toy", "{:.2f}", "more uncertain", np.arange(n + 0.0))
    )
    assert len(figure.data[0].x) == bars and sum(figure.data[0].y) == n
    assert ("to" in figure.data[0].customdata[0][1].split("<br>")[1]) == (n == 13)
