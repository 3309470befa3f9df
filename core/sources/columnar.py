"""Tables that are no text: Parquet files and Arrow data, unpacked in a process of bounded memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from core.errors import InputError
from core.sources import unpack
from core.sources.encoding import ARROW_STREAM, most_unpacked, too_much
from core.sources.report import shorten

# What may be taken to read a file: for the libraries, and for each of its bytes.
_MEMORY, _PER_BYTE = 900_000_000, 6


class Row(NamedTuple):
    """One row as a JSON text, or what is wrong with it; ``n_missing`` of its values have no form in JSON."""

    text: str | None
    problem: str | None
    n_missing: int


def is_columnar(data: bytes) -> bool:
    """Return whether bytes are a Parquet file or Arrow data."""
    return data.startswith((unpack.PARQUET, unpack.ARROW_FILE, ARROW_STREAM))


def rows_of(data: bytes, name: str) -> Iterator[Row]:
    """Yield the rows of Parquet or Arrow data, each as JSON; InputError where they cannot be read on.

    See `core.sources.unpack`, which reads them.
    """
    what = "a Parquet file" if data.startswith(unpack.PARQUET) else "Arrow data"
    size, most = 0, most_unpacked(len(data))
    ended = False  # without a last word it was stopped, by its limit of memory or of time
    for line in _unpacked(data):
        mark, said = line[:1], line[1:]
        size += len(said)
        if size > most:
            break
        if mark == unpack.GOOD:
            n_missing, _, text = said.partition("\t")
            yield Row(text, None, int(n_missing))
        elif mark == unpack.BAD:
            yield Row(None, shorten(said), 0)
        elif mark == unpack.DAMAGED:
            first = shorten(said).rstrip(".")
            raise InputError(f"{name} cannot be read as {what} ({first}); write or upload it again.")
        ended = mark == unpack.ENDED
    if not ended:
        raise too_much(name, most)


def _unpacked(data: bytes) -> Iterable[str]:
    """Yield the lines that `core.sources.unpack` writes, as it writes them."""
    command = [sys.executable, "-I", unpack.__file__, str(_MEMORY + _PER_BYTE * len(data))]
    # Its memory is counted, so it should not reserve more than it uses.
    kept = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, env=kept
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(data)
            process.stdin.close()
        except BrokenPipeError:  # it could not even hold the file
            return
        try:
            for line in process.stdout:
                yield line.rstrip(b"\n").decode("utf-8", "surrogatepass")
        finally:
            process.kill()
