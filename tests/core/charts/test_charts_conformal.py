"""The figures of conformal prediction, by hand."""

import dataclasses
import re
from urllib.parse import parse_qsl

import numpy as np
import pytest

from core.charts.conformal import (
    certified_risk,
    coverage_by_alpha,
    p_value_plot,
    score_histogram,
    set_size,
)
from core.charts.theme import alt_text, has_doors
from core.conditions import matching
from core.conformal.definitions import OF_CORRECT, OF_DISTANCE, OF_SCORE, OF_SETS
from core.conformal.drift import Drift
from core.conformal.promises import Calibration
from core.text.display import percent
from tests.core.charts.chart_conformal import CALIBRATES, NEW, TESTS, calibrated, diagnosis_of
from tests.core.charts.chart_runs import HOSTILE, shown_strings

# Whatever of the four correct scores is the threshold at α = 0.5, one tested answer exceeds it.
TOY_ROWS = [
    *((CALIBRATES, score, 1) for score in (0.1, 0.2, 0.3, 0.4)),
    (CALIBRATES, 0.8, 0),
    *((TESTS, score, 1) for score in (0.15, 0.18, 0.45)),
    (TESTS, 0.85, 0),
    (NEW, 0.5, None),
    (NEW, 0.75, None),
]
TOY = calibrated(TOY_ROWS)
# Eight questions whose samples have two meanings, the correct one in three of four samples.
SETS = calibrated(
    [(CALIBRATES, 0.1, 1)] * 4 + [(TESTS, 0.1, 1)] * 4, meanings=[[True, True, False, True]] * 8
)
# Thirteen labels, whatever half they are of: eight correct ones at a confidence of 0.82 and five wrong ones at 0.12.
CERTIFIED = calibrated(
    [(CALIBRATES, 0.18, 1)] * 4 + [(TESTS, 0.18, 1)] * 4 + [(CALIBRATES, 0.88, 0)] * 5, 0.4
)
UNCALIBRATED = calibrated([(NEW, 0.1, None), (NEW, 0.2, None)])


def named(figure, start):
    (found,) = [trace for trace in figure.data if trace.name.startswith(start)]
    return found


def names(figure):
    return [trace.name for trace in figure.data]


def band(trace):
    """The low and the high end of a band along x, by x."""
    n = len(trace.x) // 2
    return dict(zip(trace.x[:n], zip(trace.y[n:][::-1], trace.y[:n], strict=True), strict=True))


def doors(trace):
    return [parse_qsl(door)[0][1] if door else "" for door, _ in trace.customdata]


def empty(figure):
    assert not figure.data
    return alt_text(figure)


def test_coverage_of_the_run_itself():
    figure = coverage_by_alpha(TOY, OF_CORRECT)
    own = named(figure, "This run")
    assert own.name == "This run (2 of 3)"
    assert (list(own.x), list(own.y)) == ([50], [pytest.approx(200 / 3)])
    assert own.marker.symbol == "star"
    low, high = map(percent, TOY.coverages[OF_CORRECT].band)
    assert own.customdata[0][1].split("<br>") == [
        "This run: 2 of 3 tested covered (67 %)",
        f"50 % promised, {low} to {high} expected",
        "1 tested question not covered",
        "Click to list these questions",
    ]
    assert matching(diagnosis_of(TOY), doors(own)[0]) == ("q8",)
    promise = named(figure, "Promise")
    assert list(promise.x) == list(promise.y) == [50, 98]
    assert list(named(figure, "Setting: 1 − α = 50 %").x) == [50, 50]


