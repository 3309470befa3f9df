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
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.lines import Line, Size

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "bench" / "results", ROOT / "docs" / "benchmarks.md"
_HEAD = """# Benchmarks

How fast Leadline is, as ratios to something that does the same: both sides take turns, in one process or as
pairs of processes, so that a busy machine slows both (it is busy where the load average is above the number
of cores). A value is the median of n rounds, with the least and the most; 2 × is twice as fast. `make bench`
measures everything again and writes this page; `make bench-quick` takes less than five minutes on a machine
with nothing else to do, and replaces no full measurement.
"""


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
    """Return the page: for each script what it says of itself, and its table."""
    parts = [_HEAD]
    for path in sorted(RESULTS.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        parts.append(_table(path.stem, kept))
    return "\n".join(parts)


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


def _row(line: Line) -> tuple[str, ...]:
    asked = " / ".join("–" if one is None else f"{one:g}" for one in (line.floor, line.goal))
    missed = f": **{line.missed} missed**" if line.missed else ""
    bound = "at most " if line.less else ""
    return (
        line.name,
        line.against,
        line.text,
        str(line.n),
        "" if line.floor is line.goal is None else f"{bound}{asked}{missed}",
        ". ".join(filter(None, (line.checked, line.note))),
    )


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
