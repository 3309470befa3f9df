"""Changes that were asked, kept beside the run as reviews are: the run itself is never edited."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core import reviews
from core.errors import InputError
from core.files import kept_folder, read_file, write_atomically
from core.text.display import shorten
from core.text.strict import clean, read_json
from core.whatif.asking import Version, as_version
from core.whatif.change import read_change

MOST = 1_000  # versions of a run; the oldest ones go
_LARGEST = 100_000_000
_PATIENCE = 5.0


def path_of(folder: str | os.PathLike[str], run_id: str) -> Path:
    """Return the file that holds the versions of a run: ``<folder>/versions/<run id>.json``.

    >>> path_of("runs", "c1a7").as_posix()
    'runs/versions/c1a7.json'
    """
    return Path(folder) / "versions" / reviews.path_of(folder, run_id).name


def read(folder: str | os.PathLike[str], run_id: str) -> tuple[Version, ...]:
    """Return the versions of a run in the runs folder, oldest first; none where nothing was asked yet.

    InputError where the file cannot be read, is broken, or belongs to another run; it is left as it is.
    """
    path = path_of(folder, run_id)
    try:
        content = read_json(read_file(path, _LARGEST).decode())
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise InputError(f"The versions in {path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise InputError(f"The versions in {path} cannot be read as JSON: {shorten(error)}.") from error
    return _checked(content, path, run_id)


def _checked(content: Any, path: Path, run_id: str) -> tuple[Version, ...]:
    entries = content.get("versions") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise InputError(f"{path} holds no versions: it needs an object with run_id and versions.")
    if content.get("run_id") != clean(run_id):
        raise InputError(f"The versions in {path} belong to the run {shorten(content.get('run_id'))}.")
    try:
        return tuple(as_version(entry, read_change(entry["change"])) for entry in entries)
    except (InputError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"The versions in {path} are damaged: {shorten(error)}") from error


def add(folder: str | os.PathLike[str], run_id: str, new: Sequence[Version]) -> tuple[Version, ...]:
    """Keep further versions; whatever others wrote meanwhile stays. Returns all versions of the run.

    InputError as in `read`, or where the file cannot be written; it is left as it is.
    """
    path = path_of(folder, run_id)
    try:
        with kept_folder(path.parent, _PATIENCE):
            found = (*read(folder, run_id), *new)[-MOST:]
            content = {"run_id": run_id, "versions": [one.to_dict() for one in found]}
            write_atomically(path, clean(json.dumps(content, ensure_ascii=False, indent=1)).encode())
    except BlockingIOError as error:
        raise InputError(f"Another process keeps the folder {path.parent}; try again.") from error
    except OSError as error:
        raise InputError(f"The versions cannot be saved to {path}: {error.strerror or error}.") from error
    return found


def delete(folder: str | os.PathLike[str], run_id: str) -> None:
    """Delete the versions of a run, if there are any."""
    path = path_of(folder, run_id)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"The versions in {path} cannot be deleted: {error.strerror or error}.") from error
