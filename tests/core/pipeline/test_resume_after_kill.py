"""A run that asks a server, killed with SIGKILL and started again: calls in the air alone are repeated."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.servers.chat_server import chat, chat_server

ROOT = Path(__file__).parents[3]
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


@pytest.mark.slow
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
