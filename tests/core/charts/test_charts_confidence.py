"""The figures of the confidence, by hand."""

from urllib.parse import parse_qsl

import pytest

from core.charts.confidence import reliability_diagram, waterfall
from core.charts.theme import alt_text, has_doors
from core.conditions import matching
from core.confidence import ConfidenceMap
from tests.core.charts.chart_confidence import NAN, diagnosis_of, scored
from tests.core.charts.chart_runs import HOSTILE, shown_strings

# Confidences 0.9, 0.8, 0.595, 0.3, and one that is undefined; the first and the fourth are correct.
TOY = scored([(1, 0.8, 1), (0.9, 0.7, 0), (0.6, 0.59, 0), (0.5, 0.1, 1), (NAN, 0.5, 1), (0.7, 0.7, NAN)])


def named(figure, start):
    (found,) = [trace for trace in figure.data if trace.name.startswith(start)]
    return found


def names(figure):
    return [trace.name for trace in figure.data]


def doors(trace):
    return [parse_qsl(door)[0][1] if door else "" for door, _ in trace.customdata]


# Ten answers of confidence 0.9, five of them correct; one of 0.1 that is wrong; 0.2 lies on the edge of its bin.
BINS = scored([(0.9, 0.9, i % 2) for i in range(10)] + [(0.1, 0.1, 0), (0.2, 0.2, 1), (0.21, 0.21, 1)])


def test_reliability_by_hand():
    figure = reliability_diagram(BINS)
    off, inside = named(figure, "Off the diagonal (2 bins)"), named(figure, "In line (2 bins)")
    # 5 of 10 have the interval 24 to 76 per cent, 1 of 1 that from 21; 0.20 is below it, 0.21 inside.
    assert list(off.x) == pytest.approx([0.2, 0.9]) and list(off.y) == pytest.approx([100, 50])
    assert list(inside.x) == pytest.approx([0.1, 0.21]) and list(inside.y) == pytest.approx([0, 100])
    ends = (off.y[1] - off.error_y.arrayminus[1], off.y[1] + off.error_y.array[1])
    assert ends == pytest.approx((23.66, 76.34), abs=0.01)
    assert off.marker.symbol != inside.marker.symbol
    assert list(named(figure, "Calibrated").y) == [0, 100]
    right, wrong = named(figure, "Correct (7)"), named(figure, "Incorrect (6)")
    assert list(right.y) == [0, 1, 1, 5] and list(wrong.y) == [1, 0, 0, 5]
    assert right.marker.pattern.shape != wrong.marker.pattern.shape
    assert off.cliponaxis is False and inside.cliponaxis is False
    across, up, below = figure.layout.xaxis, figure.layout.yaxis, figure.layout.yaxis2
    assert across.range == (-0.02, 1.02) and across.dtick == 0.2 and up.range == (-2, 103)
    assert below.range == pytest.approx((0, 11))  # the fullest bin has ten
    # (1·0.1 + 1·0.8 + 1·0.79 + 10·0.4) / 13.
    assert (
        "of 13 labelled answers against their confidence, in 4 bins: in 1 of the bins the confidence is above"
        in alt_text(figure)
    )
    assert "in 1 below it; expected calibration error 0.44" in alt_text(figure)


def test_marks_and_bars_of_a_bin_lead_to_its_answers():
    figure, diagnosis = reliability_diagram(BINS), diagnosis_of(BINS)
    off, inside = named(figure, "Off"), named(figure, "In line")
    assert doors(off)[0] == "" and matching(diagnosis, doors(off)[1]) == ("q1", "q3", "q5", "q7", "q9")
    assert matching(diagnosis, doors(inside)[0]) == ("q11",)
    right, wrong = named(figure, "Correct"), named(figure, "Incorrect")
    # 3/15 is the upper end of the third bin and belongs to it.
    assert matching(diagnosis, doors(right)[1]) == ("q12",) and matching(diagnosis, doors(right)[2]) == (
        "q13",
    )
    assert doors(right)[0] == doors(wrong)[1] == ""
    assert off.customdata[1][1].split("<br>") == [
        "Confidence from 0.87 to 0.93, mean 0.90",
        "5 of 10 answers correct (50 %)",
        "95 %: 24–76 %",
        "5 incorrect answers",
        "Click to list these questions",
    ]
    assert wrong.customdata[3][1].startswith("5 incorrect answers with a confidence from 0.87 to 0.93")


def test_the_ends_of_the_scale_have_bins():
    analysis = scored([(0, 0, 1), (1, 1, 0)])
    figure, diagnosis = reliability_diagram(analysis), diagnosis_of(analysis)
    assert matching(diagnosis, doors(named(figure, "Correct"))[0]) == ("q1",)
    assert matching(diagnosis, doors(named(figure, "Incorrect"))[1]) == ("q2",)


