from core.charts.influence import label_counts
from core.charts.influence.labels import _data
from core.charts.theme import alt_text
from core.influence import analyse
from core.influence.definitions import REASONS
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
    assert parts[3].meaning == REASONS["inert"].meaning


def test_labels_that_ties_leave_undefined_are_a_part_of_their_own():
    analysis = analyse(make_run([[0, 1] + [0] * 8, [0.9, 0.5, 0.1]]))
    aligned, tied = _data(analysis)
    assert (tied.name, tied.n, tied.style) == ("Undefined: ties cannot reach τ", 1, "neutral")
    # One untied question of three passages: 5 of 6 orders are below 0.7.
    assert aligned.meaning == "ρ ≥ 0.7; 0.2 by chance"
    assert [part.name for part in _data(analysis.labelled(0.7, as_published=True))] == [
        "Aligned",
        "Divergent",
    ]


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
