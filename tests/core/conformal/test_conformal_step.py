"""Halves of the labelled questions, or a store, as what a run is calibrated on; and what is said of it."""

import json

import numpy as np
import pytest

from core.calibration.in_use import provenance
from core.calibration.provenance import Provenance, provenance_of
from core.calibration.saved import SavedCalibration, read_store
from core.calibration.store import CalibrationCase, CalibrationStore
from core.cli import main
from core.conformal import conformal_threshold
from core.conformal.definitions import DEFINITIONS, FINDINGS, OF_CORRECT, OF_SETS
from core.conformal.findings import findings
from core.conformal.labelled import cases_of
from core.conformal.split import shortfall
from core.conformal.step import ConformalStep
from core.diagnosis import Diagnosis
from core.errors import InputError
from core.pipeline import fill
from core.run import Run
from core.socket import BAD, GOOD, UNCLEAR
from core.text.display import about
from tests.core.conformal.conformal_runs import against_store, planted

SCORE = "uncertainty.agreement_rouge_l"


def unmarked(n=21, labelled=15):
    return planted([9] * n, [True] * labelled + [None] * (n - labelled), [None] * n)


def halves(run):
    return run.queries["calibrates"].to_list()


def test_half_of_the_labelled_questions_calibrates():
    run = fill(unmarked(), ConformalStep())
    calibrates = halves(run)
    assert sum(calibrates[:15]) == 8 and not any(calibrates[15:])
    facts = run.manifest["steps"]["conformal"]
    assert (facts["n_calibration"], facts["n_test"], facts["complete"], facts["n_calls"]) == (8, 7, True, 0)
    assert halves(fill(unmarked(), ConformalStep())) == calibrates, "same questions and seed, same half"
    assert fill(run, ConformalStep()) is run, "nothing is missing"
    assert any(halves(fill(unmarked(), ConformalStep(seed=seed))) != calibrates for seed in range(1, 6))


def test_another_seed_chooses_anew():
    run = fill(unmarked(), ConformalStep())
    seeds = [halves(fill(run, ConformalStep(seed=seed))) for seed in range(1, 6)]
    assert all(sum(one[:15]) == 8 for one in seeds) and any(one != halves(run) for one in seeds)


def test_without_labels_nothing_calibrates_and_the_run_says_so():
    run = fill(unmarked(4, 0), ConformalStep())
    assert run.queries["calibrates"].isna().all() and run.manifest["steps"]["conformal"]["complete"]
    assert run.manifest["notes"] == [
        "No answer has a label or a reference answer: nothing can be calibrated."
    ]
    diagnosis = Diagnosis(run)
    assert not diagnosis["conformal"].calibrated and diagnosis.findings_of("conformal") == ()
    assert diagnosis.diagnostic("conformal").lacks(run).startswith("Not calibrated")


@pytest.mark.parametrize("seed", [-1, 2**31, 1.5, True])
def test_seeds_have_a_range(seed):
    with pytest.raises(InputError, match="seed must be a whole number from 0"):
        ConformalStep(seed=seed)


@pytest.mark.parametrize("seed", [0, 2**31 - 1])
def test_the_ends_of_the_range_are_seeds(seed):
    assert ConformalStep(seed=seed).seed == seed


def store_of(path, run, scores, correct=None, name=SCORE):
    """A store with these scores, of the set-up of a run."""
    source = provenance_of(run.manifest, name, "uncertainty")
    right = correct or [True] * len(scores)
    cases = [
        CalibrationCase(f"Question {i}?", "context", "alpha", "alpha", score=score, correct=one, kind="who")
        for i, (score, one) in enumerate(zip(scores, right, strict=True))
    ]
    with CalibrationStore(path) as store:
        store.add(cases, source)
    return str(path)


