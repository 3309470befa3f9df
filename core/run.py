"""A `Run`: a manifest and tidy tables of raw observations, saved as a folder and never edited."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from core.errors import InputError, RunFormatError
from core.schema import SCHEMA_VERSION, TABLES, conform, empty

MANIFEST_FILE = "run.json"
SOURCES = ("live", "upload", "simulation")


@dataclass(frozen=True, slots=True)
class Run:
    """One run: a manifest and the tables of `core.schema.TABLES`.

    Build it with `Run.create`; read tables as attributes (``run.queries``) or by name
    (``run["passages"]``). Frames are shared, so treat them as read-only: a changed run is a new
    run (`derive`) that names its parent.

    Attributes
    ----------
    manifest : Mapping
        Plain JSON values. Always present: ``run_id, name, source, created, schema_version,
        complete``. Usually: ``dataset, model, prompt, retriever, options, environment, cost, notes``.
    tables : Mapping[str, DataFrame]
        One frame per table, conforming to the schema.
    """

    manifest: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame] = field(repr=False)

    @classmethod
    def create(cls, manifest: Mapping[str, Any], **tables: pd.DataFrame) -> Run:
        """Check and complete a run.

        Parameters
        ----------
        manifest : Mapping
            At least ``source`` (live, upload or simulation). A missing ``run_id`` is derived from the
            tables, a missing ``name`` from the run id; ``created`` defaults to now.
        **tables : DataFrame
            Any of the schema's tables; absent ones are empty.

        Raises
        ------
        InputError
            An unknown table or source, a table that does not conform, or a passage, claim … without
            its question.
        """
        unknown = [name for name in tables if name not in TABLES]
        if unknown:
            raise InputError(f"There is no table {unknown[0]!r}; tables are {', '.join(TABLES)}.")
        if manifest.get("source") not in SOURCES:
            raise InputError(f"source must be one of {', '.join(SOURCES)}, got {manifest.get('source')!r}.")
        frames = {n: conform(t, tables[n]) if n in tables else empty(t) for n, t in TABLES.items()}
        known = pd.Index(frames["queries"]["query_id"])
        for name, frame in frames.items():
            stray = frame["query_id"].to_numpy()[known.get_indexer(frame["query_id"]) < 0]
            if stray.size:
                raise InputError(f"Table {name}: question {stray[0]!r} is not in the table queries.")
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
    def data_source(self) -> str:
        """Source of the data, as named in exports: ``simulated``, ``upload`` or ``live``."""
        return "simulated" if self.simulated else str(self.manifest["source"])

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

    def derive(self, manifest: Mapping[str, Any] | None = None, **tables: pd.DataFrame) -> Run:
        """Return a new run with some tables replaced, naming this one as its parent."""
        changed = {k: v for k, v in self.manifest.items() if k not in ("run_id", "created")}
        changed |= {"parent": self.run_id, **(manifest or {})}
        return Run.create(changed, **{**self.tables, **tables})

    def renamed(self, name: str) -> Run:
        """Return the same run under another name."""
        return replace(self, manifest=MappingProxyType({**self.manifest, "name": name}))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the run as a folder: ``run.json`` and one Parquet file per table.

        The tables are written first, under names with their content's hash; replacing ``run.json``
        makes them the run. A kill at any moment leaves the old run or the new one, never a mixture.

        Raises
        ------
        InputError
            The folder exists, is not empty and holds no run; or it cannot be written (full disk …).
        """
        target = check_target(folder)
        try:
            target.mkdir(parents=True, exist_ok=True)
            files = {name: _write_table(target, name, frame) for name, frame in self.tables.items()}
            manifest = {**self.manifest, "tables": files}
            text = json.dumps(manifest, ensure_ascii=False, indent=2, default=str)
            write_atomically(target / MANIFEST_FILE, text.encode())
            keep = {MANIFEST_FILE, *(str(f["file"]) for f in files.values())}
            for path in target.iterdir():
                if path.name not in keep and path.suffix in (".parquet", ".tmp"):
                    path.unlink()
        except OSError as error:
            raise InputError(f"The run could not be saved to {target}: {error.strerror or error}.") from error
        return target

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Run:
        """Read a run that `save` wrote.

        Raises
        ------
        RunFormatError
            No run there, a newer schema, a missing or damaged file; the message says which.
        """
        source = Path(folder)
        manifest = read_manifest(source)
        frames = {}
        for name, entry in manifest.pop("tables").items():
            if name in TABLES:
                frames[name] = _read_table(source, name, entry)
        try:
            return cls.create(manifest, **frames)
        except InputError as error:
            raise RunFormatError(f"The run in {source} is damaged: {error}") from error


def check_target(folder: str | os.PathLike[str]) -> Path:
    """Return the folder as a path; InputError where it holds other files than a run."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file; a run is saved as a folder.")
    of_a_run = (target / MANIFEST_FILE).exists() or not target.is_dir()
    if not of_a_run and any(not p.name.endswith((".parquet", ".tmp")) for p in target.iterdir()):
        raise InputError(f"{target} is not empty and holds no run; choose another folder.")
    return target


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read only ``run.json`` of a saved run, checked; raises `RunFormatError`."""
    path = Path(folder) / MANIFEST_FILE
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunFormatError(f"{folder} is not a saved run: it has no {MANIFEST_FILE}.") from error
    except (OSError, ValueError) as error:
        raise RunFormatError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("tables"), dict):
        raise RunFormatError(f"{path} is not the manifest of a run: it names no tables.")
    version = manifest.get("schema_version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise RunFormatError(
            f"The run in {folder} has schema version {version!r}; this program reads up to {SCHEMA_VERSION}."
        )
    return manifest


def _restore(manifest: dict[str, Any], tables: dict[str, pd.DataFrame]) -> Run:
    return Run(MappingProxyType(manifest), MappingProxyType(tables))


def _digest(frames: Mapping[str, pd.DataFrame]) -> str:
    digest = hashlib.sha256()
    for name, frame in frames.items():
        digest.update(f"{name} {len(frame)}".encode())
        if len(frame):
            plain = frame.astype("str")
            digest.update(pd.util.hash_pandas_object(plain, index=False).to_numpy().tobytes())
    return digest.hexdigest()[:12]


def _write_table(folder: Path, name: str, frame: pd.DataFrame) -> dict[str, str | int]:
    # The name includes the content's hash, so a file is either absent or correct.
    content = frame.to_parquet(None, index=False, compression="zstd")
    digest = hashlib.sha256(content).hexdigest()
    file = f"{name}-{digest[:12]}.parquet"
    write_atomically(folder / file, content)
    return {"file": file, "sha256": digest, "rows": len(frame)}


def _read_table(folder: Path, name: str, entry: Mapping[str, Any]) -> pd.DataFrame:
    try:
        file = str(entry["file"])
        if Path(file).name != file:
            raise RunFormatError(f"The run in {folder} is damaged: table {name} points outside the folder.")
        path = folder / file
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise RunFormatError(f"The run in {folder} is damaged: {file} is not the file that was saved.")
        return pd.read_parquet(path)
    except FileNotFoundError as error:
        raise RunFormatError(
            f"The run in {folder} is damaged: the file of table {name} is missing."
        ) from error
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise RunFormatError(
            f"The run in {folder} is damaged: table {name} cannot be read ({error})."
        ) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is the old or the new one at any moment, never half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
