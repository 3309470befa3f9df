"""The page Confidence and its section of the workbench: signals, what-if, calibration, comparison."""

import functools
import json
import re

import numpy as np
import pandas as pd
import pytest

from core.confidence import ConfidenceMap, SavedCalibration, Weighting, from_json, learn, to_json
from core.conformal.step import ConformalStep
from core.pipeline import fill
from core.run import Run
from tests.app.conformal_runs import planted
from tests.app.conftest import HOSTILE
from tests.app.polling import button
from tests.core.confidence.confidence_runs import signal_run
from ui.sections.confidence import calibrate

N = 80
WEIGHTS = ("similarity", "lexical", "llm")

OPEN = "What does the threshold let through?"


def told(n=N, **columns):
    """Every fourth answer is not labelled; the stated confidence knows which are correct, the others do not.

    Confidence by the default weights: 0.45 · 0.8 + 0.35 · s + 0.2 · stated, with s = 0.2 and 0.6 by turns and 1
    or 0 stated: 0.63 and 0.77 of correct answers, 0.43 and 0.57 of incorrect ones.
    """
    right = [i % 8 in (0, 1, 2, 3) for i in range(n)]
    return signal_run(
        [0.8] * n,
        [20.0 if i % 2 else 60.0 for i in range(n)],
        [1.0 if one else 0.0 for one in right],
        [one if i % 4 else None for i, one in enumerate(right)],
        question=[HOSTILE if i == 0 else f"Question {i}?" for i in range(n)],
        **columns,
    )


@pytest.fixture
def opened(open_app, healthy, tmp_path):
    """Open a page of a run that lies where the recorded sample run is looked for."""

    def go(page="confidence", shown=None, **params):
        (told() if shown is None else shown).save(tmp_path / "samples" / "recorded_run")
        return healthy(open_app(page, **params))

    return go


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(calibrate, "learn", functools.partial(learn, n_resamples=200, n_refits=10))


def raw(text):
    return text.replace("\\", "").replace("\u2060", "").replace("\u00a0", " ")


def cards(app):
    return {one.label: one.value for one in app.metric}


def weight(app, title):
    (found,) = [one for one in app.slider if one.label == f"Weight of {title}"]
    return found


def table(app, column):
    return next(one.value for one in app.dataframe if column in one.value)


def labels(app):
    return [one.label for one in app.button]


def chosen(app):
    """The weights in the address."""
    found = app.query_params["weights"]
    return found if isinstance(found, str) else found[0]


def link(app, label):
    return next(one.proto for one in app.get("page_link") if raw(one.proto.label) == label)


def test_without_signals_the_page_offers_the_step(opened, texts, small_run):
    app = opened(shown=small_run)
    said = texts(app)
    assert "Not measured" in said and "one call an answer" in said and "columns similarity, lexical" in said
    assert app.checkbox(key="confidence_self_score").value is True
    assert not button(app, "Measure signals").disabled and not app.metric and not app.get("plotly_chart")
    app.checkbox(key="confidence_self_score").set_value(False).run()
    # Without the model's own score no model is asked, so none is chosen and nothing is estimated.
    assert "Estimate cost" not in labels(app) and not button(app, "Measure signals").disabled


def test_imported_signals_work_at_once(opened, texts):
    app = opened()
    said = raw(texts(app))
    assert "▲ High" in said and "◆ Medium" in said and "▼ Low" in said
    # Of 80, 20 have 0.77; half are correct, and of these every second one is labelled where i % 4 is not 0.
    assert "**20 of 80 answers**" in said and "**60 of 80 answers**" in said and "**0 of 80 answers**" in said
    assert (
        "10 of 10 labelled are correct (100 %)." in said and "20 of 50 labelled are correct (40 %)." in said
    )
    assert "95 % interval of the share 72 to 100 %." in said  # Wilson
    assert link(app, "Read 20 answers").query_string.count("band%3Ahigh") == 1
    assert len(app.get("plotly_chart")) == 2
    # Two figures are open, the rest is a click away.
    assert [one.value for one in app.subheader][:2] == ["Does the confidence mean what it says?", OPEN]
    labels = {one.label for one in app.expander}
    assert {"Answers by band", "Try other weights and thresholds", "Compare two configurations"} <= labels
    # 40 of 80 reach 0.6, all of them correct, 30 of them labelled.
    assert cards(app)["Correct among them"] == "100 %" and "30 of 30 labelled; 95 %: 89–100 %" in said
    assert any(one.proto.label == "Read the 80 questions of the run" for one in app.get("page_link"))


