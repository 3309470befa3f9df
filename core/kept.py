"""Results kept beside a saved run, so that it opens again without being analysed again.

Each result is a JSON file, and each of its tables a Parquet file, in a folder named for what they follow
from: the content of the run, the settings, the environment variables that analyses read, and the program.
Both begin, or are named, with a signature (HMAC of SHA-256) by a key that only this user has, so results
that came along with somebody's run are not believed. Whatever is missing, damaged, or foreign is computed
anew, and deleting the folder is always safe.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.files import read_file, user_cache_dir, write_atomically

_SETS = 8  # of results of one run, such as those under other settings; the oldest go first
_LARGEST = 4_000_000_000
_KEY, _KEY_BYTES = "results.key", 32  # in the user's cache folder
_READ_BY_ANALYSES = ("RAG_CONFIDENCE_", "ENABLE_VALIDATORS", "VALIDATOR_")
_ROOT = Path(__file__).resolve().parent


class NotKept(Exception):
    """A result is not there, or is of a kind that is not kept."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Results of one run under one set of settings, in a folder.

    ``classes`` are the frozen dataclasses that a result may be made of, beside plain values, tuples, mappings
    and frames.
    """

    folder: Path
    classes: tuple[type, ...]

    def read(self, name: str) -> Any:
        """Return a result; `NotKept` where there is none that is whole."""
        try:
            digest, _, content = read_file(self._path(name), _LARGEST).partition(b"\n")
            if not hmac.compare_digest(digest.decode(), _signature(content)):
                raise NotKept(name)
            return self._decoded(json.loads(content))
        except NotKept:
            raise
        except Exception as error:  # somebody else's file can be wrong in any way
            raise NotKept(name) from error

    def write(self, name: str, value: Any) -> None:
        """Keep a result; nothing where the folder cannot be written or the result is of another kind."""
        with suppress(NotKept, OSError):
            if not self.folder.is_dir():
                self.folder.mkdir(parents=True)
                _thin(self.folder.parent)
            content = json.dumps(self._encoded(value), ensure_ascii=True).encode()
            write_atomically(self._path(name), _signature(content).encode() + b"\n" + content)

    def _path(self, name: str) -> Path:
        return self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"

    def _encoded(self, value: Any) -> Any:
        """Return a value as JSON; whatever JSON has no word for is an object with one entry, its kind."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) in (list, *_COLLECTIONS.values()):  # no named tuple, which would come back as another
            # The ids of the questions of a finding are many.
            every = list(value) if all(type(one) is str for one in value) else [*map(self._encoded, value)]
            return every if type(value) is list else {type(value).__name__: every}
        if isinstance(value, Mapping):
            return {"mapping": [[self._encoded(key), self._encoded(one)] for key, one in value.items()]}
        if isinstance(value, pd.DataFrame):
            return {"frame": self._written(value)}
        if is_dataclass(value) and type(value) in self.classes:
            parts = {one.name: self._encoded(getattr(value, one.name)) for one in fields(value)}
            return {type(value).__name__: parts}
        raise NotKept(type(value).__name__)

    def _decoded(self, value: Any) -> Any:
        if isinstance(value, list):
            return value if all(type(one) is str for one in value) else [*map(self._decoded, value)]
        if not isinstance(value, dict):
            return value
        ((kind, inside),) = value.items()
        if kind in _COLLECTIONS:
            return _COLLECTIONS[kind](self._decoded(inside))
        if kind == "mapping":
            return {self._decoded(key): self._decoded(one) for key, one in inside}
        if kind == "frame":
            return self._frame(inside)
        known = {one.__name__: one for one in self.classes}
        return known[kind](**{name: self._decoded(one) for name, one in inside.items()})

    def _written(self, frame: pd.DataFrame) -> str:
        if not frame.index.equals(pd.RangeIndex(len(frame))):
            raise NotKept("a frame with an index")
        for column in _objects(frame):
            if not all(one is None or type(one) is list for one in frame[column]):
                raise NotKept("a column of objects")
        file = io.BytesIO()
        # A column of different kinds, a whole number of more than 64 bits, a kind that Parquet lacks.
        try:
            frame.to_parquet(file, index=False, compression="zstd")
        except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
            raise NotKept("frame") from error
        content = file.getvalue()
        name = f"{_signature(content)}.parquet"
        write_atomically(self.folder / name, content)
        return name

    def _frame(self, name: str) -> pd.DataFrame:
        content = read_file(self.folder / Path(name).name, _LARGEST)
        if not hmac.compare_digest(f"{_signature(content)}.parquet", name):
            raise NotKept(name)
        frame = pd.read_parquet(io.BytesIO(content))
        for column in _objects(frame):
            frame[column] = pd.Series(
                [one.tolist() if isinstance(one, np.ndarray) else one for one in frame[column]],
                index=frame.index,
                dtype="object",
            )
        return frame


_COLLECTIONS: Mapping[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}


def _signature(content: bytes) -> str:
    return hmac.new(_key(user_cache_dir() / _KEY), content, hashlib.sha256).hexdigest()


@cache
def _key(path: Path) -> bytes:
    """Return this user's key, made at first; one of this process alone where it cannot be kept."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, secrets.token_bytes(_KEY_BYTES))  # which only the user may read
        return read_file(path, _KEY_BYTES)
    except OSError:
        return secrets.token_bytes(_KEY_BYTES)


def _objects(frame: pd.DataFrame) -> list[str]:
    return [name for name, kind in frame.dtypes.items() if kind == np.dtype(object)]


def kept_for(folder: Path, digest: str, about: Mapping[str, Any], classes: Sequence[type]) -> Kept:
    """Return where results of a saved run are kept.

    Parameters
    ----------
    folder : Path
        For the results of this run, whatever they are.
    digest : str
        Of the run's content.
    about : Mapping
        What else they follow from, such as settings: plain JSON values.
    classes : sequence of type
        Frozen dataclasses that they are made of.
    """
    known = {name: value for name, value in os.environ.items() if name.startswith(_READ_BY_ANALYSES)}
    text = json.dumps([digest, dict(about), known, program()], sort_keys=True)
    return Kept(folder / hashlib.sha256(text.encode()).hexdigest()[:24], tuple(classes))


@cache
def program() -> str:
    """Return a digest of the program: of every file of it, and of the libraries that draw random numbers."""
    digest = hashlib.sha256(f"{np.__version__} {pd.__version__}".encode())
    for path in _sources():
        digest.update(f"{path.relative_to(_ROOT.parent)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    """Yield the files of the engine and of the dashboard, which keeps results under names of its own."""
    for part in (_ROOT, _ROOT.parent / "ui"):
        yield from sorted(
            path for path in part.rglob("*") if path.suffix in (".py", ".txt", ".json") and path.is_file()
        )


def _thin(folder: Path) -> None:
    """Delete the oldest sets of results."""
    found = sorted((one for one in folder.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime)
    for old in found[: max(0, len(found) - _SETS)]:
        shutil.rmtree(old, ignore_errors=True)
