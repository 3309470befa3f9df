"""A run killed with SIGKILL and started again equals one never killed, and repeats no finished call.

Of the calls, at most as many are repeated as may be made at once.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from core.llm import CompletionCache
from core.run import Run
from tests.servers.chat_server import chat, chat_server

ROOT = Path(__file__).parents[3]
SCRIPT = textwrap.dedent("""
    import json, sys
    from pathlib import Path
    from core.influence.step import InfluenceStep
    from core.llm import CompletionCache
    from tests.scripted import ScriptedLLM
    from core.pipeline import RunOptions, begin, fill
    from core.run import Run
    from core.sources.dataset import read_dataset

    folder, parallel = sys.argv[1], int(sys.argv[2])
    rows = [
        {"id": f"q{i}", "question": f"What is {i}?", "passages": [f"fact {i} {j}" for j in range(4)]}
        for i in range(6)
    ]
    data = read_dataset("\\n".join(map(json.dumps, rows)).encode(), "t.jsonl")
    rule = lambda r: " ".join(r.messages[0].content.split("\\n\\n")[1:3])
    llm = ScriptedLLM(rule, delay=0.02, log=f"{folder}/calls.log")
    llm.capabilities = type(llm.capabilities)(seed=True, parallel=parallel)
    cache = CompletionCache(f"{folder}/c.db")
    step = InfluenceStep(repeats=1)
    # By the partial run that was saved, or by the cache alone.
    saved = Path(f"{folder}/run/run.json").exists() and sys.argv[3] == "saved"
    run = Run.load(f"{folder}/run") if saved else begin(data, RunOptions(), llm, step)
    run = fill(run, step, llm=llm, cache=cache, on_part=lambda r: r.save(f"{folder}/run"))
    run.save(f"{folder}/run")
""")
CALLS = 6 * (1 + 4 + 1 + 1)


def start(folder, parallel, by="cache"):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), str(parallel), by], cwd=ROOT)


def log(folder):
    path = folder / "calls.log"
    return path.read_text().split() if path.exists() else []


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    assert start(folder, 1).wait(timeout=120) == 0
    assert len(log(folder)) == CALLS
    return Run.load(folder / "run")


@pytest.mark.parametrize(
    ("moment", "parallel", "by"),
    [
        (0, 1, "cache"),
        (1, 1, "cache"),
        (6, 1, "saved"),
        (7, 1, "cache"),
        (20, 1, "saved"),
        (CALLS - 1, 1, "saved"),
        (13, 3, "cache"),
        (25, 3, "saved"),
    ],
)
def test_killed_and_started_again(tmp_path, reference, moment, parallel, by):
    process = start(tmp_path, parallel)
    while process.poll() is None and len(log(tmp_path)) < moment:
        time.sleep(0.002)
    if moment:
        time.sleep(0.01 * (moment % 3))  # also in the middle of a call or a save
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(timeout=30) == -signal.SIGKILL
    before = log(tmp_path)
    with CompletionCache(tmp_path / "c.db") as cache:
        kept = set(cache.get_many(set(before)))
    # At most the calls in the air are lost.
    assert len(kept) >= len(set(before)) - parallel

    assert start(tmp_path, parallel, by).wait(timeout=120) == 0
    asked = Counter(log(tmp_path))
    assert len(asked) == CALLS
    assert {key for key, n in asked.items() if n > 1}.isdisjoint(kept)
    result = Run.load(tmp_path / "run")
    assert result.run_id == reference.run_id
    assert result.manifest["complete"]
    for name in reference:
        expected, found = reference[name], result[name]
        if name == "queries":
            expected, found = expected.drop(columns="latency"), found.drop(columns="latency")
        pd.testing.assert_frame_equal(found, expected)


AT_ONCE = 8
REMOTE = textwrap.dedent("""
    import json, sys, threading, time
    from core.influence.step import InfluenceStep
    from core.llm import CompletionCache, open_llm
    from core.pipeline import RunOptions, begin, fill
    from core.sources.dataset import read_dataset

    class Slow(CompletionCache):  # a disk that is slower than the server
        one = threading.Lock()
        def put(self, *given):
            with self.one:
                time.sleep(0.02)
                super().put(*given)

    address, folder, parallel = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rows = [
        {"id": f"q{i}", "question": f"What is {i}?", "passages": [f"fact {i} {j}" for j in range(10)]}
        for i in range(5)
    ]
    data = read_dataset("\\n".join(map(json.dumps, rows)).encode(), "t.jsonl")
    llm = open_llm("openai", "m", base_url=address + "/v1", parallel=parallel)
    step = InfluenceStep(repeats=0)
    run = fill(begin(data, RunOptions(), llm, step), step, llm=llm, cache=Slow(f"{folder}/c.db"))
    assert run.manifest["complete"]
""")


def test_a_killed_run_repeats_no_more_calls_than_it_makes_at_once(tmp_path):
    with chat_server(chat("Paris", usage={"prompt_tokens": 9, "completion_tokens": 1})) as server:
        command = [sys.executable, "-c", REMOTE, server.address, str(tmp_path), str(AT_ONCE)]

        def asked():
            # A request that the kill cut off was not asked.
            whole = (e.body for e in server.requests("/chat/completions") if e.body.endswith(b"}"))
            return Counter(str(json.loads(body)["messages"]) for body in whole)

        process = subprocess.Popen(command, cwd=ROOT)
        while process.poll() is None and asked().total() < 30:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(timeout=30) == -signal.SIGKILL
        n_before = asked().total()
        assert subprocess.run(command, cwd=ROOT, timeout=120, check=False).returncode == 0
        again = asked()
    assert 30 <= n_before < len(again) == 5 * (1 + 10 + 1)
    assert again.total() - len(again) <= AT_ONCE