def test_what_if_shows_before_and_after_and_changes_nothing_yet(opened, texts):
    app = opened()
    weight(app, "stated confidence").set_value(0.0).run()
    # 0.45 · 0.8 / 0.8 + 0.35 · s / 0.8 is 0.54 and 0.71: every second answer, half of the labelled ones correct.
    shown = cards(app)
    assert shown["AUROC"].startswith("1.00 → 0.") and shown["Answers that pass"] in ("50 % → 50 %",)
    assert shown["Correct among them"].startswith("100 % → 50 %")
    assert "weights" not in app.query_params and "Back to the default" not in labels(app)
    assert any("Correct, other weights" in one.proto.spec for one in app.get("plotly_chart"))


def test_weights_are_used_everywhere_and_given_back(opened, healthy):
    app = opened()
    assert button(app, "Use these weights").disabled
    for name in ("similarity", "lexical score"):
        weight(app, name).set_value(0.0).run()
    assert cards(app)["AUROC"] == "1.00 → 1.00"
    button(app, "Use these weights").click()
    healthy(app.run())
    assert chosen(app) == "llm=1" and button(app, "Use these weights").disabled
    assert [weight(app, one).value for one in ("similarity", "lexical score", "stated confidence")] == [
        0,
        0,
        1,
    ]
    assert cards(app)["Brier score"] == "0.00"
    button(app, "Back to the default").click().run()
    assert "weights" not in app.query_params
    assert weight(app, "similarity").value == 0.45 and "Back to the default" not in labels(app)


def test_a_link_with_weights_is_what_is_in_use(opened):
    app = opened(weights="similarity=1,llm=3,lexical=0")
    assert [weight(app, one).value for one in ("similarity", "lexical score", "stated confidence")] == [
        0.25, 0, 0.75,
    ]  # fmt: skip
    assert button(app, "Use these weights").disabled and "→" not in cards(app)["AUROC"]


def test_the_threshold_is_one_value_on_page_and_sidebar(opened, healthy):
    app = opened()
    app.slider(key="confidence_threshold_here").set_value(0.75).run()
    assert app.slider(key="confidence_threshold").value == 0.75
    assert cards(app)["Answers that pass"] in ("20 of 80", "25 %")
    assert "20 of 80 answers" in [one.value for one in app.caption]
    app.slider(key="confidence_threshold").set_value(0.5)
    healthy(app.run())
    assert app.slider(key="confidence_threshold_here").value == 0.5
    assert "60 of 80 answers" in [one.value for one in app.caption]


def test_the_threshold_of_a_calibration_is_named(opened, texts):
    saved = SavedCalibration(Weighting(threshold=0.7), ConfidenceMap(), 40, 20)
    run = told()
    step = {"confidence": {"options": {"calibration": to_json(saved).decode()}}}
    app = opened(shown=Run.create({**run.manifest, "steps": step}, **run.tables))
    assert "In use: 0.70, of the calibration or the environment." in texts(app)


def test_no_weight_at_all_is_told(opened, texts, healthy):
    app = opened()
    for name in ("similarity", "lexical score", "stated confidence"):
        weight(app, name).set_value(0.0).run()
    assert "One weight must be above 0." in texts(healthy(app))


def test_further_signals_of_the_run_can_join(opened, healthy):
    bare = planted()
    ids = bare.queries["query_id"]
    signals = pd.DataFrame({"query_id": ids, "similarity": 0.5, "lexical": 50.0, "llm_score": 0.5})
    app = opened(shown=Run.create(dict(bare.manifest), **{**bare.tables, "signals": signals}))
    assert cards(app)["AUROC"] == "0.50"  # all answers alike
    joined = next(one for one in app.multiselect if one.label == "More signals that join")
    assert "uncertainty.agreement" in joined.proto.options or "Agreement with the samples" in joined.options
    joined.set_value(["uncertainty.agreement"]).run()
    added = weight(app, "agreement with the samples")
    assert added.value == 0.2
    # Planted answers agree with their samples where they are right.
    assert cards(app)["AUROC"] == "0.50 → 1.00"
    button(app, "Use these weights").click()
    healthy(app.run())
    assert "uncertainty.agreement=0.1667" in chosen(app)
    assert weight(app, "agreement with the samples").value == pytest.approx(0.1667)


