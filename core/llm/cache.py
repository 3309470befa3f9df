"""Completions stored on disk by the content of their request, so no call is paid for twice."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from core.errors import InputError
from core.llm.storage import user_cache_dir
from core.llm.types import FINISH_REASONS, LLM, Completion, Request
from core.text.strict import clean

T = TypeVar("T")
CACHE_FILE = "completions.db"
_KEY_VERSION = 1
_BUSY_SECONDS = 30.0
_CHUNK = 500  # SQLite's limit on parameters is 999 in old builds
_SCHEMA = """
CREATE TABLE IF NOT EXISTS completions (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    text TEXT NOT NULL,
    finish_reason TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    latency REAL NOT NULL,
    logprobs TEXT,
    created REAL NOT NULL
) WITHOUT ROWID
"""


class CacheError(InputError):
    """The completion cache cannot be read or written; continuing would lose finished calls."""


def request_key(llm: LLM, request: Request) -> str:
    """Return the identity of a call, 64 hexadecimal digits: model, options, messages, every sampling setting.

    They change with anything that may change the answer.
    """
    identity = {
        "version": _KEY_VERSION,
        "model": llm.name,
        "options": dict(llm.options),
        "messages": [[m.role, m.content] for m in request.messages],
        "temperature": float(request.temperature),
        "top_p": float(request.top_p),
        "seed": int(request.seed),
        "max_tokens": int(request.max_tokens),
        "stop": list(request.stop),
    }
    # Only where used, so that the keys of other calls stay the same.
    if request.schema is not None:
        identity["schema"] = request.schema
    if request.logprobs:
        identity["logprobs"] = True
    text = json.dumps(identity, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    # A lone surrogate cannot be encoded as UTF-8; it must not sink the run.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def default_cache_path() -> Path:
    """Return the default path of the completion cache."""
    return user_cache_dir() / CACHE_FILE


class CompletionCache:
    """A SQLite file of completions, created when absent; without ``path`` they are kept in memory only.

    One instance may be shared by threads, one file by processes. Each `put` is committed before it returns,
    so a killed run loses at most the calls under way: as many as it makes at once.

    A row that cannot be read, because something else wrote it, counts as missing: `put` replaces it, and
    ``notes`` says how many were. `CacheError` where the file is damaged, is not a completion cache, or cannot
    be written.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else None
        self._lock = threading.Lock()
        self._unreadable: set[str] = set()
        self._n_replaced = 0
        if self.path is not None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CacheError(
                    f"The folder of the completion cache {self.path} cannot be made: {error.strerror}."
                ) from error
        self._db = self._guard(self._open)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a run that uses the cache should say about it."""
        n = self._n_replaced
        rows = "1 row" if n == 1 else f"{n:,} rows"
        return (f"{rows} of the completion cache could not be read; asked again and replaced.",) if n else ()

    def get_many(self, keys: Iterable[str]) -> dict[str, Completion]:
        """Return the completions found, by key."""
        wanted = list(dict.fromkeys(keys))

        def read() -> dict[str, Completion]:
            found = {}
            for first in range(0, len(wanted), _CHUNK):
                part = wanted[first : first + _CHUNK]
                marks = ",".join("?" * len(part))
                rows = self._db.execute(
                    "SELECT key, text, finish_reason, prompt_tokens, completion_tokens, latency, logprobs "
                    f"FROM completions WHERE key IN ({marks})",
                    part,
                )
                for key, *values in rows:
                    completion = _completion(*values)
                    if completion is None:
                        self._unreadable.add(key)
                    else:
                        found[key] = completion
            return found

        with self._lock:
            return self._guard(read)

    def put(self, key: str, completion: Completion, model: str = "") -> None:
        """Store one completion, committed at once; one with an error is not stored.

        The first writer wins, so two processes that make the same call end up with the same answer.
        """
        if completion.error is not None:
            return
        logprobs = json.dumps(completion.logprobs) if completion.logprobs is not None else None
        tokens = completion.prompt_tokens, completion.completion_tokens
        text, reason = clean(completion.text), completion.finish_reason
        row = (key, model, text, reason, *tokens, completion.latency, logprobs, time.time())
        with self._lock:
            conflict = "REPLACE" if key in self._unreadable else "IGNORE"
            insert = f"INSERT OR {conflict} INTO completions VALUES (?,?,?,?,?,?,?,?,?)"
            self._guard(lambda: self._db.execute(insert, row))
            if key in self._unreadable:
                self._unreadable.remove(key)
                self._n_replaced += 1

    def __len__(self) -> int:
        with self._lock:
            return int(
                self._guard(lambda: self._db.execute("SELECT count(*) FROM completions").fetchone()[0])
            )

    def close(self) -> None:
        """Close the file; the instance cannot be used afterwards."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> CompletionCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> sqlite3.Connection:
        target = ":memory:" if self.path is None else str(self.path)
        # Autocommit: every statement is its own transaction.
        db = sqlite3.connect(target, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            _set_up(db)
        except BaseException:
            db.close()
            raise
        return db

    def _guard(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except sqlite3.Error as error:
            raise CacheError(_explain(self.path, error)) from error


def _set_up(db: sqlite3.Connection) -> None:
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            # Changing the journal mode does not wait for other processes, so try again.
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute(_SCHEMA)
            db.execute("SELECT key, logprobs FROM completions LIMIT 1").fetchone()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _completion(
    text: Any, reason: Any, n_read: Any, n_written: Any, latency: Any, logprobs: Any
) -> Completion | None:
    """Return a stored completion; None for a row that no `put` has written."""
    try:
        values = None if logprobs is None else tuple(float(value) for value in json.loads(logprobs))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    counts = isinstance(n_read, int) and isinstance(n_written, int) and isinstance(latency, float)
    if not isinstance(text, str) or reason not in FINISH_REASONS or not counts:
        return None
    return Completion(text, reason, n_read, n_written, latency, values)


_ELSEWHERE = "or choose another file with --cache"
_CAUSES: Mapping[str, str] = {
    "SQLITE_FULL": f"cannot be written because the disk is full; free some space {_ELSEWHERE}",
    "SQLITE_BUSY": f"is locked by another program; close that program {_ELSEWHERE}",
    "SQLITE_LOCKED": f"is locked by another program; close that program {_ELSEWHERE}",
    "SQLITE_READONLY": f"cannot be written; make it writable {_ELSEWHERE}",
    "SQLITE_CANTOPEN": f"cannot be opened; check its folder {_ELSEWHERE}",
    "SQLITE_NOTADB": f"is damaged or is not a completion cache; delete that file {_ELSEWHERE}",
    "SQLITE_CORRUPT": f"is damaged; delete that file {_ELSEWHERE}",
}


def _explain(path: Path | None, error: sqlite3.Error) -> str:
    name = str(getattr(error, "sqlite_errorname", ""))
    unknown = f"cannot be used ({error}); delete that file {_ELSEWHERE}"
    cause = next((cause for code, cause in _CAUSES.items() if name.startswith(code)), unknown)
    return f"The completion cache {path} {cause}."
