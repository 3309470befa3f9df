"""How many small wrong changes the tests notice: a seeded sample of mutants of each package, each tested in a fork.

Run from the repository root: ``python -m tests.mutants [--sample 150] [--seed 0] [--only influence text] [--keep]``.

The changes are Cosmic Ray's. Its own runner draws no sample and starts Python anew for every mutant, which
takes longer than most tests; here the libraries are loaded once, and each mutant is tested in a fork. It meets the
tests of its own package that run the function it is in, and no others, nor any that is slow, drives a browser or,
but for the embedded back end, loads a model. One change is tried at each of the places drawn; a figure of places
for which tests were written is too high, and ``--seed`` draws others. Annotations and decorators are left out, and
the ``strict`` of ``zip``, an assertion: what is computed hardly depends on them. The working tree is copied, not
touched; an interrupt (Ctrl-C) ends with the figure of what was done, a sample as well. ``--keep`` keeps the figures
of the packages that were gone through to the end.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import gc
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
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from inspect import CO_OPTIMIZED
from itertools import accumulate
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import NoReturn

import pytest
from cosmic_ray.commands.init import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec

from core.stats import wilson_interval

ROOT = Path(__file__).resolve().parents[1]
KEPT, PAGE = ROOT / "tests" / "mutants.json", ROOT / "docs" / "reference" / "mutants.md"
# Beside a package's tests: changes after which nothing that can be seen differs, each with the reason; none counts.
EQUIVALENT = "equivalent_mutants.toml"
# Loaded before the forks. Nothing that starts threads: a fork would wait for them for ever.
HEAVY = (
    "numpy pandas regex scipy.stats hypothesis.extra.numpy sklearn.metrics pyarrow.parquet nltk.stem.porter"
)
FLAGS = (
    *(
        "-x",
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what is loaded already
)
MARKS = "not slow and not e2e"
EMBEDDED = "embedded"  # a package within one, nearly all of whose tests run a model, most a tiny one
TESTS = {  # where they are called by another name; there are old files of the store, for the migrations
    "charts": ("charts/test_*.py", "answers/test_evidence.py"),
    "core": ("test_*.py", "retrieval/test_*.py", "confidence/test_combined.py"),
    EMBEDDED: ("llm/embedded/test_*.py", "llm/test_open_llm.py"),
    "migrations": ("test_*database*.py", "calibration/test_store.py"),
}
SURVIVED, AT_IMPORT = 0, 77  # exit statuses
# Seconds of processor time of tests for one change, counted while functions are noted (several times what they take):
# the quickest fill them, and with the others the figure would be higher.
MOST = 60.0


def packages() -> dict[str, list[Path]]:
    """Return the modules of every package of `core`; those beside the packages are one of their own."""
    found: dict[str, list[Path]] = {}
    for path in sorted(Path("core").rglob("*.py")):
        package = path.parts[1] if len(path.parts) > 2 else "core"
        found.setdefault(EMBEDDED if EMBEDDED in path.parts else package, []).append(path)
    return found


def tests_of(package: str) -> list[str]:
    """Return the files of a package's own tests: in its folder, or bearing its name."""
    patterns = TESTS.get(package, (f"{package}/**/test_*.py", f"test_*{package}*.py"))
    return sorted({str(path) for pattern in patterns for path in Path("tests/core").glob(pattern)})


