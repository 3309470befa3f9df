"""Links: what the address says is what is shown, and junk in it is told in one sentence."""

import pytest

from tests.app.conftest import PAGES
from tests.app.test_pages import TITLES


def opened(app) -> str:
    """The question that the workbench shows."""
    return app.subheader[0].value


def test_threshold_and_question_come_from_the_address(open_app, healthy, recorded):
    app = healthy(open_app("workbench", question="q3", influence_threshold="0.25"))
    assert app.slider(key="influence_threshold").value == 0.25
    assert "An inert question" in opened(app) and app.query_params["question"] == "q3"


def test_going_on_changes_the_address_and_a_new_address_wins(open_app, healthy, recorded):
    app = healthy(open_app("workbench", question="q3", sort="run"))
    app.button(key="workbench_next").click().run()
    assert "An empty one" in opened(healthy(app)) and app.query_params["question"] == "q4"
    app.query_params["question"] = "q3"
    assert "An inert question" in opened(healthy(app.run()))


def test_choice_survives_a_visit_to_another_page(open_app, healthy, recorded):
    app = healthy(open_app("workbench", question="q3"))
    app.switch_page("pages/methods.py").run()
    del app.query_params["question"]  # what the browser does when the menu is used
    app.switch_page("pages/workbench.py").run()
    assert "An inert question" in opened(healthy(app)) and app.query_params["question"] == "q3"


@pytest.mark.parametrize("junk", ["nonsense", "7", "NaN", ""])
def test_junk_threshold_leaves_the_default(junk, open_app, healthy, recorded):
    assert healthy(open_app(influence_threshold=junk)).slider(key="influence_threshold").value == 0.7


@pytest.mark.parametrize("junk", ["nobody", "<script>alert(1)</script>", "../../etc/passwd", "q" * 5000])
def test_unknown_question_is_told_and_another_is_shown(junk, open_app, healthy, recorded):
    app = healthy(open_app("workbench", question=junk, sort="run"))
    assert "This run has no question" in app.warning[0].value
    assert "Who designed the garden city" in opened(app)


@pytest.mark.parametrize("junk", ["0123456789ab", "../../etc", "..", "<b>", "r" * 5000])
def test_unknown_run_is_told_with_what_to_do(junk, open_app, healthy, recorded, texts):
    app = healthy(open_app(run=junk))
    assert "is not saved here" in app.warning[0].value
    assert "Data page" in app.warning[0].value
    assert "No run is loaded" in texts(app)


@pytest.mark.parametrize(
    "junk", ["queries:999999999", "queries:abc", "evil:1", "queries", "share_ties:0.9,share_inert:0.9", ","]
)
def test_bad_simulation_link_is_told(junk, open_app, healthy, texts):
    app = healthy(open_app(sim=junk))
    assert app.warning and "No run is loaded" in texts(app)


def test_link_to_a_saved_run_opens_it(open_app, healthy, texts, small_run, tmp_path):
    small_run.renamed("Kept for later").save(tmp_path / "runs" / "any-folder-name")
    app = healthy(open_app(run=small_run.run_id))
    assert "Kept for later" in texts(app) and "Saved run" in texts(app)


def test_same_simulation_link_gives_the_same_numbers(open_app, healthy):
    def numbers():
        return [metric.value for metric in healthy(open_app(sim="queries:15,seed:9,noise:0.1")).metric]

    assert numbers() == numbers()


def test_simulation_form_writes_a_link(open_app, healthy):
    app = healthy(open_app("data", door="Simulation"))
    app.number_input(key="sim_queries").set_value(20)
    app.number_input(key="sim_seed").set_value(5)
    next(b for b in app.button if b.label == "Simulate").click()
    assert healthy(app.run()).query_params["sim"] == "queries:20,seed:5"


def test_simulation_replaces_the_run_that_a_link_opened(open_app, healthy, recorded, texts):
    app = healthy(open_app("data", door="Simulation", run=recorded.run_id))
    next(b for b in app.button if b.label == "Simulate").click()
    app = healthy(app.run())
    assert app.query_params["sim"] == "default" and "run" not in app.query_params
    assert "50 questions" in texts(app)


def test_impossible_simulation_is_told(open_app, healthy):
    app = healthy(open_app("data", door="Simulation"))
    app.number_input(key="sim_passages").set_value(3)
    app.number_input(key="sim_influential").set_value(9)
    next(b for b in app.button if b.label == "Simulate").click()
    assert "influential" in healthy(app.run()).error[0].value


@pytest.mark.parametrize("page", PAGES)
def test_cold_server_runs_the_frame_before_any_page(page, open_app, healthy, recorded, texts):
    app = healthy(open_app(page))
    assert app.title[0].value == TITLES[page]
    assert "The recorded run" in texts(app)
