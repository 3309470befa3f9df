"""Real tools write their files, and these are imported with everything where it belongs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.sources.formats import import_file
from core.sources.formats.records import records_of
from tests.core.sources.formats.peers.facts import ANSWERS, CORRECT, PASSAGES, QUESTIONS

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).parents[1] / "core/sources/formats/peers"
INSTALLED = Path(sys.prefix) / "peers"  # see requirements-peers.txt


def written_by(script, folder, *arguments):
    """Run a script that writes into a folder; return the folder."""
    environment = {**os.environ, "PYTHONPATH": str(INSTALLED), "HOME": str(folder)}
    command = [sys.executable, str(SCRIPTS / script), *arguments, str(folder)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2_000:]
    return folder


@pytest.fixture(scope="module")
def ragas_files(tmp_path_factory):
    return peer("ragas", tmp_path_factory)


@pytest.fixture(scope="module")
def deepeval_files(tmp_path_factory):
    return peer("deepeval", tmp_path_factory)


def peer(name, tmp_path_factory):
    if not (INSTALLED / name).is_dir():
        pytest.skip(
            f"{name} is not installed: pip install --no-deps --target {INSTALLED} -r requirements-peers.txt"
        )
    return written_by(f"write_{name}.py", tmp_path_factory.mktemp(name))


def imported(path, name):
    """Import a file, detected as of this format, with nothing left out and no warning."""
    result = import_file(path)
    assert result.run.manifest["dataset"]["format"] == name
    assert (result.report.n_issues, result.report.n_rejected) == (0, 0)
    return sorted(records_of(result.run), key=lambda record: QUESTIONS.index(record.question))


def texts(records):
    """Return question, answer, correct answer and passages of records."""
    return [(r.question, r.answer, *r.references, [p.text for p in r.passages]) for r in records]


FACTS = list(zip(QUESTIONS, ANSWERS, CORRECT, PASSAGES, strict=True))


@pytest.mark.parametrize(
    "file", ["dataset.jsonl", "dataset.csv", "hub.jsonl", "scores.csv", "scores.json", "scores.jsonl"]
)
def test_ragas(ragas_files, file):
    records = imported(ragas_files / file, "ragas")
    assert texts(records) == FACTS
    assert [[p.is_gold for p in r.passages] for r in records] == [[True, False]] * 2
    assert [r.samples for r in records] == list(zip(ANSWERS, CORRECT, strict=True))
    scores = [r.reported.get(("exact_match", "")) for r in records]
    assert scores == ([0.0, 1.0] if file.startswith("scores") else [None, None])


@pytest.mark.parametrize(
    "file",
    ["goldens.json", "goldens.csv", "goldens.jsonl", "result.json", ".deepeval/.latest_test_run.json"],
)
def test_deepeval(deepeval_files, file):
    records = imported(deepeval_files / file, "deepeval")
    assert texts(records) == FACTS
    assert [[p.is_gold for p in r.passages] for r in records] == [[True, False]] * 2
    scores = [r.reported.get(("Length", "a ruler")) for r in records]
    assert scores == ([None, None] if file.startswith("goldens") else [0.25, 1.0])


@pytest.mark.parametrize("framework", ["langchain", "llamaindex", "haystack"])
def test_spans(framework, tmp_path):
    pytest.importorskip(f"openinference.instrumentation.{framework.replace('index', '_index')}")
    written_by("write_spans.py", tmp_path, framework)
    found = [imported(tmp_path / f"{framework}-{form}.json", "openinference") for form in ("console", "otlp")]
    for records in found:
        assert texts(records) == [(*fact[:2], fact[3]) for fact in FACTS]
        scores = [None, None] if framework == "langchain" else [0.5, 0.25]  # its retrievers give none
        assert [[p.score for p in r.passages] for r in records] == [scores] * 2
        assert all(r.latency and r.latency > 0 for r in records)
    assert [r.record_id for r in found[0]] == [r.record_id for r in found[1]]
