"""A run calibrated on some of its questions: thresholds, verdicts, sets and groups by hand; what is undefined."""

import math

import numpy as np
import pandas as pd
import pytest

from core.conformal import conformal_threshold, online_p_values
from core.conformal.definitions import (
    CALIBRATION,
    DEFINITIONS,
    FLAGGED,
    IN_LINE,
    NEW,
    OF_CORRECT,
    OF_DISTANCE,
    OF_SCORE,
    OF_SETS,
    REASONS,
    TEST,
    UNDEFINED,
)
from core.diagnosis import Diagnosis
from core.run import Run
from tests.core.conformal.conformal_runs import against_store, planted

TENTHS = np.arange(1, 10) / 10


def conformal(run, **settings):
    return Diagnosis(run, settings)["conformal"]


def nine():
    """Nine correct answers calibrate, with scores 0.1 to 0.9; then 1.0, 0.9 and 0.2, and one without a label."""
    same = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 8, 0]
    correct = [True] * 9 + [True, True, False, None]
    return planted(same, correct, [True] * 9 + [False] * 4)


def threshold(scores, alpha):
    """The threshold of these scores, which test_split.py works out by hand."""
    return pytest.approx(conformal_threshold(scores, alpha))


def test_threshold_and_p_values_by_hand():
    found = conformal(nine(), alpha=0.2)
    q = found.queries
    assert q["score"].round(9).to_list() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 0.9, 0.2, 1]
    assert q["role"].to_list() == [CALIBRATION] * 9 + [TEST] * 3 + [NEW]
    of_correct = found.coverages[OF_CORRECT]
    assert of_correct.threshold == threshold(TENTHS, 0.2) and of_correct.reason == ""
    # None, one (0.9) and eight (0.2 to 0.9) of nine are at least as strange, and the answer itself.
    assert q["p_value"].iloc[9:].to_list() == pytest.approx([0.1, 0.2, 0.9, 0.1])
    assert q["p_value"].iloc[:9].isna().all()
    # At 0.2 the second is flagged too.
    assert q["verdict"].iloc[9:].to_list() == [FLAGGED, FLAGGED, IN_LINE, FLAGGED]
    assert (found.n_flagged, found.n_judged) == (3, 4)
    assert q["reason"].isna().all()
    # Two correct ones test, at 1.0 and at 0.9.
    assert (of_correct.n_calibration, of_correct.n_test) == (9, 2)
    assert of_correct.n_covered == sum(one <= of_correct.threshold + 1e-9 for one in (1.0, 0.9))


def test_too_few_labels_give_no_verdict_and_say_so():
    found = conformal(nine(), alpha=0.05)
    q, one = found.queries, found.coverages[OF_CORRECT]
    assert one.threshold == math.inf
    assert one.reason == "9 correct answers cannot certify α = 0.05; you need at least 19."
    assert (q["verdict"].iloc[9:] == UNDEFINED).all() and (q["reason"].iloc[9:] == "few_labels").all()
    assert q["p_value"].isna().all() and math.isnan(one.band[0])


def test_wrong_answers_of_the_calibration_do_not_move_the_threshold():
    run = planted([9, 8, 7, 6, 0, 0], [True] * 4 + [False, True], [True] * 5 + [False])
    found = conformal(run, alpha=0.4)
    # The wrong one at 1.0 would have been the fifth.
    assert found.coverages[OF_CORRECT].threshold == threshold([0.1, 0.2, 0.3, 0.4], 0.4)
    assert found.queries["p_value"].iloc[5] == pytest.approx(1 / 5)


def test_distance_to_the_truth():
    found = conformal(nine(), alpha=0.2).coverages[OF_DISTANCE]
    # All nine say the reference; of the tested, two do and one is at distance 1.
    assert (found.threshold, found.n_calibration, found.n_test, found.n_covered) == (0, 9, 3, 2)


