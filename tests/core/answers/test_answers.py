"""What became of the questions, counted by hand."""

import pandas as pd
import pytest
from scipy import stats

from core.answers.analysis import UNKNOWN, Answers
from core.answers.diagnostic import ANSWERS, findings
from core.diagnosis import Diagnosis
from core.run import Run
from core.socket import BAD, GOOD, UNCLEAR, QuestionColumn


def diagnosis(rows):
    columns = ["answer", "answer_status", "reference_answers"]
    queries = pd.DataFrame(rows, columns=columns).assign(question="?")
    queries["query_id"] = [f"q{i}" for i in range(1, len(rows) + 1)]
    return Diagnosis(Run.create({"source": "live"}, queries=queries), diagnostics=[ANSWERS])


MIXED = [
    ("It was Unwin.", "answered", ["Unwin"]),
    ("It was Parker.", "answered", ["Unwin"]),
    ("Nobody asked", "answered", None),
    ("I don't know.", "abstained", ["Unwin"]),
    ("", "empty", ["Unwin"]),
    (None, "error", ["Unwin"]),
]


def test_counts_by_hand():
    d = diagnosis(MIXED)
    summary = d.summary()
    assert (summary["n_queries"], summary["n_correct"], summary["n_judged"]) == (6, 1, 2)
    assert (summary["n_abstained"], summary["n_empty_answers"], summary["n_errors"]) == (1, 1, 1)
    assert d["answers"].queries["correct"].astype("object").where(lambda s: s.notna(), None).to_list() == [
        True, False, None, None, None, None,
    ]  # fmt: skip
    # Evidence is asked for of incorrect answers alone.
    assert d["answers"].queries["evidence"].eq(UNKNOWN).tolist() == [False, True, False, False, False, False]
    assert d["answers"].queries["evidence_by"].isna().all()


def test_every_number_has_its_whole_its_definition_and_its_place():
    found = {
        one.key: (one.value, one.of, one.define, one.place) for one in diagnosis(MIXED).numbers("answers")
    }
    assert found == {
        "n_queries": (6, None, "", "row"),
        "n_correct": (1, 2, "correct", "card"),
        "n_judged": (2, None, "", "data"),
        "n_incorrect_first": (0, 1, "evidence", "row"),
        "n_incorrect_in_prompt": (0, 1, "evidence", "row"),
        "n_incorrect_missing": (0, 1, "evidence", "row"),
        "n_incorrect_unknown": (1, 1, "evidence", "row"),
        "n_abstained": (1, 6, "no_answer", "row"),
        "n_empty_answers": (1, 6, "no_answer", "row"),
        "n_errors": (1, 6, "no_answer", "row"),
    }


def test_the_columns_of_a_question():
    assert ANSWERS.columns == (
        QuestionColumn("answer_status", "Answer status"),
        QuestionColumn("evidence", "Evidence", needs_labels=True),
        QuestionColumn("correct", "Correct", "bool", (0.0, 1.0), higher_is="better", needs_labels=True),
    )


def test_the_card_says_of_how_many_and_how_sure():
    low, high = stats.binomtest(1, 2).proportion_ci(method="wilson")
    card = next(one for one in diagnosis(MIXED).numbers("answers") if one.key == "n_correct")
    assert card.text == "1 of 2"
    assert card.basis == f"95 % interval of the share {100 * low:.0f} to {100 * high:.0f} %"


def test_without_references_nothing_is_judged():
    card = next(one for one in diagnosis(MIXED[2:3]).numbers("answers") if one.key == "n_correct")
    assert (card.text, card.basis) == ("—", "no labels, and no reference answers to compare with")


def test_answers_that_are_not_there_are_a_finding():
    d = diagnosis(MIXED)
    empty, finding, wrong = d.findings_of("answers")  # more than a tenth is empty, and said so first
    assert empty.sentence == "1 of 6 baselines is empty: the model wrote no answer to compare with."
    assert empty.clause == "1 of 6 answers is empty, so all else is about the other 5"
    assert finding.sentence == "3 of 6 questions have no answer (1 empty, 1 abstained, 1 failed)."
    assert (finding.n, finding.of, finding.severity, finding.diagnostic) == (3, 6, "medium", "answers")
    assert finding.query_ids == ("q4", "q5", "q6")
    assert finding.expected_by_chance is None
    assert (wrong.name, wrong.query_ids) == ("wrong_answers", ("q2",))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (MIXED[:4], "1 of 4 questions has no answer (1 abstained)"),
        (MIXED[3:4], "1 of 1 question has no answer (1 abstained)"),
        ([*MIXED[:4], MIXED[5]], "2 of 5 questions have no answer (1 abstained, 1 failed)"),
        ([MIXED[5]] * 2, "2 of 2 questions have no answer (2 failed)"),
    ],
)
def test_how_many_have_no_answer_and_why(rows, said):
    first = diagnosis(rows).findings_of("answers")[0]
    assert (first.name, first.clause, first.sentence) == ("no_answer", said, f"{said}.")


