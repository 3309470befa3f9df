"""Saved runs: where they lie, whose they are, how to find one by its id.

Where people sign in, a run is its owner's (``person`` in its manifest) until a file ``shared`` lies beside
its tables; a run without an owner, made on the command line, is everyone's to read.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import uuid
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from core import reviews
from core.errors import InputError, RunFormatError
from core.manifest import n_questions, read_manifest
from core.run import Run, holds_run, rename_run, sole_writer
from core.whatif import versions
from ui import people

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_data"
FIRST = ("recorded_run_facts", "recorded_run")  # sample runs; the first that is there opens first
_SHARED = "shared"


@dataclass(frozen=True)
class SavedRun:
    """One saved run as its manifest describes it; an unreadable one has the ``problem`` and no id."""

    folder: Path
    run_id: str
    name: str
    source: str
    created: str
    complete: bool
    n_queries: int
    own: bool  # in the user's runs directory and nobody else's, so it may be renamed and deleted
    problem: str = ""
    shared: bool = True  # whether everyone who signs in may read it


def runs_folder() -> Path:
    """Return the user's runs directory: ``LEADLINE_RUNS``, or ``runs`` beside the app."""
    return Path(os.environ.get("LEADLINE_RUNS") or ROOT / "runs")


def samples_folder() -> Path:
    """Return the folder of the runs that come with the app."""
    return Path(os.environ.get("LEADLINE_SAMPLES") or SAMPLES)


def saved_runs() -> list[SavedRun]:
    """List the saved runs that can be read, newest first, then the ones that come with the app."""
    return [run for run in _all() if not run.problem]


def unreadable() -> list[SavedRun]:
    """List what looks like a saved run and cannot be read, each with the reason."""
    return [run for run in _all() if run.problem]


def find(run_id: str) -> SavedRun | None:
    """Find a saved run by its id; the id is compared, never made into a path."""
    return next((run for run in saved_runs() if run.run_id == run_id), None)


def recorded() -> SavedRun | None:
    """Return the recorded sample run that opens first, if this copy of the app has one."""
    folders = (samples_folder() / name for name in FIRST)
    found = (_describe(folder, own=False) for folder in folders if holds_run(folder))
    return next((run for run in found if not run.problem), None)


def owned(run: Run) -> Run:
    """Return a run as the person's own; where nobody signs in, as it is.

    Its id becomes another one, so that two persons with the same file or the same questions share neither a
    folder nor reviews.
    """
    if not people.signs_in() or run.manifest.get("person") == people.name():
        return run
    person = people.name()
    run_id = hashlib.sha256(f"{run.run_id}\0{person}".encode(errors="replace")).hexdigest()[:12]
    return replace(run, manifest=MappingProxyType({**run.manifest, "run_id": run_id, "person": person}))


def folder_of(run: Run) -> Path:
    """Return the folder of a run among the user's runs, by its id; new or not. InputError: another's."""
    name = re.sub(r"[^A-Za-z0-9_-]", "-", run.run_id)[:60] or "run"
    existing = find(run.run_id)
    folder = existing.folder if existing and existing.own else runs_folder() / name
    if people.signs_in():
        taken = holds_run(folder) and not (existing and existing.own)
        if taken or run.manifest.get("person") != people.name():
            raise InputError(f"{run.name} is not your run: only its owner can add to it.")
    return folder


def save(run: Run) -> Path:
    """Save a run among the user's runs."""
    return run.save(folder_of(run))


def share(saved: SavedRun, shared: bool) -> None:
    """Let everyone who signs in read one of the person's runs, or nobody else any more."""
    if not saved.own:
        raise InputError(f"{saved.name} is not your run: only its owner can share it.")
    people.require("review")
    try:
        mark = saved.folder / _SHARED
        mark.touch() if shared else mark.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{saved.name} cannot be shared: {error.strerror or error}.") from error


def rename(saved: SavedRun, name: str) -> None:
    """Give one of the user's runs another name."""
    if not saved.own:
        raise InputError(f"{saved.name} comes with the app or is not your run, and keeps its name.")
    people.require("review")
    if not name.strip():
        raise InputError("A run needs a name: give at least one character.")
    with sole_writer(saved.folder):
        rename_run(saved.folder, name.strip()[:200])


def delete(saved: SavedRun) -> None:
    """Delete one of the user's runs for good."""
    if not saved.own:
        raise InputError(f"{saved.name} comes with the app or is not your run; it cannot be deleted here.")
    people.require("review")
    # Renaming first makes the run disappear at once, whatever happens while its files go.
    doomed = saved.folder.with_name(f".deleted-{uuid.uuid4().hex}")
    try:
        # A running job would write its part of the run again.
        with nullcontext() if saved.problem else sole_writer(saved.folder):
            saved.folder.rename(doomed)
        doomed.unlink() if doomed.is_symlink() else shutil.rmtree(doomed)
        reviews.delete(runs_folder(), saved.run_id)
        versions.delete(runs_folder(), saved.run_id)
    except OSError as error:
        raise InputError(f"{saved.name} could not be deleted: {error.strerror or error}.") from error


def _all() -> list[SavedRun]:
    found = (_describe(folder, own=True) for folder in _folders(runs_folder()))
    own = [run for run in found if run.own or run.shared]
    samples = [_describe(folder, own=False) for folder in _folders(samples_folder())]
    return sorted(own, key=lambda run: run.created, reverse=True) + samples


def _folders(parent: Path) -> list[Path]:
    """Return the folders in which a run lies, or one may lie that cannot be looked at."""
    try:
        return sorted(p for p in parent.iterdir() if not p.name.startswith(".") and holds_run(p))
    except OSError:
        return []


def _describe(folder: Path, *, own: bool) -> SavedRun:
    try:
        manifest = read_manifest(folder)
    except RunFormatError as error:
        # Whose it is cannot be read either.
        alone = not people.signs_in()
        return SavedRun(folder, "", folder.name, "", "", False, 0, own and alone, str(error), alone)
    facts = {name: manifest.get(name, "") for name in ("run_id", "source", "created")}
    n_queries = n_questions(manifest)
    name, complete = manifest.get("name", folder.name), manifest.get("complete", True)
    shared = True
    if own and people.signs_in():
        person = manifest.get("person")
        own, shared = person == people.name(), person is None or (folder / _SHARED).exists()
    return SavedRun(
        folder, **facts, name=name, complete=complete, n_queries=n_queries, own=own, shared=shared
    )
