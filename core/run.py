"""A `Run`: a manifest and tidy tables of raw observations, saved as a folder and never edited."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from core.errors import InputError, RunFormatError
from core.files import kept_folder, read_file, writable_folder, write_atomically
from core.html import card
from core.manifest import LARGEST_MANIFEST, MANIFEST_FILE, n_questions, read_manifest, wrong_entry
from core.saved_tables import SavedTables, check_questions, read_sample, write_table, wrong_is_damaged
from core.schema import SCHEMA_VERSION, TABLES, conform, empty
from core.text.strict import clean, json_value, read_json

RESULTS = ".analysis"  # folder beside the tables: what was computed of them, see `core.kept`
_CHECKED = "checked.json"  # in it: the files that were read whole, and found to be those that were saved
LARGE = 1_000  # questions from which a run is opened table by table, and what is computed of it is kept
MANY, SAMPLE = 10_000, 1_000  # of a run of more questions than MANY a page shows so many first (`Run.sample`)
# Sources of runs that no model answered, and the word that marks their data everywhere.
MARKS = {"simulation": "simulated", "composed": "composed"}
SOURCES = ("live", "upload", *MARKS)
_TRIES = 5
_ROWS = 100_000  # that are hashed at a time
PATIENCE = 10.0  # seconds that a save waits for another one


@dataclass(frozen=True, slots=True)
class Origin:
    """The folder that a run was read from, and the SHA-256 of its manifest, its name left out."""

    folder: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Run:
    """One run: a manifest and the tables of `core.schema.TABLES`.

    Build it with `Run.create`; read tables as attributes (``run.queries``) or by name
    (``run["passages"]``). Frames are shared, so treat them as read-only: a changed run is a new
    run (`derive`) that names its parent. `report` returns it as one HTML document.

    Attributes
    ----------
    manifest : Mapping
        Plain JSON values. Always present: ``run_id, name, source, created, schema_version,
        complete``. Usually: ``dataset, model, prompt, retriever, options, environment, cost, notes``.
    tables : Mapping[str, DataFrame]
        One frame per table, conforming to the schema.
    origin : Origin or None
        Where a large run was read; None for a small one, and for one that was made, or changed, in memory.
    """

    manifest: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame] = field(repr=False)
    origin: Origin | None = field(default=None, repr=False, compare=False)

    @classmethod
    def create(cls, manifest: Mapping[str, Any], **tables: pd.DataFrame) -> Run:
        """Check and complete a run.

        Parameters
        ----------
        manifest : Mapping
            At least ``source`` (one of `SOURCES`). A missing ``run_id`` is derived from the
            tables, a missing ``name`` from the run id; ``created`` defaults to now.
        **tables : DataFrame
            Any of the schema's tables; absent ones are empty.

        Raises
        ------
        InputError
            An unknown table or source, an entry of the manifest of another type than it has, a table that
            does not conform, or a passage, claim … without its question.
        """
        unknown = [name for name in tables if name not in TABLES]
        if unknown:
            raise InputError(f"There is no table {unknown[0]!r}; tables are {', '.join(TABLES)}.")
        if manifest.get("source") not in SOURCES:
            raise InputError(f"source must be one of {', '.join(SOURCES)}, got {manifest.get('source')!r}.")
        if wrong := wrong_entry(manifest):
            raise InputError(f"The manifest is not one of a run: {wrong}.")
        frames = {n: conform(t, tables[n]) if n in tables else empty(t) for n, t in TABLES.items()}
        for name, frame in frames.items():
            check_questions(name, frame, frames["queries"])
        full = dict(manifest)
        if "run_id" not in full:
            full["run_id"] = _digest(frames)
        full.setdefault("name", f"{full['source']} {full['run_id']}")
        full.setdefault("created", datetime.now(UTC).isoformat(timespec="seconds"))
        full.setdefault("complete", True)
        full["schema_version"] = SCHEMA_VERSION
        return cls(MappingProxyType(full), MappingProxyType(frames))

    def __getitem__(self, table: str) -> pd.DataFrame:
        return self.tables[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def _repr_html_(self) -> str:
        counts = [(name, f"{len(frame):,} rows") for name, frame in self.tables.items() if len(frame)]
        kind = f"{self.mark} data" if self.mark else self.data_source
        return card(f"{self.name} ({kind}, run {self.run_id})", counts)

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings do not pickle; caches between pages need it.
        return _restore, (dict(self.manifest), dict(self.tables))

    @property
    def run_id(self) -> str:
        """Short identifier, stable across saving and loading."""
        return str(self.manifest["run_id"])

    @property
    def name(self) -> str:
        """Name shown on screen."""
        return str(self.manifest["name"])

    @property
    def simulated(self) -> bool:
        """Whether it comes from the simulation."""
        return bool(self.manifest["source"] == "simulation")

    @property
    def mark(self) -> str:
        """Word that marks a run no model answered, ``simulated`` or ``composed``; "" for any other."""
        return MARKS.get(self.manifest["source"], "")

    @property
    def data_source(self) -> str:
        """Source of the data, as named in exports: its `mark`, ``upload`` or ``live``."""
        return self.mark or str(self.manifest["source"])

    @property
    def sampled_from(self) -> int | None:
        """Of how many questions it is a random sample; None for a whole run."""
        found = self.manifest.get("sample", {}).get("questions")
        return None if found is None else int(found)

    @property
    def sampling_error(self) -> float:
        """By how much a share of a sample's questions differs at most from that of all (95 %), in [0, 1].

        Normal approximation for a share of one half, corrected for a finite population; 0 for a whole run.
        """
        n, n_all = self.n_rows("queries"), self.sampled_from
        if n_all is None or not 0 < n < n_all:  # a manifest can say anything
            return 0.0
        return 1.96 * math.sqrt(0.25 / n * (n_all - n) / (n_all - 1))

    @property
    def whole_id(self) -> str:
        """Run id of the whole run where this is a sample, else its own; reviews are kept under it."""
        return str(self.manifest.get("sample", {}).get("of", self.run_id))

    @property
    def queries(self) -> pd.DataFrame:
        """One row per question."""
        return self.tables["queries"]

    @property
    def passages(self) -> pd.DataFrame:
        """One row per retrieved passage."""
        return self.tables["passages"]

    @property
    def repeats(self) -> pd.DataFrame:
        """One row per repeated unablated call."""
        return self.tables["repeats"]

    def n_rows(self, table: str) -> int:
        """Return the number of rows of a table, without reading it."""
        found = self.tables.n_rows(table) if isinstance(self.tables, SavedTables) else None
        return len(self.tables[table]) if found is None else found

    def has(self, table: str, *columns: str) -> bool:
        """Tell whether a table has a row or, where columns are named, a value in one of them.

        Of a table that was not read yet, the statistics of its file say so.
        """
        if not columns:
            return self.n_rows(table) > 0
        found = self.tables.has(table, columns) if isinstance(self.tables, SavedTables) else None
        return bool(self.tables[table][[*columns]].notna().to_numpy().any()) if found is None else found

    def derive(self, manifest: Mapping[str, Any] | None = None, **tables: pd.DataFrame) -> Run:
        """Return a new run with some tables replaced, naming this one as its parent."""
        changed = {k: v for k, v in self.manifest.items() if k not in ("run_id", "created")}
        changed |= {"parent": self.run_id, **(manifest or {})}
        return Run.create(changed, **{**self.tables, **tables})

    def renamed(self, name: str) -> Run:
        """Return the same run under another name."""
        return replace(self, manifest=MappingProxyType({**self.manifest, "name": name}))

    def report(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Return the report of this run: one HTML document that needs no network; a notebook shows it.

        Parameters
        ----------
        path : path, optional
            HTML file to write; replaced if it exists.

        Returns
        -------
        core.report.results.Report
            The document and the file.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        # By name: a report knows runs and everything that is computed of them, a run knows neither.
        return import_module("core.report.results").report(self, path)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the run as a folder: ``run.json`` and one Parquet file for each table that has rows.

        The tables are written first, under names with their content's hash; replacing ``run.json``
        makes them the run. A kill at any moment leaves the old run or the new one, never a mixture, and
        so do several processes that save to one folder.

        Raises
        ------
        InputError
            The folder exists, is not empty and holds no run; another process keeps it (`sole_writer`); or
            it cannot be written (full disk …).
        """
        target = check_target(folder)
        try:
            with writable_folder(target, PATIENCE):
                files = {
                    name: write_table(target, name, frame)
                    for name, frame in self.tables.items()
                    if name == "queries" or len(frame)
                }
                _write_manifest(target, {**self.manifest, "tables": files})
                keep = {MANIFEST_FILE, *(str(f["file"]) for f in files.values())}
                for path in target.iterdir():
                    if path.name not in keep and path.suffix in (".parquet", ".tmp"):
                        path.unlink()
                # What was computed of the old tables; of the new ones it is computed anew.
                shutil.rmtree(target / RESULTS, ignore_errors=True)
        except OSError as error:
            raise _not_written(target, error) from error
        return target

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Run:
        """Read a run that `save` wrote; of a large one that was opened before, each table when first used.

        Its tables were then checked as `load` checks them, and their files are as they were; each is checked
        again when it is read. They stay readable where another process replaces the run meanwhile.

        Raises
        ------
        RunFormatError
            As `load`.
        """
        source = Path(folder)
        manifest = read_manifest(source)
        note = source / RESULTS / _CHECKED
        try:
            known = read_json(read_file(note, LARGEST_MANIFEST).decode())
            if known == _stamps(source, manifest):
                return cls._of(source, manifest)
        except (KeyError, TypeError, OSError, ValueError, RunFormatError):
            pass  # never opened before, or not as it was
        run = cls.load(source)
        if run.origin is not None:
            with suppress(OSError, RunFormatError):
                _note_checked(source)
        return run

    @classmethod
    def sample(cls, folder: str | os.PathLike[str], n: int) -> Run:
        """Read a random sample of the questions of a run that `save` wrote, with all their rows.

        Files are read in pieces, so that memory is needed for the sample only; of a large run it is kept
        beside the tables for the next time. Which questions are drawn depends on their ids: of two runs with
        the same questions, the same ones, so that they can be compared pair by pair. The sample is a run of
        its own, whose parent is the whole.

        Parameters
        ----------
        folder : path
            Of the run.
        n : int
            Questions to draw; all where there are no more.

        Returns
        -------
        Run
            With `sampled_from`, unless it is the whole.

        Raises
        ------
        RunFormatError
            As `load`.
        """
        source = Path(folder)
        whole = read_manifest(source)
        if n_questions(whole) <= n:
            return cls.open(source)
        place = source / RESULTS / f"sample-{n}-{_digest_of(whole)[:24]}"
        with suppress(RunFormatError):
            return cls.open(place).renamed(_name_of_sample(whole, n))
        drawn = _while_saved(source, lambda manifest: cls._drawn(source, manifest, n))
        if n_questions(whole) < LARGE:
            return drawn
        try:
            drawn.save(place)
            _note_checked(place)
            return replace(drawn, origin=_origin_of(place, read_manifest(place)))
        except (InputError, OSError):  # such as a folder that nobody may write
            return drawn

    @classmethod
    def _drawn(cls, source: Path, manifest: Mapping[str, Any], n: int) -> Run:
        run_id = manifest["run_id"]
        facts = {one: value for one, value in manifest.items() if one not in ("tables", "planted")}
        facts |= {
            "run_id": f"{run_id}-sample",
            "name": _name_of_sample(manifest, n),
            "parent": run_id,
            "sample": {"of": run_id, "questions": n_questions(manifest)},
        }
        with wrong_is_damaged(source):
            return cls.create(facts, **read_sample(source, manifest["tables"], n))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Run:
        """Read a run that `save` wrote.

        Raises
        ------
        RunFormatError
            No run there, a newer schema, a missing or damaged file; the message says which.
        """
        return _while_saved(Path(folder), lambda manifest: cls._whole(Path(folder), manifest))

    @classmethod
    def _whole(cls, source: Path, manifest: Mapping[str, Any]) -> Run:
        run = cls._of(source, manifest)
        for name in run:
            run[name]
        return run

    @classmethod
    def _of(cls, source: Path, manifest: Mapping[str, Any]) -> Run:
        """Return the run of a manifest, its tables not yet read."""
        # First of all: whoever saves meanwhile takes the files away.
        tables = SavedTables(source, manifest["tables"])
        facts = {name: value for name, value in manifest.items() if name != "tables"}
        with wrong_is_damaged(source):
            made = cls.create(facts)
        return cls(made.manifest, tables, _origin_of(source, manifest))


