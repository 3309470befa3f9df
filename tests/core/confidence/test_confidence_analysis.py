"""The confidence of a run by hand: weights and thresholds from four places, bands, reasons, what it is worth."""

import io
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, hypergeom

from core.calibration.in_use import provenance, read_weights, write_weights
from core.confidence import (
    ConfidenceMap,
    Method,
    SavedCalibration,
    Weighting,
    labelled_run,
    learn,
)
from core.confidence.analysis import ece_by_chance
from core.confidence.findings import numbers
from core.conformal import cases_of
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.report.exports import exporters
from core.run import Run
from core.socket import BAD, GOOD, UNCLEAR
from core.stats import reliability_bins
from tests.core.confidence.confidence_runs import signal_run
from tests.core.conformal.conformal_runs import planted

NAN = math.nan
ALONE = {"weights": "similarity=1"}


@pytest.fixture
def four():
    """The seed's example; all signals half; one without a signal; one without an answer."""
    status = ["answered", "answered", "answered", "abstained"]
    return signal_run([0.89, 0.5, NAN, 0.9], [38.5, 50, 60, 90], [0.92, 0.5, 0.5, 0.9], answer_status=status)


def analysed(run, **settings):
    return Diagnosis(run, settings)["confidence"]


def facts(run, **settings):
    return {one.key: one for one in Diagnosis(run, settings).numbers("confidence")}


def named(run, **settings):
    return {one.name: one for one in Diagnosis(run, settings).findings_of("confidence")}


def test_the_weighted_sum_its_parts_and_its_reasons(four):
    found = analysed(four)
    q = found.queries
    np.testing.assert_allclose(q["confidence"], [0.71925, 0.5, NAN, NAN])
    np.testing.assert_allclose(found.contributions[0], [0.4005, 0.13475, 0.184])
    np.testing.assert_allclose(found.signals["lexical"], [0.385, 0.5, 0.6, 0.9])
    assert q["band"].to_list() == ["high", "medium", "undefined", "undefined"]
    assert q["passes"].to_list() == [True, False, pd.NA, pd.NA]
    assert q["reason"].fillna("").to_list() == ["", "", "no_signal", "no_answer"]
    assert (found.used.origin, found.used.reason, found.warnings) == ("default", "", ())
    said = facts(four)
    assert (
        said["mean_confidence"].value == pytest.approx((0.71925 + 0.5) / 2) and said["mean_confidence"].n == 2
    )
    assert said["n_passing"].text == "1 of 2"
    assert said["confidence_bands"].value == {"high": 1, "medium": 1}
    assert said["confidence_undefined_reasons"].value == {"no_signal": 1, "no_answer": 1}
    assert Diagnosis(four).summary()["mean_confidence"] == pytest.approx(0.609625)


def test_weights_of_the_setting_are_shares_of_their_sum(four):
    found = analysed(four, weights=" similarity = 3, llm=1 ")
    assert found.weighting.weights == {"similarity": 0.75, "llm": 0.25} and found.used.origin == "setting"
    np.testing.assert_allclose(found.queries["confidence"], [0.75 * 0.89 + 0.25 * 0.92, 0.5, NAN, NAN])
    assert found.contributions.shape == (4, 2)
    # A signal without a weight is not needed.
    np.testing.assert_allclose(analysed(four, weights="similarity=0,lexical=2").queries["confidence"][2], 0.6)


def test_an_answer_passes_as_it_is_shown():
    run = signal_run([0.595, 0.5949, 0.395, 0.3949])
    q = analysed(run, **ALONE).queries
    assert q["passes"].to_list() == [True, False, False, False]
    assert q["band"].to_list() == ["medium", "medium", "medium", "low"]


@pytest.mark.parametrize(
    "text",
    ["", "similarity=", "similarity=-1", "similarity=nan", "similarity=inf", "similarity=0",
     "=1", "similarity=1,", "similarity=1,similarity=2", "<script>=alert(1)</script>"],
)  # fmt: skip
def test_unusable_weights_are_a_reason_and_no_confidence(four, text):
    with pytest.raises(InputError):
        read_weights(text)
    found = analysed(four, weights=text)
    assert found.used.reason.startswith("Weights must") and found.queries["confidence"].isna().all()
    assert found.queries["reason"].to_list() == ["no_weights"] * 3 + ["no_answer"]
    assert facts(four, weights=text)["mean_confidence"].note == found.used.reason


