"""The page Answer likelihood, its part of the workbench, and influence measured by it."""

import pandas as pd
import pytest

from core.run import Run
from core.socket import QuestionColumn
from tests.app.conftest import HOSTILE
from tests.core.likelihood.likelihood_runs import likelihood_run, scored_run
from ui import show


@pytest.fixture
def opened(open_app, healthy, tmp_path):
    """Open a page of a run that lies where the recorded sample run is looked for."""

    def go(page="likelihood", shown=None, **params):
        (told() if shown is None else shown).save(tmp_path / "samples" / "recorded_run")
        return healthy(open_app(page, **params))

    return go


def told():
    """Two incorrect answers, one misled and one that ignores the evidence; all passages have hostile titles."""
    run = scored_run(
        ("omega", "alpha", (3.0, -2.0, 0), (0.5, 4.0, 1), (0.0, 0.0, 0)),
        ("omega", "alpha", (1.0, 0.0, 0), (-0.5, 6.0, 1), (0.2, 0.0, 0)),
        title=HOSTILE,
    )
    return Run.create(
        run.manifest,
        queries=run.queries.assign(question=[HOSTILE, "Which?"]),
        passages=run.passages.assign(ablated_answer="omega", ablated_status="answered"),
    )


def raw(text):
    return text.replace("\\", "").replace("\u2060", "").replace("\u00a0", " ")


def cards(app):
    return {one.label: one.value for one in app.metric}


def test_the_page_shows_numbers_table_and_shares_beside_chance(opened, texts):
    app = opened()
    assert app.title[0].value == "Answer likelihood"
    found = {raw(label): value for label, value in cards(app).items()}
    assert found["Misleading passage"] == "1 of 2" and found["Ignored evidence"] == "1 of 2"
    tables = [one.value for one in app.dataframe]
    passages = next(frame for frame in tables if "made_by" in frame)
    assert passages["made_by"].tolist() == ["p1", "p1"] and passages["needed"].tolist() == ["p2", "p2"]
    shares = next(frame for frame in tables if "beyond" in frame)
    assert shares["mean"].tolist() == [0.0, 1 / 3, 0.0, 1.0]
    assert shares["chance"].round(2).tolist() == [0.33] * 4 and shares["n"].tolist() == [2] * 4


def test_without_a_reference_there_is_no_figure(opened, texts):
    run = told()
    bare = Run.create(
        run.manifest,
        queries=run.queries.assign(reference_answers=None),
        passages=run.passages.assign(reference_logprob_drop=None),
    )
    app = opened(shown=bare)
    assert not app.get("plotly_chart") and "No passage has both drops" in texts(app)
    assert len(opened().get("plotly_chart")) == 1


def test_a_run_without_scores_offers_the_step(opened, texts):
    app = opened(shown=likelihood_run(("omega", ["alpha"], {"one": True, "two": False})))
    assert "Nothing is generated" in texts(app)
    assert "Score answers" in [one.label for one in app.button]


def test_the_workbench_says_what_each_passage_does(opened, texts):
    """With one misled answer of two, which chance explains, the question says nothing of a misleading passage."""
    app = opened("workbench", question="q1")
    shown = raw(texts(app))
    assert "Misleading passage:" not in shown and "Ignored evidence:" not in shown
    values = {raw(label): raw(value) for label, value in cards(app).items()}
    assert values["Raises the answer most"] == "p1" and values["Raises the reference most"] == "p2"
    misled = ("omega", "alpha", (3.0, -2.0, 0), (0.5, 4.0, 1), (0.2, 0.0, 0), (0.2, 0.0, 0))
    shown = raw(texts(opened("workbench", shown=scored_run(*[misled] * 8), question="q1")))
    assert "Misleading passage:" in shown and "Ignored evidence:" not in shown


def test_influence_by_log_probability_is_chosen_once_for_all_pages(opened, healthy):
    app = opened("influence")
    assert "Mean ρ" not in cards(app)  # no word of an answer changes: undefined
    healthy(app.selectbox(key="influence").select("logprob").run())
    # Ranks 1 2 3 and 1 3 2 of three passages: ρ 1 and 0.5.
    assert cards(app)["Mean ρ"] == "0.75"
    again = opened("influence", influence="logprob")
    assert cards(again)["Mean ρ"] == "0.75"


def test_influence_by_log_probability_says_what_is_missing(opened, texts):
    run = likelihood_run(*[("omega", ["alpha"], {"one": True, "two": False, "three": False})] * 2)
    app = opened("influence", shown=run, influence="logprob")
    # Nothing was left out and nothing scored: no card, one sentence that names both ways.
    assert "run the step likelihood" in raw(texts(app)) and not cards(app)
    app = opened("influence", influence="nonsense")
    assert app.selectbox(key="influence").value == "rouge"


@pytest.mark.parametrize(
    ("values", "ends"),
    [([[0.2, 1.0], None], (0.0, 1.0)), ([[0.2, 7.5]], (None, None)), ([[-0.1]], (None, None))],
)
def test_small_charts_keep_their_bounds_as_long_as_the_values_do(values, ends):
    one = QuestionColumn("influences", "Influence", "list", (0.0, 1.0))
    config = show.column(one, "Influence", pd.Series(values))["type_config"]
    assert (config["y_min"], config["y_max"]) == ends


def test_what_is_estimated_is_labelled_wherever_it_is_shown(opened, texts):
    run = told()
    flags = [True, False, False, True, False, True]
    screened = run.passages["logprob_drop"] + 0.25
    run = Run.create(
        run.manifest,
        queries=run.queries,
        passages=run.passages.assign(approximate_drop=flags, screened_drop=screened),
    )
    assert "Approximate, estimated by the quick screen: 3 of 6 drops." in raw(texts(opened(shown=run)))
    shown = raw(texts(opened("workbench", shown=run, question="q1")))
    assert "nats (approximate)" in shown
    assert "Approximate, estimated by the quick screen: 3 values." in raw(
        texts(opened("influence", shown=run, influence="logprob"))
    )


def test_what_is_exact_is_not_called_approximate(opened, texts):
    assert "Approximate, estimated" not in raw(texts(opened()))
