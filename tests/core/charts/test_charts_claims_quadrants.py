import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from core.charts.claims import claims_quadrants
from core.charts.claims.quadrants import _counts, _edges
from core.charts.theme import alt_text
from tests.core.charts.chart_claims import claims_analysis
from tests.core.charts.chart_runs import HOSTILE, shown_strings

# Used, distractor, redundant, idle; unknown influence and unknown support are undefined.
MATRIX = [[0.9, 0.1, 0.8, 0.2, 0.9, None]]
INFLUENCE = [0.4, 0.3, 0.0, 0.0, None, 0.2]


def test_each_quadrant_by_hand():
    figure = claims_quadrants(claims_analysis([MATRIX], influence=[INFLUENCE]))
    assert [(t.name, list(t.x), list(t.y)) for t in figure.data] == [
        ("Used evidence (1)", [0.4], [0.9]),
        ("Distractor (1)", [0.3], [0.1]),
        ("Redundant or wasted (1)", [0], [0.8]),
        ("Idle (1)", [0], [0.2]),
    ]
    assert len({t.marker.symbol for t in figure.data}) == len({t.marker.color for t in figure.data}) == 4
    assert alt_text(figure) == (
        "Best support against influence of 4 passages: 1 used evidence (25 %; 1.0 by chance), "
        "1 distractor (25 %; 1.0 by chance), 1 redundant or wasted (25 %; 1.0 by chance), "
        "1 idle (25 %; 1.0 by chance); 2 undefined and not shown."
    )


def test_corners_have_names_counts_and_shares():
    figure = claims_quadrants(claims_analysis([MATRIX], influence=[INFLUENCE]))
    corners = {(note.x, note.y): note.text for note in figure.layout.annotations}
    assert corners == {
        (1, 1): "<b>Used evidence</b><br>1 (25 %)<br>1.0 by chance",
        (1, 0): "<b>Distractor</b><br>1 (25 %)<br>1.0 by chance",
        (0, 1): "<b>Redundant or wasted</b><br>1 (25 %)<br>1.0 by chance",
        (0, 0): "<b>Idle</b><br>1 (25 %)<br>1.0 by chance",
    }
    assert figure.layout.yaxis.range[0] < -0.1 and figure.layout.yaxis.range[1] > 1.1  # room for them


def test_passages_at_one_place_share_a_marker_and_none_is_moved():
    figure = claims_quadrants(claims_analysis([[[0.9] * 5 + [0.6]]], influence=[[0.4] * 6]))
    (trace,) = figure.data
    assert (list(trace.x), list(trace.y)) == ([0.4, 0.4], [0.6, 0.9])
    assert trace.marker.size[1] > trace.marker.size[0]
    assert trace.customdata[0][0] == trace.customdata[1][0] == "question=q1"
    assert trace.customdata[0][1].startswith("p6<br>")
    assert trace.customdata[1][1].count("<br>and 2 more<br>Influence 0.400, support 0.900<br>") == 1


def test_rounding_carries_no_passage_over_the_threshold():
    figure = claims_quadrants(claims_analysis([[[0.4999]]], influence=[[0.2]]))
    assert figure.data[0].name == "Distractor (1)"
    assert figure.data[0].y[0] < 0.5


def test_influence_has_a_border_only_where_no_noise_is_known():
    analysis = claims_analysis([MATRIX], influence=[INFLUENCE])
    figure = claims_quadrants(analysis)
    assert [(s.x0, s.x1) for s in figure.layout.shapes if s.x0 == s.x1] == [(0, 0)]
    assert figure.layout.xaxis.title.text == "Influence (used = above 0)"
    noisy = analysis.passages.assign(above_noise=pd.array([True, True, False, False, None, None], "boolean"))
    figure = claims_quadrants(_with_passages(analysis, noisy))
    assert not [s for s in figure.layout.shapes if s.x0 == s.x1]
    assert figure.layout.xaxis.title.text == "Influence (used = above the noise)"


def test_chance_pairs_influence_and_support_within_each_question():
    # One of two passages is influential and supports, in each question: 2 · 1/2 by chance in each quadrant.
    analysis = claims_analysis([[[0.9, 0.1]], [[0.9, 0.1]]], influence=[[0.4, 0.0], [0.4, 0.0]])
    counts = _counts(analysis.passages)
    assert counts["n"].tolist() == [2, 0, 0, 2, 0]
    assert counts["expected"].tolist()[:4] == [1, 1, 1, 1]
    # Nothing to pair: in each question all passages are alike in one of the two.
    analysis = claims_analysis([[[0.9, 0.9]], [[0.1, 0.1]]], influence=[[0.4, 0.0], [0.4, 0.0]])
    counts = _counts(analysis.passages)
    assert counts["expected"].tolist()[:4] == counts["n"].tolist()[:4] == [1, 1, 1, 1]