def test_a_signal_that_the_run_does_not_have_is_named(four):
    found = analysed(four, weights="similarity=1,uncertainty.agreement=1")
    assert found.used.reason == (
        "The run has no signal uncertainty.agreement; it has similarity, lexical, llm."
    )
    assert found.queries["confidence"].isna().all() and found.contributions.shape == (4, 2)


def test_signals_of_other_diagnostics_join_as_confidences():
    run = planted([10, 4, 0], [True, None, False], [None] * 3)
    found = analysed(run, weights="uncertainty.agreement_rouge_l=1")
    np.testing.assert_allclose(found.queries["confidence"], [1, 0.4, 0])
    # All ten samples alike: no entropy. An uncertainty without a range becomes exp(−value).
    assert analysed(run, weights="uncertainty.entropy=1").queries["confidence"][0] == 1
    keys = [one.key for one in found.used.choices]
    assert "uncertainty.sum_eigen" in keys and "answers.correct" not in keys, "no label may join"
    assert all(found.used.titles[key] for key in keys)


def calibrated(run, method, score="confidence.confidence"):
    """The run with a calibration whose weights and map are these; its scores do not matter here."""
    kept = SavedCalibration(
        "c.db", provenance(run.manifest, score, method), np.empty(0), np.empty(0), (), 0, method
    )
    return run.derive({"steps": {"conformal": {"options": {"calibration": kept.to_json()}}}})


def test_a_calibration_that_the_run_keeps_is_used():
    weighting = Weighting({"similarity": 1.0}, {"similarity": (0.0, 0.5)})
    halves = ConfidenceMap("isotonic", x=(0.0, 1.0), y=(0.0, 0.5))
    run = calibrated(signal_run([0.25, 0.45]), Method(weighting, halves))
    found = analysed(run)
    assert found.queries["raw_confidence"].to_list() == pytest.approx([0.5, 0.9])
    assert found.queries["confidence"].to_list() == pytest.approx([0.25, 0.45])
    assert (found.used.origin, found.used.method.map.kind) == ("calibration", "isotonic")
    # The colours follow the map, and both views have one confidence.
    assert found.queries["band"].to_list() == ["low", "medium"]
    other = Diagnosis(run)["conformal"].queries["confidence"]
    assert other.to_list() == pytest.approx(found.queries["confidence"].to_list())
    # Other weights are not what the map was fitted to; the declared range stays.
    other = analysed(run, weights="similarity=2")
    assert (
        other.queries["confidence"].to_list() == pytest.approx([0.5, 0.9])
        and other.used.method.map.kind == "none"
    )


def test_the_threshold_of_the_environment(four, monkeypatch):
    monkeypatch.setenv("RAG_CONFIDENCE_THRESHOLD", "0.45")
    assert analysed(four).queries["passes"].to_list()[:2] == [True, True]
    assert analysed(four, confidence_threshold=0.55).queries["passes"].to_list()[:2] == [True, False]
    monkeypatch.setenv("RAG_CONFIDENCE_THRESHOLD", "much")
    assert "RAG_CONFIDENCE_THRESHOLD" in analysed(four).used.reason


def test_what_the_confidence_is_worth_by_hand():
    run = signal_run([0.9, 0.8, 0.3, 0.2, 0.7], correct=[True, False, False, True, None])
    found = analysed(run, **ALONE)
    quality = found.quality
    assert (quality.n, quality.auroc) == (4, 0.5)
    assert quality.brier == pytest.approx((0.01 + 0.64 + 0.09 + 0.64) / 4)
    # Each in a bin of its own: gaps of 0.1, 0.8, 0.3 and 0.8.
    assert quality.ece == pytest.approx(0.5) and quality.mce == pytest.approx(0.8)
    assert found.gap[0] == pytest.approx(2.2 / 4 - 0.5)
    said = facts(run, **ALONE)
    assert said["n_passing"].text == "3 of 5"
    assert said["n_correct_passing"].text == "1 of 2" and said["n_correct_passing"].chance == 1
    assert said["n_correct_below"].text == "1 of 2"
    assert said["confidence_brier"].chance == pytest.approx(0.25)
    assert (said["confidence_auroc"].value, said["confidence_auroc"].chance) == (0.5, 0.5)
    assert said["confidence_aurc"].chance == 0.5