def test_scores_of_all_answers_whatever_their_truth():
    found = conformal(nine(), alpha=0.2).coverages[OF_SCORE]
    assert found.threshold == threshold(TENTHS, 0.2)
    assert (found.n_calibration, found.n_test) == (9, 4)
    assert found.n_covered == sum(one <= found.threshold + 1e-9 for one in (1.0, 0.9, 0.2, 1.0))


def test_sets_by_hand():
    # Shares of the correct group: 0.9 … 0.1, so its score is 0.1 … 0.9.
    found = conformal(nine(), alpha=0.3)
    assert found.sets.rule.threshold == threshold(TENTHS, 0.3)
    # Tested: alpha 0 of 10 and ten other words at 0.9 each: none; alpha 1 and nine others: none, all at 0.9;
    # omega 8 and two at 0.9: omega alone; without a label: alpha 0 of 10.
    assert found.queries["set_size"].iloc[9:].to_list() == [0, 0, 1, 0]
    assert found.queries["set_size"].iloc[:9].isna().all()
    # "omega" is wrong, and no other set holds anything.
    assert found.queries["set_covers"].iloc[9:12].to_list() == [False, False, False]
    assert pd.isna(found.queries["set_covers"].iloc[12])
    assert found.sets.mean_size == pytest.approx(1 / 3)
    # In the first and the third of the tested ones no sample says alpha.
    assert found.sets.n_without_correct == 2
    assert (found.coverages[OF_SETS].n_covered, found.coverages[OF_SETS].n_test) == (0, 3)


def test_a_refusal_is_in_no_set():
    refusing = [["I don't know."] * 8 + ["alpha"] * 2, ["I don't know."] * 10]
    run = planted([2, 0], [True, True], [True, False], samples=refusing)
    found = conformal(run, alpha=0.5)
    # The correct group has 2 of 10 samples: 0.8.
    assert found.sets.rule.threshold == threshold([0.8], 0.5)
    assert found.queries["set_size"].iloc[1] == 0


def test_a_question_without_samples_has_no_set_and_counts_for_none():
    samples = [["alpha"] * 8 + ["bravo"] * 2] * 3 + [[]] + [["alpha"] * 10, []]
    found = conformal(planted([8] * 6, [True] * 6, [True] * 4 + [False] * 2, samples=samples), alpha=0.5)
    assert (found.sets.rule.n, found.sets.rule.n_without_correct) == (3, 0)
    one = found.coverages[OF_SETS]
    assert (one.n_calibration, one.n_test, one.n_covered) == (3, 1, 1)
    assert found.sets.mean_size == 1 and found.sets.n_without_correct == 0
    assert pd.isna(found.queries["set_covers"].iloc[5])


def test_where_no_sample_is_right_too_often_the_set_is_everything_and_nothing_is_promised():
    same, correct = [9] * 6 + [9, 3], [True] * 2 + [False] * 4 + [False, True]
    found = conformal(planted(same, correct, [True] * 6 + [False] * 2), alpha=0.3)
    assert found.sets.rule.threshold == math.inf
    assert found.sets.rule.n_without_correct == 4 and "4 of 6" in found.coverages[OF_SETS].reason
    # Everything sampled: omega and one other; alpha and seven others.
    assert found.queries["set_size"].iloc[6:].to_list() == [2, 8]
    # A set that holds everything covers only where a sample is right.
    assert found.queries["set_covers"].iloc[6:].to_list() == [False, True]
    assert math.isnan(found.coverages[OF_SETS].band[0])


def test_every_group_has_its_threshold():
    same = [9, 8, 7, 6, 3, 2, 1, 1, 5, 5]
    kind = ["who"] * 4 + ["when"] * 4 + ["who", "when"]
    run = planted(same, [True] * 10, [True] * 8 + [False] * 2, kind=kind)
    groups = conformal(run, alpha=0.5).groups.set_index("group")
    own = {"who": [0.1, 0.2, 0.3, 0.4], "when": [0.7, 0.8, 0.9, 0.9]}
    assert groups["threshold"].to_dict() == {name: threshold(one, 0.5) for name, one in own.items()}
    assert groups["n_covered"].to_dict() == {"who": 0, "when": 1}
    assert groups["n_test"].to_list() == [1, 1] and groups["n_calibration"].to_list() == [4, 4]
    # The third of four covers with 3/5: none of both with 0.16, and not both with 0.64.
    one = conformal(run, alpha=0.5).coverages[OF_CORRECT]
    assert one.band == (0, 1) and one.parts == ((4, 1), (4, 1))