def test_a_store_calibrates_in_place_of_the_run(tmp_path):
    run = planted([9, 1, 0, 8], [True, True, False, None], [None] * 4)
    path = store_of(tmp_path / "s.db", run, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    filled = fill(run, ConformalStep(store=path))
    assert halves(filled) == [False] * 4
    found = Diagnosis(filled, {"alpha": 0.3})["conformal"]
    assert found.origin == "s.db" and found.stale == ()
    one = found.coverages[OF_CORRECT]
    # Correct and tested are the first, at 0.1, and the second, at 0.9.
    assert one.threshold == pytest.approx(conformal_threshold(np.arange(1, 10) / 10, 0.3))
    assert (one.n_calibration, one.n_test, one.n_covered) == (9, 2, 1)
    # Scores 0.1, 0.9, 1.0 and 0.2; 9, 1, 0 and 8 of nine are at least as strange.
    assert found.queries["p_value"].to_list() == pytest.approx([1, 0.2, 0.1, 0.9])
    assert OF_SETS not in found.coverages and one.splits is None, "the store has no samples and is not split"
    assert found.groups.empty


def test_a_question_that_is_in_the_store_is_no_test(tmp_path):
    run = planted([9, 1, 0, 8], [True] * 4, [None] * 4)
    cases, provenance = cases_of(Diagnosis(run))
    with CalibrationStore(tmp_path / "s.db") as store:
        store.add(cases[1:], provenance)
        store.exclude([3], "asked twice")
    filled = fill(run, ConformalStep(store=str(tmp_path / "s.db")))
    # The second and the third are used; the fourth is excluded, so it tests, as does the first.
    assert halves(filled) == [False, True, True, False]
    found = Diagnosis(filled)["conformal"]
    assert found.coverages[OF_CORRECT].n_calibration == 2 and found.coverages[OF_CORRECT].n_test == 2
    assert found.kept_claims is None and found.drift.n == 2


def test_an_answer_is_a_case_by_its_reference_or_a_judgement_of_it():
    run = planted([9, 8, 7], [True, None, None], [None] * 3)
    queries = run.queries.assign(correct=[None, False, None])
    cases, _ = cases_of(Diagnosis(Run.create(run.manifest, **{**run.tables, "queries": queries})))
    # The third has neither.
    assert [(one.question, one.true_answer, one.correct) for one in cases] == [
        ("Which word is number 0?", "alpha", True),
        ("Which word is number 1?", "", False),
    ]
    assert [one.score for one in cases] == pytest.approx([0.1, 0.2])


def test_the_run_keeps_the_calibration_when_the_store_goes(tmp_path):
    run = planted([9], [True], [None])
    path = store_of(tmp_path / "s.db", run, [0.5] * 9)
    filled = fill(run, ConformalStep(store=path))
    filled.save(tmp_path / "run")
    (tmp_path / "s.db").unlink()
    found = Diagnosis(Run.load(tmp_path / "run"), {"alpha": 0.2})["conformal"]
    assert found.coverages[OF_CORRECT].threshold == pytest.approx(0.5)


def test_a_store_that_has_grown_calibrates_anew(tmp_path):
    run = planted([9], [True], [None])
    path = store_of(tmp_path / "s.db", run, [0.5] * 9)
    filled = fill(run, ConformalStep(store=path))
    assert fill(filled, ConformalStep(store=path)) is filled
    with CalibrationStore(path) as store:
        store.exclude([1, 2], "asked by mistake")
    again = fill(filled, ConformalStep(store=path))
    assert Diagnosis(again)["conformal"].coverages[OF_CORRECT].n_calibration == 7


def test_a_snapshot_survives_json(tmp_path):
    run = planted([9], [True], [None])
    path = store_of(tmp_path / "s.db", run, [0.25, 0.5, 0.75], [True, False, None])
    with CalibrationStore(path) as store:
        store.exclude([1], "a duplicate")
    kept = SavedCalibration.from_json(json.loads(json.dumps(read_store(path)[0].to_json())))
    assert (kept.score, kept.store, kept.n_excluded, kept.method) == (SCORE, "s.db", 1, None)
    assert kept.scores.tolist() == [0.5, 0.75] and kept.kinds == ("who", "who")
    np.testing.assert_array_equal(kept.correct, [0, np.nan])
    assert kept.provenance == provenance(run.manifest, kept.score, None)


@pytest.mark.parametrize(
    ("part", "other"),
    [("model", {"name": "another"}), ("prompt", {"style": "long"}), ("retriever", {"name": "dense"})],
)
def test_a_store_of_another_set_up_is_refused(tmp_path, part, other):
    run = planted([9], [True], [None])
    path = store_of(tmp_path / "s.db", Run.create({**run.manifest, part: other}, **run.tables), [0.5] * 9)
    with pytest.raises(InputError, match=f"does not fit this run: calibrated with the {part}"):
        fill(run, ConformalStep(store=path))


def test_a_store_of_other_samples_is_refused(tmp_path):
    run = planted([9], [True], [None])
    steps = {**run.manifest["steps"], "uncertainty": {"options": {}, "samples": 20}}
    path = store_of(tmp_path / "s.db", Run.create({**run.manifest, "steps": steps}, **run.tables), [0.5] * 9)
    with pytest.raises(InputError, match="calibrated with the score"):
        fill(run, ConformalStep(store=path))


def test_a_missing_or_empty_store_is_refused(tmp_path):
    with pytest.raises(InputError, match="There is no calibration store"):
        fill(unmarked(), ConformalStep(store=str(tmp_path / "no.db")))
    assert not (tmp_path / "no.db").exists()
    CalibrationStore(tmp_path / "empty.db").close()
    with pytest.raises(InputError, match="holds no score"):
        fill(unmarked(), ConformalStep(store=str(tmp_path / "empty.db")))


def test_a_calibration_goes_stale_when_the_run_is_sampled_anew(tmp_path):
    run = planted([9, 0], [True, True], [None] * 2)
    filled = fill(run, ConformalStep(store=store_of(tmp_path / "s.db", run, [0.5] * 9)))
    steps = {**filled.manifest["steps"], "uncertainty": {"options": {}, "samples": 20}}
    changed = Diagnosis(Run.create({**filled.manifest, "steps": steps}, **filled.tables))
    found = changed["conformal"]
    assert len(found.stale) == 1 and "calibrated with the score" in found.stale[0]
    assert found.queries["p_value"].isna().all() and found.drift.n == 0, "it promises nothing any more"
    worst = changed.findings_of("conformal")[0]
    assert (worst.name, worst.severity, worst.tone) == ("stale_calibration", "high", BAD)
    other = Diagnosis(filled, {"weights": "uncertainty.entropy"})["conformal"]
    assert "chosen is uncertainty.entropy" in other.stale[0]


@pytest.mark.parametrize(
    "change",
    [
        {"scores": "x"},
        {"scores": [0.1]},
        {"correct": [2] * 9},
        {"provenance": None},
        {"provenance": {"model": "m"}},
        {"kinds": 3},
        {"n_excluded": None},
    ],
)
def test_what_a_run_from_elsewhere_keeps_is_not_trusted(tmp_path, change):
    run = planted([9], [True], [None])
    filled = fill(run, ConformalStep(store=store_of(tmp_path / "s.db", run, [0.5] * 9)))
    facts = filled.manifest["steps"]["conformal"]
    options = {**facts["options"], "calibration": {**facts["options"]["calibration"], **change}}
    steps = {**filled.manifest["steps"], "conformal": {**facts, "options": options}}
    found = Diagnosis(Run.create({**filled.manifest, "steps": steps}, **filled.tables))["conformal"]
    assert found.stale == ("what the run keeps of it cannot be read",) and found.drift.n == 0


def named(run, **settings):
    return {one.name: one for one in Diagnosis(run, settings).findings_of("conformal")}


def test_few_labels_are_no_reason_to_flag():
    found = named(planted([9, 8, 0], [True] * 3, [True, True, False]))["few_labels"]
    assert (found.tone, found.severity) == (UNCLEAR, "low")
    assert (
        found.sentence
        == "No answer can be flagged: 2 correct answers cannot certify α = 0.1; you need at least 9."
    )


def test_flagged_answers_beyond_chance():
    same = [9, 8, 7, 6, 9, 8, 7, 6, 9] + [0] * 10 + [9] * 10
    run = planted(same, [True] * 9 + [None] * 20, [True] * 9 + [False] * 20)
    analysis = Diagnosis(run, {"alpha": 0.2})["conformal"]
    [found] = [one for one in findings(analysis) if one.name == "answers_flagged"]
    assert (found.n, found.of, found.expected_by_chance) == (10, 20, analysis.n_by_chance)
    assert found.p_value == shortfall(10, [(9, 20)], 0.2) and found.tone == BAD
    assert found.sentence == (
        "10 of 20 answers look less typical than 80 % of the correct answers; "
        f"{about(analysis.n_by_chance)} would even if all were correct."
    )
    assert set(found.query_ids) == set(run.queries["query_id"].iloc[9:19])
    few = planted(same[:9] + [0] * 2 + [9] * 18, [True] * 9 + [None] * 20, [True] * 9 + [False] * 20)
    assert named(few, alpha=0.2)["answers_flagged"].tone == UNCLEAR


def test_a_promise_that_is_broken_is_grave():
    same = [9] * 40 + [0] * 40
    run = planted(same, [True] * 80, [True] * 40 + [False] * 40)
    found = named(run)
    short = found["coverage_short"]
    assert (short.n, short.of, short.severity, short.expected_by_chance) == (0, 40, "high", 36)
    drifted = named(against_store(planted(same[40:], [True] * 40, [False] * 40), same[:40]))["score_drift"]
    assert drifted.severity == "high" and drifted.p_value <= 0.05
    kept = named(against_store(planted([9, 8, 7, 6] * 10, [True] * 40, [False] * 40), [9, 8, 7, 6] * 10))
    assert not {"coverage_short", "score_drift"} & set(kept)


def test_what_is_certified_or_how_many_labels_would_do():
    sure = planted(([10] * 60 + [3] * 40) * 2, ([True] * 60 + [False] * 40) * 2, [True] * 100 + [False] * 100)
    found = named(sure)["certificate"]
    assert (found.n, found.of, found.tone) == (60, 100, GOOD)
    diagnosis = Diagnosis(sure)
    numbers = {one.key: one for one in diagnosis.numbers("conformal")}
    assert numbers["certified_threshold"].value == pytest.approx(0.35)
    assert (numbers["certified_risk"].value, numbers["certified_risk"].of) == (0, 60)
    few = planted([10] * 20, [True] * 20, [True] * 10 + [False] * 10)
    none = named(few)["no_certificate"]
    assert none.tone == UNCLEAR and "more labels would certify one" in none.sentence
    wrong = planted([10] * 18, [False] * 18, [True] * 9 + [False] * 9)
    none = named(wrong)["no_certificate"]
    # So few could certify nothing if all were right, so as many wrong ones prove nothing either.
    assert none.tone == UNCLEAR and "too many are wrong to say how many labels it would take" in none.sentence
    many = planted([10] * 100, [False] * 100, [True] * 50 + [False] * 50)
    none = named(many)["no_certificate"]
    assert (none.tone, none.severity) == (
        BAD,
        "high",
    ) and "more labels would not change this" in none.sentence


def test_numbers_have_the_same_keys_with_and_without_data():
    full = Diagnosis(planted([9] * 30, [True] * 30, [True] * 15 + [False] * 15)).numbers("conformal")
    bare = Diagnosis(Run.create({"source": "upload"}, queries=unmarked(2, 0).queries)).numbers("conformal")
    assert [one.key for one in full] == [one.key for one in bare]
    assert all(one.value in (None, False) or not one.of for one in bare), [one for one in bare if one.value]
    defined = {one.name for one in DEFINITIONS} | {"Undefined because"}
    assert {one.define for one in full if one.define} <= defined
    assert {one.name for one in DEFINITIONS} >= set(FINDINGS)


def test_claims_that_nothing_vouches_for_are_no_number():
    from tests.core.conformal.test_conformal_analysis import claims_run

    run = claims_run([0.9, 0.8], ["Entailment", "Entailment"], [True, False])
    kept = {one.key: one for one in Diagnosis(run).numbers("conformal")}["n_claims_kept"]
    assert kept.value is None and kept.note == "1 label cannot certify α = 0.1; you need at least 9."


def test_the_command_line_calibrates(tmp_path, capsys):
    unmarked().save(tmp_path / "run")
    out = str(tmp_path / "out")
    assert main(["analyze", str(tmp_path / "run"), "--steps", "conformal", "--out", out, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["conformal_alpha"] == 0.1 and facts["n_calibration"] == 8
    assert main(["summary", out, "--alpha", "0.3", "--weights", "uncertainty.entropy", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["conformal_alpha"] == 0.3 and facts["conformal_score"] == "Semantic entropy"
    assert main(["summary", out, "--alpha", "0.6"]) == 2
    assert "alpha must lie from 0.01 to 0.5" in capsys.readouterr().err


def test_provenance_parts_are_named_in_a_misfit():
    one = Provenance("s", "m", "p", "r")
    assert one.differences(Provenance("s", "m", "p", "q")) == (
        "calibrated with the retriever r, this one is q",
    )


def test_a_share_within_its_band_breaks_no_promise():
    # Of 40 tested, 33 are covered: 82 %, and 75 % is to be expected.
    scores = [9] * 36 + [4] * 4
    run = planted(scores + [9] * 33 + [0] * 7, [True] * 80, [True] * 40 + [False] * 40)
    diagnosis = Diagnosis(run)
    one = diagnosis["conformal"].coverages[OF_CORRECT]
    assert (one.n_covered, one.n_test) == (33, 40) and one.band[0] < 33 / 40 < one.band[1]
    assert "coverage_short" not in named(run)


def test_an_alarm_counts_the_questions_since():
    run = against_store(planted([0] * 40, [True] * 40, [False] * 40), [9, 8, 7, 6] * 10)
    alarm = Diagnosis(run)["conformal"].drift.alarm
    found = named(run)["score_drift"]
    assert (found.n, found.of) == (40 - alarm, 40) and alarm < 20


def test_numbers_that_promise_nothing_have_no_value():
    few = {
        one.key: one
        for one in Diagnosis(planted([9, 8, 0], [True] * 3, [True, True, False])).numbers("conformal")
    }
    assert few["coverage_correct"].value is None and "at least 9" in few["coverage_correct"].note
    assert few["n_flagged"].value is None
    # The set holds all that was sampled, and no sample is right.
    assert (few["coverage_sets"].value, few["coverage_sets"].of) == (0, 1)
    same = [9, 8, 7, 6, 9, 8, 7, 6, 9] + [0] * 10 + [9] * 10
    many = planted(same, [True] * 9 + [None] * 20, [True] * 9 + [False] * 20)
    told = Diagnosis(many, {"alpha": 0.2})
    flagged = {one.key: one for one in told.numbers("conformal")}["n_flagged"]
    assert (flagged.value, flagged.of, flagged.chance) == (10, 20, told["conformal"].n_by_chance)
