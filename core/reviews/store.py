"""Reviews on disk: one row for each person and decision, never changed, so that nobody overwrites anybody."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.beside import Beside
from core.database import Database, StoreWords, shared
from core.errors import InputError
from core.reviews.review import LABELS, LONGEST_NOTE, STATUSES, ByPerson, ChangedMeanwhile, Review
from core.text.strict import clean

READER = "reader"  # who reviews where nobody signs in, and in the files of earlier versions
Folder = str | os.PathLike[str]
_FILE = "reviews.db"
_STORE = "reviews"
_WORDING = StoreWords(
    "file of reviews", InputError, "restore a copy of it, or move it away", "or choose another folder"
)
_KEPT = Beside("reviews", dict)  # of earlier versions: a JSON file for each run
_CHUNK = 500  # SQLite's limit on parameters is 999 in old builds
_OF_ROW = "query_id, status, note, correct, grounded"


class ReviewStore:
    """The reviews of the runs in a folder: ``<folder>/reviews/reviews.db``, or in the ``LEADLINE_DATABASE``.

    Of a person and question the newest row counts; what somebody wrote is never changed by others. Not for
    several threads at once. InputError where it cannot be read or written; it is left as it is.

    Parameters
    ----------
    folder : path
        The runs folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, ReviewStore(folder) as store:
    ...     store.write("run", "Ada", {"q1": Review("reviewed", correct=True)})
    ...     store.write("run", "Ben", {"q1": Review("flagged", "Wrong year.", correct=False)})
    ...     {person: found["q1"].labels for person, found in store.of("run").items()}
    {'Ada': ('correct',), 'Ben': ('incorrect',)}
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = Path(folder)
        self._db = Database(
            shared() or self._folder / _STORE / _FILE, _WORDING, lambda db: db.migrate(_STORE)
        )

    def of(self, run_id: str) -> ByPerson:
        """Return the reviews of a run by person, then by question; one that was taken back is none."""
        newest = "SELECT max(id) FROM reviews WHERE run_id = ? GROUP BY query_id, person"
        rows = self._db.execute(
            f"SELECT person, {_OF_ROW} FROM reviews WHERE id IN ({newest}) ORDER BY person, id",
            (clean(run_id),),
        )
        found: dict[str, dict[str, Review]] = {}
        for person, *row in rows:
            found.setdefault(person, {}).update([_review(row)])
        return _with_earlier(found, _earlier(self._folder, run_id))

    def write(
        self,
        run_id: str,
        person: str,
        changed: Mapping[str, Review],
        seen: Mapping[str, Review] | None = None,
    ) -> None:
        """Store the reviews of a person of some questions, all of them or none.

        Where something else of this person is stored than the writer has ``seen``, and it is not the new
        review, nothing is written: `ChangedMeanwhile`.
        """
        run, who = clean(run_id), clean(person)
        earlier = _earlier(self._folder, run_id)

        def written() -> None:
            if earlier:
                self._take_over(run, earlier)
            stored = self._newest(run, who, changed)
            for query_id, review in changed.items():
                now, before = stored.get(clean(query_id), Review()), (seen or {}).get(query_id)
                if before is not None and now not in (before, review):
                    raise ChangedMeanwhile(now)
                if now != review:
                    self._append(run, who, clean(query_id), review, _now())

        self._db.write(written, lock=f"reviews {run} {who}")
        if earlier:
            path = path_of(self._folder, run_id)
            with suppress(OSError):  # it is read again then, and adds nothing
                path.rename(path.with_suffix(".json.imported"))

    def delete(self, run_id: str) -> None:
        """Delete all reviews of a run, if there are any."""
        self._db.execute("DELETE FROM reviews WHERE run_id = ?", (clean(run_id),))

    def close(self) -> None:
        """Close the file; the instance cannot be used afterwards."""
        self._db.close()

    def __enter__(self) -> ReviewStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_over(self, run: str, earlier: Mapping[str, Review]) -> None:
        """Store what a file of an earlier version says where nothing newer is stored."""
        stored = self._newest(run, READER, earlier)
        for query_id, review in earlier.items():
            if query_id not in stored:
                self._append(run, READER, query_id, review, _now())

    def _newest(self, run: str, person: str, questions: Iterable[str]) -> dict[str, Review]:
        asked = [*map(clean, questions)]
        found: dict[str, Review] = {}
        for first in range(0, len(asked), _CHUNK):
            part = asked[first : first + _CHUNK]
            newest = (
                "SELECT max(id) FROM reviews WHERE run_id = ? AND person = ? AND query_id IN "
                f"({','.join('?' * len(part))}) GROUP BY query_id"
            )
            rows = self._db.execute(
                f"SELECT {_OF_ROW} FROM reviews WHERE id IN ({newest})", (run, person, *part)
            )
            found.update(map(_review, rows))
        return found

    def _append(self, run: str, person: str, query_id: str, review: Review, at: str) -> None:
        labels = (None if label is None else int(label) for label in (review.correct, review.grounded))
        self._db.execute(
            f"INSERT INTO reviews (run_id, person, {_OF_ROW}, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (run, person, query_id, review.status, review.note, *labels, at),
        )


