"""What sessions share: saved runs, as long as their folder is as it was, and nothing else."""

from core.diagnosis import Diagnosis
from core.run import Run
from ui import library


def state(app):
    return app.session_state["leadline"]


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
