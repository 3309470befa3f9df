"""Changes that were asked, kept beside the run as reviews are: the run itself is never edited."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.beside import Beside
from core.whatif.asking import Version, as_version
from core.whatif.change import read_change

MOST = 1_000  # versions of a run; the oldest ones go
_KEPT = Beside("versions", list)


def path_of(folder: str | os.PathLike[str], run_id: str) -> Path:
    """Return the file that holds the versions of a run: ``<folder>/versions/<run id>.json``.

    >>> path_of("runs", "c1a7").as_posix()
    'runs/versions/c1a7.json'
    """
    return _KEPT.path_of(folder, run_id)


def read(folder: str | os.PathLike[str], run_id: str) -> tuple[Version, ...]:
    """Return the versions of a run in the runs folder, oldest first; none where nothing was asked yet.

    InputError where the file cannot be read, is broken, or belongs to another run; it is left as it is.
    """
    return _KEPT.read(folder, run_id, _versions)


def _versions(entries: Sequence[Any]) -> tuple[Version, ...]:
    return tuple(as_version(entry, read_change(entry["change"])) for entry in entries)


def add(folder: str | os.PathLike[str], run_id: str, new: Sequence[Version]) -> tuple[Version, ...]:
    """Keep further versions; whatever others wrote meanwhile stays. Returns all versions of the run.

    InputError as in `read`, or where the file cannot be written; it is left as it is.
    """
    with _KEPT.writing(folder, run_id) as write:
        found = (*read(folder, run_id), *new)[-MOST:]
        write([one.to_dict() for one in found])
    return found


def delete(folder: str | os.PathLike[str], run_id: str) -> None:
    """Delete the versions of a run, if there are any."""
    _KEPT.delete(folder, run_id)