def test_every_promise_leads_to_the_questions_that_break_it():
    far = named(coverage_by_alpha(TOY, OF_DISTANCE), "This run")
    # Distances 0, 0, 0, 0, 1 calibrate; the incorrect tested answer is further away than 0.
    assert far.name == "This run (3 of 4)" and matching(diagnosis_of(TOY), doors(far)[0]) == ("q9",)
    # The scores of all five calibrate: 0.45 and 0.85 are above the middle ones.
    labelled = calibrated(TOY_ROWS[:-2])
    high = named(coverage_by_alpha(labelled, OF_SCORE), "This run")
    assert high.name == "This run (2 of 4)"
    assert matching(diagnosis_of(labelled), doors(high)[0]) == ("q8", "q9")
    # No list of questions holds both the tested and the new ones.
    assert not has_doors(coverage_by_alpha(TOY, OF_SCORE))
    missed = calibrated(
        [(CALIBRATES, 0.1, 1)] * 4 + [(TESTS, 0.1, 1)] * 2, meanings=[[True, True]] * 5 + [[False, False]]
    )
    own = named(coverage_by_alpha(missed, OF_SETS), "This run")
    assert own.name == "This run (1 of 2)" and matching(diagnosis_of(missed), doors(own)[0]) == ("q6",)
    assert not has_doors(coverage_by_alpha(SETS, OF_SETS))


def test_coverage_is_dotted_where_no_threshold_is_finite():
    figure = coverage_by_alpha(SETS, OF_SETS)
    solid, dotted = named(figure, "Mean of 200 splits"), named(figure, "Nothing promised")
    rows = SETS.coverages[OF_SETS].splits.to_frame()
    finite = rows[rows["finite"] == 1].iloc[0]
    first = 100 * (1 - finite["alpha"])
    # Both parts meet where the first threshold is finite.
    assert (max(solid.x), min(dotted.x)) == (pytest.approx(first), pytest.approx(first))
    assert (solid.line.dash, dotted.line.dash) == ("solid", "dot")
    assert set(solid.y) == set(dotted.y) == {100}
    assert set(band(named(figure, "Middle 95 % of the splits")).values()) == {(100, 100)}
    assert dotted.customdata[0].endswith("Nothing is promised: the threshold is infinite")
    exact = band(named(figure, "Exact 95 % band"))
    assert max(exact) == pytest.approx(first)
    assert exact[max(exact)] == (100 * finite["low"], 100 * finite["high"])
    assert "(4 calibrate, 4 test), n = 8 cases" in alt_text(figure)
    half = rows.iloc[int((rows["alpha"] - 0.5).abs().argmin())]
    own = f"{percent(half['low'])} to {percent(half['high'])}"
    assert f"50 % promised, 100 % covered on average, exact band without ties {own}; this" in alt_text(figure)
    assert solid.customdata[-1].endswith(f"Exact 95 % band: {own}")
    assert alt_text(figure).endswith(
        f"dotted where nothing is promised from {percent(first / 100 + 0.02)} on."
    )


def test_a_threshold_that_some_splits_lack():
    # One of twelve questions has no correct sample: where the largest of six labels is the threshold, it is infinite
    # in the halves that hold this question.
    analysis = calibrated(
        [(CALIBRATES, 0.1, 1)] * 6 + [(TESTS, 0.1, 1)] * 6, meanings=[[True, True]] * 11 + [[False, False]]
    )
    figure = coverage_by_alpha(analysis, OF_SETS)
    rows = analysis.coverages[OF_SETS].splits.to_frame()
    never, some, always = (
        100 * (1 - rows.loc[chosen, "alpha"])
        for chosen in (rows["finite"] == 0, rows["finite"].between(0.01, 0.99), rows["finite"] == 1)
    )
    dotted = named(figure, "Not always promised")
    assert (min(dotted.x), max(dotted.x)) == (always.max(), 98)
    nothing, hardly = (percent(part.min() / 100) for part in (never, some))
    said = f"nothing is promised from {nothing} on; from {hardly} on the threshold is infinite in some"
    assert said in alt_text(figure)
    # The last mark but the one where both parts meet.
    share = int(re.search(r"finite in (\d+) % of the splits only", dotted.customdata[-2])[1])
    assert 40 <= share <= 60


