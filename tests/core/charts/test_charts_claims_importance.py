import re

import numpy as np
import pandas as pd
import pytest

from core.charts.claims import passage_importance_bars
from core.charts.claims.importance import _data
from core.charts.theme import alt_text
from tests.core.charts.chart_claims import claims_analysis, one_answer
from tests.core.charts.chart_runs import HOSTILE, shown_strings

# Column means over the first two rows; the third claim is irrelevant.
MATRIX = [[0.9, 0.2, None, None], [0.3, 0.4, None, 0.1], [1.0, 1.0, 1.0, 1.0]]
OPTIONS = {"irrelevant": [(0, 2)], "influence": [[0.4, 0.0, None, 0.7]]}


def test_data_by_hand():
    analysis = claims_analysis([MATRIX], **OPTIONS)
    data = _data(analysis.answer("q1"), analysis.passages)
    assert data.n_relevant == 2
    assert data.bars["importance"].tolist() == pytest.approx([0.6, 0.3, np.nan, 0.1], nan_ok=True)
    assert data.bars["supports"].tolist() == pytest.approx([1, 0, np.nan, np.nan], nan_ok=True)
    assert data.bars["influence"].tolist() == pytest.approx([0.4, 0, np.nan, 0.7], nan_ok=True)
    assert data.bars["hover"][0] == (
        "P1: p1<br>Mean support 0.600<br>Supports 1 claim<br>Influence 0.400<br>used evidence"
    )
    assert "No claim was scored against it<br>Influence unknown" in data.bars["hover"][2]


def test_figure():
    analysis = claims_analysis([MATRIX], **OPTIONS)
    figure = passage_importance_bars(analysis.answer("q1"), analysis.passages)
    by_name = {trace.name: trace for trace in figure.data}
    assert list(by_name) == [
        "Supports a claim (1)",
        "Supports no claim (1)",
        "No support found, not all scored (1)",
        "Influence",
    ]
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert [list(bar.y) for bar in bars] == [[1], [2], [4]]
    assert {bar.width for bar in bars} == {0.7}  # also where the bars of a trace are far apart
    assert len({bar.marker.pattern.shape for bar in bars}) == 3
    assert (list(by_name["Influence"].x), list(by_name["Influence"].y)) == ([0.4, 0, 0.7], [1, 2, 4])
    assert [(note.text, note.y) for note in figure.layout.annotations] == [("unscored", 3)]
    assert alt_text(figure) == (
        "Mean support of 4 passages for 2 relevant claims: highest 0.60 (P1), 1 support a claim, "
        "1 unscored; highest influence 0.70 (P4), unknown for 1."
    )


def test_without_the_passages_of_the_analysis_there_is_no_influence():
    figure = passage_importance_bars(one_answer(MATRIX, **OPTIONS))
    assert {trace.type for trace in figure.data} == {"bar"}
    assert "influence" not in alt_text(figure)


def test_rows_of_other_questions_are_left_out():
    analysis = claims_analysis([[[0.1]], [[0.9]]], influence=[[0.2], [0.8]])
    for query_id, influence in (("q1", 0.2), ("q2", 0.8)):
        data = _data(analysis.answer(query_id), analysis.passages)
        assert data.bars["influence"].tolist() == [influence]


def test_a_passage_that_the_frame_lacks_has_unknown_influence():
    answer = one_answer([[0.9, 0.1]])
    frame = pd.DataFrame({"passage_id": ["p2"], "influence": [0.3], "quadrant": ["distractor"]})
    assert _data(answer, frame).bars["influence"].tolist() == pytest.approx([np.nan, 0.3], nan_ok=True)


def test_everything_unscored():
    figure = passage_importance_bars(one_answer([[None, None]]))
    assert not figure.data
    assert len(figure.layout.annotations) == 2
    assert "0 support a claim, 2 unscored" in alt_text(figure)


@pytest.mark.parametrize(
    ("matrix", "options", "word"),
    [
        ([], {"n_passages": 2}, "no relevant claim"),
        ([[0.9]], {"irrelevant": [(0, 0)]}, "no relevant claim"),
        ([[]], {}, "no passages"),
    ],
)
def test_nothing_to_draw(matrix, options, word):
    figure = passage_importance_bars(one_answer(matrix, **options))
    assert not figure.data
    assert word in alt_text(figure)


def test_many_passages_keep_a_bounded_height():
    figure = passage_importance_bars(one_answer([[0.4] * 150]))
    assert figure.layout.height == 1_600
    assert len(figure.layout.yaxis.tickvals) <= 60


def test_hostile_titles_are_escaped_in_importance_bars():
    found = shown_strings(passage_importance_bars(one_answer([[0.9, 0.1]], title=HOSTILE)))
    assert any("&lt;script&gt;" in text for _, text in found)
    for _, text in found:
        assert "<" not in re.sub(r"<br>|<extra></extra>", "", text)
        assert not re.search(r"[\x00-\x1f\u202e$]", text)
