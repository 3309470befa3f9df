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
from tests.core.attribution.attribution_runs import attribution_run

ROOT = Path(__file__).parents[3]
SIZES = (3, 6, 2)
CLAIMS = ("Raymond Unwin built it", "It was built in 1901")
SCRIPT = textwrap.dedent("""
    import sys, time
    from pathlib import Path
    from core.attribution import step as module
    from core.attribution.step import AttributionStep
    from core.llm import CompletionCache
    from core.pipeline.steps import fill
    from core.run import Run
    from tests.core.attribution.attribution_runs import Embedder, Reader, written

    folder, by = sys.argv[1:]
    module.shared_embedder = Embedder
    log = Path(f"{folder}/calls.log")

    class Slow(Reader):
        def score(self, messages, answers):
            time.sleep(0.03)
            found = super().score(messages, answers)
            with log.open("a", buffering=1) as file:  # whole lines, should it be killed meanwhile
                for turns, text in zip(messages, answers):
                    file.write(f"{len(self.at_once)}:" + repr((turns, text)).replace(" ", "") + "\\n")
            return found

    def game(shown, text=""):
        return 3 * (0 in shown or 1 in shown) + 1 * (2 in shown)

    llm = Slow(game) if by == "logprob" else written(game, delay=0.01, log=log)
    saved = Path(f"{folder}/run/run.json").exists()
    run = Run.load(f"{folder}/run" if saved else f"{folder}/base")
    step = AttributionStep(masks=32, place=True, shapley=True)
    with CompletionCache(f"{folder}/c.db") as cache:
        run = fill(run, step, llm=llm, cache=cache, on_part=lambda part: part.save(f"{folder}/run"))
    run.save(f"{folder}/run")
""")


def start(folder, by):
    if not (folder / "base").exists():
        attribution_run(*SIZES, claims=CLAIMS).save(folder / "base")
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), by], cwd=ROOT)


def log(folder):
    path = folder / "calls.log"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize(("by", "moments"), [("rouge", (60,)), ("logprob", (60,))])
def test_killed_and_started_again(tmp_path, by, moments):
    whole_folder = tmp_path / "whole"
    whole_folder.mkdir()
    assert start(whole_folder, by).wait(timeout=120) == 0
    whole, calls = Run.load(whole_folder / "run"), log(whole_folder)
    assert len(calls) == len({*calls}) > 130
    assert len(whole["ablated_claims"]) > 0 if by == "logprob" else whole["ablations"]["again"].notna().any()
    for moment in moments:
        folder = tmp_path / str(moment)
        folder.mkdir()
        process = start(folder, by)
        while process.poll() is None and len(log(folder)) < moment:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(timeout=30) == -signal.SIGKILL
        before = log(folder)
        assert moment <= len(before) < len(calls)
        if by == "rouge":
            with CompletionCache(folder / "c.db") as cache:
                kept = {*cache.get_many({*before})}
            assert len(kept) >= len(before) - 1  # a call is logged where it begins
        else:  # the last batch had ended, but may not be in the cache
            batch = before[-1].split(":")[0] + ":"
            kept = {one.split(":", 1)[1] for one in before if not one.startswith(batch)}
            assert kept

        assert start(folder, by).wait(timeout=120) == 0
        asked = Counter(one.split(":", 1)[-1] for one in log(folder))
        assert {*asked} == {one.split(":", 1)[-1] for one in calls}
        assert {key for key, n in asked.items() if n > 1}.isdisjoint(kept)
        result = Run.load(folder / "run")
        facts = result.manifest["steps"]["attribution"]
        assert facts["complete"] and (facts["n_done"], facts["n_left"]) == (len(SIZES), 0)
        for name in whole:
            pd.testing.assert_frame_equal(result[name], whole[name])