def test_samples_that_are_never_correct_promise_nothing():
    rows = [(CALIBRATES, 0.1, 0)] * 4 + [(TESTS, 0.1, 0)] * 4
    figure = coverage_by_alpha(calibrated(rows, meanings=[[False, False]] * 8), OF_SETS)
    assert set(named(figure, "Nothing promised").y) == {0}
    assert "Exact 95 % band" not in names(figure) and "Mean of 200 splits" not in names(figure)
    assert (
        named(set_size(calibrated(rows, meanings=[[False, False]] * 8)), "This run").marker.symbol
        == "star-open"
    )
    assert alt_text(figure).endswith("dotted where nothing is promised at any 1 − α.")
    assert "exact band" not in alt_text(figure)


def test_the_mark_is_open_where_nothing_is_promised():
    few = calibrated([(CALIBRATES, 0.1, 1), (TESTS, 0.2, 1), (TESTS, 0.3, 1)], 0.1)
    own = named(coverage_by_alpha(few, OF_CORRECT), "This run (2 of 2)")
    assert own.marker.symbol == "star-open"
    assert "1 correct answer cannot certify α = 0.1; you need at least 9." in own.customdata[0][1]


def test_set_size_by_hand():
    figure = set_size(SETS)
    solid, dotted = named(figure, "Mean of 200 splits"), named(figure, "Nothing promised")
    # A finite threshold is the rarity of the correct meaning, 1/4, which leaves the other out.
    assert set(solid.y) == {1} and set(dotted.y[:-1]) == {2} and dotted.y[-1] == 1
    assert set(named(figure, "Everything sampled (2.00)").y) == {2}
    own = named(figure, "This run (1.00)")
    assert (list(own.x), list(own.y), own.marker.symbol) == ([50], [1], "star")
    assert own.customdata[0] == "This run: 1.00 answers in a set on average<br>n = 4 tested questions"
    assert "of 8 questions: 1.00 at 50 % promised" in alt_text(figure)
    assert dotted.customdata[0].endswith("In 100 % of the splits a set is everything sampled")


def test_scores_by_hand():
    figure = score_histogram(TOY)
    correct, wrong, new, line = figure.data
    at = lambda trace: {round(float(x), 2): int(n) for x, n in zip(trace.x, trace.y, strict=True) if n}  # noqa: E731
    assert (correct.name, at(correct)) == ("Correct (7)", {0.15: 3, 0.25: 1, 0.35: 1, 0.45: 2})
    assert (wrong.name, at(wrong)) == ("Incorrect (2)", {0.85: 2})
    assert (new.name, at(new)) == ("Not known (2)", {0.55: 1, 0.75: 1})
    limit = TOY.coverages[OF_CORRECT].threshold
    assert (line.name, list(line.x)) == (f"Threshold {limit:.2f}", [limit, limit])
    assert len({trace.marker.pattern.shape for trace in (correct, wrong, new)}) == 3
    assert correct.customdata[0][1].startswith("Correct: 3 questions of 7<br>with a score from 0.1 to 0.2")
    assert alt_text(figure) == (
        "Histogram of the nonconformity score of 11 answers: 7 correct, 2 incorrect, 2 not known; threshold "
        f"{limit:.2f} from 4 correct answers."
    )


def test_every_bar_of_scores_leads_to_its_questions():
    figure, diagnosis = score_histogram(TOY), diagnosis_of(TOY)
    for trace in figure.data[:3]:
        for n, door in zip(trace.y, doors(trace), strict=True):
            assert len(matching(diagnosis, door)) == n if n else door == ""


def test_a_missing_label_of_a_tested_answer_is_no_condition():
    analysis = calibrated([(CALIBRATES, 0.1, 1), (TESTS, 0.2, None), (NEW, 0.3, None)])
    assert set(doors(named(score_histogram(analysis), "Not known"))) == {""}


def test_scores_without_a_finite_threshold():
    figure = score_histogram(calibrated([(CALIBRATES, 0.4, 1), (TESTS, 0.4, 1)], 0.1))
    (bar,) = figure.data
    assert list(bar.y) == [2]  # all alike
    assert list(bar.x) == pytest.approx([0.4]) and list(bar.width) == pytest.approx([1])
    assert figure.layout.xaxis.range == pytest.approx((-0.12, 0.92)) and figure.layout.margin.t == 32
    assert figure.layout.annotations[0].text == "No finite threshold: no answer is flagged"
    assert "no finite threshold: 1 correct answer cannot certify" in alt_text(figure)


