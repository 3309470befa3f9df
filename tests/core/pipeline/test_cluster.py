"""Runs on a real Ray: two nodes on this machine, whose workers, nodes and driver are killed.

``LEADLINE_KILLS=20`` kills more often than usual.
"""

import importlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from core.errors import BackendError, InputError
from core.llm import CompletionCache
from core.pipeline.cluster import Place, executor
from core.pipeline.executing import in_threads
from core.run import Run
from tests.cluster_runs import calls, ended_by_one, first_passage, model, run_on
from tests.core.pipeline.test_fill import same_tables
from tests.e2e.running_app import free_port
from tests.scripted import ScriptedLLM

ROOT = Path(__file__).parents[3]
KILLS = int(os.environ.get("LEADLINE_KILLS", "3"))
N = 40
CALLS = N * (1 + 3 + 1 + 1)


@pytest.fixture(scope="module")
def cluster():
    """A head without processors and two nodes with two each, on which workers are."""
    # Nice workers take 20 s to start beside other tests.
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_worker_niceness": "0",
    }  # fmt: skip
    utils = importlib.import_module("ray.cluster_utils")
    found = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    found.nodes = [found.add_node(num_cpus=2) for _ in range(2)]
    yield found
    found.shutdown()


@pytest.fixture(scope="module")
def ray(cluster):
    ray = importlib.import_module("ray")
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


def wait_for(ready, seconds):
    """Return whether it is so before the time is over."""
    end = time.monotonic() + seconds
    while not ready() and time.monotonic() < end:
        time.sleep(0.2)
    return ready()


def here(n):
    return run_on(Place(), n, ScriptedLLM(first_passage))


class Driver:
    """The driver in a process of its own; it may be killed and goes on."""

    def __init__(self, cluster, folder, n, workers):
        self.command = [sys.executable, "-m", "tests.cluster_runs", str(folder), str(n), str(workers)]
        self.env = {**os.environ, "RAY_ADDRESS": cluster.address, "PYTHONPATH": str(ROOT)}
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, cwd=ROOT, env=self.env)

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        assert self.process.wait(60) == -signal.SIGKILL
        self.start()


def repeated(folder):
    """The calls that were begun after their completion was in the cache."""
    with CompletionCache(folder / "c.db") as cache:
        kept = dict(cache._db.execute("SELECT key, created FROM completions"))
    assert len(kept) == CALLS
    return [key for key, at, _ in calls(folder) if kept[key] < at]


def killed(what, cluster, driver, folder):
    """Kill one of them while calls are made."""
    if what == "driver":
        driver.kill()
    elif what == "node":
        cluster.remove_node(cluster.nodes.pop(0), allow_graceful=False)
        cluster.nodes.append(cluster.add_node(num_cpus=2))
    else:
        pid = calls(folder)[-1][2]
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it ended with its node or its driver
            return False
    return True


def wanted_kills():
    """As many of each, in an order that the seed decides."""
    listed = [("worker", "node", "driver")[i % 3] for i in range(KILLS)]
    random.Random(7).shuffle(listed)
    return listed


@pytest.mark.slow
def test_kills_of_workers_nodes_and_the_driver_repeat_no_finished_call(cluster, tmp_path):
    left, done, dice, runs = wanted_kills(), Counter(), random.Random(11), 0
    expected = here(N)
    while left:
        folder = tmp_path / str(runs)
        folder.mkdir()
        runs += 1
        driver, at = Driver(cluster, folder, N, 2), 0
        try:
            while driver.process.poll() is None:
                n = len(calls(folder))
                if left and n >= at and n and killed(left[-1], cluster, driver, folder):
                    done[left.pop()] += 1
                    at = len(calls(folder)) + dice.randint(5, 40)
                    (tmp_path / "kills").write_text(f"{dict(done)} in {runs} runs")
                time.sleep(0.01)
        finally:
            driver.process.kill()
        assert driver.process.wait() == 0
        assert repeated(folder) == []
        result = Run.load(folder / "run")
        assert result.manifest["complete"] and same_tables(result, expected)
    assert done.total() == KILLS and min(done.values()) >= KILLS // 3


