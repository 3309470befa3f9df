"""Files on disk: regular ones read up to a limit, whole ones written or none, one writer to a folder."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BufferedReader
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a pipe, not a file"),
    (stat.S_ISSOCK, "it is a socket, not a file"),
    (lambda mode: not stat.S_ISREG(mode), "it is a device, not a file"),
)
_PAUSE = 0.05
_STARTS, _ENDS = ".leadline-", ".tmp"
_LEFT_SECONDS = 3600

# Folders that this process keeps to itself, by device and inode; its own threads may write there.
_kept: set[tuple[int, int]] = set()
_writing = threading.RLock()


def path_problem(text: str) -> str | None:
    """Return why a text can be no path, to follow what names it; None where it can."""
    if "\0" in text:
        return "holds a NUL character"
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return "holds half a surrogate pair"
    return None


def open_file(path: str | os.PathLike[str], limit: int) -> BufferedReader:
    """Open a regular file of at most ``limit`` bytes.

    OSError for anything else: opening a pipe waits for ever, and a device may never end.
    """
    try:
        found = os.stat(path)
    except ValueError as error:
        raise OSError(errno.EINVAL, "its name holds a NUL character", str(path)) from error
    wrong = next((what for is_kind, what in _KINDS if is_kind(found.st_mode)), None)
    if wrong is not None:
        raise OSError(errno.EINVAL, wrong, str(path))
    if found.st_size > limit:
        raise OSError(errno.EFBIG, f"it is larger than the limit of {limit / 1e6:,.0f} MB", str(path))
    return open(path, "rb")


def read_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the content of a regular file; OSError as `open_file` raises it."""
    with open_file(path, limit) as file:
        return file.read()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is the old or the new one at any moment, never half of it.

    What writers that were killed have left in the folder more than an hour ago is removed.
    """
    _remove_leftovers(path.parent)
    # The file's own name may be as long as names can be, so the temporary one is not made from it.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_STARTS, suffix=_ENDS)
    try:
        with os.fdopen(handle, "wb") as file:
            with suppress(OSError):  # some network file systems have no locks; there it is not removed
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove old temporary files that nobody has locked; a writer, however slow, has its own locked."""
    for path in folder.glob(f"{_STARTS}*{_ENDS}"):
        with suppress(OSError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime > _LEFT_SECONDS:
                with path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()


@contextmanager
def kept_folder(folder: Path, patience: float = 1.0) -> Iterator[None]:
    """Make a folder and keep every other process, and every other caller, from keeping it too.

    The kernel gives the folder free when the process ends in whatever way. A folder in which nothing was
    written is removed again. BlockingIOError where somebody else still has it after ``patience`` seconds.
    """
    handle = _locked(folder, time.monotonic() + patience)
    key = _identity(os.fstat(handle))
    _kept.add(key)
    try:
        yield
    finally:
        _kept.discard(key)
        with suppress(OSError):
            folder.rmdir()
        os.close(handle)


@contextmanager
def writable_folder(folder: Path, patience: float) -> Iterator[None]:
    """Keep a folder for one write; a folder that this process keeps already is written at once."""
    with _writing, nullcontext() if _is_kept(folder) else kept_folder(folder, patience):
        yield


def _locked(folder: Path, deadline: float) -> int:
    """Return the handle of a folder that this caller alone has locked."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # removed since by whoever had it
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _identity(os.stat(folder)) == _identity(os.fstat(handle)):
                return handle
        except FileNotFoundError:
            pass  # removed between opening and locking it: try again
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(handle)
                raise
            time.sleep(_PAUSE)
        except OSError as error:
            if error.errno not in (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP):
                os.close(handle)
                raise
            return handle  # some network file systems cannot lock a folder
        os.close(handle)


def _is_kept(folder: Path) -> bool:
    try:
        return _identity(os.stat(folder)) in _kept
    except FileNotFoundError:
        return False


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def user_cache_dir() -> Path:
    """Return ``LEADLINE_CACHE``, else the platform's folder for caches; it is not created here."""
    chosen = os.environ.get("LEADLINE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "leadline" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "leadline"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "leadline"
