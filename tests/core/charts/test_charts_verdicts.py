from core.charts.influence import verdict_changes
from core.charts.theme import alt_text
from core.influence import analyse, compare_reported
from tests.core.charts.chart_runs import make_run

# Aligned and reported so; divergent but reported aligned; inert but reported aligned, twice; divergent both.
RUN = make_run(
    [[0.9, 0.5, 0.1], [0.1, 0.5, 0.9], [0, 0, 0], [0, 0, 0], [0.1, 0.5, 0.9]],
    query_reported_rho=[1.0, 0.9, 1.0, 1.0, -1.0],
)
COMPARISON = compare_reported(RUN, analyse(RUN))


def test_figure():
    figure = verdict_changes(COMPARISON)
    cells, squares = figure.data
    assert cells.z.tolist() == [[1, -1, -2], [0, 1, 0]]  # the sign is the hue: unchanged or changed
    assert squares.customdata[2] == [
        "where=influence.queries.reported_label%3AAligned%2Clabel%3AUndefined",
        "Reported Aligned, recomputed Undefined: 2 questions<br>2 inert<br>Click to list these questions",
    ]
    assert squares.customdata[1][1].split("<br>")[1] == "1 ρ that its scores do not give"
    assert squares.customdata[3] == ["", "Reported Divergent, recomputed Aligned: 0 questions"]
    texts = {(a.y, a.x): a.text for a in figure.layout.annotations}
    assert texts["Aligned", "Undefined"] == "<b>2</b><br>changed"
    assert texts["Divergent", "Divergent"] == "<b>1</b><br>unchanged"
    assert texts["Divergent", "Aligned"] == "0"
    assert alt_text(figure) == (
        "Reported against recomputed labels of 5 questions: 3 change, of which 2 become undefined."
    )


def test_no_reported_verdicts():
    run = make_run([[0.9, 0.5, 0.1]])
    figure = verdict_changes(compare_reported(run, analyse(run)))
    assert not figure.data
    assert alt_text(figure) == "The file reports no verdicts to compare with."