def test_without_a_stated_confidence_the_others_can_be_weighed(opened, texts, healthy):
    run = told()
    run = Run.create(dict(run.manifest), **{**run.tables, "signals": run["signals"].assign(llm_score=np.nan)})
    app = opened(shown=run)
    said = texts(app)
    assert "**No answer has a confidence:** Stated confidence has a weight and no value." in said
    assert not app.get("plotly_chart") and OPEN not in said
    assert (
        "No answer of the run has a label and all three signals: 20 without a label, 60 without all" in said
    )
    button(app, "Weigh Similarity and Lexical score only").click()
    healthy(app.run())
    assert chosen(app) == "similarity=0.45,lexical=0.35" and OPEN in texts(app)
    assert "**40 of 80 answers**" in texts(app)  # 0.45 · 0.8 + 0.35 · 0.6 is 0.57 / 0.8 = 0.71


@pytest.mark.parametrize("text", ["", "x", "similarity=-1", HOSTILE, "nobody=1", f"{HOSTILE[:20]}=1"])
def test_unusable_weights_of_a_link_are_told_and_given_back(text, opened, texts, healthy):
    app = opened(weights=text)
    if not text:
        assert OPEN in texts(app)  # the default
        return
    assert len(app.warning) == 1 and OPEN not in texts(app) and not app.get("plotly_chart")
    button(app, "Back to the default weights").click()
    healthy(app.run())
    assert not app.warning and OPEN in texts(app)


def test_learning_from_the_run(opened, texts, healthy):
    app = opened()
    assert "**60 labelled answers**, 30 of them correct; 20 without a label left out." in texts(app)
    button(app, "Learn weights and map").click()
    said = raw(texts(healthy(app.run())))
    # The default knows already: no weights can gain.
    assert "**Keep the default weights:** the gain over the default is not significant." in said
    assert "Use these weights" in labels(app) and labels(app).count("Use these weights") == 1
    found = table(app, "grid 95 %")
    assert found["signal"].tolist() == ["Similarity", "Lexical score", "Stated confidence"]
    assert found["default"].tolist() == [0.45, 0.35, 0.2]
    maps = table(app, "ece")
    assert maps["map"].tolist() == ["No map", "Platt scaling", "Isotonic regression"]
    assert "confidence_saved" in {one.key for one in app.get("download_button")}
    # 0.77 and 0.63 of correct answers, 0.57 and 0.43 of incorrect ones: the gap is their mean distance from 1 and 0.
    (before,) = maps.loc[maps["map"] == "No map", "brier"]
    shares = np.array([0.63] * 20 + [0.77] * 10 + [1 - 0.57] * 10 + [1 - 0.43] * 20)
    assert before == pytest.approx(float(((1 - shares) ** 2).mean()), abs=0.02)


def informative(n=N):
    """Only the lexical score knows: the default, half of which is a constant and noise, is beaten."""
    rng = np.random.default_rng(1)
    right = [i % 2 == 0 for i in range(n)]
    noise = rng.random(n)
    return signal_run(list(noise), [55.0 if one else 45.0 for one in right], list(1 - noise**2), right)


def test_learned_weights_that_gain_are_offered_and_used(opened, texts, healthy):
    app = opened(shown=informative())
    button(app, "Learn weights and map").click()
    said = raw(texts(healthy(app.run())))
    assert re.search(r"\*\*Use the weights by (grid search|logistic regression):\*\* AUROC 0\.\d+ → ", said)
    kept = app.session_state["leadline"].kept["confidence_learned"][1].saved
    assert kept.weighting.weights["lexical"] > 0.5 and from_json(to_json(kept)) == kept
    compared = table(app, "difference")
    assert compared["measure"].tolist()[2] == "AUROC (higher is better)"
    app.button(key="confidence_use_learned").click()
    healthy(app.run())
    assert "lexical=" in chosen(app)
    # What was learned here is in use now, and compared with the default.
    said = raw(texts(app))
    assert "The weights in use were learned from these answers, which favours them." in said
    assert (
        "Default weights"
        in next(one for one in app.get("button_group") if one.key == "confidence_compare").options
    )