def test_a_threshold_of_a_store_may_lie_beyond_the_scores():
    store = Calibration(np.full(9, 0.9), np.ones(9), [None] * 9)
    analysis = calibrated([(NEW, 0.1, None), (NEW, 0.2, None)], 0.2, store=store, origin="a store")
    figure = score_histogram(analysis)
    assert named(figure, "Threshold 0.90").x[0] == 0.9 and figure.layout.xaxis.range[1] > 0.9
    assert "nothing can be split" in empty(coverage_by_alpha(analysis, OF_CORRECT))
    wrong = Calibration(np.full(9, 0.9), np.zeros(9), [None] * 9)
    risk = certified_risk(calibrated([(NEW, 0.1, None)], 0.1, store=wrong, origin="a store"))
    assert "9 incorrect answers" in named(risk, "Not certified").customdata[0][1] and not has_doors(risk)


def test_certified_risk_by_hand():
    figure = certified_risk(CERTIFIED)
    best, other = named(figure, "Certified, answers most: from 0.15 on"), named(figure, "Not certified")
    # From 0.80 down to 0.15 the eight are answered: 0.6⁸ = 0.017 is below the share of the first start.
    assert (list(best.x), list(best.y)) == ([pytest.approx(800 / 13)], [0])
    assert (list(other.x), list(other.y)) == ([100], [pytest.approx(500 / 13)])
    assert best.marker.symbol != other.marker.symbol
    assert set(named(figure, "Allowed: α = 40 %").y) == {40}
    line = named(figure, "Labelled (13)")
    assert (line.x[-1], line.y[-1], line.y[0]) == (100, pytest.approx(500 / 13), 0)
    # From 0.1 on all are given, and five of thirteen are wrong.
    moved = named(certified_risk(CERTIFIED, 0.1), "Threshold in use")
    assert (list(moved.x), list(moved.y)) == ([100], [pytest.approx(500 / 13)])
    assert matching(diagnosis_of(CERTIFIED), doors(other)[0]) == tuple(f"q{i}" for i in range(9, 14))
    assert doors(best) == [""] and best.customdata[0][1].startswith(
        "Confidence from 0.15 to 0.80 on<br>8 of 13"
    )
    assert best.customdata[0][1].endswith("<br>Certified: p = 0.017, at most 0.09<br>needed")
    assert "5 incorrect answers (38 %)<br>Not tested: no higher threshold is" in other.customdata[0][1]
    assert "certified from a confidence of 0.15 on, which answers 8 with 0 incorrect" in alt_text(figure)


def test_risk_without_a_certificate_says_how_many_labels_would_do():
    figure = certified_risk(calibrated([(CALIBRATES, 0.1, 1)] * 3))
    # ½ⁿ ≤ 0.1 takes four, and the label after them.
    assert "nothing is certified (about 2 more labels would certify one)" in alt_text(figure)
    assert figure.layout.annotations[0].text.replace("<br>", " ") == (
        "Nothing is certified with 3 labels: about 2 more labels would certify one"
    )
    assert names(figure) == ["Labelled (3)", "Allowed: α = 50 %", "Not certified"]


def streamed(p_values):
    rows = [(CALIBRATES, 0.1, 1)] + [(NEW, 0.5, None)] * len(p_values)
    return drifting(calibrated(rows), [np.nan, *p_values])


def drifting(analysis, p_values):
    drift = Drift(np.zeros(len(p_values)), None, len(p_values), 0.05)
    return dataclasses.replace(analysis, queries=analysis.queries.assign(drift_p=p_values), drift=drift)