def test_other_weights_and_thresholds_change_what_passes():
    run = signal_run([0.9, 0.1, 0.9], llm=[0.1, 0.9, 0.9], correct=[False, True, True])
    found = analysed(run, **ALONE)
    passed, quality = found.at({"llm": 2.0}, 0.5)
    assert (passed.n, passed.n_passing, passed.accuracy, quality.auroc) == (3, 2, 1.0, 1.0)
    passed, quality = found.at({"similarity": 1, "llm": 1}, 0.5)
    assert (passed.coverage, passed.n_correct, quality.auroc) == (1.0, 2, 0.75)
    for weights in ({"llm": 0.0}, {"llm": -1.0, "similarity": 2.0}, {"llm": NAN}, {"unknown": 1.0}):
        with pytest.raises(InputError):
            found.at(weights, 0.5)


def test_another_weighting_reads_the_signals_in_their_own_units(four):
    found = analysed(four)
    wide = Weighting({"lexical": 1.0}, {"lexical": (0.0, 200.0)}, 0.3)
    # 38.5 and 50 of 200; a signal that is missing has no weight; the last has no answer.
    np.testing.assert_allclose(found.by(wide), [0.1925, 0.25, 0.3, NAN])
    with pytest.raises(InputError, match="no signal nobody"):
        found.by(Weighting({"nobody": 1.0}, {"nobody": (0.0, 1.0)}))
    other = found.other({"lexical": 3, "llm": 1}, 0.4)
    assert (other.weights, other.threshold) == ({"lexical": 0.75, "llm": 0.25}, 0.4)
    assert other.ranges["lexical"] == (0.0, 100.0)
    # 0.75 · 0.385 + 0.25 · 0.92, one half, 0.75 · 0.6 + 0.25 · 0.5.
    np.testing.assert_allclose(found.by(other), [0.51875, 0.5, 0.575, NAN])


def test_how_many_of_each_band_are_correct():
    run = signal_run([0.9, 0.8, 0.7, 0.69, 0.4, 0.1], correct=[True, False, None, True, True, None])
    frame = analysed(run, **ALONE).bands().set_index("band")
    assert frame["n"].to_dict() == {"high": 3, "medium": 2, "low": 1}
    assert frame["n_labelled"].to_list() == [2, 2, 0] and frame["n_correct"].to_list() == [1, 2, 0]
    # Wilson's intervals of 1 of 2 and 2 of 2.
    np.testing.assert_allclose(frame["accuracy"], [0.5, 1, NAN])
    np.testing.assert_allclose(frame["low"], [0.0945, 0.3424, NAN], atol=1e-4)
    np.testing.assert_allclose(frame["high"], [0.9055, 1, NAN], atol=1e-4)


def test_weights_are_read_as_they_are_written():
    assert write_weights({"similarity": 1 / 3, "uncertainty.agreement": 2 / 3}) == (
        "similarity=0.3333,uncertainty.agreement=0.6667"
    )
    assert read_weights("similarity=0,lexical=2") == {"lexical": 1}
    assert read_weights(write_weights({"llm": 1, "lexical": 3})) == {"llm": 0.25, "lexical": 0.75}


