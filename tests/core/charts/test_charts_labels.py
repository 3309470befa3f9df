import pytest

from core.charts.influence import label_counts
from core.charts.influence.labels import _data
from core.charts.theme import alt_text, has_doors
from core.influence import analyse
from core.influence.definitions import REASONS
from tests.core.charts.chart_runs import make_run

RUN = make_run([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9], [0.1, 0.6, 0.9], [0, 0, 0], [0.5, 0.5]])


def test_rows_by_hand():
    data = _data(analyse(RUN))
    assert data[["name", "n"]].to_numpy().tolist() == [
        ["Aligned", 1], ["Divergent", 2], ["Too few passages", 1], ["Inert", 1],
    ]  # fmt: skip
    assert data["rule"].tolist()[3] == REASONS["inert"].meaning
    # Three untied questions of three passages: 1 of 6 orders reaches 0.7.
    assert data["expected"].tolist()[:2] == pytest.approx([0.5, 2.5])
    assert data["expected"].isna().tolist() == [False, False, True, True]
    assert data["expected_low"].tolist()[:2] == [0, 1] and data["expected_high"].tolist()[:2] == [2, 3]


def test_labels_that_ties_leave_undefined_are_a_row_of_their_own():
    analysis = analyse(make_run([[0, 1] + [0] * 8, [0.9, 0.5, 0.1]]))
    assert _data(analysis)["n"].tolist() == [1, 0, 1]
    assert _data(analysis)["name"].tolist()[2] == "Ties cannot reach τ"
    assert _data(analysis.labelled(0.7, as_published=True))["name"].tolist() == ["Aligned", "Divergent"]


def test_figure():
    figure = label_counts(analyse(RUN))
    assert [list(trace.x) for trace in figure.data] == [[1], [2], [1, 1], pytest.approx([0.5, 2.5])]
    assert has_doors(figure)
    assert [point[0] for point in figure.data[2].customdata] == [
        "where=influence.queries.label_reason%3Atoo_few_passages", "where=influence.queries.label_reason%3Ainert",
    ]  # fmt: skip
    assert figure.data[1].customdata[0][1] == (
        "2 of 5 divergent (2.5 by chance)<br>ρ &lt; 0.7<br>Click to list these questions"
    )
    assert alt_text(figure) == (
        "Labels of 5 questions: 1 aligned (0.5 by chance), 2 divergent (2.5 by chance), "
        "1 undefined: too few passages, 1 undefined: inert."
    )


def test_no_questions(empty_analysis):
    figure = label_counts(empty_analysis)
    assert not figure.data
    assert alt_text(figure) == "There are no questions to label."
