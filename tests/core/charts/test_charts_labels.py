from core.definitions import UNDEFINED_REASONS

from core.charts import alt_text, label_counts
from core.charts.influence.labels import _data
from core.influence import analyse
from tests.core.charts.chart_runs import make_run

RUN = make_run([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9], [0.1, 0.6, 0.9], [0, 0, 0], [0.5, 0.5]])


def test_parts_by_hand():
    parts = _data(analyse(RUN))
    assert [(part.name, part.n) for part in parts] == [
        ("Aligned", 1),
        ("Divergent", 2),
        ("Undefined: too few passages", 1),
        ("Undefined: inert", 1),
    ]
    assert parts[3].meaning == UNDEFINED_REASONS["inert"].meaning


def test_figure():
    figure = label_counts(analyse(RUN))
    assert [trace.x[0] for trace in figure.data] == [1, 2, 1, 1]
    assert len({(trace.marker.color, trace.marker.pattern.shape) for trace in figure.data}) == 4
    assert figure.layout.barmode == "stack"
    assert alt_text(figure) == (
        "Labels of 5 questions: 1 aligned, 2 divergent, 1 undefined: too few passages, 1 undefined: inert."
    )


def test_no_questions(empty_analysis):
    figure = label_counts(empty_analysis)
    assert not figure.data
    assert alt_text(figure) == "There are no questions to label."