def test_p_values_by_hand():
    figure = p_value_plot(streamed([0.5, 0.001, 0.9]))
    low, inside = named(figure, "Below the band (1)"), named(figure, "Inside (2)")
    assert (list(low.x), list(low.y)) == ([0.25], [0.001])
    assert (list(inside.x), list(inside.y)) == ([0.5, 0.75], [0.5, 0.9])
    assert doors(low) == ["q3"] and doors(inside) == ["q2", "q4"]
    # The lowest of three is Beta(1, 3): 1 − (1 − p)³.
    ends = band(named(figure, "95 % of uniform samples, pointwise"))[0.25]
    assert ends == pytest.approx((1 - 0.975 ** (1 / 3), 1 - 0.025 ** (1 / 3)))
    assert low.customdata[0][1].split("<br>")[:3] == [
        "Question 3?", "p = 0.001, number 1 of 3 from the lowest", "Uniform: 0.25 (95 %: 0.0084 to 0.71)",
    ]  # fmt: skip
    assert "1 lie outside the pointwise 95 % band (0.2 by chance)" in alt_text(figure)


def test_p_values_that_are_too_high_have_a_form_of_their_own():
    above = named(p_value_plot(streamed([0.98, 0.97, 0.99])), "Above the band (2)")
    # The highest of three uniform ones is below 0.975^(1/3) = 0.9916 in 97.5 of 100 samples, as here.
    assert list(above.y) == [0.97, 0.98] and above.marker.symbol == "triangle-up"


def test_a_long_stream_has_marks_for_its_strangest_questions():
    figure = p_value_plot(streamed(np.linspace(0.001, 1, 5_000)))
    marked = {door for trace in figure.data if trace.mode == "markers" for door in doors(trace)}
    assert marked == {f"q{i}" for i in range(2, 302)}
    assert len(figure.to_json()) < 200_000


@pytest.mark.parametrize("draw", [set_size, p_value_plot])
def test_nothing_is_drawn_of_a_run_that_does_not_calibrate(draw):
    assert empty(draw(UNCALIBRATED)) == "No question of the run calibrates, and no store was given."
    assert empty(coverage_by_alpha(UNCALIBRATED, OF_CORRECT)).startswith("No question of the run calibrates")


@pytest.mark.parametrize("draw", [set_size, certified_risk, p_value_plot])
def test_a_stale_calibration_promises_nothing(draw):
    store = Calibration(np.empty(0), np.empty(0), ())
    stale = calibrated([(NEW, 0.1, None)], store=store, origin="a store", stale=(HOSTILE,))
    assert empty(draw(stale)).startswith("The calibration was made with another model")


def test_other_empty_figures_say_why():
    assert empty(set_size(TOY)) == "Undefined because nothing was sampled, or no reference answer is known."
    alone = calibrated([(CALIBRATES, 0.1, 1)])
    assert "nothing can be split" in empty(coverage_by_alpha(alone, OF_CORRECT))
    assert empty(p_value_plot(alone)).startswith("Undefined because questions of the run itself calibrate")
    of_store = dataclasses.replace(alone, origin="s.db")
    assert empty(p_value_plot(of_store)).startswith("No score of another question")
    unscored = calibrated([(CALIBRATES, np.nan, 1), (TESTS, np.nan, 1)])
    assert empty(score_histogram(unscored)) == "The chosen score has no value for this answer."
    assert empty(certified_risk(unscored)) == "No question has both a confidence and a label."
    without = dataclasses.replace(TOY, score=None)
    assert empty(score_histogram(without)) == "The run has no signal that can be a score."


def test_texts_from_elsewhere_are_text():
    rows = [*TOY_ROWS[:6], *TOY_ROWS]
    kinds = [f"{HOSTILE[: 9 + i % 2]}{HOSTILE}" for i in range(len(rows))]
    analysis = calibrated(rows, kinds=kinds, question=HOSTILE, title=HOSTILE)
    analysis = drifting(analysis, [np.nan] * (len(rows) - 6) + [0.5] * 6)
    drawn = {draw: draw(analysis) for draw in (score_histogram, p_value_plot)}
    for draw, figure in drawn.items():
        shown = [text for key, text in shown_strings(figure) if not text.startswith(("where=", "question="))]
        assert any("&lt;script" in text or "&lt;scr" in text for text in shown), draw
        for text in shown:
            assert "<script" not in text and "<b>bold" not in text and "$" not in text, text
