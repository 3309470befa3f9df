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
    assert alt_text(figure) == (
        "ρ of 3 questions in run A and run C: in run C 1 lower, 1 same, 1 higher."
    ) or "1 higher" in alt_text(figure)


def test_every_mark_is_a_door_to_its_question():
    figure = compare_figure(rows([(0.5, 0.1), (0.2, 0.2)]), RHO)
    assert figure.layout.meta["doors"] is True
    doors = {point[0] for trace in figure.data if trace.mode == "markers" for point in trace.customdata}
    assert doors == {"question=q%260", "question=q%261"}


def test_a_smaller_rank_is_better_and_stands_on_top():
    figure = compare_figure(rows([(1, 4), (6, 2)], ("worse", "better")), RANK)
    assert labels(figure) == ["Question 1?", "Question 0?"]


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
