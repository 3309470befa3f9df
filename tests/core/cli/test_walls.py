"""Odd files, folders, names and a second writer: exit status 2, one sentence, nothing spent."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import core.pipeline.steps
from core.cli import main
from core.run import Run, sole_writer
from tests.core.cli.test_cli import CSV, ROOT
from tests.scripted import ScriptedLLM

LONG = "x" * 300


def command(*arguments):
    return main([str(a) for a in arguments])


@pytest.fixture
def saved(tmp_path):
    queries = pd.DataFrame({"query_id": ["a"], "question": ["Who?"], "answer": ["Ann"]})
    return Run.create({"source": "live", "name": "Saved"}, queries=queries).save(tmp_path / "saved")


@pytest.fixture
def odd(tmp_path, saved):
    """Return paths that are no ordinary files, by kind."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    nested = tmp_path / "nested"
    nested.mkdir()
    (nested / "run.json").write_text("[" * 200_000)
    piped = tmp_path / "piped"
    piped.mkdir()
    os.mkfifo(piped / "run.json")
    return {
        "pipe": tmp_path / "pipe",
        "device": "/dev/zero",
        "long": tmp_path / LONG,
        "loop": tmp_path / "loop",
        "nul": f"{tmp_path}/a\0b",
        "nested": nested,
        "piped": piped,
        "empty folder": tmp_path,
    }


@pytest.mark.parametrize("kind", ["pipe", "device", "long", "loop", "nul", "nested", "piped", "empty folder"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("import", "ODD", "--out", "NEW"),
        ("analyze", "ODD", "--out", "NEW"),
        ("plan", "ODD"),
        ("analyze", "ODD", "--out", "NEW", "--steps", "claims"),
        ("summary", "ODD"),
        ("export", "ODD", "--out", "NEW"),
        ("analyze", "FILE", "--corpus", "ODD", "--out", "NEW"),
    ],
    ids=lambda a: "-".join(a[:1] + a[-1:]),
)
def test_what_is_no_file_or_run_is_one_sentence(kind, arguments, odd, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(core.pipeline.steps, "open_llm", lambda *_, **__: ScriptedLLM(lambda _: "x"))
    (tmp_path / "questions.jsonl").write_text('{"question": "Who?"}')
    names = {"ODD": odd[kind], "NEW": tmp_path / "new", "FILE": tmp_path / "questions.jsonl"}
    assert command(*(names.get(a, a) for a in arguments)) == 2
    error = capsys.readouterr().err
    assert error.startswith("Error: ") and error.count("\n") == 1 and "LEADLINE_DEBUG" not in error
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--out", "ODD"),
        ("trend", "ODD"),
        ("check", "SAVED", "--junit", "ODD"),
        ("export", "SAVED", "--out", "ODD"),
        ("validate", "--metrics", "ODD"),
        ("calibrate", "SAVED", "--store", "ODD"),
        ("simulate", "--out", "NEW", "--name", "ODD"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(("odd", "what"), [("a\0b", "a NUL character"), ("a\ud800", "half a surrogate pair")])
def test_text_that_can_be_no_path_is_one_sentence(arguments, odd, what, saved, tmp_path, capsys):
    names = {"ODD": f"{tmp_path}/{odd}", "SAVED": saved, "NEW": tmp_path / "new"}
    assert command(*(names.get(a, a) for a in arguments)) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"Error: Argument {1 + arguments.index('ODD')} holds {what}: ")
    assert error.count("\n") == 1 and not (tmp_path / "new").exists()


@pytest.mark.parametrize("out", ["LONG", "/dev/null/x", "/proc/x"])
@pytest.mark.parametrize("what", ["export", "import", "simulate", "analyze"])
def test_where_nothing_can_be_written_is_one_sentence(what, out, saved, tmp_path, capsys, monkeypatch):
    model = ScriptedLLM(lambda _: "x")
    monkeypatch.setattr(core.pipeline.steps, "open_llm", lambda *_, **__: model)
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "f.csv").write_text(CSV)
    (tmp_path / "q.jsonl").write_text('{"question": "Who?", "passages": ["a", "b"]}')
    source = {"export": [saved], "import": [tmp_path / "f.csv"], "analyze": [tmp_path / "q.jsonl"]}.get(
        what, []
    )
    target = tmp_path / LONG if out == "LONG" else out
    assert command(what, *source, "--out", target) == 2
    *_, error = capsys.readouterr().err.splitlines()
    assert error.startswith("Error: ") and "LEADLINE_DEBUG" not in error
    assert model.calls == 0


