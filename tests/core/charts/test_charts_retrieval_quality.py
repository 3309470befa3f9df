import numpy as np
import pytest

from core.charts.retrieval_quality import retrieval_quality_chart
from core.charts.retrieval_quality.metrics import _data
from core.charts.theme import alt_text
from core.influence import analyse
from core.retrieval_quality.analysis import retrieval_quality
from tests.core.charts.chart_runs import make_run


def quality(gold, n_gold, ks=(1, 2)):
    """Questions with two passages each; ``gold`` marks the first and the second of each in turn."""
    influences = [[0.5, 0.1]] * (len(gold) // 2)
    run = make_run(influences, is_gold=gold, query_n_gold=n_gold)
    return retrieval_quality(run, analyse(run), ks)


def test_points_are_the_means_of_the_summary_at_equal_distances():
    result = quality([True, False, False, True, False, False], [1, 1, 2], ks=(1, 2))
    data = _data(result.to_frame())
    assert data["metric"].tolist() == ["hit_at_k"] * 2 + ["recall_at_k"] * 2 + ["ndcg_at_k"] * 2
    assert data["mean"].tolist()[:4] == pytest.approx([1 / 3, 2 / 3, 1 / 3, 2 / 3])
    # nDCG at 2: 1 for the first question, 1 / log2(3) for the second, 0 for the third.
    assert data["mean"].tolist()[5] == pytest.approx((1 + 1 / np.log2(3)) / 3)
    assert data["place"].round(6).tolist() == [-0.09, 0.91, 0, 1, 0.09, 1.09]


def test_figure_shows_intervals_depths_and_how_many_questions():
    figure = retrieval_quality_chart(quality([True, False, False, True, False, False], [1, 1, 0]))
    assert [trace.name for trace in figure.data] == ["Hit", "Recall", "nDCG"]
    assert len({trace.marker.symbol for trace in figure.data}) == 3
    assert len({trace.line.dash for trace in figure.data}) == 3
    hit = figure.data[0]
    assert list(hit.y) == [0.5, 1]
    assert hit.y[0] - hit.error_y.arrayminus[0] == pytest.approx(0.0945, abs=1e-4)  # Wilson, 1 of 2
    assert "2 questions, 1 left out" in hit.customdata[0]
    assert list(figure.layout.xaxis.ticktext) == ["1", "2"]
    assert "Hit 0.50 at k = 1 and 1.00 at k = 2 (2 questions)" in alt_text(figure)


def test_a_frame_and_a_result_give_the_same_figure():
    result = quality([True, False], [1])
    assert retrieval_quality_chart(result) == retrieval_quality_chart(result.to_frame())


def test_one_metric_and_one_depth():
    figure = retrieval_quality_chart(quality([True, False, False, False], [None, None], ks=(1, 5)))
    assert [trace.name for trace in figure.data] == ["Hit"]  # recall rests on the number of gold passages
    assert alt_text(figure) == "Retrieval of gold passages: Hit 0.50 at k = 1 (2 questions)."


def test_one_question_has_no_interval_of_its_recall():
    recall = retrieval_quality_chart(quality([True, False], [2])).data[1]
    assert list(recall.y) == [0.5, 0.5]
    assert list(recall.error_y.array) == [0, 0]


def test_no_gold_at_all():
    figure = retrieval_quality_chart(quality([None, None], [None]))
    assert not figure.data
    assert alt_text(figure).startswith("No question has a known gold passage")
