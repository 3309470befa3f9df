"""The page Conformal and its section of the workbench: calibrated, not calibrated, and with a store."""

import json
import re
import sqlite3
from pathlib import Path

import pytest

from core.conformal import CalibrationCase, CalibrationStore, Provenance, cases_of, coverage_band
from core.conformal.definitions import OF_SCORE
from core.conformal.step import ConformalStep
from core.diagnosis import Diagnosis
from core.pipeline import fill
from core.run import Run
from core.text.display import percent
from tests.app.conformal_runs import N_LABELLED, N, calibrated, planted
from tests.app.conftest import HOSTILE
from tests.app.polling import button, wait
from tests.core.conformal.conformal_runs import against_store
from ui import library, show

ROOT = Path(__file__).parents[2]
OTHER = Provenance("length", "another", "p", "r")


@pytest.fixture(scope="module")
def run():
    return calibrated()


@pytest.fixture
def opened(open_app, healthy, tmp_path, run):
    """Open a page of a run that lies where the recorded sample run is looked for."""

    def go(page="conformal", shown=None, **params):
        (run if shown is None else shown).save(tmp_path / "samples" / "recorded_run")
        return healthy(open_app(page, **params))

    return go


@pytest.fixture
def file(tmp_path):
    """Return where the store of the page is."""
    return tmp_path / "runs" / "stores" / "calibration.db"


@pytest.fixture
def choosing(monkeypatch):
    """Choose rows of the table of the store, which no test without a browser can do by itself."""
    chosen, table = [], show.table

    def choose(*rows):
        chosen[:] = rows

    def drawn(frame, alt, *args, **kwargs):
        event = table(frame, alt, *args, **kwargs)
        return {"selection": {"rows": chosen}} if alt.startswith("Scores in the") else event

    monkeypatch.setattr(show, "table", drawn)
    return choose


def raw(text):
    return text.replace("\\", "").replace("\u2060", "").replace("\u00a0", " ")


def right(run, role):
    """Questions of a half whose planted answer is right, by their number."""
    calibrates = run.queries["calibrates"].head(N_LABELLED)
    return [i for i, one in enumerate(calibrates) if one == (role == "calibration") and i % 8]


def stored(app):
    (frame,) = [one.value for one in app.dataframe if "nonconformity_score" in one.value]
    return frame


def test_without_calibration_the_page_offers_the_step(opened, texts):
    app = opened(shown=planted())
    said = texts(app)
    assert "Not calibrated" in said and f"**{N_LABELLED} of {N} questions** with a label or a ref" in said
    assert not button(app, "Calibrate").disabled
    # What the labels certify needs no calibration.
    assert "**Answer from a confidence of" in raw(said)


def test_a_run_without_passages_can_be_calibrated(opened, texts):
    bare = planted()
    tables = {name: bare.tables[name] for name in ("queries", "samples")}
    app = opened(shown=Run.create(dict(bare.manifest), **tables))
    assert not button(app, "Calibrate").disabled


def test_without_labels_the_page_says_how_to_get_them(opened, texts):
    bare = planted()
    queries = bare.queries.assign(reference_answers=None)
    app = opened(shown=Run.create(dict(bare.manifest), **{**bare.tables, "queries": queries}))
    said = texts(app)
    assert f"**None of {N} questions has a label or a reference answer**" in said and "`correct`" in said
    # ⌈0.9 / 0.1⌉
    assert "at least 9 correct answers are needed" in said
    assert "or name a calibration store" in said and not button(app, "Calibrate").disabled