class Learner:
    """A plugin of pytest: which functions of `core` a test and each of its fixtures run, and its processor time."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.seconds: dict[str, float] = {}
        self.ran: dict[str, set[tuple[str, int]]] = {}
        self.fixtures: dict[str, tuple[str, ...]] = {}
        self.names: list[str] = []  # what is being run: a test, within it perhaps a fixture

    def called(self, frame: FrameType, *_: object) -> None:
        code = frame.f_code
        if f"{os.sep}core{os.sep}" in code.co_filename:
            self.ran.setdefault(self.names[-1], set()).add((code.co_filename, code.co_firstlineno))

    @contextmanager
    def noting(self, name: str) -> Iterator[None]:
        self.names.append(name)
        threading.settrace(self.called)
        sys.settrace(self.called)
        yield
        self.names.pop()
        if not self.names:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        with self.noting("import"):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.fixtures[item.nodeid] = tuple(getattr(item, "fixturenames", ()))
        before = sum(os.times()[:4])  # of this process and of those that it waited for
        with self.noting(item.nodeid):
            found = yield
        self.seconds[item.nodeid] = sum(os.times()[:4]) - before
        return found

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        with self.noting(f"fixture {fixturedef.argname}"):
            return (yield)

    def pytest_sessionfinish(self) -> None:
        here = os.getcwd() + os.sep
        found = {"import": self.ran.get("import", set())}
        for test, names in self.fixtures.items():
            found[test] = set().union(
                *(self.ran.get(f"fixture {name}", ()) for name in names), self.ran.get(test, ())
            )
        rows = {
            name: sorted((file.removeprefix(here), line) for file, line in ran) for name, ran in found.items()
        }
        self.file.write_text(json.dumps([self.seconds, rows]))


class Collected:
    """A plugin of pytest that tries changes: each in a fork of a session whose tests are collected."""

    def __init__(self, wire: Connection, learner: Learner) -> None:
        self.wire, self.learner = wire, learner
        self.seconds: dict[str, float] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        learning = os.fork()
        if not learning:
            return None  # pytest runs them all
        session.config.pluginmanager.unregister(self.learner)
        status = os.waitstatus_to_exitcode(os.waitpid(learning, 0)[1])
        self.wire.send(status)
        if status == SURVIVED:
            self.seconds = json.loads(self.learner.file.read_text())[0]
        while message := self.wire.recv():
            old, new, tests = message
            child = os.fork()
            if not child:
                sys.dont_write_bytecode = True
                gc.unfreeze()  # what is frozen is not found
                if not put_in_place(old, new):
                    os._exit(AT_IMPORT)
                gc.freeze()
                by_name = {item.nodeid: item for item in session.items}
                session.items = [by_name[name] for name in tests]
                return None
            self.wire.send(waited(child))
        return True  # nothing is left to run

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if self.seconds:  # what comes after would look for garbage, once more for every change
            os._exit(int(exitstatus))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self.seconds:  # by default the signal ends the process
            signal.setitimer(signal.ITIMER_PROF, 10 + 3 * self.seconds[item.nodeid])


class Tests:
    """The tests of a package: what each costs, which functions it runs, and a process that has collected them."""

    def __init__(self, package: str) -> None:
        file, self.files = Path(f"{package}.learnt.json").absolute(), tests_of(package)
        self.marks = MARKS if package == EMBEDDED else f"{MARKS} and not model"
        self.wire, theirs = Pipe()
        self.process = os.fork()
        if not self.process:
            self.wire.close()  # so that this one ends when the other does
            learner = Learner(file)
            ran_as_child([*self.files, "-m", self.marks], [learner, Collected(theirs, learner)])
        if self.wire.recv() != SURVIVED:
            raise SystemExit(f"Without any change the tests fail: {' '.join(self.files)}")
        self.seconds, ran = json.loads(file.read_text())
        self.imported = set(map(tuple, ran.pop("import")))
        self.ran = {test: set(map(tuple, functions)) for test, functions in ran.items()}
        self.all = sorted(ran, key=self.seconds.__getitem__)  # the quick ones first

    def of(self, change: MutationSpec) -> tuple[list[str], bool]:
        """Return the tests that could notice a change, and whether importing its module runs it."""
        path, line = str(change.module_path), change.start_pos[0]
        around = [
            node
            for node in ast.walk(ast.parse(change.module_path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            and node.lineno <= line <= (node.end_lineno or 0)
        ]
        if around:
            inner = max(around, key=lambda node: node.lineno)
            first = min([inner.lineno, *(one.lineno for one in getattr(inner, "decorator_list", ()))])
            if (path, first) not in self.imported:
                return self.quickest([one for one in self.all if (path, first) in self.ran[one]]), False
        touching = [one for one in self.all if any(file == path for file, _ in self.ran[one])]
        return self.quickest([*touching, *(one for one in self.all if one not in set(touching))]), True

    def quickest(self, tests: list[str]) -> list[str]:
        """Return the first of the tests that fit into the time for one change, at least one."""
        ends = accumulate(self.seconds[one] for one in tests)
        return [one for i, (one, end) in enumerate(zip(tests, ends, strict=True)) if end <= MOST or not i]

    def end(self) -> None:
        self.wire.send(None)
        os.waitpid(self.process, 0)


def is_function(code: CodeType) -> bool:
    return bool(code.co_flags & CO_OPTIMIZED) and code.co_name in ("<lambda>", code.co_name.strip("<>"))


def own(code: CodeType) -> tuple[object, ...]:
    """Return what a module or class does when it is imported, without the functions in it."""
    consts = [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
    return code.co_code, code.co_names, code.co_varnames, consts


def replacements(old: CodeType, new: CodeType, imported: bool = True) -> list[tuple[CodeType, CodeType]]:
    """Return which code functions have to run instead of theirs; ValueError where an import runs the change."""
    found = []
    if is_function(old):
        imported, found = False, [(old, new)] if old != new else []
    elif imported and own(old) != own(new):
        raise ValueError(old.co_name)
    within = ([one for one in code.co_consts if isinstance(one, CodeType)] for code in (old, new))
    for before, after in zip(*within, strict=imported):
        found += replacements(before, after, imported)
    return found


def put_in_place(old: str, new: str) -> bool:
    """Give the functions that are loaded the code of a changed text; return whether that is the whole change."""
    try:
        before, after = (compile(text, "", "exec", dont_inherit=True) for text in (old, new))
        codes = replacements(before, after)
        # Not isinstance: what stands for another object answers that with an error of its own.
        loaded = [one for one in gc.get_objects() if type(one) is FunctionType]
        for before, after in codes:
            for function in [one for one in loaded if one.__code__ == before]:
                function.__code__ = after  # ValueError where it closes over other variables now
    except ValueError:
        return False
    return True


def never_run(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where annotations, decorators and the ``strict`` of ``zip`` begin and end."""
    nodes: list[ast.AST | None] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        nodes += [getattr(node, "annotation", None), getattr(node, "returns", None)]
        nodes += getattr(node, "decorator_list", [])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
            nodes += [one.value for one in node.keywords if one.arg == "strict"]
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