def path_of(folder: Folder, run_id: str) -> Path:
    """Return the file of earlier versions with the reviews of a run: ``<folder>/reviews/<run id>.json``.

    >>> path_of("runs", "c1a7").as_posix(), path_of("runs", "../a").name
    ('runs/reviews/c1a7.json', '---a-61b4c98b.json')
    """
    return _KEPT.path_of(folder, run_id)


def read_all(folder: Folder, run_id: str) -> ByPerson:
    """Return the reviews of a run in the runs folder by person, then by question; see `ReviewStore.of`.

    A file of reviews is not made where there is none.
    """
    if shared() is None and not _at(folder):
        return _with_earlier({}, _earlier(folder, run_id))
    with ReviewStore(folder) as store:
        return store.of(run_id)


def read(folder: Folder, run_id: str, person: str = READER) -> Mapping[str, Review]:
    """Return a person's reviews of a run in the runs folder by question."""
    return read_all(folder, run_id).get(clean(person), {})


def write_all(
    folder: Folder,
    run_id: str,
    changed: Mapping[str, Review],
    seen: Mapping[str, Review] | None = None,
    person: str = READER,
) -> None:
    """Store a person's reviews of some questions of a run in the runs folder; see `ReviewStore.write`."""
    with ReviewStore(folder) as store:
        store.write(run_id, person, changed, seen)


def delete(folder: Folder, run_id: str) -> None:
    """Delete the reviews of a run, if there are any."""
    if shared() is not None or _at(folder):
        with ReviewStore(folder) as store:
            store.delete(run_id)
    _KEPT.delete(folder, run_id)
    with suppress(OSError):
        path_of(folder, run_id).with_suffix(".json.imported").unlink()


def combined(people: ByPerson) -> Mapping[str, Review]:
    r"""Return one review for each question: flagged if anybody flags it, with all notes after their names.

    A label that people disagree on is none. Of one person it is what they say.

    >>> both = combined({"Ada": {"q1": Review("reviewed", "Fine.")}, "Ben": {"q1": Review("flagged", "No.")}})
    >>> both["q1"].status, both["q1"].note
    ('flagged', 'Ada: Fine.\nBen: No.')
    """
    if len(people) == 1:
        return next(iter(people.values()))
    by_question: dict[str, dict[str, Review]] = {}
    for person, found in people.items():
        for query_id, review in found.items():
            by_question.setdefault(query_id, {})[person] = review
    return {query_id: _together(said) for query_id, said in by_question.items()}


def _together(said: Mapping[str, Review]) -> Review:
    status = max((one.status for one in said.values()), key=STATUSES.index)
    note = "\n".join(f"{person}: {one.note}" for person, one in said.items() if one.note)
    cut = note if len(note) <= LONGEST_NOTE else note[: LONGEST_NOTE - 1] + "…"
    votes = [{getattr(one, name) for one in said.values()} - {None} for name in LABELS]
    return Review(status, cut, *(next(iter(found)) if len(found) == 1 else None for found in votes))


def _at(folder: Folder) -> bool:
    """Tell whether a folder has a file of reviews; a path that cannot be looked at has one, for its error."""
    try:
        return (Path(folder) / _STORE / _FILE).exists()
    except OSError:
        return True


def _earlier(folder: Folder, run_id: str) -> Mapping[str, Review]:
    """Return what a file of an earlier version holds; InputError where it is broken or of another run."""
    return _KEPT.read(folder, run_id, _reviews)


def _reviews(entries: Mapping[str, Any]) -> Mapping[str, Review]:
    return {clean(query_id): Review(**entry) for query_id, entry in entries.items()}


def _with_earlier(found: ByPerson, earlier: Mapping[str, Review]) -> ByPerson:
    """Add what is only in the file of an earlier version, and leave out what was taken back."""
    if earlier:
        found = {**found, READER: {**earlier, **found.get(READER, {})}}
    kept = {who: {q: one for q, one in said.items() if one != Review()} for who, said in found.items()}
    return {who: said for who, said in kept.items() if said}


def _review(row: Iterable[Any]) -> tuple[str, Review]:
    query_id, status, note, *labels = row
    return query_id, Review(status, note, *(None if one is None else bool(one) for one in labels))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