def test_a_run_without_labels_says_so(opened, texts):
    app = opened(shown=signal_run([0.8, 0.9], [20.0, 30.0], [0.5, 0.5]))
    said = raw(texts(app))
    assert "has no answer with a reference answer; nothing can be learned." in said and not app.error
    assert "No answer has a label and both confidences." in said
    assert cards(app)["Correct among them"] == "—" and cards(app)["AUROC"] == "—"


def rows(n=60, **columns):
    """Labelled answers as a file: the stated confidence knows, the others are constant."""
    right = np.arange(n) % 2 == 0
    frame = pd.DataFrame({"query": [f"Q{i}?" for i in range(n)], "similarity": 0.5, "lexical": 30.0})
    frame["llm_score"], frame["is_correct"] = np.where(right, 0.8, 0.3), right
    return frame.assign(**columns).to_csv(index=False).encode()


def uploading(app, content, name="rows.csv"):
    app.session_state["confidence_source"] = "Upload labelled answers"
    app.run()
    app.file_uploader(key="confidence_rows").upload(name, content)
    return app.run()


def test_learning_from_a_file_needs_no_labelled_run(opened, texts, healthy):
    app = healthy(uploading(opened(shown=signal_run([0.8], [20.0], [0.5])), rows()))
    said = raw(texts(app))
    assert "**60 labelled answers**, 30 of them correct." in said and "Read: rows.csv." in said
    button(app, "Learn weights and map").click()
    said = raw(texts(healthy(app.run())))
    assert "**Keep the default weights:** the gain over the default is not significant." in said
    assert {one.key for one in app.get("download_button")} >= {"confidence_template", "confidence_saved"}


def test_rows_as_json_lines_with_gaps(opened, texts, healthy):
    lines = [
        {
            "query": "a",
            "similarity": 0.5,
            "lexical": 1,
            "llm_score": 0.1,
            "answer": "x",
            "expected_answer": "x",
        }
    ]
    lines += [{"query": "b", "similarity": None, "lexical": 1, "llm_score": 0.1, "is_correct": True}]
    lines += [{"query": "c", "similarity": 0.5, "lexical": 1, "llm_score": 0.1}]
    content = "\n".join(map(json.dumps, lines)) + "\n{broken"
    app = healthy(uploading(opened(), content.encode(), "rows.jsonl"))
    assert (
        "**1 labelled answer**, 1 of them correct; 1 without a label, 1 without all signals left out; "
        "1 row could not be read."
    ) in raw(texts(app))
    button(app, "Learn weights and map").click()
    assert "**Keep the default weights:** too few labels: 1 questions with" in raw(texts(app.run()))


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"", "rows.csv", ""),
        (b"\x00\x01\x02\xff" * 500, "rows.csv", ""),
        (b"query,similarity\na,1\n", "rows.csv", "lacks the columns lexical, llm_score"),
        (rows(similarity="<script>"), "rows.csv", "similarity must be a number, got '<script>'"),
        (rows(is_correct="perhaps"), "rows.csv", "is_correct must be true or false, got 'perhaps'"),
        (rows(is_correct=""), "rows.csv", "needs a column is_correct, or the columns answer and expected_answer"),
        (rows(2, is_correct=["", "true"], llm_score=[1, None]), f"{HOSTILE.replace('/', '')}.csv",
         "has no answer with a label and all signals: 1 without a label, 1 without all signals left out"),
        (b"[" * 100_000, "rows.json", ""),
    ],
)  # fmt: skip
def test_a_broken_file_is_one_sentence_and_loses_nothing(content, name, said, opened, texts, healthy):
    app = uploading(opened(), rows())
    button(app, "Learn weights and map").click().run()
    before = app.session_state["leadline"].kept["confidence_learned"]
    app = healthy(uploading(app, content, name))
    assert len(app.error) == 1 and said in raw(app.error[0].value) and "Traceback" not in texts(app)
    assert app.session_state["leadline"].kept["confidence_learned"] is before
    assert OPEN in texts(app)