def test_the_threshold_of_a_question_is_that_of_its_group():
    assert conformal(nine(), alpha=0.2).threshold_of("who") == (9, 0.8), "without groups that of all"
    # At 0.5 the third of four.
    kind = ["who"] * 4 + ["when"] * 4 + ["who"]
    run = planted([9, 8, 7, 6, 3, 2, 1, 1, 5], [True] * 9, [True] * 8 + [False], kind=kind)
    found = conformal(run, alpha=0.5)
    assert (found.threshold_of("who"), found.threshold_of("when")) == ((4, 0.3), (4, 0.9))
    n, unknown = found.threshold_of("why")
    assert n == 0 and math.isnan(unknown)


def test_what_a_threshold_lets_through_and_its_test():
    # Sure are 60 right answers, and one more that nobody has judged; 40 wrong ones are at 0.3.
    run = planted([10] * 61 + [3] * 40, [True] * 60 + [None] + [False] * 40, [True] * 30 + [False] * 71)
    now, tested = conformal(run).at(0.5)
    assert (now.n, now.n_passing, now.n_labelled, now.n_correct) == (101, 61, 60, 60)
    assert (tested.threshold, tested.n_answered, tested.n_wrong) == (pytest.approx(0.5), 60, 0)
    now, tested = conformal(run).at(0.07)
    assert (now.n_passing, now.accuracy) == (101, pytest.approx(0.6)) and tested is None, "not on the grid"


def test_groups_are_languages_where_there_is_one_kind_and_none_where_all_are_alike():
    same, labels = [9, 8, 7, 6], [True, True, False, False]
    run = planted(same, [True] * 4, labels, kind=["who"] * 4, language=["en", "vi", "en", "vi"])
    assert conformal(run, alpha=0.5).groups["group"].to_list() == ["en", "vi"]
    # One label each is too few at 0.1: one threshold for all, and no group of its own.
    assert conformal(run).groups.empty
    assert conformal(planted(same, [True] * 4, labels)).groups.empty


def test_the_certificate_lets_the_sure_ones_through():
    # 60 right answers on which all samples agree, 40 wrong ones on which 3 of 10 do; as many test.
    same, correct = [10] * 60 + [3] * 40, [True] * 60 + [False] * 40
    run = planted(same * 2, correct * 2, [True] * 100 + [False] * 100)
    found = conformal(run, alpha=0.1)
    assert found.certificate.threshold == pytest.approx(0.35)  # 60 of 60 right; from 0.3 on 40 more are wrong
    answered = found.queries["answered"]
    assert answered.iloc[:100].isna().all()
    assert answered.iloc[100:160].all() and not answered.iloc[160:].any()


def test_drift_from_a_store_is_found_in_the_order_of_the_run():
    calm = [9, 8, 7, 6, 5, 9, 8, 7, 6, 5] * 6
    found = conformal(against_store(planted(calm, [True] * 60, [False] * 60), calm))
    assert found.drift.alarm is None and found.drift.n == 60
    found = conformal(against_store(planted([0] * 60, [True] * 60, [False] * 60), calm))
    assert found.drift.alarm is not None and found.drift.alarm < 40
    assert found.queries["drift_p"].iloc[0] <= 1 / 61, "stranger than all sixty"
    drawn = online_p_values(1 - np.array(calm) / 10, np.ones(60), seed=0)
    assert found.queries["drift_p"].to_list() == pytest.approx(drawn), "the same at every look"
    # The label of an answer plays no part.
    unlabelled = conformal(against_store(planted([0] * 60, [None] * 60, [False] * 60), calm))
    assert unlabelled.drift.alarm == found.drift.alarm
    # Of the run's own questions the order says nothing, whoever chose which calibrate.
    own = conformal(planted(calm + [0] * 60, [True] * 120, [True] * 60 + [False] * 60))
    assert own.drift.n == 0 and own.queries["drift_p"].isna().all()