def test_a_calibrated_run_shows_promises_and_whether_they_are_kept(opened, texts, run):
    app = opened()
    said = raw(texts(app))
    n, tested = len(right(run, "calibration")), len(right(run, "test"))
    # No right answer is stranger than a sample in two of five that has one word more, 0.036 by ROUGE-L.
    assert f"**In line with the promise: {tested} of {tested} correct answers tested (100 %)**" in said
    assert (
        f"at least 90 % promised, by a threshold for each group, calibrated on {n} correct answers." in said
    )
    assert "not that new questions will be like these" in said
    # Of the 7 or 8 wrong answers with a right sample, the others have none.
    without = sum(i % 16 == 8 for i, one in enumerate(run.queries["calibrates"].head(N_LABELLED)) if one)
    assert f"In **{without} of 60 calibration questions**" in said
    # 60 calibrate; of the other 80 the wrong ones are flagged, and α × 80 is 8.
    wrong = sum(i % 8 == 0 for i, one in enumerate(run.queries["calibrates"]) if not one)
    assert f"{wrong} of 80 answers look less typical than 90 % of the" in said
    assert "would even if all were correct." in said and "random halves of the labels it is" in said
    assert (
        "at most 10 % of the answers given are wrong, with probability 90 % over 120 labelled answers" in said
    )
    assert "the order of a file says nothing of time" in said
    assert "**2 of 2 thresholds** by group are finite" in said
    assert len(app.get("plotly_chart")) == 4
    assert {"export_conformal-csv", "export_risk-csv"} <= {one.key for one in app.get("download_button")}
    (thresholds,) = [one.value for one in app.dataframe if "certified" in one.value]
    # Below 0.05 are the fifteen wrong ones: of the second start 8 of 113, which is not surely at most 10 %.
    assert thresholds["certified"].tolist() == ["✓"] * 20 + [""] * 2, "two starts, and the grid"
    assert any(one.proto.label == f"Read the {N} questions of the run" for one in app.get("page_link"))


def test_each_promise_has_its_own_sentence_and_figure(opened, texts):
    app = opened()
    control = app.get("button_group")[0]
    assert control.key == "conformal_promise" and len(control.options) == 4
    drawn = app.get("plotly_chart")[1].proto.spec
    app.session_state["conformal_promise"] = "coverage_distance"
    app.run()
    said = raw(texts(app))
    # Half of the distances are of right answers, and more than 90 % of all are 0.
    assert (
        "no further from a reference answer" in said
        and "by the threshold 0.00, calibrated on 60 answers" in said
    )
    assert app.get("plotly_chart")[1].proto.spec != drawn


def test_another_alpha_changes_what_is_promised(opened, texts):
    app = opened()
    app.slider(key="alpha").set_value(0.01).run()
    said = raw(texts(app))
    assert "**Nothing is promised**" in said and "you need at least 99" in said
    assert "**No answer can be flagged.**" in said and "**No confidence can be certified**" in said
    app = opened(alpha="0.2")
    assert "at least 80 % promised" in raw(texts(app))


def test_the_address_chooses_the_signal_for_every_number_on_both_pages(opened, texts):
    app = opened()
    assert "Confidence by: Word overlap with the samples" in raw(texts(app))
    app = opened(weights="uncertainty.sum_eigen")
    assert "Confidence by: uncertainty.sum_eigen" in raw(texts(app))
    # Other pages keep it, and so do their links.
    app.switch_page("pages/methods.py").run()
    assert "uncertainty.sum_eigen" in app.query_params["weights"]
    assert "SumEigen" not in texts(opened("workbench", question="q001"))
    assert "SumEigen" in texts(opened("workbench", weights="uncertainty.sum_eigen", question="q001"))


@pytest.mark.parametrize("junk", ["nobody", HOSTILE, "s" * 5000])
def test_an_unknown_signal_is_told_and_can_be_left(junk, opened, texts):
    app = opened(weights=junk)
    (told,) = [one.value for one in app.warning if "No confidence by" in one.value]
    assert "<script>" not in told.replace("\\<", "") and len(told) < 400
    button(app, "Back to automatic").click().run()
    assert not app.warning and "are flagged" in texts(app)


def test_the_threshold_is_moved_with_what_it_lets_through_and_its_certificate(opened, texts, healthy):
    app = opened(shown=planted(), confidence_threshold="0.5")
    said, cards = raw(texts(app)), {one.label: one.value for one in app.metric}
    # 105 of 120 labelled answers are right, with a confidence above 0.8; wrong ones have at most 0.2.
    assert "**Certified at 0.50:** at most 10 % of the answers given are wrong" in said
    assert cards["Wrong among them"] == "0 %" and "0 of 105 labelled" in said
    app.slider(key="confidence_threshold_here").set_value(0.0).run()
    said, cards = raw(texts(healthy(app))), {one.label: one.value for one in app.metric}
    assert (cards["Answered"], cards["Withheld"]) == ("100 %", "0 %") and "15 of 120 labelled" in said
    assert "**Not certified at 0.00.**" in said
    lowest = float(re.search(r"Answer from a confidence of ([0-9.]+) on", said)[1])
    button(app, f"Use {lowest:.2f}").click()
    said = raw(texts(healthy(app.run())))
    assert f"**Certified at {lowest:.2f}:**" in said
    assert app.slider(key="confidence_threshold_here").value == pytest.approx(lowest)