def test_workers_give_the_tables_of_this_process(ray, tmp_path):
    expected, found = here(12), []
    for workers in (1, 3):
        llm = model(tmp_path, delay=0.0)
        found.append(run_on(Place("ray", workers), 12, llm))
        assert same_tables(found[-1], expected)
    costs = [{k: v for k, v in one.manifest["cost"].items() if k != "seconds"} for one in [expected, *found]]
    assert all(cost == costs[0] for cost in costs)
    # None was made in this process; one worker made those of the first run, at least one other those of the second.
    pids = {pid for _, _, pid in calls(tmp_path)}
    assert os.getpid() not in pids and len(pids) >= 2


# As a user's: nothing but Ray is on the cluster, the engine and the model come with the run.
OWN_MODEL = """
import sys
from tests.cluster_runs import Place, run_on
from tests.core.pipeline.test_fill import same_tables
from core.llm import Capabilities, Completion

class Longest:
    name, options, capabilities = "longest", {}, Capabilities()
    def generate(self, requests, on_done=None, cancelled=None):
        lines = [one.messages[0].content.splitlines() for one in requests]
        return [Completion(max(one, key=len), "stop", 1, 1, 0.0) for one in lines]
    def count_tokens(self, messages):
        return 1

expected = run_on(Place(), 6, Longest())
assert same_tables(run_on(Place(sys.argv[1], 2), 6, Longest()), expected)
"""


def test_a_cluster_is_reached_by_its_address_and_token(tmp_path):
    ports: set[int] = set()
    while len(ports) < 2:  # one may come twice
        ports.add(free_port())
    port, ours = ports
    env = {
        **os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a-b-c",
        # Ray's own server forks while it may be calling into gRPC, whose threads then end the child.
        "GRPC_ENABLE_FORK_SUPPORT": "false", "PYTHONPATH": "",
    }  # fmt: skip
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", f"--port={port}"]
    command += [f"--ray-client-server-port={ours}", "--num-cpus=2", "--include-dashboard=false"]
    with (tmp_path / "head").open("w") as log:
        head = subprocess.Popen(
            command, cwd=tmp_path, env=env, stdout=log, stderr=log, start_new_session=True
        )
    try:
        reached = wait_for(lambda: "Ray runtime started" in (tmp_path / "head").read_text(), 90)
        assert reached, (tmp_path / "head").read_text()
        script = [sys.executable, "-c", OWN_MODEL, f"ray://127.0.0.1:{ours}"]
        done = subprocess.run(
            script,
            cwd=ROOT,
            env={**env, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    finally:
        os.killpg(head.pid, signal.SIGKILL)
        head.wait()


def test_a_question_that_ends_its_worker_costs_one_row(ray):
    run = run_on(Place("ray", 1), 5, ScriptedLLM(ended_by_one))
    queries = run.queries.set_index("query_id")
    assert queries.index[queries["answer_status"] == "error"].to_list() == ["q3"]
    assert queries.loc["q3", "status_reason"].startswith("Its worker ended 3 times")
    assert queries.drop("q3")["answer"].notna().all()


def test_a_cluster_that_does_not_answer_is_said(monkeypatch):
    ray = importlib.import_module("ray")

    def init(**options):
        raise ConnectionError("ray client connection timeout")  # what Ray raises after half a minute

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    with (
        pytest.raises(BackendError, match=r"ray://127\.0\.0\.1:9 cannot be reached \(ConnectionError\)"),
        executor(Place("ray://127.0.0.1:9"), {}),
    ):
        pass


def test_without_ray_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(InputError, match=r"pip install -r requirements-scale.txt"),
        executor(Place("ray"), {}),
    ):
        pass
    with executor(Place(), {}) as on:
        assert on is in_threads
