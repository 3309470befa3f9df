"""Where models and completions are kept on the user's machine."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

_EDGE = 1 << 20


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


def fingerprint(folder: Path, ignore: frozenset[str] = frozenset()) -> str:
    """Return a short digest of a folder's files: their names, sizes, first and last megabytes."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if not path.is_file() or path.name in ignore or relative.parts[0].startswith("."):
            continue
        size = path.stat().st_size
        digest.update(f"{relative.as_posix()}\n{size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(_EDGE))
            if size > _EDGE:
                file.seek(max(_EDGE, size - _EDGE))
                digest.update(file.read())
    return digest.hexdigest()[:16]
