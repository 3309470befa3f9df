"""The figures of validation, by hand."""

from datetime import UTC, date, datetime, timedelta
from urllib.parse import parse_qsl

import pytest

from core.charts.theme import alt_text, has_doors
from core.charts.validation import (
    flag_rates,
    objection_reasons,
    pass_rate_by_day,
    verdict_counts,
)
from core.conditions import describe, matching
from core.diagnosis import Diagnosis
from core.validation.metrics import Observation, daily
from tests.core.charts.chart_runs import HOSTILE
from tests.core.charts.chart_validation import diagnosed, validated
from tests.core.validation.validation_runs import CASES, run_of

NAMES = ["CitationRequired", "EvidenceOverlap", "NumericUnits", "ConfidenceValidator", "EthicsAdapter"]


@pytest.fixture(scope="module")
def seven():
    """Five validated answers: two wrong, two right, one not labelled."""
    return diagnosed(run_of())


@pytest.fixture(scope="module")
def unlabelled():
    return validated(run_of(references=()))


def named(figure, start):
    (found,) = [trace for trace in figure.data if (trace.name or "").startswith(start)]
    return found


def questions(diagnosis, trace):
    """What each door of a trace opens; None where there is no door."""
    doors = [door for door, _ in trace.customdata]
    return [matching(diagnosis, parse_qsl(door)[0][1]) if door else None for door in doors]


def rows(figure):
    return [text.replace("<br>", " ") for text in figure.layout.yaxis.ticktext]


def test_each_validator_has_a_bar_of_all_validated_answers(seven):
    figure = verdict_counts(seven["validation"])
    parts = {trace.name: [int(x) for x in trace.x] for trace in figure.data}
    assert parts == {
        "Passed": [2, 2, 0, 2],
        "Warning": [1, 1, 1, 0],
        "Critical": [1, 0, 0, 3],
        # The empty answer, and the answers without a number; the guard that never applies has no bar.
        "Does not apply": [1, 2, 4, 0],
    }
    assert [sum(column) for column in zip(*parts.values(), strict=True)] == [5] * 4
    assert figure.layout.barmode == "stack" and tuple(figure.layout.xaxis.range) == (0, 5)
    assert rows(figure) == [
        "Citation Required", "Evidence Overlap", "Numeric Units", "Confidence Validator",
    ]  # fmt: skip
    assert alt_text(figure) == (
        "Verdicts of 4 validators on 5 answers: CitationRequired warns of 1 and stops 1; EvidenceOverlap "
        "warns of 1 and stops 0; NumericUnits warns of 1 and stops 0; ConfidenceValidator warns of 0 and "
        "stops 3."
    )


def test_parts_of_a_bar_lead_to_their_questions(seven):
    figure = verdict_counts(seven["validation"])
    critical = named(figure, "Critical")
    assert questions(seven, critical) == [("sure",), None, None, ("sure", "empty", "lost")]
    assert critical.customdata[3][1].split("<br>") == [
        "ConfidenceValidator: critical", "3 of 5 answers (60 %)", "Click to list these questions",
    ]  # fmt: skip
    assert questions(seven, named(figure, "Does not apply")) == [None] * 4
    door = parse_qsl(critical.customdata[3][0])[0][1]
    assert describe(seven, door) == "validator: ConfidenceValidator, verdict: critical"