def test_not_calibrated_is_undefined():
    run = planted([9, 8], [True, True], [None, None])
    found = conformal(run)
    assert not found.calibrated and found.origin == ""
    assert (found.queries["reason"] == "not_calibrated").all() and (found.queries["role"] == NEW).all()
    assert found.certificate.threshold is None and found.drift.n == 0 and found.sets.rule.n == 0


def test_an_answer_without_a_score_has_no_verdict():
    run = planted(
        [9] * 9 + [9, 0], [True] * 11, [True] * 9 + [False] * 2, samples=[["alpha"] * 10] * 10 + [[]]
    )
    q = conformal(run, alpha=0.2).queries
    assert q["verdict"].to_list()[9:] == [IN_LINE, UNDEFINED]
    assert pd.isna(q["reason"].iloc[9]) and q["reason"].iloc[10] == "no_score"
    assert math.isnan(q["set_size"].iloc[10])


def test_a_run_without_samples_takes_another_score_or_none():
    queries = pd.DataFrame(
        {"query_id": ["a", "b"], "question": "?", "answer": "x", "reference_answers": [["x"], ["x"]]}
    ).assign(calibrates=[True, False])
    run = Run.create({"source": "upload"}, queries=queries)
    found = conformal(run)
    assert found.score is None and found.sets is None and OF_SETS not in found.coverages
    assert found.queries["reason"].iloc[1] == "no_score"
    signals = pd.DataFrame({"query_id": ["a", "b"], "similarity": [0.9, 0.4], "lexical": [50.0, 10.0]})
    with_signals = conformal(Run.create({"source": "upload"}, queries=queries, signals=signals))
    assert with_signals.score.name == "similarity"
    assert with_signals.queries["score"].to_list() == pytest.approx([0.1, 0.6])
    lexical = conformal(with_signals.run, weights="lexical")
    assert lexical.queries["score"].to_list() == pytest.approx([0.5, 0.9])


def test_an_unknown_score_gives_no_verdict():
    found = conformal(nine(), weights="nobody.knows", alpha=0.2)
    assert found.score is None and (found.queries["reason"].iloc[9:] == "no_score").all()
    assert found.coverages[OF_DISTANCE].n_covered == 2, "what needs no score is there"


def claims_run(supports, counterparts, calibrates):
    """One claim per answer, with the support of one passage and what the reference answer says of it."""
    n = len(supports)
    run = planted([5] * n, [True] * n, calibrates)
    ids = run.queries["query_id"]
    key = {"query_id": ids, "claim_id": "c1"}
    claims = pd.DataFrame(
        {
            **key,
            "text": "x",
            "side": "answer",
            "relevance": "RELEVANT",
            "counterpart": counterparts,
            "scored": True,
        }
    )
    passages = pd.DataFrame(
        {"query_id": ids, "passage_id": "p", "retrieval_rank": 1.0, "text": "x", "slot": 1}
    )
    support = pd.DataFrame({**key, "passage_id": "p", "probability": supports})
    tables = {"queries": run.queries, "claims": claims, "passages": passages, "support": support}
    return Run.create({"source": "live"}, **tables)


