"""How many small wrong changes the tests notice: a seeded sample of mutants of each package, each tested in a fork.

Run from the repository root: ``python -m tests.mutants [--sample 150] [--seed 0] [--only influence text] [--keep]``.

The changes are Cosmic Ray's. Its own runner draws no sample and starts Python anew for every mutant, which
takes longer than most tests; here the libraries are loaded once, and each mutant is tested in a fork. It meets the
tests of its own package that run the function it is in, and no others, nor any that is slow, loads a model or
drives a browser: the figure is a lower bound. One change is tried at each of the places drawn. Annotations and
decorators are left out: what is computed hardly depends on them. The working tree is copied, not touched; an
interrupt (Ctrl-C) ends with the figure of what was done, a sample as well. ``--keep`` keeps the figures of the packages that were gone through to the end.
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
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from types import FrameType

import pytest
from cosmic_ray.commands.init import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec

from core.stats import wilson_interval

ROOT = Path(__file__).resolve().parents[1]
KEPT, PAGE = ROOT / "tests" / "mutants.json", ROOT / "docs" / "reference" / "mutants.md"
# Loaded before the forks. Nothing that starts threads: a fork would wait for them for ever.
HEAVY = (
    "numpy pandas regex scipy.stats hypothesis.extra.numpy sklearn.metrics pyarrow.parquet nltk.stem.porter"
)
FLAGS = (
    *("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not model and not slow and not e2e"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what is loaded already
)
SURVIVED, TOO_SLOW = 0, -signal.SIGKILL


def packages() -> dict[str, list[Path]]:
    """Return the modules of every package of `core`; those beside the packages are one of their own."""
    found: dict[str, list[Path]] = {}
    for path in sorted(Path("core").rglob("*.py")):
        found.setdefault(path.parts[1] if len(path.parts) > 2 else "core", []).append(path)
    return found


def tests_of(package: str) -> list[str]:
    """Return the files of a package's own tests."""
    # A package without a folder of tests has some that bear its name; the migrations are the database's.
    named = "database" if package == "migrations" else package
    whole = Path("tests/core", package).rglob("test_*.py") if package != "core" else ()
    beside = Path("tests/core").glob("test_*.py" if package == "core" else f"test_*{named}*.py")
    return sorted(map(str, {*whole, *beside}))


