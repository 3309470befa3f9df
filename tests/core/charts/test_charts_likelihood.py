"""The answer given against the reference answer, passage by passage."""

import numpy as np

from core.charts.likelihood import answer_against_reference
from core.charts.theme import alt_text, has_doors
from tests.core.charts.chart_runs import HOSTILE, shown_strings
from tests.core.likelihood.likelihood_runs import analysed_run, scored_run


def analysed(*questions, **columns):
    return analysed_run(scored_run(*questions, **columns))


TWO = (
    ("omega", "alpha", (2.0, -1.0, 0), (-0.5, 3.0, 1), (1.0, np.nan, 0)),
    ("alpha", "alpha", (4.0, 5.0, 1)),
)


def test_each_passage_is_a_mark_that_leads_to_its_question():
    figure = answer_against_reference(analysed(*TWO))
    marks = {trace.name: (list(trace.x), list(trace.y)) for trace in figure.data}
    assert marks == {
        "Gold passage (2 passages)": ([-0.5, 4.0], [3.0, 5.0]),
        "Other passage (1 passage)": ([2.0], [-1.0]),
    }
    assert has_doors(figure) and figure.data[0].customdata[1][0] == "question=q2"
    assert (
        "3 passages in 2 questions: raise both 1, raise only the answer given 1, raise only the reference 1"
        in (alt_text(figure))
    )


def test_only_correct_answers_or_only_the_others():
    found = analysed(*TWO)
    assert [list(trace.x) for trace in answer_against_reference(found, correct=True).data] == [[4.0]]
    assert [list(trace.x) for trace in answer_against_reference(found, correct=False).data] == [[-0.5], [2.0]]


def test_without_marks_of_gold_there_is_one_kind_of_passage():
    figure = answer_against_reference(analysed(*TWO, is_gold=None))
    assert [trace.name for trace in figure.data] == ["Passage (3 passages)"]


def test_nothing_scored_is_a_labelled_empty_figure():
    figure = answer_against_reference(analysed(("omega", None, (1.0, np.nan, 0))))
    assert not figure.data and figure.layout.annotations[0].text.replace("<br>", " ") == alt_text(figure)


def test_very_many_passages_are_counts():
    passages = [(float(i % 50), float(i % 40), 0) for i in range(2_001)]
    figure = answer_against_reference(analysed(("omega", "alpha", *passages)))
    (counts,) = figure.data
    assert counts.type == "heatmap" and np.nansum(counts.customdata) == 2_001
    assert len(figure.to_json()) < 100_000


def test_as_many_as_may_be_are_marks(monkeypatch):
    monkeypatch.setattr("core.charts.likelihood._MOST_MARKS", 3)
    assert {trace.type for trace in answer_against_reference(analysed(*TWO)).data} == {"scatter"}
    monkeypatch.setattr("core.charts.likelihood._MOST_MARKS", 2)
    assert {trace.type for trace in answer_against_reference(analysed(*TWO)).data} == {"heatmap"}


def test_hostile_text_arrives_escaped():
    figure = answer_against_reference(analysed(*TWO, title=HOSTILE))
    shown = shown_strings(figure)
    assert shown and not any("script>" in text or "$" in text for _, text in shown)


def test_a_passage_that_changes_nothing_raises_neither():
    figure = answer_against_reference(
        analysed(
            ("omega", "alpha", (0.0, 0.0, 0), (0.0, 0.5, 0), (0.5, 0.0, 0), (-1.0, -1.0, 0), (0.5, 0.5, 1))
        )
    )
    assert alt_text(figure).endswith(
        "5 passages in 1 question: raise both 1, raise only the answer given 1, raise only the reference 1, raise "
        "neither 2."
    )
