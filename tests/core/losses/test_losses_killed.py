"""A step killed with SIGKILL and started again equals one never killed, and asks no finished call again."""

from __future__ import annotations

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
from tests.core.losses.losses_runs import planted, reading, run_of

ROOT = Path(__file__).parents[3]
N = 11
SCRIPT = textwrap.dedent("""
    import sys
    from pathlib import Path
    from core.llm import CompletionCache
    from core.llm.types import Capabilities
    from core.losses.step import LossesStep
    from core.pipeline.steps import fill
    from core.run import Run
    from tests.core.losses.losses_runs import planted, reading
    from tests.scripted import ScriptedLLM

    folder, parallel, by = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    _, readers, _ = planted({n})
    llm = ScriptedLLM(reading(readers)._rule, delay=0.02, log=f"{{folder}}/calls.log")
    llm.capabilities = Capabilities(seed=True, parallel=parallel, prefill=True)
    saved = Path(f"{{folder}}/run/run.json").exists() and by == "saved"
    run = Run.load(f"{{folder}}/run" if saved else f"{{folder}}/base")
    step = LossesStep(alone=True)
    with CompletionCache(f"{{folder}}/c.db") as cache:
        run = fill(run, step, llm=llm, cache=cache, on_part=lambda part: part.save(f"{{folder}}/run"))
    run.save(f"{{folder}}/run")
""").format(n=N)


def start(folder, parallel, by="cache"):
    if not (folder / "base").exists():
        asked, readers, _ = planted(N)
        for one in asked[::3]:  # some without marks, so that passages are asked about alone
            one.gold, one.missing, one.evidence, one.marks, one.n_gold = (), {}, {}, False, None
        run_of(asked, reading(readers)).save(folder / "base")
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), str(parallel), by], cwd=ROOT)


def log(folder):
    path = folder / "calls.log"
    return path.read_text().split() if path.exists() else []


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    assert start(folder, 1).wait(timeout=120) == 0
    return Run.load(folder / "run"), log(folder)


@pytest.mark.parametrize(("moment", "parallel", "by"), [(9, 1, "cache"), (60, 1, "saved"), (25, 3, "saved")])
def test_killed_and_started_again(tmp_path, reference, moment, parallel, by):
    whole, calls = reference
    assert len(calls) == len({*calls}) > 60 and {*whole["arms"]["arm"]} > {"alone", "placebo", "gold_added"}
    process = start(tmp_path, parallel)
    while process.poll() is None and len(log(tmp_path)) < moment:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(timeout=30) == -signal.SIGKILL
    before = log(tmp_path)
    assert moment <= len(before) < len(calls)
    with CompletionCache(tmp_path / "c.db") as cache:
        kept = {*cache.get_many({*before})}
    assert len(kept) >= len({*before}) - parallel

    assert start(tmp_path, parallel, by).wait(timeout=120) == 0
    asked = Counter(log(tmp_path))
    assert {*asked} == {*calls}
    assert {key for key, n in asked.items() if n > 1}.isdisjoint(kept)
    result = Run.load(tmp_path / "run")
    facts = result.manifest["steps"]["losses"]
    assert facts["complete"] and (facts["n_done"], facts["n_left"]) == (N, 0)
    for name in whole:
        pd.testing.assert_frame_equal(result[name], whole[name])