def test_the_calibration_error_of_a_perfect_confidence():
    # One answer at ½: wrong by ½ either way. Two: by ½, 0, 0 or ½.
    assert ece_by_chance(reliability_bins([0.5], [1])) == (0.5, 0.5)
    mean, most = ece_by_chance(reliability_bins([0.5, 0.5], [1, 0]))
    assert mean == pytest.approx(0.25, abs=0.05) and most == 0.5
    assert ece_by_chance(reliability_bins([0.0, 1.0], [1, 0])) == (0, 0)
    assert np.isnan(ece_by_chance(())).all()
    # 500 runs are drawn: of ½ · n / 500 the thousandfold is a whole number.
    assert 1_000 * mean == pytest.approx(round(1_000 * mean), abs=1e-9)
    # Of 100 answers at ½ the share correct has the standard deviation 0.05, and 95 % are within 0.098 of it.
    mean, most = ece_by_chance(reliability_bins([0.5] * 100, [1, 0] * 50))
    assert (mean, most) == (pytest.approx(0.05 * 0.798, abs=0.004), pytest.approx(0.098, abs=0.013))
    bins = reliability_bins([0.5] * 100, [1, 0] * 50)
    assert ece_by_chance(bins) == ece_by_chance(bins, 0) != ece_by_chance(bins, 1)
    said = facts(signal_run([0.5] * 100, correct=[True, False] * 50), **ALONE)["confidence_ece"]
    assert said.note == f"at most {most:.2f} in 95 % of such runs"


def test_overconfident_and_underconfident():
    sure = signal_run([0.9] * 16, correct=[True] * 4 + [False] * 12)
    assert facts(sure, **ALONE)["confidence_gap"].text == "0.65"
    found = named(sure, **ALONE)["overconfident"]
    assert found.sentence == "The confidence is too high: 0.90 on average, where 4 of 16 answers are correct."
    assert (found.n, found.of, len(found.query_ids)) == (4, 16, 12)
    # 16 · 0.9; at least 12 of 16 at 0.1 each, twice.
    assert found.expected_by_chance == pytest.approx(14.4)
    assert found.p_value == pytest.approx(2 * binom.sf(11, 16, 0.1))
    shy = signal_run([0.1] * 16, correct=[True] * 12 + [False] * 4)
    found = named(shy, **ALONE)["underconfident"]
    assert "too low: 0.10" in found.sentence and (found.n, found.expected_by_chance) == (12, 1.6)
    assert found.query_ids == tuple(f"q{i:02}" for i in range(12))
    # *Overconfident* stood on every incorrect answer, whatever its confidence.
    some = named(signal_run([0.9] * 15 + [0.4], correct=[False] * 16), **ALONE)["overconfident"]
    assert some.query_ids == tuple(f"q{i:02}" for i in range(15))
    fair = signal_run([0.75] * 16, correct=[True] * 12 + [False] * 4)
    assert not {"overconfident", "underconfident"} & set(named(fair, **ALONE))


def test_too_low_and_too_high_have_one_advice_which_is_no_threshold():
    """Reproduction: "confidence too low, lower the threshold" stood with "incorrect answers pass, raise it"."""
    for values, right in (([0.9] * 30, [True] * 4), ([0.1] * 30, [True] * 26)):
        found = named(signal_run(values, correct=right + [False] * (30 - len(right))), **ALONE)
        one = found.get("overconfident") or found["underconfident"]
        assert one.fix == "confidence:calibrate" and one.advice.startswith("Calibrate")
    # 0.9 on average where 4 to 31 % are correct: 59 % more answers are wrong than promised, or more.
    assert (
        named(signal_run([0.9] * 30, correct=[True] * 4 + [False] * 26), **ALONE)["overconfident"].severity
        == "high"
    )
    # 0.1 where 70 to 95 % are correct: correct answers are distrusted.
    assert one.severity == "medium"
    # 0.75 where 68 % are: as likely by chance, and with so few labels no grave finding ever.
    assert named(signal_run([1.0] * 2, correct=[True, False]), **ALONE)["overconfident"].severity == "low"