def test_flags_among_wrong_and_right_answers(seven):
    figure = flag_rates(seven["validation"])
    wrong, right = named(figure, "Incorrect answers (2)"), named(figure, "Correct answers (2)")
    # EthicsAdapter never applies, and has no row.
    assert list(wrong.x) == [50, 50, 50, 100] and list(right.x) == [50, 0, 0, 0]
    assert list(wrong.y) == pytest.approx([0.83, 1.83, 2.83, 3.83])
    assert list(right.y) == pytest.approx([1.17, 2.17, 3.17, 4.17])
    # Wilson of 2 of 2: z² / (2 + z²) with z = 1.96 is missing at the lower end.
    z2 = 1.959964**2
    assert list(wrong.error_x.arrayminus)[3] == pytest.approx(100 * z2 / (2 + z2), abs=0.01)
    assert wrong.error_x.array[3] == pytest.approx(0)
    assert all(trace.cliponaxis is False for trace in figure.data)
    assert wrong.marker.size == right.marker.size == 11 and wrong.marker.symbol != right.marker.symbol
    assert figure.layout.xaxis.range == (-2, 102) and figure.layout.xaxis.dtick == 20
    # 2, 1, 1 and 2 objections to 4 answers.
    assert list(named(figure, "Chance").x) == [50, 25, 25, 50]
    assert rows(figure) == [
        "Citation Required p = 1",
        "Evidence Overlap p = 1",
        "Numeric Units p = 1",
        "Confidence Validator p = 0.33",
    ]
    assert questions(seven, wrong) == [("sure",), ("lost",), ("lost",), ("sure", "lost")]
    assert questions(seven, right) == [("bare",), None, None, None]
    assert wrong.customdata[3][1].split("<br>")[:3] == [
        "ConfidenceValidator",
        "objects to 2 of 2 incorrect answers (100 %; 95 %: 34–100 %)",
        "By chance 50 %",
    ]
    assert "of 4 labelled answers: CitationRequired 1 of 2 and 1 of 2, p = 1; " in alt_text(figure)


def test_a_validator_that_objects_to_all_has_no_test_and_says_so():
    figure = flag_rates(
        validated(run_of({"bare": CASES["bare"], "lost": ("Brunel built it.", CASES["lost"][1])}))
    )
    assert rows(figure)[0] == "Citation Required objects to all"
    assert named(figure, "Chance").x[0] == 100


def test_answers_of_one_kind_only_have_one_kind_of_marks():
    figure = flag_rates(validated(run_of({"fine": CASES["fine"], "bare": CASES["bare"]})))
    assert [trace.name for trace in figure.data if trace.name] == [
        "Correct answers (2)",
        "Chance: as many at random",
    ]
    assert rows(figure)[0] == "Citation Required no test"


def test_reasons_by_correctness_and_what_chance_gives(seven):
    figure = objection_reasons(seven["validation"])
    assert rows(figure)[0] == "Missing citation 2 (40 %)"
    assert sorted(rows(figure)[1:]) == [
        "Empty answer 1 (20 %)", "Low overlap 1 (20 %)", "Missing uncertainty 1 (20 %)",
        "Overconfident 1 (20 %)", "Unsupported number 1 (20 %)",
    ]  # fmt: skip
    wrong, right, other = (named(figure, name) for name in ("Incorrect", "Correct", "Not labelled"))
    assert (list(wrong.x), list(right.x), list(other.x)) == ([1] * 5, [1], [1])
    words = rows(figure)[other.y[0] - 1]
    assert words == "Empty answer 1 (20 %)"
    # Two flags on four answers of which two are wrong meet 1, and 0 to 2 in 95 of 100; one meets 0.5, 0 to 1.
    # Nothing is compared where no labelled answer is flagged.
    chance = named(figure, "Chance")
    assert list(chance.x) == [1, 0.5, 0.5, 0.5, 0.5] and other.y[0] + 0.4 not in list(chance.y)
    assert chance.error_x.array[0] == chance.error_x.arrayminus[0] == 1
    assert chance.y[0] == pytest.approx(1.4)
    assert questions(seven, wrong)[0] == ("sure",) and questions(seven, right) == [("bare",)]
    assert questions(seven, other) == [None]
    assert [trace.customdata[0][1].split("<br>")[:3] for trace in (wrong, other)] == [
        ["Missing citation (CitationRequired)", "1 incorrect", "2 of 5 answers in all (40 %)"],
        ["Empty answer (ConfidenceValidator)", "1 not labelled", "1 of 5 answers in all (20 %)"],
    ]
    door = parse_qsl(wrong.customdata[0][0])[0][1]
    assert describe(seven, door) == "validator: CitationRequired, objection: missing citation, correct: no"
    assert "Missing citation 2, 1 of them incorrect (1.0 by chance); " in alt_text(figure)


