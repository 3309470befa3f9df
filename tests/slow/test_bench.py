"""Every measurement in bench/ still runs: each script at tiny sizes, one after another in one process, which loads
the libraries and models once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import names

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# They load models or start a cluster, up to a minute each: they run where LEADLINE_BENCH is set, as `make bench-smoke`
# does. They measure what other tests check.
LONG = {
    *(
        "attribution",
        "context_cite",
        "growth",
        "page_sizes",
        "samples",
        "scale",
        "screen",
        "server_order",
        "threads",
    ),
    *("claims.py", "fit_gain.py", "pages.py", "prompts.py"),
}
ALL = bool(os.environ.get("LEADLINE_BENCH"))
# Tests take no GPU, and without one `gpu` measures nothing.
NAMES = [name for name in names() if (ALL or name not in LONG) and name != "gpu"]
ROOT = Path(__file__).resolve().parents[2]
# Modules that only serve others are run by those; the runner finds what measures speed.
SCRIPTS = {
    path: text
    for path in sorted((ROOT / "bench").glob("*.py"))
    if path.stem not in ("__main__", "page")
    and (ALL or path.name not in LONG)
    and '__name__ == "__main__"' in (text := path.read_text(encoding="utf-8"))
}


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with a dozen made-up records of each development file."""
    folder = tmp_path_factory.mktemp("data")
    answers = [
        {
            "question": f"Who built bridge {i}?",
            "passages": [
                {"ref": "[1]", "text": f"Bridge {i} was built by Unwin in 19{i + 10}."},
                {"ref": "[2]", "text": "Coffee grows in the hills of the south."},
            ],
            "claims": [
                {"claim": f"Unwin built bridge {i} in 19{i + 10}.", "support": "Complete", "cited": ["[1]"]},
                {"claim": f"Tea was sold in market {i}.", "support": "Missing", "cited": []},
                {"claim": f"Bridge {i} carries coffee.", "support": "Incomplete", "cited": ["[2]"]},
            ],
        }
        for i in range(12)
    ]
    pairs = [
        {
            "question": f"Who built tower {i}?",
            "knowledge": f"Tower {i} was built by Parker.",
            "right_answer": ("Parker", f"Parker built tower {i}.")[i % 2],
            "hallucinated_answer": ("Unwin", f"Unwin built tower {i}.")[i % 2],
        }
        for i in range(12)
    ]
    facts = {
        "text": "Unwin built it in 1903.",
        "model_atomic_facts": ["It was built in 1903.", {"text": "Unwin"}],
    }
    bios = [{"sentences": [facts, {"text": "It is old.", "model_atomic_facts": None}]}]
    sampled = [
        {
            "generations": [("Unwin", "Parker", f"Smith of {i}")[(i + j) % (1 + i % 3)] for j in range(20)],
            "rouge_l": [float((i + j) % (1 + i % 3) == 0) for j in range(20)],
            "exact_match": [int((i + j) % (1 + i % 3) == 0) for j in range(20)],
        }
        for i in range(12)
    ]
    for name, records in (
        ("expertqa_claims", answers),
        ("halueval_qa", pairs),
        ("factscore", bios),
        ("triviaqa_generations", sampled),
    ):
        (folder / f"{name}_dev.jsonl").write_text(lines(records), encoding="utf-8")
    return folder


# Reads what to run as lines [name, arguments]; writes a line [name, printed, what went wrong] for each.
DRIVER = """
import contextlib, io, json, runpy, sys, traceback
for line in sys.stdin:
    name, arguments = json.loads(line)
    printed, wrong = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(printed):
            if name.endswith(".py"):
                sys.argv = [name, *arguments]
                runpy.run_path(name, run_name="__main__")
            else:
                from bench.lines import Size, measured
                measured(name, Size.SMOKE)
    except SystemExit as end:
        wrong = str(end.code or "")
    except BaseException:
        wrong = traceback.format_exc()
    print(json.dumps([name, printed.getvalue(), wrong]), flush=True)
"""


@pytest.fixture(scope="module")
def ended(data):
    """Return what each script and measurement printed and what went wrong, by its name."""
    wanted = [
        [str(path), ["--smoke", *(["--data", str(data)] if '"--data"' in text else [])]]
        for path, text in SCRIPTS.items()
    ]
    wanted += [[name, []] for name in NAMES]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=lines(wanted),
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {name: (printed, wrong) for name, printed, wrong in map(json.loads, done.stdout.splitlines())}


# A script whose data is not there says so in words and ends well; it need not measure anything.
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_it_runs_and_says_something(script, ended):
    assert '"--smoke"' in SCRIPTS[script], f"{script.name} needs an option --smoke with tiny sizes"
    printed, wrong = ended[str(script)]
    assert not wrong, wrong[-2000:]
    assert printed.strip()


@pytest.mark.parametrize("name", NAMES)
def test_what_measures_speed_runs(name, ended):
    printed, wrong = ended[name]
    assert not wrong, wrong[-2000:]
    assert " (" in printed


def test_a_smoke_run_of_the_command_keeps_nothing():
    before = {path: path.read_bytes() for path in (ROOT / "bench/results").iterdir()}
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--smoke", "metrics"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert " (" in done.stdout
    assert {path: path.read_bytes() for path in (ROOT / "bench/results").iterdir()} == before


def test_the_scripts_are_found():
    assert {"conformal.py", "questions.py"} <= {path.name for path in SCRIPTS}
    assert {name for name in LONG if not name.endswith(".py")} | {"metrics", "text"} <= set(names())
    assert all((ROOT / "bench" / name).exists() for name in LONG if name.endswith(".py"))