def test_what_if_follows_the_widgets(opened, texts, run):
    app = opened()
    n, alpha = (one for one in app.number_input if one.key.startswith(("conformal_n_", "conformal_alpha_")))
    assert n.value == len(right(run, "calibration")) and alpha.value == 0.1
    # Smallest m with (1 − α)^m at most δ = 0.1: 0.9^21 = 0.109, 0.9^22 = 0.098.
    assert "A certified confidence needs at least 22 labelled answers" in texts(app)
    n.set_value(19).run()
    low, high = map(percent, coverage_band(19, 0.1))
    said = (
        f"With 19 labels 95 of 100 calibrations cover {low} to {high} where 90 % is promised, with four times"
    )
    assert said in raw(texts(app))
    alpha.set_value(0.04).run()
    assert "19 labels cannot certify α = 0.04; you need at least 24." in raw(texts(app))
    assert app.slider(key="alpha").value == 0.1


def test_drift_is_told_on_the_page_and_in_the_workbench(opened, texts, run):
    # All questions that do not calibrate get samples with nothing in common.
    samples = run["samples"].copy()
    other = samples["query_id"].map(run.queries.set_index("query_id")["calibrates"]) != True  # noqa: E712
    samples.loc[other, "answer"] = [f"word{i}" for i in range(int(other.sum()))]
    # The order of a file says nothing of time, so that only a store's calibration can show drift.
    drifted = against_store(run.derive(samples=samples), [9, 8] * 40)
    for page in ("conformal", "workbench"):
        app = opened(page, drifted)
        (told,) = [one.value for one in app.warning]
        assert "Scores drift" in told and "of 80" in told and "Label some of the recent questions" in told
    assert "**Alarm:**" in texts(opened(shown=drifted))


@pytest.fixture
def of_store(tmp_path):
    """Return the planted run calibrated on a store of its own labelled questions."""
    path = tmp_path / "labels.db"
    cases, provenance = cases_of(Diagnosis(planted()))
    with CalibrationStore(path) as store:
        store.add(cases, provenance)
    return fill(planted(), ConformalStep(store=str(path)))


def test_a_run_calibrated_on_a_store_says_so(opened, texts, of_store):
    said = raw(texts(opened(shown=of_store)))
    assert (
        "Calibrated on the labelled questions of the store labels.db. 120 questions are of this run and test nothing."
        in said
    )
    assert "a calibration store holds no samples" in said
    # All labelled ones calibrate; the other 20 test the promise about all scores.
    assert "of 20 answers tested" in said and "calibrated on 120 answers" in said


def test_a_stale_calibration_is_told_on_the_page_and_in_the_workbench(opened, texts, of_store):
    manifest = {**of_store.manifest, "model": {"name": "newer"}}
    stale = Run.create(manifest, **of_store.tables)
    for page in ("conformal", "workbench"):
        (told,) = [raw(one.value) for one in opened(page, stale).warning]
        assert "Stale calibration: calibrated with the model planted" in told.replace("*", "")
        assert "this one is newer" in told and "Calibrate again with this set-up" in told


def test_calibrating_again_makes_a_run_beside_this_one(opened, texts, healthy):
    app = opened()
    assert "Calibrated on 60 questions of this run, tested on the other labelled ones." in texts(app)
    app.number_input(key="conformal_seed").set_value(7).run()
    button(app, "Calibrate again").click().run()
    wait(app, "Finished and saved")
    (made,) = [one for one in library.saved_runs() if one.own]
    assert Run.load(made.folder).manifest["steps"]["conformal"]["options"]["seed"] == 7
    assert healthy(app).query_params["run"] == made.run_id


def test_where_nothing_can_be_promised_the_page_says_why(opened, texts):
    recorded = calibrated(Run.load(ROOT / "sample_data" / "recorded_run"))
    app = opened(shown=recorded)
    said = raw(texts(app))
    assert "you need at least 9" in said and "**No answer can be flagged.**" in said
    assert "**No confidence can be certified**" in said
    assert "Claims that can be kept" in said and "of the tested answers can be kept: support above" in said
    assert len(app.get("plotly_chart")) <= 2
    # 40 questions do not calibrate.
    n_usual = Diagnosis(recorded)["conformal"].coverages[OF_SCORE].n_covered
    assert f"{n_usual} of 40 answers tested" in said
    # What can be promised comes first.
    assert (
        "**In line with the promise: " in said
        and "of the answers to questions like those in calibration" in said
    )


