import pytest

from core.charts.influence import failure_mode_counts
from core.charts.influence.modes import _data
from core.charts.theme import alt_text
from core.influence import analyse
from core.influence.definitions import MODES
from tests.core.charts.chart_runs import make_run

UPSIDE_DOWN = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def test_counts_by_hand():
    # Reversed: inverted, ignored top hit, buried evidence. One at 0.9 of the sum: over-reliance. All 0: inert.
    run = make_run([UPSIDE_DOWN, [0.9, 0.1, 0], [0, 0, 0], [0.3, 0.2, 0.1]])
    data = _data(analyse(run)).set_index("name")
    assert data["n"].to_dict() == dict.fromkeys(MODES, 0) | {
        "ignored_top_hit": 1, "buried_evidence": 1, "inverted": 1, "over_reliance": 1, "inert": 1,
    }  # fmt: skip
    assert data.loc["inert", "share"] == pytest.approx(0.25)
    assert data.index[~data["tested"]].tolist() == [
        "parametric", "redundant", "harmful_passage", "missed_evidence",
    ]  # fmt: skip  # no closed-book answers, no references, no gold


def test_modes_that_nothing_could_show_are_not_tested():
    data = _data(analyse(make_run([[0, 0, 0]])))
    assert set(data.loc[~data["tested"], "name"]) == {
        "ignored_top_hit", "buried_evidence", "over_reliance", "inverted", "harmful_passage",
        "parametric", "redundant", "missed_evidence",
    }  # fmt: skip


def test_figure_shows_zeros_and_titles():
    figure = failure_mode_counts(analyse(make_run([UPSIDE_DOWN, [0.3, 0.2, 0.1]])))
    bars, _ = figure.data
    assert list(bars.y) == [mode.title for mode in MODES.values()]
    text = {note.y: note.text for note in figure.layout.annotations}
    # Three passages have no order that is rare enough to be called inverted.
    assert text["Inverted order"] == "1 (100 %)"
    assert text["Inert"] == "0 (0 %)"
    assert text["Harmful passage"] == "not tested"
    # Of six untied passages, three are retrieved first and three used last: 1 − 1/20 of all orders meet.
    assert alt_text(figure) == (
        "Failure modes among 2 questions: Ignored top hit 1 (0.9 by chance), Buried evidence 1 (0.9 by chance), "
        "Inverted order 1 (0.0 by chance)."
    )


def test_chance_is_marked_where_it_can_produce_the_mode():
    figure = failure_mode_counts(analyse(make_run([UPSIDE_DOWN, UPSIDE_DOWN])))
    _, chance = figure.data
    assert list(chance.y) == ["Ignored top hit", "Buried evidence", "Inverted order"]
    assert chance.x[0] == pytest.approx(2 * 0.95)
    assert (chance.error_x.array[0], chance.error_x.arrayminus[0]) == pytest.approx((0.1, 0.9))
    assert chance.customdata[0].startswith("By chance 1.9<br>95 %: 1 to 2<br>p = ")


def test_bars_lead_to_their_questions():
    bars, _ = failure_mode_counts(analyse(make_run([UPSIDE_DOWN, [0.3, 0.2, 0.1]]))).data
    doors = dict(zip(bars.y, bars.customdata, strict=True))
    assert doors["Inverted order"][0] == "where=influence.queries.inverted%3ATrue"
    assert doors["Inverted order"][1].startswith("Inverted order: 1 of 1 question (0.0 by chance)<br>")
    assert doors["Inert"][0] == ""  # there is no such question


def test_no_questions(empty_analysis):
    assert not failure_mode_counts(empty_analysis).data