class Learner:
    """A plugin of pytest: which functions of `core` a test and each of its fixtures run, and how long it takes."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.seconds: dict[str, float] = {}
        self.ran: dict[str, set[tuple[str, int]]] = {}
        self.fixtures: dict[str, tuple[str, ...]] = {}
        self.names: list[str] = []  # what is being run: a test, within it perhaps a fixture

    def called(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and f"{os.sep}core{os.sep}" in code.co_filename:
            self.ran.setdefault(self.names[-1], set()).add((code.co_filename, code.co_firstlineno))

    @contextmanager
    def noting(self, name: str) -> Iterator[None]:
        self.names.append(name)
        yield
        self.names.pop()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.fixtures[item.nodeid] = tuple(getattr(item, "fixturenames", ()))
        with self.noting(item.nodeid):
            threading.setprofile(self.called)
            sys.setprofile(self.called)
            found = yield
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
        return found

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        with self.noting(f"fixture {fixturedef.argname}"):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        here = os.getcwd() + os.sep
        found = {}
        for test, names in self.fixtures.items():
            ran = set().union(
                *(self.ran.get(f"fixture {name}", ()) for name in names), self.ran.get(test, ())
            )
            found[test] = sorted({(file.removeprefix(here), line) for file, line in ran})
        self.file.write_text(json.dumps([self.seconds, found]))


class Tests:
    """The tests of a package: how long each takes, and which functions it runs."""

    def __init__(self, package: str) -> None:
        file, start, self.files = Path(f"{package}.learnt.json"), time.monotonic(), tests_of(package)
        if tested(self.files, 3_600, Learner(file.absolute())):
            raise SystemExit(f"Without any change the tests fail: {' '.join(self.files)}")
        seconds, ran = json.loads(file.read_text())
        self.start = time.monotonic() - start - sum(seconds.values())
        self.seconds: dict[str, float] = seconds
        self.all = sorted(ran, key=lambda one: round(seconds[one]))  # the quick ones first
        self.by_function: dict[tuple[str, int], list[str]] = {}
        for test in self.all:
            for file_of, line in ran[test]:
                self.by_function.setdefault((file_of, line), []).append(test)

    def limit(self, chosen: list[str]) -> float:
        """Return how many seconds tests may take before a mutant counts as too slow."""
        return 30 + 4 * (self.start + sum(self.seconds[one] for one in chosen))

    def of(self, change: MutationSpec) -> list[str]:
        """Return the tests that run the function in which a change is, the quick ones first."""
        line = change.start_pos[0]
        around = [
            node
            for node in ast.walk(ast.parse(change.module_path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            and node.lineno <= line <= (node.end_lineno or 0)
        ]
        if around:
            inner = max(around, key=lambda node: node.lineno)
            first = min([inner.lineno, *(one.lineno for one in getattr(inner, "decorator_list", ()))])
            return self.by_function.get((str(change.module_path), first), [])
        return self.all  # it runs when the module is imported


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


def tested(tests: list[str], seconds: float, learner: Learner | None = None) -> int:
    """Run tests, or those of files, in a fork; return pytest's exit status, or `TOO_SLOW`."""
    child = os.fork()
    if not child:
        # A mutant must leave nothing compiled behind that the next one could meet.
        sys.dont_write_bytecode = learner is None
        output = os.open(os.devnull, os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os._exit(int(pytest.main([*FLAGS, *tests], plugins=[learner] if learner else [])))
    end = time.monotonic() + seconds
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


def noticed(tests: Tests, change: MutationSpec) -> bool:
    """Try one change; say what became of it, and show it where no test fails."""
    operator, path = get_operator(change.operator_name)(), change.module_path
    chosen = tests.of(change)
    with use_mutation(path, operator, change.occurrence) as texts:
        status = tested(chosen, tests.limit(chosen)) if chosen else SURVIVED
        if status == pytest.ExitCode.USAGE_ERROR:  # a test has another name now
            status = tested(tests.files, tests.limit(tests.all))
    line = change.start_pos[0]
    what = {SURVIVED: "SURVIVED", TOO_SLOW: "too slow"}.get(status, "killed")
    print(f"{what:8} {path}:{line} {operator.__class__.__name__} ({len(chosen)} tests)", flush=True)
    for sign, text in zip("-+", texts, strict=True) if status == SURVIVED else ():
        print(f"       {sign} {text.splitlines()[line - 1].strip()}", flush=True)
    return status != SURVIVED


def keep(package: str, killed: int, n: int, n_places: int) -> None:
    """Keep the figure of a package, and write the page again."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    kept[package] = {"noticed": killed, "n": n, "places": n_places, "date": date.today().isoformat()}
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page of the documentation: the share of noticed changes in each package."""
    rows = []
    for name, one in json.loads(KEPT.read_text(encoding="utf-8")).items():
        low, high = wilson_interval(one["noticed"] / one["n"], one["n"])
        share = f"{one['noticed'] / one['n']:.0%} ({low:.0%} to {high:.0%})"
        rows.append(
            f"| {name} | {share} | {one['noticed']} of {one['n']} | {one['places']:,} | {one['date']} |\n"
        )
    return f"""# What the tests notice

Small wrong changes (a `<` for a `<=`, a number that is one more, a condition turned round) are made at random
places of a package of `core`, one at a time, and its own fast tests run. A change that no test notices is a
mistake that could be made unseen. `make mutants` draws them and lists those that survive; the 95 % interval is
Wilson's. Tests of other packages, slow ones, those with a model or a browser are left out: the true share is higher.

| package | noticed (95 %) | changes | places to draw from | on |
|---|---|---|---|---|
{"".join(rows)}"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        in_a_copy(Path(folder))
        found = packages()
        for package in options.only or found:
            every, killed, n, tests = places(found[package]), 0, 0, Tests(package)
            draw = random.Random(f"{options.seed} {package}")
            chosen = [draw.choice(place) for place in draw.sample(every, min(options.sample, len(every)))]
            stopped = False
            try:
                for change in chosen:
                    killed += noticed(tests, change)
                    n += 1
            except KeyboardInterrupt:
                stopped = True
            low, high = wilson_interval(killed / n, n) if n else (0, 1)
            print(
                f"{package}: noticed {killed} of {n} (95 % {low:.1%} to {high:.1%}), from {len(every):,} places"
            )
            if stopped:
                break
            if options.keep and n:
                keep(package, killed, n, len(every))


if __name__ == "__main__":
    main()