def test_many_answers_are_for_the_command_line(opened, texts, monkeypatch):
    monkeypatch.setattr(calibrate, "MOST", 59)
    app = opened()
    assert "At most 59 answers are learned from here" in texts(app) and "Learn weights and map" not in labels(
        app
    )


def loading(app, content, name="weights.json"):
    app.file_uploader(key="confidence_calibration_file").upload(name, content)
    return app.run()


def test_a_calibration_file_is_loaded_used_and_compared(opened, texts, healthy):
    unit = {"similarity": (0.0, 1.0), "lexical": (0.0, 100.0), "llm": (0.0, 1.0)}
    weighting = Weighting({"similarity": 0.0, "lexical": 0.0, "llm": 1.0}, unit, 0.5)
    app = healthy(
        loading(opened(), to_json(SavedCalibration(weighting, ConfidenceMap(), 40, 21)), f"{HOSTILE}.json")
    )
    said = raw(texts(app))
    assert "Similarity 0.00, Lexical score 0.00, Stated confidence 1.00; threshold 0.50; map: None" in said
    assert "learned from 40 answers, 21 correct." in said
    # By hand: all 60 labelled answers are decided rightly by the file, and by the default at 0.6.
    app.session_state["confidence_compare"] = "Calibration file"
    app.run()
    said, compared = raw(texts(app)), table(app, "difference")
    assert compared["a"].tolist()[0] == compared["b"].tolist()[0] == 1.0
    assert compared["b"].tolist()[1] == 0.0 and compared["a"].tolist()[1] > 0.1
    assert "**Calibration file:** Brier score is better (n = 60 labelled answers)." in said
    assert "The file does not say which answers it was learned from; if these are among them" in said
    app.button(key="confidence_use_file").click()
    healthy(app.run())
    assert chosen(app) == "similarity=0,lexical=0,llm=1"


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[" * 100_000, HOSTILE.encode(), json.dumps({"format": HOSTILE}).encode(), b"\xff\xfe\x00"],
)
def test_a_calibration_file_from_elsewhere_is_refused_in_one_sentence(content, opened, texts, healthy):
    app = healthy(loading(opened(), content))
    assert len(app.error) == 1 and not re.search(r"(?<!\\)<script", app.error[0].value)
    assert "confidence_use_file" not in {one.key for one in app.button}


def test_a_file_with_a_signal_that_the_run_lacks(opened, texts, healthy):
    weighting = Weighting({"claims.nobody": 1.0}, {"claims.nobody": (0.0, 1.0)})
    app = healthy(loading(opened(), to_json(SavedCalibration(weighting, ConfidenceMap(), 40, 21))))
    app.session_state["confidence_compare"] = "Calibration file"
    assert "There is no signal claims.nobody" in raw(texts(healthy(app.run())))


def test_the_configuration_in_use_is_compared_with_the_default(opened, texts):
    assert "The two are the same" in texts(opened())
    said = raw(texts(app := opened(weights="similarity=1")))
    found = table(app, "difference")
    # All answers have 0.8: every one passes, half of the labelled ones are correct.
    assert found["a"].tolist()[0] == 0.5 and found["b"].tolist()[0] == 1.0
    assert found["a"].tolist()[2] == 0.5 and found["b"].tolist()[2] == 1.0
    assert "**Default weights:** Right decisions is better" in said and "(n = 60 labelled answers)" in said


def test_missing_parts_of_the_combined_uncertainty_name_the_step(opened, texts):
    said = raw(texts(opened()))
    assert "**Sampling is missing.** Not sampled" in said
    assert "Retrieval: no question has two passages with retrieval scores." in said