@dataclasses.dataclass
class _Other:
    run: object
    passages: pd.DataFrame
    threshold: float


def _with_passages(analysis, passages):
    return _Other(analysis.run, passages, analysis.threshold)


def test_the_threshold_is_drawn():
    figure = claims_quadrants(claims_analysis([MATRIX], threshold=0.7, influence=[INFLUENCE]))
    assert [s.y0 for s in figure.layout.shapes if s.y0 == s.y1] == [0.7]


@pytest.mark.parametrize(
    ("top", "ticks"),
    [(0.2, ["0", "0.2"]), (0.6, ["0", "0.25", "0.5"]), (1.0, ["0", "0.25", "0.5", "0.75", "1"])],
)
def test_quarters_are_marked_below_the_largest_influence(top, ticks):
    influence = [top * (i % 100) / 99 for i in range(2_001)]
    figure = claims_quadrants(claims_analysis([[[0.5] * 2_001]], influence=[influence]))
    assert list(figure.layout.xaxis.ticktext) == ticks
    assert list(figure.layout.xaxis.tickvals)[1:] == pytest.approx([float(tick) for tick in ticks[1:]])


def cells_of(influence, support, threshold):
    counts, across, up = np.histogram2d(influence, support, bins=_edges(max(influence), threshold))
    return counts.T, across, up


def test_cells_keep_no_influence_apart_and_the_threshold_as_a_border():
    counts, across, up = cells_of([0.0, 0.0, 0.001, 0.9], [0.3, 0.29999, 1.0, 0.0], 0.3)
    assert across[:2].tolist() == pytest.approx([-0.03, 0])
    border = int(np.flatnonzero(up == 0.3)[0])
    assert counts.sum() == 4
    assert counts[border, 0] == 1  # exactly the threshold: above the line
    assert counts[border - 1, 0] == 1
    assert counts[-1, 1] == 1  # little influence is not none
    assert counts[0, -1] == 1


def test_cells_where_only_certainty_supports():
    counts, _, up = cells_of([0.5, 0.5], [1.0, 0.99], 1.0)
    border = int(np.flatnonzero(up == 1.0)[0])
    assert counts[border:].sum() == counts[:border].sum() == 1
    assert up.tolist() == pytest.approx([i / 30 for i in range(32)])  # certainty has a cell of its own


@pytest.mark.parametrize(
    ("threshold", "below", "above"), [(0.5, 15, 15), (0.3, 9, 21), (0.01, 1, 29), (0.99, 30, 1)]
)
def test_thirty_cells_a_side_meet_at_the_threshold(threshold, below, above):
    across, up = _edges(0.6, threshold)
    assert (sum(up < threshold), sum(up > threshold)) == (below, above) and threshold in up
    assert across[2:].tolist() == pytest.approx([0.6 * i / 30 for i in range(1, 31)])


def test_more_than_two_thousand_passages_become_counts():
    matrices = [[[0.9, 0.1] * 101]] * 10
    analysis = claims_analysis(matrices, influence=[[0.4, 0.0] * 101] * 10)
    figure = claims_quadrants(analysis)
    assert [t.type for t in figure.data] == ["heatmap"]
    assert figure.data[0].customdata.sum() == 2_020
    assert figure.layout.xaxis.ticktext[0] == "0"
    assert "1,010 used evidence (50 %; 505.0 by chance)" in alt_text(figure)
    assert len(figure.to_json()) < 100_000


@pytest.mark.parametrize(
    ("matrices", "influence", "word"),
    [([[[None]]], [[0.3]], "both a known influence"), ([[]], None, "no passages")],
)
def test_no_passage_with_a_quadrant(matrices, influence, word):
    figure = claims_quadrants(claims_analysis(matrices, influence=influence))
    assert not figure.data
    assert word in alt_text(figure)


def test_no_influence_at_all_still_has_width():
    figure = claims_quadrants(claims_analysis([[[0.9, 0.1]]], influence=[[0.0, 0.0]]))
    assert figure.layout.xaxis.range[1] - figure.layout.xaxis.range[0] > 0.1


def test_hostile_ids_are_escaped_in_quadrants():
    analysis = claims_analysis([MATRIX], influence=[INFLUENCE])
    poisoned = analysis.passages.assign(query_id=HOSTILE, passage_id=HOSTILE)
    found = shown_strings(claims_quadrants(_with_passages(analysis, poisoned)))
    assert any(text.startswith("question=%3Cscript%3E") for _, text in found)
    assert any("&lt;scrip" in text for _, text in found)
    for _, text in found:
        assert "<" not in re.sub(r"<br>|</?b>|</?extra>", "", text)
        assert not re.search(r"[\x00-\x1f\u202e$]", text)
