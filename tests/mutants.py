"""How many small wrong changes the tests notice: a seeded sample of mutants, each tested in a process of its own.

Run from the repository root: ``python -m tests.mutants [--sample 150] [--seed 0] [--only influence text]``.

The changes are Cosmic Ray's. Its own runner draws no sample and starts Python anew for every mutant, which
takes longer than most tests; here the libraries are loaded once, and each mutant is tested in a fork. A module
meets the tests of its own folder only, so the figure is a lower bound. One change is tried at each of the
places drawn. Annotations and decorators are left out: what is computed hardly depends on them. The working
tree is copied, not touched; an interrupt (Ctrl-C) ends with the figure of what was done, a sample as well.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import importlib
import json
import os
import py_compile
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from cosmic_ray.commands.init import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec

from core.stats import wilson_interval

ROOT = Path(__file__).resolve().parents[1]
# Modules, and their tests where these are not in the same folder of tests/. A later line takes a module over.
AREAS = {
    "attribution": ("core/attribution", ""),
    "influence": ("core/influence", ""),
    "likelihood": ("core/likelihood", ""),
    "claims": ("core/claims", ""),
    "calibration": ("core/calibration", ""),
    "conformal": ("core/conformal", ""),
    "confidence": ("core/confidence", ""),
    "text": ("core/text", ""),
    "validation": ("core/validation", ""),
    "losses": ("core/losses", ""),
    "cache": (
        "core/database.py core/llm/cache.py",
        "tests/core/llm/test_cache.py tests/core/calibration/test_store.py",
    ),
    "exports": (
        "core/report/exports.py core/spreadsheet.py core/influence/diagnostic.py",
        "tests/core/report/test_exports.py tests/core/test_spreadsheet.py",
    ),
}
# Loaded before the forks. Nothing that starts threads: a fork would wait for them for ever.
HEAVY = (
    "numpy pandas regex scipy.stats hypothesis.extra.numpy sklearn.metrics pyarrow.parquet nltk.stem.porter"
)
FLAGS = (
    *("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not model and not slow and not e2e"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what is loaded already
)
SURVIVED, TOO_SLOW = 0, -signal.SIGKILL


def modules() -> dict[Path, str]:
    """Return the area of every module."""
    given = [(Path(name), area) for area, (names, _) in AREAS.items() for name in names.split()]
    return {
        p: area for path, area in given for p in ([path] if path.suffix else path.rglob("*.py")) if p.exists()
    }


def tests_of(path: Path, area: str) -> tuple[str, ...]:
    given = AREAS[area][1].split() or sorted(map(str, Path("tests", path.parent).glob("test_*.py")))
    return tuple(given)


class QuickestFirst:
    """A plugin of pytest: what took less than half a second comes first, then the rest by time."""

    def __init__(self, file: Path) -> None:
        self.file, self.known = file, json.loads(file.read_text()) if file.exists() else {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: round(self.known.get(item.nodeid, 0.0)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.known[report.nodeid] = self.known.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        if not sys.dont_write_bytecode:
            self.file.write_text(json.dumps(self.known))


def never_run(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where annotations and decorators begin and end."""
    nodes: list[ast.AST | None] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        nodes += [getattr(node, "annotation", None), getattr(node, "returns", None)]
        nodes += getattr(node, "decorator_list", [])
    return [((n.lineno, n.col_offset - 1), (n.end_lineno, n.end_col_offset)) for n in nodes if n is not None]


def places(paths: list[Path]) -> list[list[MutationSpec]]:
    """Return all changes, those at one place together."""
    found: dict[tuple[Path, tuple[int, int]], list[MutationSpec]] = {}
    with use_db(":memory:", WorkDB.Mode.create) as db:
        init(paths, db, {})
        for item in db.work_items:
            (change,) = item.mutations
            found.setdefault((change.module_path, change.start_pos), []).append(change)
    spans = {path: never_run(path) for path in paths}
    return [
        changes
        for (path, start), changes in sorted(found.items())
        if not any(low <= start < high for low, high in spans[path])
    ]


def tested(files: tuple[str, ...], seconds: float | None = None) -> int:
    """Run pytest in a fork; return its exit status, or `TOO_SLOW`. Without a limit, learn how long tests take."""
    child = os.fork()
    if not child:
        # A mutant must leave nothing compiled behind that the next one could meet.
        sys.dont_write_bytecode = seconds is not None
        output = os.open(os.devnull, os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os._exit(int(pytest.main([*FLAGS, *files], plugins=[QuickestFirst(Path("durations.json"))])))
    end = time.monotonic() + (seconds or 1_800)
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return TOO_SLOW


def in_a_copy(folder: Path) -> None:
    """Work in a copy of the tree, with the libraries loaded and none of our modules."""
    shutil.copytree(
        ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "runs"), dirs_exist_ok=True
    )
    os.chdir(folder)
    for name in HEAVY.split():
        importlib.import_module(name)
    for name in [n for n in sys.modules if n.split(".")[0] in ("core", "tests")]:
        del sys.modules[name]
    sys.path[:] = [str(folder), *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT)]
    # Compiled by content: what is mutated is seen to differ, however quickly.
    compileall.compile_dir("core", quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=AREAS, nargs="+", default=list(AREAS))
    options = parser.parse_args()
    draw, killed, n, limits = random.Random(options.seed), 0, 0, {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        in_a_copy(Path(folder))
        area = {path: name for path, name in modules().items() if name in options.only}
        every = places(sorted(area))
        chosen = [draw.choice(place) for place in draw.sample(every, min(options.sample, len(every)))]
        try:
            for change in chosen:
                path = change.module_path
                files = tests_of(path, area[path])
                if files not in limits:
                    start = time.monotonic()
                    if tested(files):
                        raise SystemExit(f"Without any change the tests fail: {' '.join(files)}")
                    limits[files] = 30 + 4 * (time.monotonic() - start)
                operator = get_operator(change.operator_name)()
                with use_mutation(path, operator, change.occurrence) as texts:
                    status = tested(files, limits[files])
                n, killed = n + 1, killed + (status != SURVIVED)
                what = {SURVIVED: "SURVIVED", TOO_SLOW: "too slow"}.get(status, "killed")
                line = change.start_pos[0]
                print(f"{n:4} {what:8} {path}:{line} {operator.__class__.__name__}", flush=True)
                for sign, text in zip("-+", texts, strict=True) if status == SURVIVED else ():
                    print(f"       {sign} {text.splitlines()[line - 1].strip()}", flush=True)
        except KeyboardInterrupt:
            pass
    low, high = wilson_interval(killed / n, n) if n else (0, 1)
    print(f"killed {killed} of {n} (95 % {low:.1%} to {high:.1%}), drawn from {len(every):,} places")


if __name__ == "__main__":
    main()