def test_a_folder_nobody_may_read_is_one_sentence(saved, tmp_path, capsys):
    code = (
        "import os, sys\n"
        "from core.cli import main\n"
        "import core.report.exports, core.sources.formats, pandas\n"
        "try: main(['summary', sys.argv[1]])\n"
        "except Exception: pass\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        "for what in ('summary', 'import'):\n"
        "    print(main([what, sys.argv[1], *(['--out', sys.argv[2]] if what == 'import' else [])]))\n"
    )
    saved.chmod(0o000)
    tmp_path.chmod(0o755)
    try:
        found = subprocess.run(
            [sys.executable, "-c", code, str(saved), str(tmp_path / "new")],
            capture_output=True, text=True, cwd=ROOT,
        )  # fmt: skip
    finally:
        saved.chmod(0o700)
    assert found.stdout.split()[-2:] == ["2", "2"], found.stdout + found.stderr
    assert "Permission denied" in found.stderr and "Traceback" not in found.stderr


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_full_disk_during_export_leaves_nothing_behind(overwrite, tmp_path):
    code = (
        "import resource, sys\n"
        "from core.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    assert command("simulate", "--out", tmp_path / "run") == 0
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / ("n" * 240 + ".csv")
    if overwrite:
        target.write_text("the old one")
    found = subprocess.run(
        [sys.executable, "-c", code, "export", tmp_path / "run", "--out", target, "--overwrite"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert found.returncode == 2, found.stderr
    assert "cannot be written: File too large" in found.stderr and found.stderr.count("\n") == 1
    assert [p.read_text() for p in (tmp_path / "out").iterdir()] == ["the old one"] * overwrite
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 2000


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_full_disk_behind_standard_output_is_one_sentence(saved, options):
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [sys.executable, "-m", "core", "summary", saved, *options],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip
    assert found.returncode == 2 and found.stderr == "Error: No space left on device.\n"


HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202eb\r\nError: c\u2028d\x7f"


def test_nothing_hostile_reaches_the_terminal(tmp_path, capsys):
    rows = [
        {"query_id": "q", "passage_id": str(i), "retrieval_rank": i, "influence_score": i / 4}
        for i in (1, 2, 3)
    ]
    queries = pd.DataFrame({"query_id": ["q"], "question": [HOSTILE], "answer": [HOSTILE]})
    claims = pd.DataFrame({"query_id": ["q"], "claim_id": ["c"], "text": [HOSTILE]})
    support = pd.DataFrame(
        {"query_id": ["q"], "claim_id": ["c"], "passage_id": ["1"], "probability": [0.9], "judge": [HOSTILE]}
    )
    manifest = {"source": "live", "name": HOSTILE, "run_id": HOSTILE}
    run = Run.create(manifest, queries=queries, passages=pd.DataFrame(rows), claims=claims, support=support)
    folder = run.save(tmp_path / "run")
    header = CSV.split("\n")[0] + ',"' + HOSTILE.replace("\r\n", "\n") + '"\n'
    lines = [line + ",x" for line in CSV.split("\n")[1:] if line]
    (tmp_path / "f.csv").write_bytes((header + "\n".join(lines)).encode())
    (tmp_path / "g.csv").write_bytes((HOSTILE.split("\r")[0] + ",b\n1,2\n").encode())
    for arguments, status in (
        (("summary", folder), 0),
        (("import", tmp_path / "f.csv", "--out", tmp_path / "new", "--name", HOSTILE), 0),
        (("import", tmp_path / "g.csv", "--out", tmp_path / "newer"), 2),
        (("import", tmp_path / "f.csv", "--out", folder), 2),
        (("summary", tmp_path / HOSTILE), 2),
        (("export", folder, "--out", tmp_path / HOSTILE.replace("\r\n", "")), 0),
        ((HOSTILE,), 2),
    ):
        assert command(*arguments) == status
        shown = "".join(capsys.readouterr())
        assert not any(c in shown for c in "\x1b\x07\x9b\u202e\r\x7f"), repr(shown)
        assert "\nError: c" not in shown
    assert command("summary", folder, "--json") == 0
    shown = capsys.readouterr().out
    assert json.loads(shown)["name"] == HOSTILE
    assert not any(c in shown for c in "\x1b\x07\x9b\u202e\r\x7f"), repr(shown)


def test_the_second_writer_of_one_folder_is_told_before_it_spends_calls(tmp_path, capsys, monkeypatch):
    model = ScriptedLLM(lambda _: "x")
    monkeypatch.setattr(core.pipeline.steps, "open_llm", lambda *_, **__: model)
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "f.csv").write_text(CSV)
    (tmp_path / "q.jsonl").write_text('{"question": "Who?", "passages": ["a", "b"]}')
    writer = (
        "import sys, core.pipeline.steps\n"
        "from core.cli import main\n"
        "from tests.scripted import ScriptedLLM\n"
        "core.pipeline.steps.open_llm = lambda *_, **__: ScriptedLLM(lambda _: 'x', delay=60)\n"
        "main(sys.argv[1:])\n"
    )
    first = ["analyze", str(tmp_path / "q.jsonl"), "--out", str(tmp_path / "run")]
    environment = os.environ | {"LEADLINE_CACHE": str(tmp_path / "other cache"), "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        [sys.executable, "-c", writer, *first],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    try:
        end = time.monotonic() + 60
        while not (tmp_path / "run").exists() and time.monotonic() < end:
            time.sleep(0.05)
        for arguments in (
            first,
            ("import", tmp_path / "f.csv", "--out", tmp_path / "run", "--overwrite"),
            ("simulate", "--out", tmp_path / "run", "--overwrite"),
        ):
            assert command(*arguments) == 2
            error = capsys.readouterr().err
            assert "Error: Another process or job is writing the run in" in error, error
        assert model.calls == 0
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    # Killed: the folder is free at once.
    assert command(*first) == 0 and model.calls
    with sole_writer(tmp_path / "run"):
        assert Run.load(tmp_path / "run").manifest["complete"]