def test_whether_it_tells_correct_from_incorrect():
    right = [True] * 12 + [False] * 12
    backwards = named(signal_run([0.1] * 12 + [0.9] * 12, correct=right), **ALONE)["confidence_backwards"]
    assert (backwards.tone, backwards.severity) == (BAD, "high") and "AUROC 0.00" in backwards.sentence
    blind = named(signal_run([0.5] * 24, correct=right), **ALONE)["confidence_blind"]
    assert (blind.tone, blind.n, blind.of) == (UNCLEAR, 12, 24)
    # Of all ways to deal 12 of 24 labels two are as extreme.
    assert backwards.p_value == pytest.approx(2 / math.comb(24, 12))
    tells = named(signal_run([0.9] * 12 + [0.1] * 12, correct=right), **ALONE)
    assert not {"confidence_backwards", "confidence_blind", "wrong_answers_pass"} & set(tells)
    assert tells["confidence_ranks"].tone == GOOD and tells["confidence_ranks"].p_value == backwards.p_value
    # 3 of 6 that are backwards: 0.1 at best, which chance explains, though DeLong's interval is below 0.5.
    few = named(signal_run([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], correct=[True] * 3 + [False] * 3), **ALONE)
    assert "confidence_backwards" not in few and few["confidence_blind"].tone == UNCLEAR


def test_incorrect_answers_that_pass_are_compared_with_chance_in_both_directions():
    """Reproduction: "1 of 53 incorrect answers passes; 21.7 would by chance" was bad, by the p of the wrong tail."""
    # 26 of 63 pass; of the 53 incorrect ones one.
    values = [0.9] * 10 + [0.9] + [0.2] * 37 + [0.7] * 15
    right = [True] * 10 + [False] * 38 + [True] * 15
    found = named(signal_run(values, correct=right), **ALONE)["wrong_answers_stopped"]
    assert (found.tone, found.severity, found.n, found.of) == (GOOD, "low", 1, 38)
    assert found.expected_by_chance == pytest.approx(38 * 26 / 63)
    assert found.p_value == pytest.approx(2 * hypergeom(63, 38, 26).cdf(1))
    assert found.sentence == (
        "1 of 38 incorrect answers passes the threshold 0.6; about 16 would if confidence were unrelated to "
        "correctness."
    )
    assert found.query_ids == ("q10",) and not found.fix
    # The other way round: of 38 incorrect ones 37 pass, of 25 correct ones none.
    values = [0.2] * 25 + [0.9] * 37 + [0.2]
    found = named(signal_run(values, correct=[True] * 25 + [False] * 38), **ALONE)["wrong_answers_pass"]
    assert (found.tone, found.severity, found.fix) == (BAD, "high", "signal:replace")
    assert found.p_value == pytest.approx(2 * hypergeom(63, 38, 37).sf(36))
    # Three of four pass. Of the pairs of incorrect answers that could be drawn, half hold the one that fails.
    found = named(signal_run([0.9, 0.8, 0.7, 0.2], correct=[True, True, False, False]), **ALONE)
    unclear = found["wrong_answers_pass"]
    assert (unclear.tone, unclear.n, unclear.of, unclear.expected_by_chance) == (UNCLEAR, 1, 2, 1.5)
    assert unclear.query_ids == ("q02",) and "wrong_answers_stopped" not in found


def test_a_threshold_that_every_answer_reaches_stops_nothing():
    found = named(signal_run([0.9, 0.8] * 20, correct=[True, False] * 20), **ALONE)["threshold_stops_nothing"]
    assert (
        found.sentence
        == "The threshold 0.6 stops none of 40 labelled answers: all 20 incorrect answers pass."
    )
    # Surely more than a quarter of 40 are incorrect: Wilson's 95 % interval of 20 is 35 to 65 %.
    assert (found.tone, found.severity, found.fix) == (BAD, "high", "threshold:raise")


@pytest.mark.parametrize("seed", range(6))
def test_what_the_findings_advise_never_goes_two_ways(seed):
    rng = np.random.default_rng(seed)
    values = np.clip(rng.normal(0.6, 0.2, 80), 0, 1)
    for right in (
        rng.random(80) < values,
        rng.random(80) < 0.1,
        rng.random(80) < 1 - values,
        rng.random(80) < 0.9,
    ):
        found = Diagnosis(signal_run(values, correct=right.tolist()), ALONE).findings_of("confidence")
        levers = [one.fix.split(":") for one in found if one.fix]
        assert len({lever for lever, _ in levers}) == len({tuple(one) for one in levers})
        assert not any("threshold" in one.advice.lower() and "raise" in one.advice.lower() for one in found)