def rename_run(folder: str | os.PathLike[str], name: str) -> None:
    """Give a saved run another name; its tables, and what was computed of them, stay.

    Raises
    ------
    RunFormatError
        No run there, or none that can be read.
    InputError
        Another process keeps the folder, or it cannot be written.
    """
    target = Path(folder)
    try:
        with writable_folder(target, PATIENCE):
            _write_manifest(target, {**read_manifest(target), "name": name})
    except OSError as error:
        raise _not_written(target, error) from error


def _write_manifest(target: Path, manifest: Mapping[str, Any]) -> None:
    text = json.dumps(json_value(manifest), ensure_ascii=False, indent=2, allow_nan=False)
    write_atomically(target / MANIFEST_FILE, clean(text).encode())


def _name_of_sample(whole: Mapping[str, Any], n: int) -> str:
    return f"{whole.get('name', whole['run_id'])}, {n:,} of {n_questions(whole):,} questions"


def _digest_of(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a run holds; under another name it is the same."""
    content = json.dumps({k: v for k, v in manifest.items() if k != "name"}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _while_saved(source: Path, read: Callable[[dict[str, Any]], Run]) -> Run:
    """Return ``read(manifest)``, tried again where another process saves the run meanwhile."""
    for _ in range(_TRIES):
        manifest = read_manifest(source)
        try:
            return read(manifest)
        except RunFormatError:
            # Whoever saves meanwhile takes the old tables away.
            if read_manifest(source) == manifest:
                raise
    raise RunFormatError(f"The run in {source} is being written again and again; try once more.")


def _origin_of(source: Path, manifest: Mapping[str, Any]) -> Origin | None:
    return Origin(source, _digest_of(manifest)) if n_questions(manifest) >= LARGE else None


def _note_checked(source: Path) -> None:
    """Note which files of a run were read whole, or just written."""
    note = source / RESULTS / _CHECKED
    note.parent.mkdir(exist_ok=True)
    write_atomically(note, json.dumps(_stamps(source, read_manifest(source))).encode())


def _stamps(source: Path, manifest: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the hash, size and time of the file of every table; OSError where one is missing."""
    found: dict[str, list[Any]] = {}
    for name, entry in manifest["tables"].items():
        facts = (source / Path(entry["file"]).name).stat()
        found[name] = [entry["file"], entry["sha256"], facts.st_size, facts.st_mtime_ns]
    return found


def marked_source(mark: object) -> str:
    """Return the source of runs with this `Run.mark`; "" for anything else."""
    return next((source for source, known in MARKS.items() if known == mark), "")


@contextmanager
def sole_writer(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Keep a folder for the runs that this process saves in the block, also when the process is killed.

    Raises
    ------
    InputError
        Another process, or another part of this one, has it, before anything is done; or as `check_target`.
    """
    target = check_target(folder)
    with ExitStack() as stack:
        try:
            stack.enter_context(kept_folder(target))
        except OSError as error:
            raise _not_written(target, error) from error
        yield


def _not_written(target: Path, error: OSError) -> InputError:
    if isinstance(error, BlockingIOError):
        return InputError(
            f"Another process or job is writing the run in {target}; wait until it has ended, or choose "
            "another folder."
        )
    return InputError(f"The run could not be saved to {target}: {error.strerror or error}.")


def check_target(folder: str | os.PathLike[str]) -> Path:
    """Return the folder as a path; InputError where it holds other files than a run."""
    target = Path(folder)
    try:
        if target.exists() and not target.is_dir():
            raise InputError(f"{target} is a file; a run is saved as a folder.")
        names = os.listdir(target) if target.exists() else []
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The folder {target} cannot be used: {reason}.") from error
    if MANIFEST_FILE not in names and not all(name.endswith((".parquet", ".tmp")) for name in names):
        raise InputError(f"{target} is not empty and holds no run; choose another folder.")
    return target


def holds_run(folder: str | os.PathLike[str]) -> bool:
    """Tell whether a folder has a manifest, readable or not; also where nobody may look."""
    try:
        os.lstat(Path(folder) / MANIFEST_FILE)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def _restore(manifest: dict[str, Any], tables: dict[str, pd.DataFrame]) -> Run:
    return Run(MappingProxyType(manifest), MappingProxyType(tables))


def _digest(frames: Mapping[str, pd.DataFrame]) -> str:
    digest = hashlib.sha256()
    for name, frame in frames.items():
        digest.update(f"{name} {len(frame)}".encode())
        for start in range(0, len(frame), _ROWS):
            plain = frame.iloc[start : start + _ROWS].astype("str")
            digest.update(pd.util.hash_pandas_object(plain, index=False).to_numpy().tobytes())
    return digest.hexdigest()[:12]
