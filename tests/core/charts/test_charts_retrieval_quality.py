from itertools import permutations

import numpy as np
import pytest

from core.charts.retrieval_quality import _data, retrieval_quality_chart
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
    data = _data(result)
    assert data["metric"].tolist() == ["hit_at_k"] * 2 + ["recall_at_k"] * 2 + ["ndcg_at_k"] * 2
    assert data["mean"].tolist()[:4] == pytest.approx([1 / 3, 2 / 3, 1 / 3, 2 / 3])
    # nDCG at 2: 1 for the first question, 1 / log2(3) for the second, 0 for the third.
    assert data["mean"].tolist()[5] == pytest.approx((1 + 1 / np.log2(3)) / 3)
    assert data["place"].round(6).tolist() == [-0.09, 0.91, 0, 1, 0.09, 1.09]


def test_figure_shows_intervals_depths_and_how_many_questions():
    figure = retrieval_quality_chart(quality([True, False, False, True, False, False], [1, 1, 0]))
    assert [trace.name for trace in figure.data] == [
        "Hit", "Hit by chance", "Recall", "Recall by chance", "nDCG", "nDCG by chance",
    ]  # fmt: skip
    marked = figure.data[::2]
    assert len({trace.marker.symbol for trace in marked}) == 3
    assert len({trace.line.dash for trace in marked}) == 3
    assert all(trace.cliponaxis is False for trace in marked)
    hit = figure.data[0]
    assert list(hit.y) == [0.5, 1]
    assert hit.y[0] - hit.error_y.arrayminus[0] == pytest.approx(0.0945, abs=1e-4)  # Wilson, 1 of 2
    assert "2 questions, 1 left out; below 1 in 1<br>" in hit.customdata[0][1]
    assert hit.customdata[0][0] == "where=retrieval_quality.queries.hit_at_1%3A..1"
    assert hit.customdata[1][0] == ""  # no question falls short there
    across = figure.layout.xaxis
    assert list(across.ticktext) == ["1", "2"] and list(across.tickvals) == [0, 1]
    assert across.range == pytest.approx((-0.4, 1.4)) and figure.layout.yaxis.range == (-0.03, 1.05)
    assert "Hit 0.50 at k = 1 (0.50 by chance) and 1.00 at k = 2 (1.00 by chance) (2 questions)" in alt_text(
        figure
    )


@pytest.mark.parametrize("gold", [[1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
@pytest.mark.parametrize("n_gold", [4, 6])
def test_chance_is_the_mean_over_all_orders_of_what_was_retrieved(gold, n_gold):
    def result(flags):
        run = make_run([[0.5, 0.4, 0.3, 0.2]], is_gold=[bool(flag) for flag in flags], query_n_gold=[n_gold])
        return retrieval_quality(run, analyse(run), (1, 3, 4))

    orders = [result(order).summary["mean"].to_numpy(float)[:9] for order in set(permutations(gold))]
    assert _data(result(gold))["chance"].tolist() == pytest.approx(np.mean(orders, axis=0))


def test_one_metric_and_one_depth():
    figure = retrieval_quality_chart(quality([True, False, False, False], [None, None], ks=(1, 5)))
    assert [trace.name for trace in figure.data] == [
        "Hit",
        "Hit by chance",
    ]  # recall rests on the number of gold passages
    assert alt_text(figure) == "Retrieval of gold passages: Hit 0.50 at k = 1 (0.25 by chance) (2 questions)."


def test_one_question_has_no_interval_of_its_recall():
    recall = retrieval_quality_chart(quality([True, False], [2])).data[2]
    assert list(recall.y) == [0.5, 0.5]
    assert list(recall.error_y.array) == [0, 0]


def test_no_gold_at_all():
    figure = retrieval_quality_chart(quality([None, None], [None]))
    assert not figure.data
    assert alt_text(figure).startswith("No question has a known gold passage")