def test_a_calibrated_run_without_scores_says_so(opened, texts, run):
    bare = Run.create(dict(run.manifest), queries=run.queries)
    app = opened(shown=bare)
    said = texts(app)
    assert "no signal that says without a reference answer" in said and "nothing was sampled" in said
    assert "nothing can be added" in said


def test_a_run_without_labels_stays_uncalibrated_and_says_why(opened, texts):
    bare = planted()
    queries = bare.queries.assign(reference_answers=None)
    app = opened(shown=calibrated(Run.create(dict(bare.manifest), **{**bare.tables, "queries": queries})))
    said = raw(texts(app))
    assert "Not calibrated" in said and "has a label or a reference answer**, so nothing can" in said


def test_looking_at_a_store_makes_no_file(opened, texts, file):
    app = opened()
    assert app.selectbox(key="conformal_file").value == file.stem
    assert "There is no such store yet" in texts(app) and not file.parent.exists()


def test_labelled_questions_are_added_once_and_shown(opened, texts, file):
    app = opened()
    button(app, f"Add this run's labelled questions ({N_LABELLED})").click().run()
    assert f"{N_LABELLED} scores added." in texts(app)
    frame = stored(app)
    assert len(frame) == N_LABELLED and frame["correct"].sum() == 105  # all but every eighth
    assert frame["question"].str.startswith(HOSTILE).sum() == 1
    assert f"**{N_LABELLED} scores**, 0 of them excluded; 105 of correct answers" in texts(app)
    assert "Score: uncertainty.agreement_rouge_l" in raw(texts(app)) and "Model: planted" in raw(texts(app))
    button(app, f"Add this run's labelled questions ({N_LABELLED})").click().run()
    assert "0 scores added. 120 questions were there already and stayed." in texts(app)
    with CalibrationStore(file) as store:
        assert len(store) == N_LABELLED


def test_rows_are_excluded_with_a_reason_and_used_again(opened, texts, file, choosing):
    app = opened()
    button(app, f"Add this run's labelled questions ({N_LABELLED})").click().run()
    choosing(0, 2)
    app.run()
    assert "because of their score" in texts(app) and "breaks the promise" in texts(app)
    button(app, "Exclude 2 rows").click().run()
    assert "An excluded score needs a reason" in app.error[0].value
    app.text_input(key="conformal_reason").set_value("Wrong reference <b>").run()
    button(app, "Exclude 2 rows").click().run()
    assert not app.error and "2 of them excluded" in texts(app)
    assert stored(app)["excluded"].notna().tolist()[:4] == [True, False, True, False]
    with CalibrationStore(file) as store:
        assert len(store.usable()) == N_LABELLED - 2
        assert store.frame()["excluded"][2] == "Wrong reference <b>"
    choosing(2)
    app.run()
    button(app, "Use 1 row again").click().run()
    assert stored(app)["excluded"].notna().tolist()[:4] == [True, False, False, False]


def test_a_store_of_another_model_is_refused_and_stays_as_it_is(opened, texts, file):
    file.parent.mkdir(parents=True)
    with CalibrationStore(file) as store:
        store.add([CalibrationCase(HOSTILE, "c", HOSTILE, "t", 0.5, None, HOSTILE)], OTHER)
    app = opened()
    assert stored(app)["question"].tolist() == [HOSTILE]
    assert "0 of correct answers, 1 not judged" in texts(app)
    button(app, f"Add this run's labelled questions ({N_LABELLED})").click().run()
    (told,) = [raw(one.value) for one in app.error]
    assert "calibrated with the model another, this one is planted" in told
    with CalibrationStore(file) as store:
        assert len(store) == 1


