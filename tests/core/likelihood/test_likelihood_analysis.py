"""Which passage made an answer and which the correct one needs: expected values by hand."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.diagnosis import Diagnosis
from core.likelihood.analysis import MEASURES, RAISES
from core.likelihood.definitions import DEFINITIONS, MODES
from core.likelihood.diagnostic import LIKELIHOOD, findings, numbers
from core.run import Run
from core.socket import BAD, REASON, UNCLEAR, Number, QuestionColumn
from tests.core.likelihood.likelihood_runs import analysed_run, likelihood_run, scored_run

NEVER = math.nan


def analysed(*questions, rouge=None):
    return analysed_run(scored_run(*questions), rouge)


def known(values):
    return [None if pd.isna(value) else value for value in values]


def test_the_passage_that_made_the_answer_and_the_one_that_the_reference_needs():
    q = analysed(
        ("omega", "alpha", (2.0, -1.0, 0), (0.5, 3.0, 1)),
        ("omega", "alpha", (-2.0, -1.0, 0), (-0.5, 0.0, 1)),
        ("omega", None, (1.0, NEVER, 0), (4.0, NEVER, 1)),
        ("omega", "alpha", (0.5, 0.25, 0), (0.5, 0.25, 1)),  # tied: the first one
    ).queries
    assert known(q["made_by"]) == ["p1", None, "p2", "p1"] and known(q["needed"]) == ["p2", None, None, "p1"]
    assert q["made_drop"].dropna().tolist() == [2.0, 4.0, 0.5]
    assert q["needed_drop"].dropna().tolist() == [3.0, 0.25]


def test_misleading_doubles_the_incorrect_answer_and_halves_the_correct_one():
    two = RAISES
    rows = [
        ("omega", (two, -two, 0), (0.0, 5.0, 1)),  # just enough
        ("omega", (two - 0.01, -two, 0), (0.0, 5.0, 1)),  # does not double the answer
        ("omega", (two, -two + 0.01, 0), (0.0, 5.0, 1)),  # does not halve the reference
        ("omega", (two, 0.0, 0), (0.0, -two, 1)),  # another passage halves it
        ("alpha", (two, -two, 0), (0.0, 5.0, 1)),  # the answer is correct
        ("omega", (two, -two, 0), (NEVER, 5.0, 1)),  # not scored
    ]
    q = analysed(*[(answer, "alpha", *passages) for answer, *passages in rows]).queries
    assert q["misleading"].tolist() == [True, False, False, False, pd.NA, pd.NA]
    # One of the two passages halves the reference, where the answer is doubled at all.
    np.testing.assert_array_equal(q["misleading_by_chance"], [0.5, 0, 0, 0.5, NEVER, NEVER])


def test_ignored_evidence_doubles_the_correct_answer_and_does_nothing_for_the_one_given():
    two = RAISES
    rows = [
        ("omega", (0.0, two, 1), (3.0, 0.0, 0), (3.0, 0.0, 0)),  # just enough
        ("omega", (0.01, two, 1), (-3.0, 0.0, 0), (-3.0, 0.0, 0)),  # the answer rests on it a little
        ("omega", (0.0, two - 0.01, 1), (3.0, 0.0, 0), (3.0, 0.0, 0)),  # nothing doubles the reference
        ("alpha", (0.0, two, 1), (3.0, 0.0, 0), (3.0, 0.0, 0)),  # the answer is correct
        ("I don't know", (-1.0, two, 1), (3.0, 0.0, 0), (3.0, 0.0, 0)),  # an abstention is not correct
    ]
    q = analysed(*[(answer, "alpha", *passages) for answer, *passages in rows]).queries
    assert q["ignored"].tolist() == [True, False, False, pd.NA, True]
    assert q["misleading"].tolist() == [False, False, False, pd.NA, pd.NA]  # nor is it incorrect
    np.testing.assert_allclose(q["ignored_by_chance"], [1 / 3, 2 / 3, 0, NEVER, 1 / 3])


def test_tied_first_passages_show_it_only_together():
    q = analysed(("omega", "alpha", (1.0, -1.0, 0), (1.0, -1.0, 0), (0.0, 9.0, 1), (0.0, -1.0, 0))).queries
    # Three of four halve the reference: a random pair does so with 3 / 6.
    assert q["misleading"].tolist() == [True] and q["misleading_by_chance"].tolist() == [0.5]


def test_gold_first_by_every_measure_with_ties_broken_at_random():
    found = analysed(
        ("omega", "alpha", (1.0, 5.0, 1), (2.0, 1.0, 0), (0.0, 0.0, 0), (0.0, 0.0, 0)),
        ("omega", "alpha", (1.0, 5.0, 0), (0.0, 1.0, 0), (7.0, 9.0, 1), (0.0, 0.0, 1)),
        ("omega", "alpha", (1.0, 5.0, 0), (2.0, 1.0, 0), (0.0, 0.0, 0), (0.0, 0.0, 0)),  # no gold
        rouge=[0, 0, 0, 0, 0.5, 0, 0.5, 0, 1, 0, 0, 0],
    )
    shares = {one.measure: (one.n, one.mean) for one in found.gold}
    assert shares == {
        "gold_by_retrieval": (2, 0.5),
        "gold_by_rouge": (2, (1 / 4 + 1 / 2) / 2),
        "gold_by_answer": (2, 0.5),
        "gold_by_reference": (2, 1.0),
    }
    assert {one.chance for one in found.gold} == {(1 / 4 + 2 / 4) / 2}
    # Differences to the retriever: 1/4 − 1 and 1/2 − 0; 0 − 1 and 1 − 0; 1 − 1 and 1 − 0.
    assert [one.beyond for one in found.gold[1:]] == [-0.125, 0.0, 0.5] and math.isnan(found.gold[0].beyond)


def test_the_intervals_of_shares_and_of_what_they_are_beyond_the_retriever():
    shares = analysed(
        ("omega", "alpha", (1.0, 5.0, 1), (2.0, 1.0, 0)),
        ("omega", "alpha", (1.0, 5.0, 0), (7.0, 9.0, 1)),
        ("omega", None, (3.0, NEVER, 1), (1.0, NEVER, 0)),
    ).gold
    by_retrieval, _, by_answer, by_reference = (
        (one.n, one.mean, one.low, one.high, one.beyond, one.beyond_low, one.beyond_high) for one in shares
    )
    # Wilson's intervals of 2 of 3 and of 2 of 2, the lower end 1 / (1 + 1.96² / 2).
    assert by_retrieval == pytest.approx(
        (3, 2 / 3, 0.2077, 0.9385, NEVER, NEVER, NEVER), abs=1e-4, nan_ok=True
    )
    # Differences −1, 1 and 0, so 4.3027 / √3; and 0 and 1, so 12.7062 / 2.
    assert by_answer == pytest.approx((3, 2 / 3, 0.2077, 0.9385, 0, -2.4841, 2.4841), abs=1e-4)
    assert by_reference == pytest.approx((2, 1, 0.3424, 1, 0.5, -5.8531, 6.8531), abs=1e-4)


def test_what_was_scored_elsewhere_needs_no_text():
    run = likelihood_run(("omega", ["alpha"], {"one": True, "": False}))
    passages = run.passages.assign(logprob_drop=[1.0, 2.0], reference_logprob_drop=[3.0, NEVER])
    (row,) = analysed_run(
        Run.create(run.manifest, queries=run.queries, passages=passages)
    ).queries.itertuples()
    assert pd.isna(row.reason) and row.reference_reason == "without_text" and row.made_by == "p2"


def test_undefined_values_have_a_reason():
    whole = ("omega", ["alpha"], {"one": True, "two": False})
    run = likelihood_run(
        whole,
        ("", ["alpha"], whole[2], "empty"),
        ("omega", None, whole[2]),
        ("omega", ["alpha"], {"one": True, "": False}),
        whole,
    )
    drops = [1.0, 2.0, NEVER, NEVER, 1.0, 2.0, NEVER, NEVER, 1.0, NEVER]
    passages = run.passages.assign(logprob_drop=drops, reference_logprob_drop=[NEVER] * 10)
    none = {"query_id": "q6", "question": "?", "answer": "omega", "answer_status": "answered"}
    queries = pd.concat([run.queries, pd.DataFrame([none])])
    q = analysed_run(Run.create(run.manifest, queries=queries, passages=passages)).queries
    assert known(q["reason"]) == [
        None,
        "without_answer",
        None,
        "without_text",
        "partly_read",
        "without_passages",
    ]
    assert known(q["reference_reason"]) == [
        "not_read", "not_read", "without_reference", "without_text", "not_read", "without_passages",
    ]  # fmt: skip
    assert known(q["made_by"]) == ["p2", None, "p2", None, None, None]
    assert q[["misleading", "ignored"]].isna().all(axis=None)


def test_by_words_is_by_words_whatever_the_setting():
    run = scored_run(("omega", "alpha", (1.0, 5.0, 1), (2.0, 1.0, 0), (0.0, 0.0, 0)))
    run = Run.create(
        run.manifest, queries=run.queries, passages=run.passages.assign(influence_score=[0.9, 0.1, 0.0])
    )
    for measure in ("rouge", "logprob"):
        numbers = {one.key: one for one in Diagnosis(run, {"influence": measure}).numbers("likelihood")}
        assert (numbers["gold_by_rouge"].value, numbers["gold_by_answer"].value) == (1.0, 0.0)


def test_findings_are_bad_beyond_chance_and_unclear_else():
    misled = ("omega", "alpha", (3.0, -3.0, 0), (0.0, 5.0, 1), (1.0, 0.0, 0), (1.0, 0.0, 0))
    found = Diagnosis(scored_run(*[misled] * 6)).findings_of("likelihood")
    # Six of six, each with 1 / 4 by chance; ignored: the passage of the reference leaves the answer alone.
    assert [(one.name, one.n, one.of, one.expected_by_chance, one.tone) for one in found] == [
        ("misleading", 6, 6, 1.5, BAD),
        ("ignored", 6, 6, 1.5, BAD),
    ]
    # The p-value is that of one test; all tests of the run are corrected together.
    assert math.isclose(found[0].p_value, 0.25**6) and found[0].p_adjusted > found[0].p_value
    # Six of six incorrect answers misled: the share is surely above a quarter; ignored evidence is never high.
    assert [one.severity for one in found] == ["high", "medium"]
    assert found[0].sentence.startswith("In 6 of 6 incorrect answers the passage") and found[0].clause
    (one, _) = Diagnosis(scored_run(misled)).findings_of("likelihood")
    assert (one.tone, one.severity, one.clause) == (UNCLEAR, "low", "") and one.p_value == 0.25
    assert one.sentence.endswith("(chance baseline: 0.2).") and not one.advice


# Two of three answers that are not correct are misled, by 1 of 2 passages each; two ignore evidence.
MIXED = (
    ("omega", "alpha", (1.0, -1.0, 0), (0.5, 5.0, 1)),  # misled
    ("omega", "alpha", (3.0, -3.0, 0), (0.0, 5.0, 1)),  # misled more; the evidence is ignored
    ("alpha", "alpha", (3.0, -3.0, 0), (0.0, 5.0, 1)),  # correct
    ("omega", "alpha", (2.0, 0.0, 0), (-1.0, 7.0, 1)),  # more evidence is ignored
    ("", None, (NEVER, NEVER, 0), (NEVER, NEVER, 0)),
)
MISLED = "2 of 3 incorrect answers the passage that raises the incorrect answer most makes the correct one less likely"
IGNORED = (
    "2 of 3 answers that are not correct the passage that raises the correct answer most does not make the given "
    "answer likelier"
)


@pytest.mark.parametrize("approximate", [False, True])
def test_findings_in_words_with_the_largest_drops_first(approximate):
    run = scored_run(*MIXED, approximate_drop=[False] * 9 + [approximate])
    told = " (by drops that are partly approximate)" if approximate else ""
    by_name = {one.name: one for one in findings(analysed_run(run))}
    for name, said, severity, fix, reads, shown in (
        ("misleading", MISLED, "medium", "distractors:remove", "with a misleading passage", ("q2", "q1")),
        ("ignored", IGNORED, "low", "reader:improve", "with ignored evidence", ("q4", "q2")),
    ):
        one = by_name[name]
        assert one.sentence == f"In {said}{told} (chance baseline: 1.0)."
        # Wilson's interval of 2 of 3; one of three by chance.
        assert one.clause == f"in {said}{told} (21–94 %; 33 % by chance)"
        assert (one.n, one.of, one.expected_by_chance, one.p_value) == (2, 3, 1.0, 0.25)
        assert (one.severity, one.fix, one.reads, one.query_ids) == (severity, fix, reads, shown)
        assert (one.tone, one.topic, one.advice) == (BAD, "evidence", MODES[name].advice)
        other = one.otherwise
        assert (other.tone, other.sentence, other.clause) == (UNCLEAR, one.sentence, "")
        assert other.advice == other.fix == ""


def test_a_finding_without_a_case_has_nothing_else_to_say():
    found = findings(analysed(("omega", "alpha", (3.0, 0.0, 0), (1.0, 5.0, 1))))
    assert [(one.n, one.of, one.p_value, one.query_ids, one.otherwise) for one in found] == [
        (0, 1, 1.0, (), None)
    ] * 2
    assert found[0].sentence.startswith("In 0 of 1 incorrect answer the passage")


def test_every_number_of_a_run_that_was_read_exactly():
    found = {one.key: one for one in numbers(analysed(*MIXED, rouge=[0.5] * 4 + [0.5, 0.4, 0.5, 0.4, 0, 0]))}
    row = {"place": "row"}
    # Of values 1/2, 1/2, 0 and 0 Student's t, cut at 0; Wilson's of none and of all of 4.
    tied = (0.0, 0.7093)
    expected = (
        (Number("n_scored", "Answers scored", 4, of=5, define="n_scored", **row), None),
        (Number("n_approximate", "Approximate drops", 0, of=8, noun="passage", define="n_approximate", **row), None),
        (Number("screen_off", "Screen off by", None, n=0, noun="passage", define="screen_off", **row), None),
        (
            Number(
                "screen_order", "Screen in the same order", None, n=0, noun="pair", define="screen_order",
                is_share=True, **row,
            ),
            None,
        ),
        *(
            (
                Number(
                    key, title, value, n=4, define=key, chance=0.5, is_share=True, place=place,
                ),
                interval,
            )
            for key, title, value, interval, place in (
                ("gold_by_retrieval", "Gold first: retriever", 0.0, (0.0, 0.4899), "row"),
                ("gold_by_rouge", "Gold first: ROUGE-L", 0.25, tied, "row"),
                ("gold_by_answer", "Gold first: own answer", 0.0, (0.0, 0.4899), "card"),
                ("gold_by_reference", "Gold first: reference", 1.0, (0.5101, 1.0), "card"),
            )
        ),
        *(
            (
                Number(
                    f"n_{name}", title, 2, of=3, define=name, chance=1.0, cases=f"queries.{name}:True", place="card"
                ),
                None,
            )
            for name, title in (("misleading", "Misleading passage"), ("ignored", "Ignored evidence"))
        ),
        (Number("likelihood_reasons", "Answer not scored", {"without_answer": 1}, define=REASON, **row), None),
        (
            Number(
                "reference_likelihood_reasons", "Reference not scored", {"without_reference": 1}, define=REASON, **row
            ),
            None,
        ),
    )  # fmt: skip
    assert list(found) == [one.key for one, _ in expected]
    for one, interval in expected:
        assert replace(found[one.key], interval=None) == one
        assert found[one.key].interval == (interval and pytest.approx(interval, abs=1e-4))


def test_numbers_without_gold_or_an_interval():
    without = {one.key: one for one in numbers(analysed(("omega", None, (1.0, NEVER, 0), (0.0, NEVER, 0))))}
    for key in MEASURES:
        one = without[key]
        assert (one.value, one.n, one.interval, one.chance) == (None, 0, None, None)
    for key in ("n_misleading", "n_ignored"):
        assert (without[key].value, without[key].of, without[key].chance) == (0, 0, None)
    # One tie of two is no share of questions, and one value has no interval.
    tied = {one.key: one for one in numbers(analysed(("omega", None, (1.0, NEVER, 0), (1.0, NEVER, 1))))}
    assert (tied["gold_by_answer"].value, tied["gold_by_answer"].interval) == (0.5, None)
    assert (tied["gold_by_answer"].n, tied["gold_by_answer"].chance) == (1, 0.5)


def test_the_columns_of_a_question():
    assert LIKELIHOOD.columns == (
        QuestionColumn("made_drop", "Largest drop of the answer", "{:.2f}", None, "", False, False, True),
        QuestionColumn("needed_drop", "Largest drop of the reference", "{:.2f}", None, "", False, True, True),
    )


def test_without_a_case_there_is_no_finding_and_numbers_keep_their_keys():
    right = Diagnosis(scored_run(("alpha", "alpha", (3.0, -3.0, 0), (0.0, 5.0, 1))))
    nothing = Diagnosis(Run.create({"source": "upload"}))
    assert right.findings_of("likelihood") == nothing.findings_of("likelihood") == ()
    keys = [[one.key for one in diagnosis.numbers("likelihood")] for diagnosis in (right, nothing)]
    assert keys[0] == keys[1]
    assert {one.value for one in nothing.numbers("likelihood") if one.key.startswith("gold_")} == {None}


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.booleans()), min_size=1, max_size=5),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_passages_is_nothing_to_the_scores(passages, random):
    shuffled = random.sample(passages, len(passages))
    one, other = (analysed(("omega", "alpha", *own)).queries.iloc[0] for own in (passages, shuffled))
    for name in ("made_drop", "needed_drop", "gold_by_answer", "gold_by_reference", "gold_by_chance"):
        assert one[name] == pytest.approx(other[name], nan_ok=True)
    assert one["misleading"] is other["misleading"] and one["ignored"] is other["ignored"]
    assert 0 <= one["misleading_by_chance"] <= 1 and 0 <= one["ignored_by_chance"] <= 1


def test_chance_is_what_dealing_the_drops_of_the_reference_gives():
    own, reference = [2.0, 0.5, -1.0, -3.0, 0.0], [-1.0, 4.0, -2.0, 0.0, -0.8]
    row = analysed(
        ("omega", "alpha", *[(a, b, 0) for a, b in zip(own, reference, strict=True)])
    ).queries.iloc[0]
    rng = np.random.default_rng(0)
    dealt = [rng.permutation(reference) for _ in range(4_000)]
    misled = np.mean([drops[0] <= -RAISES for drops in dealt])
    ignored = np.mean([own[int(np.argmax(drops))] <= 0 for drops in dealt])
    # Three of five each; 4,000 draws place a share of 0.6 within 0.03.
    assert abs(row["misleading_by_chance"] - misled) < 0.03 and abs(row["ignored_by_chance"] - ignored) < 0.03


def test_a_reason_is_defined_by_who_gives_it():
    names = [one.name for one in DEFINITIONS if one.kind == REASON]
    assert len(names) == len(set(names))
    codes = (
        "without_passages",
        "without_answer",
        "without_reference",
        "without_text",
        "not_read",
        "partly_read",
    )
    assert set(names) == set(codes)