def test_a_signal_in_another_range_is_found():
    run = signal_run([0.5] * 5, lexical=[0.71, 0.83, 0.9, 0.88, 0.79], llm=[0.5] * 5)
    found = named(run)["range_mismatch"]
    assert (found.n, found.of, found.severity) == (5, 5, "high")
    assert (
        "Lexical score is declared as 0 to 100, but all 5 values lie between 0.71 and 0.9" in found.sentence
    )
    assert "range_mismatch" not in named(run, weights="similarity=1"), "it has no weight"


def test_a_signal_that_never_moves_is_found():
    values = [0.1, 0.4, 0.6, 0.8, 0.9]
    run = signal_run(values, [10, 20, 30, 40, 50], [0.5] * 5)
    found = named(run)["constant_signal"]
    assert (found.n, found.of, found.severity) == (5, 5, "medium")
    assert found.sentence == "Stated confidence is the same for all 5 answers: it separates none of them."
    assert "constant_signal" not in named(run, weights="similarity=1"), "it has no weight"
    assert "constant_signal" not in named(signal_run(values[:4], [1, 2, 3, 4], [0.5] * 4)), "four are too few"
    assert "constant_signal" not in named(signal_run(values, values, [0.5] * 4 + [0.51]))


def test_retrieval_sampling_and_conformal_prediction_in_one():
    run = planted([10, 8, 5], [True, True, None], [True, False, False])
    passages = pd.DataFrame(
        [
            {"query_id": one, "passage_id": p, "text": "x", "retrieval_rank": 1.0, "retrieval_score": 3.0}
            for one in ("q000", "q001")
            for p in ("a", "b")
        ]
    )
    run = Run.create(run.manifest, **{**run.tables, "passages": passages})
    found = analysed(run)
    q = found.queries
    # Equal scores: the largest entropy. The conformal score is the agreement with the samples, too.
    np.testing.assert_allclose(q["retrieval_uncertainty"], [1, 1, NAN])
    np.testing.assert_allclose(q["sampling_uncertainty"], [0, 0.2, 0.5], atol=1e-9)
    np.testing.assert_allclose(q["conformal_uncertainty"], [0, 0.2, 0.5], atol=1e-9)
    np.testing.assert_allclose(q["combined_uncertainty"], [0.2, 0.2 + 0.08 + 0.08, NAN], atol=1e-9)
    np.testing.assert_allclose(q["combined_confidence"], [1, 0.8, 0.5], atol=1e-9)
    # Too few labels for a verdict: only the third fails by its samples.
    assert q["is_reliable_strict"].isna().to_list() == [True, True, False]
    # A share of decided answers would be 0 of 1: without a verdict an answer can fail, but never pass.
    assert facts(run)["n_reliable_strict"].value is None
    # The rule of the source needs the embeddings of the samples. All samples of the first are one word.
    assert q["is_reliable"].isna().all() and facts(run)["n_reliable"].value is None
    embedded = analysed(run, by_embedding=True).queries
    variance = Diagnosis(run, {"by_embedding": True})["uncertainty"].queries["embedding_variance"]
    assert (embedded["is_reliable"].eq(False).fillna(False) == (1 - variance <= 0.7)).all()
    (mean,) = [one for one in numbers(found) if one.key == "mean_combined_uncertainty"]
    assert mean.value == pytest.approx(0.28) and mean.n == 2


