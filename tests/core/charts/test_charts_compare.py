import pandas as pd
import pytest

from core.charts.compare import ROWS_AT_MOST, compare_figure
from core.charts.theme import alt_text
from core.socket import QuestionColumn
from tests.core.charts.chart_runs import HOSTILE, shown_strings

RHO = QuestionColumn("rho", "ρ", bounds=(-1.0, 1.0))
RANK = QuestionColumn("rank", "Rank", "{:g}", None, "worse")


def rows(values, words=("higher", "lower"), question="Question {}?"):
    a, b = (pd.Series([pair[i] for pair in values], dtype="float64") for i in (0, 1))
    change = ["same" if x == y else words[0] if y > x else words[1] for x, y in zip(a, b, strict=True)]
    ids = [f"q&{i}" for i in range(len(values))]
    texts = [question.format(i) for i in range(len(values))]
    return pd.DataFrame(
        {"query_id": ids, "question": texts, "a": a, "b": b, "difference": b - a, "change": change}
    )


def labels(figure):
    return [note.text for note in figure.layout.annotations]


def test_each_question_is_a_line_from_a_to_b_the_highest_change_on_top():
    figure = compare_figure(rows([(0.5, 0.1), (0.2, 0.2), (-0.3, 0.6)]), RHO, ("A", "C"))
    traces = {trace.name: trace for trace in figure.data if trace.name}
    assert list(traces) == ["Run A", "Run C: higher", "Run C: lower", "A and C the same"]
    assert labels(figure) == ["Question 2?", "Question 1?", "Question 0?"]
    # Equal values have one mark.
    assert list(traces["Run A"].x) == [-0.3, 0.5] and list(traces["Run A"].y) == [1, 3]
    assert (list(traces["A and C the same"].x), list(traces["A and C the same"].y)) == ([0.2], [2])
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert [list(trace.x[:2]) for trace in lines] == [[-0.3, 0.6], [0.5, 0.1]]
    # Up and down differ in form, not only in colour.
    assert len({trace.marker.symbol for trace in traces.values()}) == 4
    assert alt_text(figure) == "ρ of 3 questions in run A and run C: in run C 1 lower, 1 same, 1 higher."
    across, up = figure.layout.xaxis, figure.layout.yaxis
    # A twenty-fifth of the width stays free on either side, and each question has room above its line.
    assert across.range == pytest.approx((-1.08, 1.08)) and across.side == "top"
    assert up.range == pytest.approx((3.6, 0.2)) and not up.showgrid and not up.showticklabels
    assert [note.y for note in figure.layout.annotations] == pytest.approx([0.88, 1.88, 2.88])


def test_every_mark_is_a_door_to_its_question():
    figure = compare_figure(rows([(0.5, 0.1), (0.2, 0.2)]), RHO)
    assert figure.layout.meta["doors"] is True
    doors = {point[0] for trace in figure.data if trace.mode == "markers" for point in trace.customdata}
    assert doors == {"question=q%260", "question=q%261"}


def test_a_smaller_rank_is_better_and_stands_on_top():
    figure = compare_figure(rows([(1, 4), (6, 2)], ("worse", "better")), RANK)
    assert labels(figure) == ["Question 1?", "Question 0?"]
    assert figure.layout.xaxis.range == pytest.approx((0.8, 6.2)) and not figure.layout.shapes


@pytest.mark.parametrize(
    ("values", "zero"), [((-0.5, 0.5), True), ((0, 0.5), False), ((-0.5, 0), False), ((0.2, 0.5), False)]
)
def test_where_values_lie_on_both_sides_of_zero_it_has_a_line(values, zero):
    figure = compare_figure(rows([values]), QuestionColumn("size", "Size"))
    assert [(line.x0, line.x1) for line in figure.layout.shapes] == [(0, 0)] * zero


def test_values_that_are_all_equal_have_room_on_either_side():
    assert compare_figure(rows([(3, 3)]), RANK).layout.xaxis.range == (2.5, 3.5)


@pytest.mark.parametrize(("words", "lines"), [(1, 1), (2, 2), (4, 4), (6, 4)])
def test_a_question_has_at_most_four_lines_of_forty_characters(words, lines):
    figure = compare_figure(rows([(0, 1), (0, 0)], question=" ".join(["w" * 30] * words)), RHO)
    assert labels(figure) == ["<br>".join(["w" * 30] * lines)] * 2
    assert figure.layout.height == 160 + 2 * (15 + 15 * lines)


def test_yes_and_no_are_named():
    column = QuestionColumn("correct", "Correct", "bool", (0.0, 1.0), "better")
    axis = compare_figure(rows([(0, 1)], ("better", "worse")), column).layout.xaxis
    assert list(axis.ticktext) == ["no", "yes"] and axis.range[0] < 0 and axis.range[1] > 1


def test_at_most_sixty_those_that_change_most():
    figure = compare_figure(rows([(0.0, i / 1000) for i in range(1, 101)]), RHO)
    assert len(labels(figure)) == ROWS_AT_MOST
    assert labels(figure)[0] == "Question 99?" and labels(figure)[-1] == "Question 40?"
    assert alt_text(figure).endswith("Drawn are the 60 that change most.")


@pytest.mark.parametrize("values", [[], [(0.3, 0.3)]])
def test_none_or_none_that_changed(values):
    figure = compare_figure(rows(values), RANK)
    assert len(figure.data) == len(values)


def test_questions_are_shown_as_they_are():
    figure = compare_figure(rows([(0, 1)], question=HOSTILE.replace("{", "").replace("}", "")), RHO)
    shown = [text for _, text in shown_strings(figure)]
    assert any("&lt;script&gt;" in text for text in shown)
    assert not any("<script>" in text or "$" in text for text in shown)


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        (" ".join(["word"] * 8), [39]),
        ("a" + "word " * 8, [40]),
        (" ".join(["word"] * 9), [39, 4]),
        ("word " * 60, [39] * 4),
    ],
)
def test_a_question_stands_above_its_line_in_at_most_four_lines_of_forty(question, lines):
    figure = compare_figure(rows([(0.5, 0.1), (0.2, 0.4)], question=question), RHO)
    assert [list(map(len, text.split("<br>"))) for text in labels(figure)] == [lines, lines]
    assert figure.layout.height == 160 + 2 * (15 + 15 * len(lines))


@pytest.mark.parametrize(("n", "drawn"), [(60, ""), (61, " Drawn are the 60 that change most.")])
def test_sixty_questions_at_most_are_drawn(n, drawn):
    figure = compare_figure(rows([(0.0, (i + 1) / 100) for i in range(n)]), RHO)
    assert alt_text(figure) == f"ρ of {n} questions in run A and run B: in run B {n} higher.{drawn}"
    assert len(figure.data[-1].x) == 60 and max(figure.data[-1].x) == n / 100
