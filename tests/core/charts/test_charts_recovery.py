import math

import pandas as pd

from core.charts.influence import recovery_chart
from core.charts.influence.recovery import _data
from core.charts.theme import alt_text
from core.influence import analyse, recovery
from tests.core.charts.chart_runs import make_run

FRAME = pd.DataFrame(
    [
        ("Bias of ρ", -0.1, -0.2, 0.0, 40, "Mean of measured minus planted.", "", "", 0),
        ("Mean absolute error of ρ", 0.15, math.nan, math.nan, 40, "Mean distance.", "", "", 0),
        ("Power", 0.9, 0.8, 0.95, 100, "Found.", "Missed", "passages.above_noise:False", 3),
        ("False alarms", math.nan, math.nan, math.nan, 0, "Wrongly found.", "", "", 0),
    ],
    columns=["check", "value", "low", "high", "n", "meaning", "about", "cases", "n_questions"],
)


def test_data_by_hand():
    data = _data(FRAME)
    assert data["known"].tolist() == [True, True, True, False]
    assert data["difference"].tolist() == [True, True, False, False]
    assert data["ideal"].tolist() == [0, 0, 1, 0]
    assert data["low"].tolist()[:3] == [-0.2, 0.15, 0.8]  # no interval: the value itself
    assert FRAME["low"].isna().sum() == 2  # the caller's frame is left alone


def test_figure():
    figure = recovery_chart(FRAME)
    ideal, shares, differences = figure.data
    assert list(ideal.x) == [0, 0, 1, 0]
    assert list(shares.x) == [0.9] and list(shares.y) == [2]
    assert list(differences.x) == [-0.1, 0.15]
    assert shares.marker.symbol != differences.marker.symbol
    assert [(a.text, a.y) for a in figure.layout.annotations] == [("no cases", 3)]
    assert list(figure.layout.yaxis.ticktext)[2] == "Power"
    assert figure.layout.xaxis.range[0] < -0.2
    assert alt_text(figure) == (
        "Recovery of the ground truth: Bias of ρ −0.10 (40 cases), Mean absolute error of ρ 0.15 (40 cases), "
        "Power 0.90 (100 cases)."
    )
    assert shares.customdata[0] == [
        "where=influence.passages.above_noise%3AFalse",
        "0.900 (0.80 to 0.95), 100 cases<br>Found.<br>Missed: 3 questions<br>Click to list these questions",
    ]
    assert [door for door, _ in differences.customdata] == ["", ""]


def test_frame_of_the_real_function():
    run = make_run(
        [[0.9, 0.5, 0.1], [0, 0, 0]], query_planted_case=["plain", "inert"], query_planted_rho=[1.0, None]
    )
    frame = recovery(run, analyse(run))
    figure = recovery_chart(frame)
    assert "Recognised: inert 1.00" in alt_text(figure)
    assert len(figure.data[0].x) == len(frame)


def test_nothing_planted():
    figure = recovery_chart(FRAME.iloc[:0])
    assert not figure.data
    assert alt_text(figure).startswith("This run has no ground truth")


def test_only_rows_without_cases():
    figure = recovery_chart(FRAME.iloc[3:])
    assert [trace.name for trace in figure.data] == ["Ideal"]
    assert alt_text(figure).endswith("no cases.")
