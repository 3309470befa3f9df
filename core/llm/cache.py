"""Completions stored on disk by the content of their request, so no call is paid for twice."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from core.database import BUSY_SECONDS, Database, StoreWords, shared
from core.errors import InputError
from core.files import user_cache_dir
from core.llm.types import FINISH_REASONS, LLM, Completion, Request
from core.text.strict import clean

CACHE_FILE = "completions.db"
_KEY_VERSION = 1
_BUSY_SECONDS = BUSY_SECONDS
_CHUNK = 500  # SQLite's limit on parameters is 999 in old builds
_STORE = "completions"
_ROWS = 100  # of nine values
_MARKS = "(?,?,?,?,?,?,?,?,?)"
Row = tuple[Any, ...]
_NEW = ", ".join(
    f"{name} = excluded.{name}"
    for name in (
        "model",
        "text",
        "finish_reason",
        "prompt_tokens",
        "completion_tokens",
        "latency",
        "logprobs",
    )
)


class CacheError(InputError):
    """The completion cache cannot be read or written; continuing would lose finished calls."""


_WORDING = StoreWords(
    "completion cache", CacheError, "delete that file", "or choose another file with --cache"
)


def request_key(llm: LLM, request: Request) -> str:
    """Return the identity of a call, 64 hexadecimal digits: of everything that may change its answer."""
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

    The database that ``LEADLINE_DATABASE`` names takes the place of the default file. One instance may be
    shared by threads, one file by processes; each `put` is committed before it returns. A row that cannot be
    read is missing: `put` replaces it, and ``notes`` counts them. `CacheError` where the
    file is damaged, is not a completion cache, or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else None
        self._lock = threading.Lock()
        self._unreadable: set[str] = set()
        self._n_replaced = 0
        server = shared() if self.path == default_cache_path() else None
        self._db = Database(server or self.path, _WORDING, _set_up, _BUSY_SECONDS)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a run that uses the cache should say about it."""
        n = self._n_replaced
        rows = "1 row" if n == 1 else f"{n:,} rows"
        return (f"{rows} of the completion cache could not be read; asked again and replaced.",) if n else ()

    def get_many(self, keys: Iterable[str]) -> dict[str, Completion]:
        """Return the completions found, by key."""
        wanted = list(dict.fromkeys(keys))
        found = {}
        with self._lock:
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

    def put(self, key: str, completion: Completion, model: str = "") -> None:
        """Store a completion without an error; the first writer of a key wins, so two processes agree."""
        if completion.error is None:
            self.put_rows([row_of(key, completion, model)])

    def put_rows(self, rows: Sequence[Row]) -> None:
        """Store rows that `row_of` has made, as `put` does, all in one transaction."""
        now = time.time()
        with self._lock:
            again = {row[0] for row in rows} & self._unreadable
            listed = [row for row in rows if row[0] not in again], [row for row in rows if row[0] in again]

            def write() -> None:
                for some, conflict in zip(listed, ("NOTHING", f"UPDATE SET {_NEW}"), strict=True):
                    for first in range(0, len(some), _ROWS):
                        part = some[first : first + _ROWS]
                        marks = ",".join([_MARKS] * len(part))
                        sql = f"INSERT INTO completions VALUES {marks} ON CONFLICT (key) DO {conflict}"
                        self._db.execute(sql, [value for row in part for value in (*row, now)])

            # One statement is a transaction already.
            write() if len(rows) == 1 else self._db.write(write, lock=_STORE)
            self._unreadable -= again
            self._n_replaced += len(again)

    def __len__(self) -> int:
        with self._lock:
            return int(self._db.execute("SELECT count(*) FROM completions")[0][0])

    def close(self) -> None:
        """Close the file; the instance cannot be used afterwards."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> CompletionCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def row_of(key: str, completion: Completion, model: str) -> Row:
    """Return a completion as it is stored, but for the time."""
    logprobs = json.dumps(completion.logprobs) if completion.logprobs is not None else None
    tokens = completion.prompt_tokens, completion.completion_tokens
    text, reason = clean(completion.text), completion.finish_reason
    return (key, model, text, reason, *tokens, completion.latency, logprobs)


def _set_up(db: Database) -> None:
    if db.has_table(_STORE):  # a table of another program stays as it is
        db.execute("SELECT key, logprobs FROM completions LIMIT 1")
    db.migrate(_STORE)


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