@pytest.mark.parametrize(
    ("n_wrong", "of", "tone", "severity", "clause"),
    [
        (18, 20, BAD, "high", "18 of 20 answers are wrong (95 % interval 70–97 %)"),
        (10, 20, BAD, "high", "10 of 20 answers are wrong (95 % interval 30–70 %)"),
        (7, 20, BAD, "medium", "7 of 20 answers are wrong (95 % interval 18–57 %)"),
        (2, 20, GOOD, "low", "90 % of 20 answers are correct (95 % interval 70–97 %)"),
        (1, 19, GOOD, "low", "18 of 19 answers are correct (95 % interval 75–99 %)"),
        (0, 4, GOOD, "low", "all 4 answers are correct (95 % interval 51–100 %)"),
        # The interval is 0 to 56 % here.
        (0, 3, UNCLEAR, "low", "0 of 3 answers are wrong (95 % interval 0–56 %)"),
        (1, 1, BAD, "medium", "1 of 1 answer is wrong (95 % interval 21–100 %)"),
        (1, 2, UNCLEAR, "low", "1 of 2 answers is wrong (95 % interval 9–91 %)"),
    ],
)
def test_incorrect_answers_are_graded_by_the_lower_end_of_their_share(n_wrong, of, tone, severity, clause):
    rows = [("no", "answered", ["yes"])] * n_wrong + [("yes", "answered", ["yes"])] * (of - n_wrong)
    (found,) = diagnosis(rows).findings()
    assert (found.n, found.of, found.tone, found.severity) == (n_wrong, of, tone, severity)
    assert found.clause == clause and found.query_ids == tuple(f"q{i}" for i in range(1, n_wrong + 1))
    assert found.interval == pytest.approx(tuple(stats.binomtest(n_wrong, of).proportion_ci(method="wilson")))


def analysed(*, of, n_wrong=0, n_empty=0):
    """Answers of which the first are wrong and all others correct, or the first empty and none judged."""
    queries = pd.DataFrame({"query_id": [f"q{i}" for i in range(of)], "evidence": None, "evidence_by": None})
    judged = [i >= n_wrong for i in range(of)] if n_wrong else [None] * of
    queries["correct"] = pd.array(judged, dtype="boolean")
    queries["answer_status"] = ["empty" if i < n_empty else "answered" for i in range(of)]
    return Answers(queries)


def test_thousands_of_answers_are_counted_alike():
    (found,) = findings(analysed(of=12_000, n_wrong=1_100))
    assert found.sentence == "1,100 of 12,000 answers are wrong."
    # 1,100 of 12,000 are 8.7 to 9.7 %.
    assert (found.tone, found.clause) == (GOOD, "91 % of 12,000 answers are correct (95 % interval 90–91 %)")
    (found,) = findings(analysed(of=1_000, n_empty=300))
    assert (found.name, found.n) == ("empty_baselines", 300)
    assert found.clause == "300 of 1,000 answers are empty, so all else is about the other 700"


def test_questions_that_were_not_asked_yet_are_no_finding():
    d = diagnosis([("x", "answered", None), (None, None, None)])
    assert d.findings() == () and d.summary()["n_errors"] == 0


def test_many_empty_baselines_are_said_first_with_what_to_change():
    rows = [("x", "answered", None)] * 88 + [("", "empty", None)] * 11 + [(None, "error", None)]
    first, second = diagnosis([*rows, (None, None, None)]).findings()
    assert first.sentence == "11 of 100 baselines are empty: the model wrote no answer to compare with."
    assert first.clause == "11 of 100 answers are empty, so all else is about the other 89"
    # Wilson's interval starts at 6 %: surely some, not surely many.
    assert (first.name, first.n, first.of, first.severity) == ("empty_baselines", 11, 100, "low")
    assert first.query_ids == tuple(f"q{i}" for i in range(89, 100))
    assert first.interval == pytest.approx(tuple(stats.binomtest(11, 100).proportion_ci(method="wilson")))
    for change in ("larger model", "prompt", "max answer tokens", "fewer or shorter passages"):
        assert change in first.advice
    assert second.name == "no_answer"
    # The same questions are not listed twice.
    assert [finding.name for finding in diagnosis(rows[:99]).findings()] == ["empty_baselines"]


@pytest.mark.parametrize("status", ["empty", "abstained", "error"])
def test_a_tenth_is_not_too_many_and_other_reasons_are_no_empty_answer(status):
    n = 10 if status == "empty" else 50
    rows = [("x", "answered", None)] * (100 - n) + [("", status, None)] * n
    assert [finding.name for finding in diagnosis(rows).findings()] == ["no_answer"]


def test_it_comes_before_what_every_other_diagnostic_finds():
    run = Run.load("sample_data/recorded_run")
    queries = run.queries.assign(answer="", answer_status="empty")
    findings = Diagnosis(Run.create(run.manifest, **{**run.tables, "queries": queries})).findings()
    assert findings[0].name == "empty_baselines" and len(findings) > 2