def test_reliable_answers_are_counted_among_those_with_both_parts(four):
    """Without embeddings "0 of 1 answer are reliable" stood beside 2 by the stricter rule: it alone had failed."""
    table = {
        "mc_confidence": [0.8, 0.9, NAN, 0.6],
        "sampling_uncertainty": [0.1, 0.2, 0.3, NAN],
        "conformal_reliable": pd.array([True, None, False, True], dtype="boolean"),
        "is_reliable": pd.array([True, None, False, False], dtype="boolean"),
        "is_reliable_strict": pd.array([True, None, False, None], dtype="boolean"),
    }
    found = replace(analysed(four), queries=pd.DataFrame(table))
    # The first and the fourth have both parts of the one rule, the first and the third of the other.
    assert found.reliable("is_reliable") == (1, 2) == found.reliable("is_reliable_strict")
    bare = replace(found, queries=found.queries.assign(mc_confidence=NAN))
    assert bare.reliable("is_reliable") == (0, 0)


@pytest.mark.parametrize("correct", [[None], [True], [False]])
def test_one_question(correct):
    run = signal_run([0.8], correct=correct)
    said = facts(run, **ALONE)
    assert said["mean_confidence"].text == "0.80" and said["mean_confidence"].interval is None
    assert said["confidence_auroc"].value is None and said["confidence_auroc"].chance is None
    assert (said["confidence_ece"].value is None) == (correct == [None])
    assert set(named(run, **ALONE)) == ({"threshold_stops_nothing"} if correct == [False] else set())


def test_a_run_without_signals_has_no_number():
    for run in (Run.create({"source": "upload"}), signal_run([NAN, NAN])):
        assert Diagnosis(run).diagnostic("confidence").lacks(run).startswith("No confidence signals")
        assert all(one.value is None for one in facts(run).values())
        assert Diagnosis(run).findings_of("confidence") == ()


def test_all_correct():
    run = signal_run([0.7] * 6, correct=[True] * 6)
    said = facts(run, **ALONE)
    assert said["n_correct_passing"].text == "6 of 6" and said["confidence_auroc"].value is None
    assert said["confidence_brier"].chance == 0
    # Six of six come about at 0.7 once in 8.5 times; every gap is −0.3, which says nothing of others.
    assert [*named(run, **ALONE)] == ["constant_signal"] and said["confidence_gap"].interval is None


def test_exports(four):
    hostile = signal_run([0.5], correct=[True], question=['=HYPERLINK("x")'])
    text = exporters()["confidence-csv"].write(Diagnosis(hostile, ALONE)).decode("utf-8-sig")
    row = pd.read_csv(io.StringIO(text)).iloc[0]
    assert row["question"] == '\'=HYPERLINK("x")' and (row["confidence"], row["signal.similarity"]) == (
        0.5,
        0.5,
    )
    assert "signal.lexical" not in row.index, "it has no weight"
    bins = pd.read_csv(io.BytesIO(exporters()["reliability-csv"].write(Diagnosis(hostile, ALONE))))
    assert bins.loc[0, ["number", "n", "accuracy"]].to_list() == [7, 1, 1]
    empty = pd.read_csv(io.BytesIO(exporters()["reliability-csv"].write(Diagnosis(four))))
    assert len(empty) == 0 and "confidence" in empty.columns


def test_a_calibration_is_not_judged_by_the_labels_that_it_was_learned_from():
    """Reproduction: a map learned on a run of 60 and applied to it had ECE 0.00."""
    rng = np.random.default_rng(4)
    values = rng.random((3, 60))
    right = rng.random(60) < 0.2 + 0.6 * values[2]
    run = signal_run(values[0], 100 * values[1], values[2], correct=right.tolist())
    rows = labelled_run(Diagnosis(run), teaching=True)
    found = learn(rows, Weighting(), 200, 20)
    analysis = analysed(calibrated(run, found.method))
    assert analysis.n_taught == rows.n and analysis.quality.n == 60 - rows.n
    assert f"learned from {rows.n} labelled answers of this run. They do not judge it." in analysis.fit_note
    assert analysis.queries["confidence"].notna().all(), "they have a confidence like all others"
    # Nor do they calibrate: the cases are those of the other half.
    cases, _ = cases_of(Diagnosis(run), found.method)
    assert {one.question for one in cases} == {*run.queries["question"]} - {*rows.questions}
    np.testing.assert_allclose(
        [one.score for one in cases],
        [1 - value for value in analysis.judged if not math.isnan(value)],
        atol=1e-9,
    )