def ran_as_child(options: list[str], plugins: list[object]) -> NoReturn:
    """Run pytest in silence, as what this process does last."""
    sys.dont_write_bytecode = True  # a mutant must leave nothing behind that the next one could meet
    output = os.open(os.devnull, os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os._exit(int(pytest.main([*FLAGS, *options], plugins=plugins)))


def waited(child: int) -> int:
    """Return the exit status of a process, which is killed when it waits for ever."""
    end = time.monotonic() + 3 * MOST  # longer than the tests take: other processes may have the cores
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


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


def equivalents() -> dict[tuple[str, str, str], str]:
    """Return why a change is none, by its file, and what its line was and became."""
    files = sorted((ROOT / "tests" / "core").rglob(EQUIVALENT))
    listed = [one for file in files for one in tomllib.loads(file.read_text(encoding="utf-8"))["change"]]
    return {(one["file"], one["was"], one["became"]): one["why"] for one in listed}


def noticed(tests: Tests, change: MutationSpec) -> bool | None:
    """Try one change; say what became of it, and show it where no test fails. None where it changes nothing."""
    operator, path = get_operator(change.operator_name)(), change.module_path
    chosen, imported = tests.of(change)
    with use_mutation(path, operator, change.occurrence) as texts:
        status = AT_IMPORT if imported else SURVIVED
        if chosen and not imported:
            tests.wire.send((*texts, chosen))
            status = tests.wire.recv()
        if status == AT_IMPORT:
            child = os.fork()
            if not child:
                ran_as_child([*chosen, "-m", tests.marks], [])
            status = waited(child)
    line = change.start_pos[0]
    was, became = (text.splitlines()[line - 1].strip() for text in texts)
    if status == SURVIVED and (str(path), was, became) in equivalents():
        print(f"the same {path}:{line} {operator.__class__.__name__}", flush=True)
        return None
    what = "SURVIVED" if status == SURVIVED else "too slow" if status < 0 else "killed"
    print(f"{what:8} {path}:{line} {operator.__class__.__name__} ({len(chosen)} tests)", flush=True)
    if status == SURVIVED:
        print(f"       - {was}\n       + {became}", flush=True)
    return status != SURVIVED


def keep(package: str, seed: int, found: list[bool | None], n_places: int) -> None:
    """Keep the figure of a package, and write the page again."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    kept[package] = {
        "noticed": found.count(True),
        "n": len(found) - found.count(None),
        "same": found.count(None),
        "places": n_places,
        "seed": seed,
        "date": date.today().isoformat(),
    }
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page of the documentation: the share of noticed changes in each package."""
    rows = []
    for name, one in json.loads(KEPT.read_text(encoding="utf-8")).items():
        low, high = wilson_interval(one["noticed"] / one["n"], one["n"])
        share = f"{one['noticed'] / one['n']:.0%} ({low:.0%} to {high:.0%})"
        rows.append(
            f"| {name} | {share} | {one['noticed']} of {one['n']} | {one['same']} | {one['places']:,} "
            f"| {one['seed']} | {one['date']} |\n"
        )
    reasons: dict[str, list[str]] = {}
    for (file, was, became), why in equivalents().items():
        reasons.setdefault(why, []).append(f"  - `{file}`: `{was}` → `{became}`\n")
    listed = "".join(f"- {why}:\n{''.join(sorted(changes))}" for why, changes in sorted(reasons.items()))
    return f"""# What the tests notice

Small wrong changes (a `<` for a `<=`, a number that is one more, a condition turned round) are made at random
places of a package of `core`, one at a time, and its own fast tests run. A change that no test notices is a
mistake that could be made unseen. `make mutants` draws them and lists those that survive; the 95 % interval is
Wilson's. Tests of other packages, slow ones, those with a browser and, but for the embedded back end, those with a
model are left out. Of the others those of the function that was changed run, the quickest first, until they take
{MOST:g} seconds of processor time, counted while it is noted which functions they run, which takes several times as
long: those left out make the share too low. But tests were written for what survived in earlier draws, which makes
it too high where the code is still the same: only a draw with another seed says how much is noticed of the rest.
Annotations, decorators and the `strict` of `zip`, which asserts what holds anyway, are not changed.

| package | noticed (95 %) | changes | without effect | places to draw from | seed | on |
|---|---|---|---|---|---|---|
{"".join(rows)}
## Changes without effect

They were tried, no test can notice them, and they are not counted.

{listed}"""


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
            every, tests = places(found[package]), Tests(package)
            tried: list[bool | None] = []
            draw = random.Random(f"{options.seed} {package}")
            chosen = [draw.choice(place) for place in draw.sample(every, min(options.sample, len(every)))]
            with suppress(KeyboardInterrupt):
                tried.extend(noticed(tests, change) for change in chosen)
            killed, n = tried.count(True), len(tried) - tried.count(None)
            low, high = wilson_interval(killed / n, n) if n else (0, 1)
            print(
                f"{package}: noticed {killed} of {n} (95 % {low:.1%} to {high:.1%}), from {len(every):,} places"
            )
            if len(tried) < len(chosen):
                break
            tests.end()
            if options.keep:
                keep(package, options.seed, tried, len(every))


if __name__ == "__main__":
    main()
