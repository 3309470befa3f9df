"""The switch *Influence measured by*: on the page of influence, in the workbench, and what each measure says."""

import json

import pytest

from core.influence.measures import MEASURES
from tests.app.conftest import HOSTILE
from tests.core.influence.subset_runs import additive, any_of_three, noise, subsets_run

DOWN = additive(2.0, 1.0, 0.5, -1.0)


@pytest.fixture
def opened(open_app, healthy, tmp_path):
    """Open a page of a run that lies where the recorded sample run is looked for."""

    def go(run, page="influence", **params):
        run.save(tmp_path / "samples" / "recorded_run")
        return healthy(open_app(page, **params))

    return go


def cards(app):
    return {one.label: one.value for one in app.metric}


def drawn(app):
    (element,) = app.get("bidi_component")
    return json.loads(element.proto.json)


def plain(text):
    return text.replace("\\", "").replace("\u2060", "").replace("\u00a0", " ")


def test_the_switch_has_words_and_every_page_follows_it(opened, healthy, texts):
    app = opened(subsets_run(DOWN, DOWN, any_of_three(), title=HOSTILE))
    switch = app.selectbox(key="influence")
    assert switch.options == [one.title for one in MEASURES.values()] and switch.value == "rouge"
    for one in MEASURES.values():
        assert one.asks in switch.help
    assert "never left out one by one" in texts(app)
    healthy(switch.select("surrogate").run())
    # ρ is 1 twice; of ranks 3, 3, 3, 1 it is −3 / √15.
    assert cards(app)["Mean ρ"] == "0.41"
    assert "Random subsets (surrogate):" in plain(texts(app)) and "Known for 3 of 3 questions" in plain(
        texts(app)
    )
    app.switch_page("pages/workbench.py").run()
    bars = [row["bar"] for row in drawn(healthy(app))["rows"]]
    assert bars[0]["text"] == "Surrogate score 2.00 nats · rank 1 of 4"
    assert [bar["value"] for bar in bars] == pytest.approx([2.0, 1.0, 0.5, -1.0])
    assert "Do not read these bars" not in texts(app)


def test_shapley_values_that_were_not_measured_name_step_and_option(opened, texts):
    app = opened(subsets_run(DOWN, shapley=False), influence="shapley")
    assert "run the step attribution with --shapley" in plain(texts(app))
    assert "Known for 0 of 1 question" in plain(texts(app))


@pytest.mark.parametrize(("measure", "said"), [("surrogate", 1), ("shapley", 0)])
def test_bars_that_predict_nothing_are_not_to_be_read(measure, said, opened, texts):
    """Only what is meant to predict removals is judged by how well it does."""
    app = opened(subsets_run(noise(), DOWN), "workbench", question="q1", influence=measure)
    assert plain(texts(app)).count("**Do not read these bars:** they predict no better than chance") == said