def test_claims_are_kept_above_the_highest_wrong_one():
    supports = [0.9, 0.8, 0.3, 0.6, 0.95, 0.7, 0.2]
    counterparts = ["Entailment", "Neutral", "Contradiction", "Entailment", "Entailment", "Neutral", None]
    found = conformal(claims_run(supports, counterparts, [True] * 4 + [False] * 3), alpha=0.3).kept_claims
    # Highest wrong score of the four: none, 0.8, 0.3, none.
    above = conformal_threshold([-math.inf, 0.8, 0.3, -math.inf], 0.3)
    assert found.rule.threshold == pytest.approx(above) and found.rule.n == 4
    # The last one has no label; of the other two 0.95 is right, 0.7 is wrong: it may only be dropped.
    kept = [above < 0.95, above < 0.7]
    assert (found.n, found.n_right, found.n_claims, found.n_kept) == (2, 2 - kept[1], 2, sum(kept))


def test_claims_are_kept_without_reading_the_ablated_answers():
    supports, counterparts = [0.9, 0.8, 0.3, 0.6, 0.95], ["Entailment", "Neutral"] + 3 * ["Entailment"]
    given = claims_run(supports, counterparts, [True] * 4 + [False])
    # The claims come in any order, and those of a reference, however well supported, are not the answer's.
    claims = given["claims"].iloc[::-1]
    other = claims.assign(claim_id="r1", side="reference", counterpart="Contradiction")
    run = given.derive(claims=pd.concat([other, claims]))
    diagnosis = Diagnosis(run, {"alpha": 0.3})
    wrong = [-math.inf, 0.8, -math.inf, -math.inf]
    assert diagnosis["conformal"].kept_claims.rule.threshold == threshold(wrong, 0.3)
    assert diagnosis["conformal"].kept_claims.n_claims == 1
    assert "effects" not in vars(diagnosis["claims"].layout)


def test_claims_without_labels_cannot_calibrate():
    assert conformal(claims_run([0.9, 0.8], [None, None], [True, False])).kept_claims is None


def test_coverage_over_random_runs_keeps_its_promise():
    rng = np.random.default_rng(2)
    flagged = n = 0
    for _ in range(25):
        same = rng.integers(0, 11, 60).tolist()
        run = planted(same, [True] * 60, [True] * 30 + [False] * 30)
        q = conformal(run, alpha=0.2).queries
        flagged, n = flagged + int((q["verdict"] == FLAGGED).sum()), n + 30
    # At most 0.2 in the mean; each run's share has a standard deviation of about 0.1.
    assert flagged / n <= 0.2 + 4 * 0.1 / 5


def test_every_name_that_is_shown_is_defined():
    found = conformal(nine(), alpha=0.2)
    known = {one.name for one in DEFINITIONS}
    assert {*found.queries["verdict"], *found.queries["role"], *found.coverages} <= known
    assert set(REASONS) >= set(conformal(nine(), alpha=0.05).queries["reason"].dropna())


def test_an_answer_at_the_certified_confidence_is_given():
    n = 100
    queries = pd.DataFrame({"query_id": [f"q{i}" for i in range(2 * n)], "question": "?", "answer": "x"})
    queries["reference_answers"] = [["x"]] * 60 + [["y"]] * 40 + [["x"]] * n
    queries["calibrates"] = [True] * n + [False] * n
    # Right from 0.35 on, wrong at 0.3: 0.35 is the lowest that can be certified, and is reached by all right ones.
    similar = [0.35] * 60 + [0.3] * 40 + [0.35] * 50 + [0.34] * 50
    signals = pd.DataFrame({"query_id": queries["query_id"], "similarity": similar})
    found = conformal(Run.create({"source": "upload"}, queries=queries, signals=signals), alpha=0.1)
    assert found.certificate.threshold == pytest.approx(0.35)
    assert found.queries["answered"].iloc[n:].to_list() == [True] * 50 + [False] * 50


def test_wrong_answers_of_a_group_do_not_test_its_promise():
    same, correct = [9, 8, 7, 6, 9, 8, 9, 0], [True] * 6 + [True, False]
    kind = ["who"] * 4 + ["when"] * 2 + ["who"] * 2
    run = planted(same, correct, [True] * 6 + [False] * 2, kind=kind)
    groups = conformal(run, alpha=0.5).groups.set_index("group")
    assert groups.loc["who", ["n_test", "n_covered"]].to_list() == [1, 1]
