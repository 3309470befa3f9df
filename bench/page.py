"""docs/benchmarks.md: what the measurements of speed last printed, each with its command and machine.

``python -m bench.page`` writes it again from ``bench/results/``, where `keep` puts what was measured.
"""

from __future__ import annotations

import ast
import datetime
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.lines import Line, Size

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "bench" / "results", ROOT / "docs" / "benchmarks.md"
_HEAD = """# Benchmarks

How fast Leadline is, as ratios to other software that does the same work; 2 × is twice as fast. Both sides
take turns, in one process or as pairs of processes, so that a busy machine slows both (it is busy where the
load average is above the number of cores). A value is the median of n rounds, with the minimum and the
maximum.

`make bench` measures everything again and writes this page. `make bench-quick` takes less than five minutes
on an idle machine and never replaces a full measurement.
"""

# What a reader asks first, the script that measured it, and the name of its line there.
HEADLINES = (
    (
        "answers of the packaged model without each of 10 passages",
        "engine",
        "answers without each of 10 passages",
    ),
    ("attribution without each passage", "context_cite", "exact answers, together"),
    ("attribution by 32 random subsets", "attribution", "surrogate, 32 masks"),
    ("an answer and its quick screen", "screen", "answer and quick screen, 10 passages, Natural Questions"),
    ("ten samples of an answer", "samples", "10 samples in float32, 10 passages of 100 words"),
    ("drop-one calls on a llama.cpp server", "server_order", "time, 8 questions, 10 passages of 60 words"),
    ("influence metrics of a million passages", "metrics", "the same metrics, 1,000,000 passages"),
    ("ROUGE-L of answers of 25 words", "text", "ROUGE-L F1, 25 words"),
    ("BM25 scores of 20,000 passages", "text", "BM25 scores, 20,000 passages"),
    ("embeddings of passages", "text", "embeddings, 128 passages"),
    ("import of a million rows, all checked", "influence_csv", "import, 1,000,000 rows, 87 MB"),
)


def keep(name: str, size: Size, lines: Sequence[Line], seconds: float) -> None:
    """Keep the lines of a script; those of a full run stay when a quick one follows."""
    path = RESULTS / f"{name}.json"
    if size is Size.QUICK and path.exists() and not json.loads(path.read_text(encoding="utf-8"))["quick"]:
        return
    kept = {
        "quick": size is Size.QUICK,
        "machine": machine(),
        "date": datetime.date.today().isoformat(),
        "seconds": round(seconds),
        "lines": [asdict(line) for line in lines],
    }
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def machine() -> str:
    """Return the processor, its cores, the threads that libraries may use, and how busy it was."""
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    cores, threads = os.cpu_count(), os.environ.get("OMP_NUM_THREADS", "all")
    name, load = model[1] if model else platform.machine(), os.getloadavg()[1]
    return f"{name}, {cores} cores, OMP_NUM_THREADS {threads}, load average {load:.0f}"


def page() -> str:
    """Return the page: the headline ratios, then for each script what it says of itself, and its table."""
    results = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))
    }
    return "\n".join([_HEAD, headlines(results), *(_table(*one) for one in results.items())])


def headlines(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the headline ratios as a table; a quick measurement may lack some of them."""
    rows = []
    for title, name, measured in HEADLINES:
        lines = [Line(**line) for line in results.get(name, {"lines": []})["lines"]]
        # Of several sides that a script compares with, the first in its table.
        ratio = next((line for line in lines if (line.name, line.unit) == (measured, "×")), None)
        if ratio is not None:
            cells = (title, ratio.against, ratio.text, str(ratio.n), _asked(ratio), f"[{name}](#{name})")
            rows.append(f"| {' | '.join(cells)} |\n")
    head = "| what | compared with | times as fast (min to max) | n | floor / goal | details |"
    return f"## At a glance\n\n{head}\n|---|---|---|---|---|---|\n{''.join(rows)}"


def _table(name: str, kept: dict[str, Any]) -> str:
    command = f"python -m bench {name}{' --quick' if kept['quick'] else ''}"
    rows = [_row(Line(**line)) for line in kept["lines"]]
    return (
        f"## {name}\n\n{about(name)}\n\n"
        f"`{command}`, {kept['seconds']} s, {kept['date']}; {kept['machine']}.\n\n"
        "| measured | against | median (min to max) | n | floor / goal | checked |\n"
        "|---|---|---|---|---|---|\n"
        + "".join(f"| {' | '.join(cell.replace('|', '∣') for cell in row)} |\n" for row in rows)
    )


def about(name: str) -> str:
    """Return what a script says of itself."""
    module = ast.parse((ROOT / "bench" / f"{name}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(module) or "").replace("``", "`")


def _asked(line: Line) -> str:
    """Return the floor and the goal, and what is missed; "" where neither was set."""
    if line.floor is line.goal is None:
        return ""
    asked = " / ".join("–" if one is None else f"{one:g}" for one in (line.floor, line.goal))
    missed = f": **{line.missed} missed**" if line.missed else ""
    return f"{'at most ' if line.less else ''}{asked}{missed}"


def _row(line: Line) -> tuple[str, ...]:
    return (
        line.name,
        line.against,
        line.text,
        str(line.n),
        _asked(line),
        ". ".join(filter(None, (line.checked, line.note))),
    )


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