def test_combined_uncertainty_lists_the_most_uncertain_first(opened, texts):
    bare = planted()
    ids = bare.queries["query_id"]
    signals = pd.DataFrame({"query_id": ids, "similarity": 0.5, "lexical": 50.0, "llm_score": 0.5})
    passages = bare.passages.assign(retrieval_score=1.0)  # all alike: U of retrieval is 1
    tables = {**bare.tables, "signals": signals, "passages": passages}
    app = opened(shown=fill(Run.create(dict(bare.manifest), **tables), ConformalStep()))
    found = table(app, "combined_uncertainty")
    assert found["retrieval_uncertainty"].eq(1).all()
    expected = 0.2 + 0.4 * found["sampling_uncertainty"] + 0.4 * found["conformal_uncertainty"]
    np.testing.assert_allclose(found["combined_uncertainty"], expected)
    assert found["combined_uncertainty"].is_monotonic_decreasing and len(found) == len(ids)
    said = texts(app)
    assert f"(n = {len(ids)} answers)" in said
    # Nothing is said of a rule whose parts were not measured but how to measure them.
    strict, n = int(found["is_reliable_strict"].sum()), int(found["conformal_reliable"].notna().sum())
    assert f"**By the stricter rule: {strict} of {n} answers.**" in said and n > strict > 0
    assert "**Reliable: " not in said
    assert "turn on *Measure embeddings too*" in said


def section(app):
    kinds = (*app.markdown, *app.caption, *app.info)
    return raw("\n".join(str(one.value) for one in kinds)), [
        one.proto.spec for one in app.get("plotly_chart")
    ]


def test_an_answer_with_its_band_and_decision(opened):
    said, _ = section(opened("workbench", question="q00"))
    # 0.45 · 0.8 + 0.35 · 0.6 + 0.2
    assert "▲ High" in said and "**Confidence 0.77** ≥ threshold 0.60: passes" in said
    assert "Low confidence" not in said
    said, _ = section(opened("workbench", question="q04"))
    assert "◆ Medium" in said and "**Confidence 0.57** < threshold 0.60: does not pass" in said


def test_the_combined_uncertainty_of_one_answer_with_its_parts(opened):
    bare = planted()
    signals = pd.DataFrame({"query_id": bare.queries["query_id"], "similarity": 0.5})
    passages = bare.passages.assign(retrieval_score=1.0)  # all alike: U of retrieval is 1
    tables = {**bare.tables, "signals": signals, "passages": passages}
    run = Run.create(dict(bare.manifest), **tables)
    # Of q003 all five samples repeat the answer: the two other parts are 0.
    said, _ = section(opened("workbench", shown=run, question="q003"))
    assert (
        "**Combined uncertainty 0.20:** not decided. It is 0.2 · 1.00 (retrieval) + 0.4 · 0.00 (sampling) + "
        "0.4 · 0.00 (conformal)."
    ) in said
    tables["passages"] = bare.passages
    said, _ = section(opened("workbench", shown=Run.create(dict(bare.manifest), **tables), question="q003"))
    assert "**Combined uncertainty —:** not decided; undefined without retrieval." in said


def test_a_low_confidence_has_a_badge_and_advice(opened):
    said, _ = section(opened("workbench", question="q04", weights="llm=1"))
    assert (
        "▼ Low confidence" in said
        and "**Low confidence 0.00** (threshold 0.60): check it before use." in said
    )


def test_a_missing_signal_is_named(opened):
    run = signal_run([0.8, np.nan], [20.0, 30.0], [0.5, 0.5])
    said, drawn = section(opened("workbench", shown=run, question="q01"))
    assert "– Undefined" in said and "**No confidence**" in said
    assert "A signal with a weight has no value for this answer. Missing: Similarity." in said
    assert any("no value" in spec for spec in drawn)


def test_no_answer_has_no_waterfall(opened):
    run = signal_run([0.8, 0.8], [20.0, 30.0], [0.5, 0.5], answer_status=["answered", "empty"])
    said, drawn = section(opened("workbench", shown=run, question="q01"))
    assert "– Undefined" in said and "**No confidence**" in said
    assert not any("add to the confidence" in spec for spec in drawn)


def test_unusable_weights_are_told_in_the_workbench(opened):
    said, _ = section(opened("workbench", question="q00", weights=f"{HOSTILE[:20]}=1"))
    assert "The run has no signal <script>alert(1)</s" in said


def test_hostile_questions_are_shown_as_they_are(opened):
    app = opened()
    for one in (*app.markdown, *app.caption, *app.info):
        assert not re.search(r"(?<!\\)<script", str(one.value)), one.value
    assert "<script" not in json.dumps([one.proto.spec for one in app.get("plotly_chart")])


def test_methods_say_how_the_confidence_comes_about(opened, texts):
    assert "**Good retrieval is not a good answer.**" in texts(opened("methods"))
