"""What is killed with SIGKILL at any moment and begun again ends as if it had not been killed.

Every step, and everything else that writes files, is done in a fork, which is killed at a random moment: of the
time that it takes, between two calls, or in the middle of a write. Then all files can be read; done again to its
end, no call or write that had ended is begun again, and all tables equal those of the work that was not killed.
``LEADLINE_KILLS=200`` kills more often, ``LEADLINE_SEED=1`` at other moments. Without pytest:
``python -m tests.slow.test_kills``, which says of each kill how much had ended before, and how much began again.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import core.attribution.step
import core.claims.verifiers.features
import core.confidence.step
from core.attribution.step import AttributionStep
from core.claims.step import ClaimsStep
from core.cli.output import save_run
from core.confidence.step import ConfidenceStep
from core.conformal import CalibrationCase, CalibrationStore, ConformalRAG, Provenance
from core.conformal.step import ConformalStep
from core.influence.step import InfluenceStep
from core.likelihood.step import LikelihoodStep
from core.llm import CompletionCache
from core.llm.cache import request_key, row_of
from core.llm.types import Completion
from core.losses.step import LossesStep
from core.pipeline import RunOptions, begin, fill
from core.pipeline.asking import Asker
from core.reviews import Review, read_all, write_all
from core.run import Run, holds_run
from core.sources.dataset import read_dataset
from core.sources.formats import import_file
from core.uncertainty.step import UncertaintyStep
from core.validation.step import ValidationStep
from core.whatif import versions
from core.whatif.asking import ask
from core.whatif.change import Change
from core.whatif.every import RunChange, arm_of, run_of_arm, step_for
from tests.core.claims.claim_runs import WordByWord
from tests.scripted import ScriptedLLM

ROOT = Path(__file__).parents[2]
CALL = 0.002  # seconds
N, K = 4, 3  # questions, and passages of each
WRITES = 6
ENDED = " ended"

# --- models


def said(request):
    """The verdicts or claims that a schema asks for, or an answer: all of it follows from the request."""
    text = request.messages[-1].content
    drawn = zlib.crc32(f"{request.seed} {text}".encode())
    if request.schema is None:
        return f"Unwin built bridge {drawn % 3}. It opened in {1900 + drawn % 7}."
    if "claims" in (asked := json.loads(request.schema)["properties"]):
        sentences = re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE)
        return json.dumps({"claims": [{"sentence": int(i), "claim": one} for i, one in sentences]})
    return json.dumps({name: of["enum"][drawn % len(of["enum"])] for name, of in asked.items()})


class Noted(ScriptedLLM):
    """Notes the calls that begin and, once their answers are handed back, that they have ended."""

    def __init__(self, folder, parallel=1):
        super().__init__(said, delay=CALL, log=folder / "log")
        self.folder = folder
        self.capabilities = replace(self.capabilities, json_schema=True, parallel=parallel)

    def generate(self, requests, on_done=None, cancelled=None):
        def ended(place, completion):
            on_done(place, completion)
            note(self.folder, request_key(self, requests[place]) + ENDED)

        return super().generate(requests, ended, cancelled)


class Reading(Noted):
    """Scores given texts; a call is handed back by when the next one begins."""

    def __init__(self, folder):
        super().__init__(folder)
        self.capabilities = replace(self.capabilities, answer_logprob=True)
        self.before = []

    def score(self, messages, answers):
        pairs = [repr(pair).encode() for pair in zip(messages, answers, strict=True)]
        keys = [sha256(pair).hexdigest() for pair in pairs]
        note(self.folder, *(key + ENDED for key in self.before), *keys)
        self.before = keys
        time.sleep(CALL * len(keys))
        return [(-1.0, -float(zlib.crc32(pair) % 97)) for pair in pairs]


class Vectors(WordByWord):
    """Embeds every text at random, the same one alike."""

    def embed(self, texts):
        drawn = [np.random.default_rng(zlib.crc32(text.encode())).normal(size=8) for text in texts]
        return np.array([one / np.linalg.norm(one) for one in drawn], dtype=np.float32)


# --- the log: one line for what begins, one for what has ended


def note(folder, *lines):
    with (folder / "log").open("a") as file:  # at once, should it be killed meanwhile
        file.write("".join(f"{line}\n" for line in lines))


def noted(folder):
    path = folder / "log"
    return path.read_text().splitlines() if path.exists() else []


def end_line(folder):
    """Take away half a line, which a kill in the middle of a write has left."""
    path = folder / "log"
    if path.exists():
        path.write_text("".join(f"{line}\n" for line in path.read_text().split("\n")[:-1]))


def begun(lines):
    return [line for line in lines if not line.endswith(ENDED)]


def each(folder, names, has, write):
    """Write, one after another, what is not there yet."""
    for name in names:
        if not has(name):
            note(folder, name)
            write(name)
            note(folder, name + ENDED)


# --- scenarios


@dataclass(frozen=True)
class Scenario:
    """``work`` goes on in a folder that ``prepare`` has filled; ``read`` returns what came of it."""

    work: Callable[[Path], None]
    read: Callable[[Path], Mapping[str, Any]]
    prepare: Callable[[Path], None] = lambda folder: None


SEEN = Provenance("length", "M", "short", "bm25")
NAMES = [str(i) for i in range(WRITES)]


def answered():
    """A run of answers with references and labels."""
    ids = [f"q{i}" for i in range(1, N + 1)]
    queries = {
        "query_id": ids, "question": [f"Who built bridge {i}?" for i in range(1, N + 1)],
        "answer": [f"Unwin built bridge {i} [1]. It opened in 1901." for i in range(1, N + 1)],
        "answer_status": "answered", "reference_answers": [["Unwin"]] * N, "correct": [True, False] * (N // 2),
    }  # fmt: skip
    passages = [
        {"query_id": one, "passage_id": f"p{j}", "text": f"Bridge {i}, note {j}: Unwin built it in 190{j}.",
         "retrieval_rank": float(j), "slot": j, "is_gold": j == 2}
        for i, one in enumerate(ids, start=1) for j in range(1, K + 1)
    ]  # fmt: skip
    facts = {"source": "live", "run_id": "r", "prompt": {"style": "short", "max_tokens": 64}}
    return Run.create(facts, queries=pd.DataFrame(queries), passages=pd.DataFrame(passages))


def filled(folder, step, llm=None, run=None):
    """Fill the run saved last, with the cache of the folder, and save it."""
    if holds_run(folder / "run"):
        run = Run.load(folder / "run")
    run = run or answered()
    with CompletionCache(folder / "c.db") as cache:
        done = fill(run, step, llm=llm, cache=cache, on_part=lambda part: part.save(folder / "run"))
    done.save(folder / "run")
    return done


def tables(folder, name="run"):
    """All tables of a saved run, and what its steps say but for their time and the calls not cached."""
    run = Run.load(folder / name)
    assert len([*(folder / name).iterdir()]) == 1 + sum(len(run[one]) > 0 for one in run)  # nothing is left
    facts = {name: dict(said) for name, said in run.manifest.get("steps", {}).items()}
    for one in facts.values():
        del one["seconds"], one["n_calls"]
        assert one["complete"]
    return {**run.tables, "facts": facts, "run_id": run.run_id}


def of_step(step, model=lambda folder: None):
    return Scenario(lambda folder: filled(folder, step, model(folder)), tables)


def influence(folder):
    facts = [[f"Fact {i} {j}." for j in range(K)] for i in range(N)]
    rows = [{"id": f"q{i}", "question": f"What is {i}?", "passages": facts[i]} for i in range(N)]
    data = read_dataset("\n".join(map(json.dumps, rows)).encode(), "t.jsonl")
    llm, step = Noted(folder, parallel=3), InfluenceStep(repeats=1)
    filled(folder, step, llm, begin(data, RunOptions(), llm, step))


def validation(folder):
    filled(folder, ValidationStep(metrics=str(folder / "metrics.db")))


def counted(folder):
    with closing(sqlite3.connect(folder / "metrics.db")) as db:
        rows = pd.read_sql("SELECT * FROM observations ORDER BY answer_key", db)
    return {**tables(folder), "metrics": rows.drop(columns="at")}  # when an answer was counted


def fixes(folder):
    """The same change for all questions, as a run of its own; then another for each of the first two."""
    llm = Noted(folder)
    done = filled(folder, step := step_for(RunChange(order="reversed"), answered()), llm)
    run_of_arm(done, arm_of(step)).save(folder / "changed")
    with CompletionCache(folder / "c.db") as cache:
        for query_id in done.queries["query_id"][len(versions.read(folder, "r")) : 2]:
            one = ask(done, query_id, Change(keep=("p1", "p2")), Asker(llm, cache), repeats=1)
            versions.add(folder, "r", [one])


def fixed(folder):
    listed = [one.to_dict() for one in versions.read(folder, "r")]
    return {"run": tables(folder), "changed": tables(folder, "changed"), "versions": listed}


def calibration(folder):
    """A store filled by asking, then a run calibrated on half of its own answers."""
    with (
        CompletionCache(folder / "c.db") as cache,
        ConformalRAG(Noted(folder), folder / "store.db", n_samples=3, cache=cache) as rag,
    ):
        rag.calibrate([f"Q{i}?" for i in range(12)], ["Text."] * 12, ["Unwin"] * 12)
    filled(folder, ConformalStep())


def scores(folder):
    with CalibrationStore(folder / "store.db") as store:
        # Without the time at which a row was written.
        return {"rows": store.frame().drop(columns="timestamp"), "method": store.method}


def saves(folder):
    """Runs saved one over another."""
    last = -1
    if holds_run(folder / "run"):
        found = Run.load(folder / "run")
        assert {*found.queries["question"]} == {found.name}
        last = int(found.name)

    def save(name):
        queries = {"query_id": [str(i) for i in range(2000)], "question": name}
        Run.create({"source": "live", "name": name}, queries=pd.DataFrame(queries)).save(folder / "run")

    each(folder, NAMES, lambda name: int(name) <= last, save)


def stores(folder):
    """Scores in a calibration store after answers in the cache, each time all of them or none, then excluded."""
    with CalibrationStore(folder / "store.db") as store, CompletionCache(folder / "c.db") as cache:

        def write(name):
            answer = Completion(name, "stop", 1, 1, 0.5)
            cache.put_rows([row_of(f"{name} {i}", answer, "m") for i in range(5)])
            cases = [CalibrationCase(f"{name} {i}", "C", "P", "T", 0.5, True) for i in range(5)]
            store.add(cases, SEEN, method=name)
            store.exclude(store.usable()["id"], "why")

        def has(name):
            n = len(cache.get_many(f"{name} {i}" for i in range(5)))
            there, usable = (
                sum(one.startswith(f"{name} ") for one in rows["question"])
                for rows in (store.frame(), store.usable())
            )
            assert (n, there, usable) in [(0, 0, 0), (5, 0, 0), (5, 5, 5), (5, 5, 0)]
            return (there, usable) == (5, 0)

        each(folder, NAMES, has, write)


def reviews_before(folder):
    """A file of an earlier version, which the first review takes over."""
    (folder / "reviews").mkdir()
    earlier = {"run_id": "r", "reviews": {"q": {"status": "flagged", "note": "earlier"}}}
    (folder / "reviews" / "r.json").write_text(json.dumps(earlier))


def reviews(folder):
    def write(name):
        for person in ("Ada", "Ben"):
            listed = {f"{name} {i}": Review("flagged", person, correct=i == 0) for i in range(5)}
            write_all(folder, "r", listed, person=person)

    def has(name):
        found = read_all(folder, "r")
        there = [sum(f"{name} {i}" in found.get(one, {}) for i in range(5)) for one in ("Ada", "Ben")]
        assert there in ([0, 0], [5, 0], [5, 5])
        return there == [5, 5]

    each(folder, NAMES, has, write)


def imports(folder):
    files = ("ragas-dataset.csv", "langsmith-runs.jsonl", "deepeval-result.json", "samples.parquet")

    def write(name):
        run = import_file(ROOT / "tests/data/files" / name, name).run
        save_run(run, str(folder / Path(name).stem), overwrite=False)

    each(folder, files, lambda name: holds_run(folder / Path(name).stem), write)


def imported(folder):
    return {path.parent.name: tables(folder, path.parent.name) for path in sorted(folder.glob("*/run.json"))}


SCENARIOS = {
    "influence": Scenario(influence, tables),
    "likelihood": of_step(LikelihoodStep(), Reading),
    "claims": of_step(ClaimsStep(verifier="judge"), Noted),
    "uncertainty": of_step(UncertaintyStep(samples=3, context_questions=2, entailment="judge"), Noted),
    "conformal": Scenario(calibration, lambda folder: {**tables(folder), **scores(folder)}),
    "confidence": of_step(ConfidenceStep(), Noted),
    "validation": Scenario(validation, counted),
    "fixes": Scenario(fixes, fixed),
    "attribution": of_step(AttributionStep(masks=32, place=True, shapley=True), Noted),
    "attribution, read": of_step(AttributionStep(masks=32, place=True), Reading),
    "losses": of_step(LossesStep(alone=True), lambda folder: Noted(folder, parallel=3)),
    "saves": Scenario(saves, tables),
    "stores": Scenario(stores, scores),
    "reviews": Scenario(reviews, lambda folder: {"reviews": read_all(folder, "r")}, reviews_before),
    "imports": Scenario(imports, imported),
}

# --- killing


@dataclass(frozen=True)
class Whole:
    """The work of a scenario that was not killed."""

    seconds: float
    lines: int
    begun: set[str]
    read: Mapping[str, Any]

    @classmethod
    def of(cls, scenario, start):
        start.mkdir(parents=True)
        scenario.prepare(start)
        folder = shutil.copytree(start, start.with_name("whole"))
        since = time.monotonic()
        scenario.work(folder)
        seconds, lines = time.monotonic() - since, noted(folder)
        return cls(seconds, len(lines), {*begun(lines)}, scenario.read(folder))


def forked(work, *given):
    """Start work in a fork, a process group of its own."""
    child = os.fork()
    if child:
        os.setpgid(child, child)
        return child
    status = 1
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # which Python ignores
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        work(*given)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def is_at_work(child):
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def was_killed(child):
    """Wait for a fork; ChildProcessError where it has failed."""
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL, -signal.SIGXFSZ):
        raise ChildProcessError("the work, or what must hold of it, has failed; see above")
    return status != 0


def check_files(folder):
    """Read everything that is in the folder."""
    for path in folder.rglob("*"):
        if path.suffix == ".db":
            with closing(sqlite3.connect(path)) as db:
                assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], path
        if path.suffix == ".json":
            json.loads(path.read_bytes())
        if path.suffix == ".parquet":
            pd.read_parquet(path)
        if path.name == "run.json":
            Run.load(path.parent)


def check_same(found, expected):
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for name in expected:
            check_same(found[name], expected[name])
    else:
        assert found == expected


def kill(scenario, start, whole, draw):
    """Kill the work on a copy of a folder: at a moment, at a line of its log, or in the next write to a file.

    Returns the copy, and when it was.
    """
    while True:
        folder = shutil.copytree(start, start.with_name("killed"))
        child = forked(scenario.work, folder)
        if draw.random() < 0.4:
            n = draw.randint(0, whole.lines)
            when = f"at line {n}"
            while len(noted(folder)) < n and is_at_work(child):
                time.sleep(0.0005)
        else:
            moment = draw.random() * whole.seconds
            when = f"after {moment:.4f} s"
            time.sleep(moment)
        if draw.random() < 0.5 and is_at_work(child):
            most = draw.randint(0, 5000)
            when += f", where a file gets longer than {most} bytes"
            resource.prlimit(child, resource.RLIMIT_FSIZE, (most, most))  # the kernel ends it in that write
        else:
            os.killpg(child, signal.SIGKILL)
        if was_killed(child):  # else it had ended before
            end_line(folder)
            return folder, when
        shutil.rmtree(folder)


def go_on(scenario, folder, whole):
    """Do the rest of the work after a kill, and check what must hold."""
    check_files(folder)
    before = noted(folder)
    scenario.work(folder)
    after = noted(folder)[len(before) :]
    for lines in (before, after):
        assert max(Counter(begun(lines)).values(), default=1) == 1
    again = {line + ENDED for line in begun(after)}.intersection(before)
    assert not again, f"{len(again)} calls or writes that had ended began again"
    assert {*begun(before), *begun(after)} == whole.begun
    check_same(scenario.read(folder), whole.read)


def main(kills, seed):
    """Kill each scenario in turn; the first that does not hold ends it."""
    for module in (core.attribution.step, core.claims.verifiers.features, core.confidence.step):
        module.shared_embedder = Vectors
    said = {}
    with tempfile.TemporaryDirectory(prefix="kills-") as made:
        for name in ("claims", "conformal", "validation"):  # so that nothing is left to import
            SCENARIOS[name].work(Path(tempfile.mkdtemp(dir=made)))
        wholes = {name: Whole.of(one, Path(made, name, "start")) for name, one in SCENARIOS.items()}
        for number in range(kills):
            name = [*SCENARIOS][number % len(SCENARIOS)]
            draw = random.Random(f"{seed} {number}")
            folder, when = kill(SCENARIOS[name], Path(made, name, "start"), wholes[name], draw)
            n = len(noted(folder)) - len(begun(noted(folder)))
            if draw.random() < 0.5 and (folder / "c.db").exists():  # by the cache alone
                shutil.rmtree(folder / "run", ignore_errors=True)
            try:
                was_killed(forked(go_on, SCENARIOS[name], folder, wholes[name]))
            except ChildProcessError as error:
                where = f"Kill {number + 1} of LEADLINE_SEED={seed}, {name}, {when}"
                raise SystemExit(f"{where}: {error}") from error
            n_again = len(begun(noted(folder))) - len(wholes[name].begun)
            said.setdefault(name, []).append(f"{n}+{n_again}")
            shutil.rmtree(folder)
    for name, kept in said.items():
        sys.stdout.write(f"{name:18}{wholes[name].seconds:6.2f} s  {' '.join(kept)}\n")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_what_is_killed_at_any_moment_goes_on():
    command = [sys.executable, "-m", "tests.slow.test_kills"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    main(int(os.environ.get("LEADLINE_KILLS", "30")), int(os.environ.get("LEADLINE_SEED", "0")))
