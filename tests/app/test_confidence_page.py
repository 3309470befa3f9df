"""The page Confidence and its section of the workbench: signals, what-if, calibration, comparison."""

import functools
import json
import re

import numpy as np
import pandas as pd
import pytest

from core.calibration.saved import read_store
from core.confidence import learn
from core.confidence.labelled import teaches
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

OPEN = "Does the confidence mean what it says?"


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
    assert app.checkbox(key="confidence_stated_confidence").value is True
    assert not button(app, "Measure signals").disabled and not app.metric and not app.get("plotly_chart")
    app.checkbox(key="confidence_stated_confidence").set_value(False).run()
    # Without the model's own score no model is asked, so none is chosen and nothing is estimated.
    assert "Estimate cost" not in labels(app) and not button(app, "Measure signals").disabled


def test_imported_signals_work_at_once(opened, texts):
    app = opened()
    said = raw(texts(app))
    assert "▲ High" in said and "◆ Medium" in said and "▼ Low" in said
    # Of 80, 20 have 0.77; half are correct, and of these every second one is labelled where i % 4 is not 0.
    assert "**20 of 80 answers**" in said and "**60 of 80 answers**" in said and "**0 of 80 answers**" in said
    assert "10 of 10 labelled are correct (100 %)." in said
    assert "20 of 50 labelled are correct (40 %)." in said
    assert "95 % interval of the share 72 to 100 %." in said  # Wilson
    assert link(app, "Read 20 answers").query_string.count("band%3Ahigh") == 1
    assert len(app.get("plotly_chart")) == 1
    # One figure is open, the rest is a click away; the threshold is on the page that promises.
    assert app.subheader[0].value == OPEN and link(app, "Move the threshold: answer or withhold")
    labels = {one.label for one in app.expander}
    assert {"Answers by band", "Try other signals and weights"} <= labels
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
    found = table(app, "difference")
    assert found["a"].tolist()[2] == 1.0 and "**Other weights:** " in raw(texts(app))


def test_weights_are_used_everywhere_and_given_back(opened, healthy):
    app = opened()
    assert button(app, "Use these weights").disabled
    for name in ("similarity", "lexical score"):
        weight(app, name).set_value(0.0).run()
    assert cards(app)["AUROC"] == "1.00 → 1.00"
    button(app, "Use these weights").click()
    healthy(app.run())
    assert chosen(app) == "llm=1" and button(app, "Use these weights").disabled
    titles = ("similarity", "lexical score", "stated confidence")
    assert [weight(app, one).value for one in titles] == [0, 0, 1]
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


def test_without_a_stated_confidence_another_signal_is_the_confidence(opened, texts, healthy):
    run = told()
    run = Run.create(dict(run.manifest), **{**run.tables, "signals": run["signals"].assign(llm_score=np.nan)})
    app = opened(shown=run)
    assert weight(app, "similarity").value == 1 and OPEN in texts(app)
    weight(app, "similarity").set_value(0.5).run()
    weight(app, "lexical score").set_value(0.5).run()
    button(app, "Use these weights").click()
    healthy(app.run())
    assert chosen(app) == "similarity=0.5,lexical=0.5"
    # Of a link that asks for what the run lacks, the others can be weighed.
    app = opened(shown=run, weights="similarity=0.45,lexical=0.35,llm=0.2")
    said = texts(app)
    assert "**No answer has a confidence:** Stated confidence has a weight and no value." in said
    assert not app.get("plotly_chart") and OPEN not in said
    button(app, "Weigh Similarity and Lexical score only").click()
    healthy(app.run())
    assert chosen(app) == "similarity=0.45,lexical=0.35" and OPEN in texts(app)


@pytest.mark.parametrize("text", ["similarity=-1", HOSTILE, "nobody=1"])
def test_unusable_weights_of_a_link_are_told_and_given_back(text, opened, texts, healthy):
    app = opened(weights=text)
    assert len(app.warning) == 1 and OPEN not in texts(app) and not app.get("plotly_chart")
    button(app, "Back to the default weights").click()
    healthy(app.run())
    assert not app.warning and OPEN in texts(app)


def test_learning_from_half_of_the_labels(opened, texts, healthy):
    app = opened()
    n = sum(teaches(f"Question {i}?") for i in range(1, N) if i % 4)
    assert f"**{n} labelled answers**, " in texts(app) and "; 20 without a label left out." in texts(app)
    button(app, "Learn weights and map").click()
    said = raw(texts(healthy(app.run())))
    # The default knows already: no weights can gain.
    assert "**Keep the weights in use:** the gain over the default is not significant." in said
    found = table(app, "grid 95 %")
    assert found["signal"].tolist() == ["Similarity", "Lexical score", "Stated confidence"]
    assert found["default"].tolist() == [0.45, 0.35, 0.2]
    assert table(app, "ece")["map"].tolist() == ["No map", "Platt scaling", "Isotonic regression"]
    assert link(app, "Save weights and map in a calibration store")


def informative(n=N):
    """Only the lexical score knows: the default, half of which is a constant and noise, is beaten."""
    rng = np.random.default_rng(1)
    right = [i % 2 == 0 for i in range(n)]
    noise = rng.random(n)
    return signal_run(list(noise), [55.0 if one else 45.0 for one in right], list(1 - noise**2), right)


def test_learned_weights_that_gain_are_offered_and_saved_with_the_other_half(
    opened, texts, healthy, tmp_path
):
    app = opened(shown=informative(240))
    button(app, "Learn weights and map").click()
    said = raw(texts(healthy(app.run())))
    assert re.search(r"\*\*Use the weights by (grid search|logistic regression):\*\* AUROC 0\.\d+ → ", said)
    kept = app.session_state["leadline"].kept["confidence_learned"][1]
    assert kept.method.weighting.weights["lexical"] > 0.5
    assert table(app, "difference")["measure"].tolist()[2] == "AUROC (higher is better)"
    app.switch_page("pages/conformal.py").run()
    n = 240 - kept.weights.n
    assert "without the questions that taught" in texts(app)
    button(app, f"Add this run's labelled questions ({n})").click()
    healthy(app.run())
    saved, _ = read_store(str(tmp_path / "runs" / "stores" / "calibration.db"))
    assert saved.scores.size == n and saved.method.learned_from == kept.method.learned_from
    app.switch_page("pages/confidence.py").run()
    app.button(key="confidence_use_learned").click()
    healthy(app.run())
    assert "lexical=" in chosen(app)


def test_a_run_without_labels_says_so(opened, texts):
    app = opened(shown=signal_run([0.8, 0.9], [20.0, 30.0], [0.5, 0.5]))
    said = raw(texts(app))
    assert "has no labelled answer; nothing can be learned." in said and not app.error
    assert cards(app)["Correct among them"] == "—" and cards(app)["AUROC"] == "—"


def test_many_answers_are_for_the_command_line(opened, texts, monkeypatch):
    monkeypatch.setattr(calibrate, "MOST", 9)
    app = opened()
    assert "At most 9 answers are learned from here" in texts(app) and "Learn weights and map" not in labels(
        app
    )


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
    assert "▼ Low confidence" in said
    assert "**Low confidence 0.00** (threshold 0.60): check it before use." in said


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
