"""A run on a cluster as tests start and kill it: its questions, its model, and the driver in a process of its own."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from core.influence.step import InfluenceStep
from core.llm import CompletionCache, request_key
from core.pipeline import RunOptions, begin, fill
from core.pipeline.cluster import Place, executor
from core.run import Run
from core.sources.dataset import read_dataset
from tests.scripted import ScriptedLLM

STEP = InfluenceStep(repeats=1)


def questions(n, k=3):
    rows = [
        {"id": f"q{i}", "question": f"What is {i}?", "passages": [f"fact {i} {j}" for j in range(1, k + 1)]}
        for i in range(n)
    ]
    return read_dataset("\n".join(map(json.dumps, rows)).encode(), "t.jsonl")


def first_passage(request):
    """Answer with the first passage that is there."""
    found = [line for line in request.messages[0].content.split("\n") if line.startswith("[")]
    return found[0].split("] ")[1] if found else "closed"


def but_one(request):
    """Fail on one question, whatever is left out."""
    if "What is 3?" in request.messages[0].content:
        raise ValueError("no such thing")
    return first_passage(request)


def ended_by_one(request):
    """End the process on one question, as where it needs too much memory."""
    if "What is 3?" in request.messages[0].content:
        os._exit(1)
    return first_passage(request)


class LoggedLLM(ScriptedLLM):
    """Writes down which call starts, when and in which process: it survives every kill."""

    def _answer(self, request):
        with open(self.calls_log, "a") as file:
            file.write(f"{request_key(self, request)} {time.time()} {os.getpid()}\n")
        return super()._answer(request)


def model(folder, rule=first_passage, delay=0.02):
    llm = LoggedLLM(rule, delay=delay)
    llm.calls_log = str(Path(folder) / "calls")
    return llm


def calls(folder):
    """Key, time and process of each call that was begun."""
    path = Path(folder) / "calls"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(key, float(at), int(pid)) for key, at, pid in map(str.split, lines)]


def run_on(place, n, llm, cache=None, **more):
    run = begin(questions(n), RunOptions(), llm, STEP)
    with executor(place, {STEP.name: llm}) as on:
        return fill(run, STEP, llm=llm, cache=cache, on=on, **more)


def main(folder, n, workers):
    """Begin the run in a folder or go on with it, by its cache or by the partial run that was saved."""
    llm, out = model(folder), Path(folder) / "run"
    with (
        CompletionCache(Path(folder) / "c.db") as cache,
        executor(Place("ray", workers), {STEP.name: llm}) as on,
    ):
        run = Run.load(out) if (out / "run.json").exists() else begin(questions(n), RunOptions(), llm, STEP)
        fill(run, STEP, llm=llm, cache=cache, on=on, on_part=lambda part: part.save(out)).save(out)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
