"""Saved runs: where they lie, what is there, how to find one by its id."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from core.errors import InputError, LeadlineError
from core.run import MANIFEST_FILE, Run, read_manifest

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_data"
RECORDED = SAMPLES / "recorded_run"


@dataclass(frozen=True)
class SavedRun:
    """One saved run as its manifest describes it."""

    folder: Path
    run_id: str
    name: str
    source: str
    created: str
    complete: bool
    n_queries: int
    own: bool  # in the user's runs directory, so it may be renamed and deleted


def runs_folder() -> Path:
    """Return the user's runs directory: ``LEADLINE_RUNS``, or ``runs`` beside the app."""
    return Path(os.environ.get("LEADLINE_RUNS") or ROOT / "runs")


def samples_folder() -> Path:
    """Return the folder of the runs that come with the app."""
    return Path(os.environ.get("LEADLINE_SAMPLES") or SAMPLES)


def saved_runs() -> list[SavedRun]:
    """List the saved runs, newest first, then the ones that come with the app; damaged ones are left out."""
    own = [run for folder in _folders(runs_folder()) if (run := _describe(folder, own=True))]
    samples = [run for folder in _folders(samples_folder()) if (run := _describe(folder, own=False))]
    return sorted(own, key=lambda run: run.created, reverse=True) + samples


def find(run_id: str) -> SavedRun | None:
    """Find a saved run by its id; the id is compared, never made into a path."""
    return next((run for run in saved_runs() if run.run_id == run_id), None)


def recorded() -> SavedRun | None:
    """Return the recorded sample run, if this copy of the app has one."""
    folder = samples_folder() / RECORDED.name
    return _describe(folder, own=False) if (folder / MANIFEST_FILE).is_file() else None


def save(run: Run) -> Path:
    """Save a run among the user's runs, in a folder named after its id."""
    name = re.sub(r"[^A-Za-z0-9_-]", "-", run.run_id)[:60] or "run"
    existing = find(run.run_id)
    return run.save(existing.folder if existing and existing.own else runs_folder() / name)


def rename(saved: SavedRun, name: str) -> None:
    """Give one of the user's runs another name."""
    if not saved.own:
        raise InputError(f"{saved.name} comes with the app and keeps its name.")
    if not name.strip():
        raise InputError("A run needs a name: give at least one character.")
    Run.load(saved.folder).renamed(name.strip()[:200]).save(saved.folder)


def delete(saved: SavedRun) -> None:
    """Delete one of the user's runs for good."""
    if not saved.own:
        raise InputError(f"{saved.name} comes with the app and cannot be deleted here.")
    # Renaming first makes the run disappear at once, whatever happens while its files go.
    doomed = saved.folder.with_name(f".deleted-{uuid.uuid4().hex}")
    try:
        saved.folder.rename(doomed)
        shutil.rmtree(doomed)
    except OSError as error:
        raise InputError(f"{saved.name} could not be deleted: {error.strerror or error}.") from error


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(
            p for p in parent.iterdir() if not p.name.startswith(".") and (p / MANIFEST_FILE).is_file()
        )
    except OSError:
        return []


def _describe(folder: Path, *, own: bool) -> SavedRun | None:
    try:
        manifest = read_manifest(folder)
        rows = manifest["tables"].get("queries", {}).get("rows", 0)
        return SavedRun(
            folder,
            str(manifest["run_id"]),
            str(manifest.get("name", folder.name)),
            str(manifest["source"]),
            str(manifest.get("created", "")),
            bool(manifest.get("complete", True)),
            int(rows),
            own,
        )
    except (LeadlineError, KeyError, TypeError, ValueError, AttributeError):
        return None