def test_without_labels_reasons_are_counted_and_nothing_is_compared(unlabelled):
    figure = objection_reasons(unlabelled)
    (bars,) = figure.data
    assert bars.name == "Answers" and list(bars.x) == [2, 1, 1, 1, 1, 1]
    diagnosis = Diagnosis(unlabelled.run)
    assert questions(diagnosis, bars)[0] == ("sure", "bare")
    assert "incorrect" not in alt_text(figure)
    empty = flag_rates(unlabelled)
    assert not empty.data
    assert alt_text(empty) == "No validated answer is known to be correct or incorrect."


def test_nothing_validated_and_nothing_objected_to_are_said():
    bare = Diagnosis(run_of())["validation"]
    for draw in (flag_rates, objection_reasons, verdict_counts):
        figure = draw(bare)
        assert not figure.data and alt_text(figure) == "No validator has seen this answer."
    fine = objection_reasons(validated(run_of({"fine": CASES["fine"]})))
    assert not fine.data and alt_text(fine) == "No validator objects to any of 1 answer."


@pytest.mark.parametrize(
    ("name", "shown"),
    [("MyOwnGuard", "My<br>OwnGuard"), ("guard", "guard"), ("A" * 39 + "bC", "A" * 39 + "…")],
)
def test_the_name_of_a_validator_is_cut_at_40_characters_and_has_two_lines_at_most(name, shown):
    verdicts = [{"query_id": "fine", "validator": name, "passed": True}]
    figure = verdict_counts(validated(run_of({"fine": CASES["fine"]}, verdicts=verdicts)))
    assert figure.layout.yaxis.ticktext[-1] == shown


def test_validators_of_a_file_are_shown_under_their_name_and_not_in_the_description():
    verdicts = [
        {"query_id": "fine", "validator": HOSTILE, "passed": False, "reason": "x", "severity": "high"}
    ]
    found = validated(run_of({"fine": CASES["fine"]}, verdicts=verdicts))
    figure = verdict_counts(found)
    assert rows(figure)[-1].startswith("&lt;script&gt;")
    assert alt_text(figure).endswith(": a validator of the file warns of 1 and stops 0.")
    (row,) = rows(objection_reasons(found))
    assert row == "Other 1 (100 %)"


NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def seen(days_ago, passed, used_fallback=False):
    at = NOW - timedelta(days=days_ago)
    return Observation(at, passed, used_fallback, 0.5, None, used_fallback, False, ())


def test_the_pass_rate_of_each_day_with_its_interval():
    observations = [seen(0, True), seen(0, False, True), seen(3, True), seen(3, True), seen(40, False)]
    figure = pass_rate_by_day(daily(observations, NOW, 30))
    (marks,) = figure.data
    assert [str(day)[:10] for day in marks.x] == ["2026-11-20", "2026-11-23"]
    assert list(marks.y) == [100, 50]
    # Wilson of 1 of 2: 9 to 91 %.
    assert marks.error_y.arrayminus[1] == pytest.approx(50 - 9.45, abs=0.01)
    assert marks.customdata[1] == "2026-11-23: 1 of 2 answers pass<br>50 % (95 %: 9–91 %)<br>1 fallbacks"
    assert tuple(str(end)[:10] for end in figure.layout.xaxis.range) == ("2026-10-25", "2026-11-23")
    assert figure.layout.yaxis.range == (-2, 102) and figure.layout.yaxis.dtick == 20
    assert marks.cliponaxis is False
    assert alt_text(figure) == (
        "Share of the answers that pass, 4 answers on 2 of 30 days: 1 of 2 on 2026-11-23, the last day with "
        "answers."
    )
    assert not has_doors(figure)


def test_days_without_any_answer_give_an_empty_figure():
    figure = pass_rate_by_day({date(2026, 11, 23): daily([], NOW, 1)[date(2026, 11, 23)]})
    assert not figure.data and alt_text(figure) == "No answer was validated in 1 day."
