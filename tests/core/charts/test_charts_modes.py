import pytest
from core.definitions import MODES

from core.charts import alt_text, failure_mode_counts
from core.charts.influence.modes import _data
from core.influence import analyse
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
    (bars,) = figure.data
    assert list(bars.y) == [mode.title for mode in MODES.values()]
    text = dict(zip(bars.y, bars.text, strict=True))
    assert text["Inverted order"] == "1 (50 %)"
    assert text["Inert"] == "0 (0 %)"
    assert text["Harmful passage"] == "not tested"
    assert alt_text(figure) == (
        "Failure modes among 2 questions: Ignored top hit 1, Buried evidence 1, Inverted order 1."
    )


def test_no_questions(empty_analysis):
    assert not failure_mode_counts(empty_analysis).data
