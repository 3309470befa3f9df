"""What sessions share: saved runs, as long as their folder is as it was, and nothing else."""

import pytest
import streamlit as st

from core.analyses import Analyses
from core.diagnosis import Diagnosis
from core.run import Run
from ui import library


def state(app):
    return app.session_state["leadline"]


@pytest.fixture(autouse=True)
def _remembered():
    """Nothing is remembered from another test here: what is read and analysed is counted."""


def test_a_saved_run_is_read_and_analysed_once_for_all_sessions(
    open_app, healthy, recorded, tmp_path, monkeypatch
):
    made = []
    original = Diagnosis.findings
    monkeypatch.setattr(Diagnosis, "findings", lambda self: made.append(1) or original(self))
    first = healthy(open_app())
    once = len(made)
    second = healthy(open_app())
    assert state(first).run is state(second).run and len(made) == once > 0
    # Written anew, it is another run to the caches.
    folder = tmp_path / "samples" / "recorded_run"
    Run.load(folder).renamed("Renamed").save(folder)
    third = healthy(open_app())
    assert state(third).run.name == "Renamed" and len(made) == 2 * once
    # An open page keeps what it shows.
    assert state(healthy(first.run())).run.name == "The recorded run"


def test_runs_that_are_not_saved_belong_to_their_session(open_app, healthy):
    first, second = (healthy(open_app(sim="queries:12,seed:3")) for _ in range(2))
    keys = [state(app).run_key for app in (first, second)]
    assert keys[0] != keys[1] and not any(key.startswith("saved ") for key in keys)
    assert library.saved_runs() == []


def test_the_overview_of_a_run_with_kept_results_analyses_nothing(
    open_app, healthy, recorded, texts, monkeypatch
):
    monkeypatch.setattr("core.run.LARGE", 1)
    asked = []
    original = Analyses.__getitem__
    monkeypatch.setattr(Analyses, "__getitem__", lambda own, name: asked.append(name) or original(own, name))
    first = healthy(open_app())
    assert "answers" in asked and "influence" in asked
    asked.clear()
    st.cache_resource.clear()  # as in a new process
    second = healthy(open_app())
    assert asked == [] and texts(second) == texts(first)
    assert [frame.value.to_json() for frame in second.dataframe] == [
        frame.value.to_json() for frame in first.dataframe
    ]
    # Only what the page shows was read: questions and their number of passages.
    assert set(state(second).run.tables._frames) <= {"queries"}


def test_a_very_large_run_opens_as_a_random_sample_and_whole_on_request(
    open_app, healthy, recorded, texts, monkeypatch
):
    monkeypatch.setattr("ui.cached.MANY", 3)
    monkeypatch.setattr("ui.cached.SAMPLE", 3)
    app = healthy(open_app())
    run, n_all = state(app).run, len(Run.load(library.recorded().folder).queries)
    assert len(run.queries) == 3 and run.sampled_from == n_all
    assert f"random sample of 3 of the run's {n_all} questions" in texts(app)
    # What is added to it is saved as a run of its own, never in the place of the whole.
    assert library.folder_of(run) not in {one.folder for one in library.saved_runs()}
    app = healthy(app.button(key="whole_run").click().run())
    whole = state(app).run
    assert len(whole.queries) == n_all and "random sample" not in texts(app)
    # The address says so, and another session that follows it sees the same.
    assert app.query_params == {"all": "1", "run": whole.run_id}
    assert len(state(healthy(open_app(run=whole.run_id, all="1"))).run.queries) == n_all
    assert len(state(healthy(open_app(run=whole.run_id))).run.queries) == 3
    assert len(state(healthy(open_app(all="1"))).run.queries) == 3
