"""Which passage made an answer and which the correct one needs: expected values by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.diagnosis import Diagnosis
from core.likelihood.analysis import RAISES
from core.likelihood.definitions import DEFINITIONS
from core.run import Run
from core.socket import BAD, REASON, UNCLEAR
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
    ).queries
    assert known(q["made_by"]) == ["p1", None, "p2"] and known(q["needed"]) == ["p2", None, None]
    assert q["made_drop"].dropna().tolist() == [2.0, 4.0] and q["needed_drop"].dropna().tolist() == [3.0]


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