def test_a_store_with_mixed_scores_says_so_and_can_be_read(opened, file):
    file.parent.mkdir(parents=True)
    with CalibrationStore(file) as store:
        store.add(
            [
                CalibrationCase("q1", "c", "p", "t", 0.5, True),
                CalibrationCase("q2", "c", "p", "t", 0.5, True),
            ],
            OTHER,
        )
    db = sqlite3.connect(file)
    db.execute("UPDATE calibration_scores SET model = 'third' WHERE id = 2")
    db.commit()
    db.close()
    app = opened()
    assert "mixes scores that cannot be compared" in raw(app.error[0].value) and len(stored(app)) == 2


def test_only_the_first_thousand_rows_are_shown(opened, texts, file):
    file.parent.mkdir(parents=True)
    with CalibrationStore(file) as store:
        store.add([CalibrationCase(f"q{i}", "", "p", "t", 0.5, True) for i in range(1001)], OTHER)
    app = opened()
    assert len(stored(app)) == 1000 and "The first 1,000 of 1,001 rows" in texts(app)


def with_role(run, wanted):
    """Return the first question that is planted right or wrong and of that half."""
    for i, one in enumerate(run.queries["calibrates"].head(N_LABELLED)):
        if (bool(one), bool(i % 8)) == wanted:
            return f"q{i:03d}"
    raise AssertionError(wanted)


def section(app):
    frames = [one.value for one in app.dataframe if "held" in one.value]
    return raw("\n".join(one.value for one in (*app.markdown, *app.caption, *app.info))), frames


def test_a_flagged_answer_says_so_with_its_numbers(opened, run):
    n = sum(i % 2 == 0 for i in right(run, "calibration"))  # of its group, the even ones
    app = opened("workbench", question=with_role(run, (False, False)))
    said, _ = section(app)
    # Less typical than all n right answers of its group, so p = 1 / (n + 1).
    p = f"p = {1 / (n + 1):.2g} ≤ α = 0.1, against {n} correct calibration answers"
    assert "**Flagged:** the answer is less typical than 90 % of the correct ones" in said and p in said
    assert "Withhold it or send it to a person." in said
    assert "Flagged" in said and any("flag" in one.value for one in app.markdown if "Flagged" in one.value)


def test_an_answer_in_line_is_not_flagged(opened, run):
    app = opened("workbench", question=with_role(run, (False, True)))
    said, _ = section(app)
    assert "**In line:** the answer is as typical as correct ones are" in said
    assert "**Flagged:**" not in said
    assert "Test: Whether it is correct is known and was not used to calibrate" in said
    assert {"Score", "Conformal p", "Confidence by score"} <= {one.label for one in app.metric}


def test_a_question_that_calibrates_has_no_verdict(opened, run):
    said, frames = section(opened("workbench", question=with_role(run, (True, True))))
    assert "It has no verdict of its own" in said and not frames


def test_the_set_is_shown_meaning_by_meaning(opened, run):
    # Five samples without a word in common: 0.8 is rarer than the threshold.
    said, (frame,) = section(opened("workbench", question=with_role(run, (False, False))))
    assert frame["n"].tolist() == [1] * 5 and not frame["held"].any()
    assert "0 of 5 sampled meanings are in the set" in said and "the set holds no correct answer" in said
    said, (frame,) = section(opened("workbench", question=with_role(run, (False, True))))
    assert frame["n"].tolist() == [5] and frame["set"].tolist() == ["✓ In"]
    assert "1 of 1 sampled meaning is in the set. Over all questions" in said
    assert "with a probability of at least 90 % (calibrated on 60 questions)" in said
    assert "the set holds a correct answer" in said


def test_without_a_verdict_the_workbench_says_why(opened, run):
    said, _ = section(opened("workbench", question=with_role(run, (False, True)), alpha="0.01"))
    assert "**No verdict.**" in said and "you need at least 99" in said
    said, _ = section(opened("workbench", question="q139", weights="nobody"))
    assert "The chosen score has no value for this answer." in said


def test_hostile_questions_and_groups_are_shown_as_they_are(opened, run):
    app = opened()
    drawn = json.dumps([one.proto.spec for one in app.get("plotly_chart")])
    assert "<script" not in drawn
    (groups,) = [one.value for one in app.dataframe if "n_covered" in one.value]
    assert HOSTILE in groups["group"].tolist()
    for one in (*app.markdown, *app.caption):
        assert not re.search(r"(?<!\\)<script", one.value), one.value


def test_methods_say_how_calibration_works(opened, texts):
    said = texts(opened("methods"))
    assert "**New questions like the old ones.**" in said
