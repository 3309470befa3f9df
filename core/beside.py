"""Files that are kept beside the runs, one for each run: a run itself is never edited."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from core.errors import InputError
from core.files import kept_folder, read_file, write_atomically
from core.text.display import shorten
from core.text.strict import clean, read_json

T = TypeVar("T")
Folder = str | os.PathLike[str]
_LARGEST = 100_000_000
_PATIENCE = 5.0
_NAME = 60


@dataclass(frozen=True, slots=True)
class Beside:
    """Files of one kind: JSON with ``run_id`` and, under ``noun``, an object or a list, a ``kind``.

    ``noun`` is a plural; it also names their folder. All methods raise InputError where the file cannot be
    read, written or deleted; it is left as it is.
    """

    noun: str
    kind: type

    def path_of(self, folder: Folder, run_id: str) -> Path:
        """Return the file of a run: ``<folder>/<noun>/<run id>.json``.

        What no file name should hold is replaced, and the name then ends in a digest of the id.
        """
        name = re.sub(r"[^A-Za-z0-9_-]", "-", run_id)[:_NAME]
        if name != run_id:
            name += "-" + hashlib.sha256(clean(run_id).encode()).hexdigest()[:8]
        return Path(folder) / self.noun / f"{name}.json"

    def read(self, folder: Folder, run_id: str, parse: Callable[[Any], T]) -> T:
        """Return what ``parse`` makes of what is kept of a run, or of an empty one where nothing is.

        ``parse`` raises InputError, KeyError, TypeError or ValueError for damaged content.
        """
        path = self.path_of(folder, run_id)
        try:
            content = read_json(read_file(path, _LARGEST).decode())
        except FileNotFoundError:
            return parse(self.kind())
        except OSError as error:
            raise InputError(
                f"The {self.noun} in {path} cannot be read: {error.strerror or error}."
            ) from error
        except ValueError as error:
            raise InputError(
                f"The {self.noun} in {path} cannot be read as JSON: {shorten(error)}."
            ) from error
        entries = content.get(self.noun) if isinstance(content, dict) else None
        if not isinstance(entries, self.kind):
            raise InputError(f"{path} holds no {self.noun}: it needs an object with run_id and {self.noun}.")
        if content.get("run_id") != clean(run_id):
            raise InputError(f"The {self.noun} in {path} belong to the run {shorten(content.get('run_id'))}.")
        try:
            return parse(entries)
        except (InputError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"The {self.noun} in {path} are damaged: {shorten(error)}") from error

    @contextmanager
    def writing(self, folder: Folder, run_id: str) -> Iterator[Callable[[Any], None]]:
        """Keep the folder for this process in the block; it gets the function that writes."""
        path = self.path_of(folder, run_id)

        def write(entries: Any) -> None:
            content: Mapping[str, Any] = {"run_id": run_id, self.noun: entries}
            text = json.dumps(content, ensure_ascii=False, indent=1)
            write_atomically(path, clean(text).encode())

        try:
            with kept_folder(path.parent, _PATIENCE):
                yield write
        except BlockingIOError as error:
            raise InputError(f"Another process keeps the folder {path.parent}; try again.") from error
        except OSError as error:
            raise InputError(
                f"The {self.noun} cannot be saved to {path}: {error.strerror or error}."
            ) from error

    def delete(self, folder: Folder, run_id: str) -> None:
        """Delete what is kept of a run, if there is anything."""
        path = self.path_of(folder, run_id)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(
                f"The {self.noun} in {path} cannot be deleted: {error.strerror or error}."
            ) from error
