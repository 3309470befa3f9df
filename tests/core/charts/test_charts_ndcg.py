from core.charts.influence import ndcg_against_chance
from core.charts.theme import alt_text
from core.influence import analyse
from tests.core.charts.chart_runs import make_run


def test_one_marker_a_question_against_its_own_chance():
    # All on one of three: first place gives 1, last 1/2; by chance (1 + 0.6309 + 0.5) / 3.
    figure = ndcg_against_chance(analyse(make_run([[1, 0, 0], [0, 0, 1], [0, 0, 0]])))
    drawn = {
        door.removeprefix("question="): (x, y)
        for trace in figure.data
        for (door, _), x, y in zip(trace.customdata, trace.x, trace.y, strict=True)
    }
    assert drawn["q1"] == (0.71, 1) and drawn["q2"] == (0.71, 0.5)
    assert "q3" not in drawn
    assert alt_text(figure).startswith(
        "nDCG by influence against chance of 2 questions: mean 0.75, 0.71 by chance"
    )


def test_nothing_to_judge(empty_analysis):
    figure = ndcg_against_chance(empty_analysis)
    assert not figure.data
    assert alt_text(figure) == "No question has an nDCG by influence: no removal changed an answer."