def test_waterfall_by_hand():
    figure = waterfall(scored([(0.9, 0.5, 1)], weights={"similarity": 0.75, "llm": 0.25}), "q1")
    most, adds, total = named(figure, "Most"), named(figure, "Adds"), named(figure, "Confidence")
    assert list(most.base) == pytest.approx([0, 0.675]) and list(most.x) == [0.75, 0.25]
    assert list(adds.base) == pytest.approx([0, 0.675]) and list(adds.x) == pytest.approx([0.675, 0.125])
    assert (list(total.x), list(total.y)) == ([pytest.approx(0.8)], [3])
    assert adds.customdata[0] == "Similarity<br>0.90 × weight 0.75 = 0.68"
    assert total.customdata[0] == "Confidence 0.80: high"
    assert list(named(figure, "Threshold 0.60").x) == [0.6, 0.6]
    assert list(figure.layout.yaxis.ticktext) == [
        "Similarity<br>0.90 × weight 0.75", "Stated<br>0.50 × weight 0.25", "<b>Confidence 0.80</b><br>▲ high",
    ]  # fmt: skip
    assert alt_text(figure) == (
        "What 2 signals add to the confidence of 1 answer: 0.68 of at most 0.75, 0.12 of at most 0.25; "
        "sum 0.80 (high), threshold 0.60."
    )
    assert not has_doors(figure)
    assert figure.layout.xaxis.range == (-0.01, 1.02) and figure.layout.xaxis.dtick == 0.2
    assert list(named(figure, "Threshold").y) == [0.4, 3.6]  # through all three rows
    assert figure.layout.barmode == "overlay" and list(most.y) == [1, 2]


def test_every_band_has_a_colour_an_icon_and_a_word():
    # 0.695 is 0.70, half up.
    looks = []
    for value, said in ((0.39, "▼ low"), (0.4, "◆ medium"), (0.695, "▲ high")):
        figure = waterfall(scored([(value, value, 1)]), "q1")
        assert figure.layout.yaxis.ticktext[-1].endswith(f"<br>{said}")
        look = named(figure, "Confidence").marker
        looks.append((look.color, look.pattern.shape))
    assert len({color for color, _ in looks}) == len({shape for _, shape in looks}) == 3


def test_a_map_has_a_row_of_its_own():
    # 1 / (1 + e⁰) is a half, whatever the sum.
    figure = waterfall(scored([(1, 1, 1)], mapped=ConfidenceMap("platt", 0.0, 0.0)), "q1")
    assert (list(named(figure, "Sum").x), list(named(figure, "Sum").y)) == ([1], [3])
    assert (list(named(figure, "Confidence").x), list(named(figure, "Confidence").y)) == ([0.5], [4])
    assert figure.layout.yaxis.ticktext[-2:] == ("Sum 1.00", "<b>Confidence 0.50</b><br>◆ medium")
    assert "sum 1.00, after the map 0.50 (medium), threshold 0.60" in alt_text(figure)


def test_a_missing_signal_is_named_and_leaves_no_sum():
    figure = waterfall(scored([(NAN, 0.5, 1)]), "q1")
    missing = named(figure, "Missing")
    assert (list(missing.text), list(missing.y), list(missing.customdata)) == (
        ["no value"], [1], ["Similarity<br>no value"],
    )  # fmt: skip
    assert "Confidence" not in names(figure) and list(named(figure, "Adds").base) == [0]
    assert figure.layout.yaxis.ticktext[-1] == "<b>Confidence —</b><br>– undefined"
    assert alt_text(figure).endswith("sum undefined, 1 of 2 signals missing, threshold 0.60.")


def test_a_signal_without_weight_has_no_row():
    figure = waterfall(scored([(NAN, 0.5, 1)], weights={"similarity": 0.0, "llm": 1.0}), "q1")
    assert figure.layout.yaxis.ticktext == (
        "Stated<br>0.50 × weight 1.00",
        "<b>Confidence 0.50</b><br>◆ medium",
    )


@pytest.mark.parametrize("draw", [reliability_diagram, lambda one: waterfall(one, "q1")])
def test_without_weights_every_figure_says_why(draw):
    figure = draw(scored([(1, 1, 1)], reason="The weights name a signal that the run lacks."))
    assert not figure.data and alt_text(figure) == "The weights name a signal that the run lacks."


def test_other_empty_figures_say_why():
    assert alt_text(waterfall(TOY, "nobody")) == "This run has no such question."


def test_titles_of_signals_are_shown_as_they_are():
    figure = waterfall(
        scored([(1, 1, 1)], titles=dict.fromkeys(("similarity", "lexical", "llm"), HOSTILE)), "q1"
    )
    shown = [text for _, text in shown_strings(figure)]
    assert any("&lt;script&gt;" in text for text in shown) and not any("<script" in text for text in shown)


def test_many_answers_stay_small():
    analysis = scored([(i % 101 / 100, i % 7 / 6, i % 3 > 0) for i in range(20_000)])
    assert len(reliability_diagram(analysis).to_json()) < 60_000
