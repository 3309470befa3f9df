"""With which command, folder and address the dashboard is started, and when it counts as started.

The servers here only pretend; `tests/test_wheel.py` starts real ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pandas as pd
import pytest

from core import serving
from core.errors import InputError, RunFormatError
from core.run import Run


class Server:
    """A process that runs until it is told to end."""

    started: list[Server]

    def __init__(self, command, env, stdout=None, stderr=None):
        self.command, self.env, self.output = command, env, (stdout, stderr)
        self.status = None
        self.started.append(self)

    def poll(self):
        return self.status

    def terminate(self):
        self.status = -15

    def wait(self):
        return self.status


@pytest.fixture(autouse=True)
def started(monkeypatch, tmp_path):
    """The servers that were started, and nothing else of this process."""
    Server.started = []
    monkeypatch.setattr(subprocess, "Popen", Server)
    monkeypatch.setattr(serving, "_STARTED", {})
    monkeypatch.setattr(serving, "_answers", lambda port: True)
    monkeypatch.setattr(serving.atexit, "register", lambda *_: None)
    monkeypatch.setattr(serving.webbrowser, "open", lambda url: pytest.fail(url))
    monkeypatch.delenv("LEADLINE_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    return Server.started


@pytest.fixture
def run():
    return Run.create({"source": "live"}, queries=pd.DataFrame({"query_id": ["a"], "question": ["Who?"]}))


def test_the_dashboard_is_inside_the_package_or_beside_it(tmp_path, monkeypatch):
    package = tmp_path / "core"
    monkeypatch.setattr(serving, "_HERE", package)
    with pytest.raises(InputError, match="is not part of this installation"):
        serving.app_folder()
    (tmp_path / "dashboard.py").touch()
    assert serving.app_folder() == tmp_path
    (package / "app").mkdir(parents=True)
    (package / "app" / "dashboard.py").touch()
    assert serving.app_folder() == package / "app"


def test_a_server_has_the_environment_of_this_process_and_the_runs_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LEADLINE_CACHE", "cache")
    assert serving.environment() == {**os.environ, "LEADLINE_RUNS": str(tmp_path / "runs")}
    monkeypatch.setenv("LEADLINE_RUNS", "kept")
    assert serving.environment()["LEADLINE_RUNS"] == str(tmp_path / "kept")
    assert serving.environment("other") == {**os.environ, "LEADLINE_RUNS": str(tmp_path / "other")}


def test_the_dashboard_is_served_with_the_runs_beside_the_one_to_open(run, tmp_path, monkeypatch):
    said, became = [], []
    monkeypatch.setattr(os, "execve", lambda *given: became.append(given))
    folder = run.save(tmp_path / "mine" / "one")
    serving.serve(folder, 8600, said.append)
    serving.serve(None, 8601, said.append)
    assert said == [
        f"The dashboard is at http://localhost:8600/?run={run.run_id}",
        "The dashboard is at http://localhost:8601/",
    ]
    assert [(path, command) for path, command, _ in became] == [
        (sys.executable, serving.command(8600)),
        (sys.executable, serving.command(8601)),
    ]
    assert [env["LEADLINE_RUNS"] for _, _, env in became] == [str(tmp_path / "mine"), str(tmp_path / "runs")]
    with pytest.raises(RunFormatError, match="is not a saved run"):
        serving.serve(tmp_path, 8600, said.append)
    assert len(said) == len(became) == 2


def test_the_runs_of_a_folder_share_a_server_as_long_as_it_runs(run, started, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(serving.webbrowser, "open", opened.append)
    shown = serving.show(run, runs="mine", browser=False)
    other = serving.show(run.derive({"run_id": "b c"}), runs=tmp_path / "mine")
    assert len(started) == 1 and opened == [other.url] and other.server is shown.server is started[0]
    port = started[0].command[-1]
    assert shown.url == f"http://localhost:{port}/?run={run.run_id}" and other.url.endswith("/?run=b+c")
    assert repr(shown) == f"Shown(url='{shown.url}')"
    assert shown._repr_html_() == f'<a href="{shown.url}" target="_blank">{shown.url}</a>'
    assert Run.load(tmp_path / "mine" / run.run_id).run_id == run.run_id
    assert started[0].env["LEADLINE_RUNS"] == str(tmp_path / "mine")
    assert started[0].output == (subprocess.DEVNULL,) * 2
    assert serving.show(run, runs="theirs", browser=False).server is started[1]
    shown.stop()
    assert serving.show(run, runs="mine", browser=False).server is started[2] is not shown.server


@pytest.fixture
def clock(monkeypatch):
    """A clock on which only pauses take time."""
    found = SimpleNamespace(now=0.0, monotonic=lambda: found.now)
    found.sleep = lambda seconds: setattr(found, "now", found.now + seconds)
    monkeypatch.setattr(serving, "time", found)
    return found


def test_a_server_may_take_its_time_until_it_answers(run, clock, monkeypatch):
    monkeypatch.setattr(serving, "_answers", lambda port: clock.now > 80)
    shown = serving.show(run, browser=False)
    assert shown.server.poll() is None and 80 < clock.now < 81


@pytest.mark.parametrize(("status", "seconds"), [(1, 0), (None, 90)])
def test_a_server_that_ends_or_never_answers_did_not_start(run, started, clock, monkeypatch, status, seconds):
    monkeypatch.setattr(serving, "_answers", lambda port: False)
    monkeypatch.setattr(Server, "poll", lambda self: status)
    with pytest.raises(InputError, match=r"^The dashboard did not start; leadline dashboard says why\.$"):
        serving.show(run, browser=False)
    assert started[0].status == -15 and seconds <= clock.now < seconds + 1
    assert serving._STARTED == {}


@pytest.mark.parametrize(("status", "answers"), [(200, True), (503, False), (None, False)])
def test_only_a_server_that_is_well_answers(monkeypatch, status, answers):
    monkeypatch.undo()
    asked = []

    def urlopen(url, timeout):
        asked.append(url)
        if status is None:
            raise ConnectionRefusedError
        return nullcontext(SimpleNamespace(status=status))

    monkeypatch.setattr(serving.urllib.request, "urlopen", urlopen)
    assert serving._answers(8600) is answers and asked == ["http://localhost:8600/_stcore/health"]
