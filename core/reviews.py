"""What a reader noted of the questions of a run: kept beside the run, which itself is never edited."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.beside import Beside
from core.errors import InputError
from core.text.display import shorten
from core.text.strict import clean, is_clean

STATUSES = ("open", "reviewed", "flagged")
LONGEST_NOTE = 5_000


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


_KEPT = Beside("reviews", dict)


def path_of(folder: str | os.PathLike[str], run_id: str) -> Path:
    """Return the file that holds the reviews of a run: ``<folder>/reviews/<run id>.json``.

    >>> path_of("runs", "c1a7").as_posix(), path_of("runs", "../a").name
    ('runs/reviews/c1a7.json', '---a-61b4c98b.json')
    """
    return _KEPT.path_of(folder, run_id)


def read(folder: str | os.PathLike[str], run_id: str) -> Mapping[str, Review]:
    """Return the reviews of a run in the runs folder by question; none where nothing was noted yet.

    InputError where the file cannot be read, is broken, or belongs to another run; it is left as it is.
    """
    return _KEPT.read(folder, run_id, _reviews)


def _reviews(entries: Mapping[str, Any]) -> Mapping[str, Review]:
    return {str(query_id): Review(**entry) for query_id, entry in entries.items()}


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
    with _KEPT.writing(folder, run_id) as write:
        stored = dict(read(folder, run_id))
        for query_id, review in changed.items():
            now, before = stored.get(query_id, Review()), (seen or {}).get(query_id)
            if before is not None and now not in (before, review):
                raise ChangedMeanwhile(now)
            stored[query_id] = review
        stored = {query_id: review for query_id, review in stored.items() if review != Review()}
        write({query_id: asdict(review) for query_id, review in stored.items()})
    return stored


def delete(folder: str | os.PathLike[str], run_id: str) -> None:
    """Delete the reviews of a run, if there are any."""
    _KEPT.delete(folder, run_id)
