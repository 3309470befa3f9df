"""What a reader noted of the questions of a run: kept beside the run, which itself is never edited."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.files import kept_folder, read_file, write_atomically
from core.text.display import shorten
from core.text.strict import clean, is_clean, read_json

STATUSES = ("open", "reviewed", "flagged")
LONGEST_NOTE = 5_000
_LARGEST = 100_000_000
_PATIENCE = 5.0
_NAME = 60


@dataclass(frozen=True, slots=True)
class Review:
    """What a reader noted of one question; InputError for another status, or a longer note."""

    status: str = "open"  # of STATUSES
    note: str = ""  # at most 5,000 characters; half a surrogate pair becomes U+FFFD

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise InputError(f"A status is one of {', '.join(STATUSES)}, not {shorten(repr(self.status))}.")
        if not isinstance(self.note, str) or len(self.note) > LONGEST_NOTE:
            raise InputError(f"A note is a text of at most {LONGEST_NOTE:,} characters.")
        if not is_clean(self.note):
            object.__setattr__(self, "note", clean(self.note))


class ChangedMeanwhile(InputError):
    """Somebody else changed the review since it was read; ``stored`` is what they wrote."""

    def __init__(self, stored: Review) -> None:
        note = f" with the note “{shorten(stored.note)}”" if stored.note else " without a note"
        super().__init__(f"This review was changed in another tab meanwhile: it is {stored.status}{note}.")
        self.stored = stored


def path_of(folder: str | os.PathLike[str], run_id: str) -> Path:
    """Return the file that holds the reviews of a run: ``<folder>/reviews/<run id>.json``.

    What no file name should hold is replaced, and the name then ends in a digest of the id.

    >>> path_of("runs", "c1a7").as_posix(), path_of("runs", "../a").name
    ('runs/reviews/c1a7.json', '---a-61b4c98b.json')
    """
    name = re.sub(r"[^A-Za-z0-9_-]", "-", run_id)[:_NAME]
    if name != run_id:
        name += "-" + hashlib.sha256(clean(run_id).encode()).hexdigest()[:8]
    return Path(folder) / "reviews" / f"{name}.json"


def read(folder: str | os.PathLike[str], run_id: str) -> Mapping[str, Review]:
    """Return the reviews of a run in the runs folder by question; none where nothing was noted yet.

    InputError where the file cannot be read, is broken, or belongs to another run; it is left as it is.
    """
    path = path_of(folder, run_id)
    try:
        content = read_json(read_file(path, _LARGEST).decode())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"The reviews in {path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise InputError(f"The reviews in {path} cannot be read as JSON: {shorten(error)}.") from error
    return _checked(content, path, run_id)


def _checked(content: Any, path: Path, run_id: str) -> Mapping[str, Review]:
    entries = content.get("reviews") if isinstance(content, dict) else None
    if not isinstance(entries, dict):
        raise InputError(f"{path} holds no reviews: it needs an object with run_id and reviews.")
    if content.get("run_id") != clean(run_id):
        raise InputError(f"The reviews in {path} belong to the run {shorten(content.get('run_id'))}.")
    try:
        return {str(query_id): Review(**entry) for query_id, entry in entries.items()}
    except (InputError, TypeError) as error:
        raise InputError(f"The reviews in {path} are damaged: {shorten(error)}") from error


def write_all(
    folder: str | os.PathLike[str],
    run_id: str,
    changed: Mapping[str, Review],
    seen: Mapping[str, Review] | None = None,
) -> Mapping[str, Review]:
    """Store the reviews of some questions; those of the others stay as they are, whoever wrote them.

    An open review without a note is taken off the file. Returns all reviews of the run after that. Where
    something else is stored than the writer has ``seen``, and it is not the new review, nothing is written:
    `ChangedMeanwhile`. InputError as in `read`, or where the file cannot be written; it is left as it is.
    """
    path = path_of(folder, run_id)
    try:
        with kept_folder(path.parent, _PATIENCE):
            stored = dict(read(folder, run_id))
            for query_id, review in changed.items():
                now, before = stored.get(query_id, Review()), (seen or {}).get(query_id)
                if before is not None and now not in (before, review):
                    raise ChangedMeanwhile(now)
                stored[query_id] = review
            stored = {query_id: review for query_id, review in stored.items() if review != Review()}
            content = {"run_id": run_id, "reviews": {q: asdict(review) for q, review in stored.items()}}
            text = json.dumps(content, ensure_ascii=False, indent=1)
            write_atomically(path, clean(text).encode())
    except BlockingIOError as error:
        raise InputError(f"Another process keeps the folder {path.parent}; try again.") from error
    except OSError as error:
        raise InputError(f"The reviews cannot be saved to {path}: {error.strerror or error}.") from error
    return stored


def delete(folder: str | os.PathLike[str], run_id: str) -> None:
    """Delete the reviews of a run, if there are any."""
    path = path_of(folder, run_id)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"The reviews in {path} cannot be deleted: {error.strerror or error}.") from error
