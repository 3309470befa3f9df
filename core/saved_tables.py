"""The tables of a saved run: one Parquet file each, named by its content, read when first used."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import InputError, RunFormatError
from core.files import open_file, write_atomically
from core.schema import TABLES, conform, empty
from core.text.display import shorten

_LARGEST = 4_000_000_000
_PIECE = 65_536  # rows that are written, and read, at a time where not all are wanted


class SavedTables(Mapping[str, pd.DataFrame]):
    """The tables of a saved run, each read and checked when it is first used."""

    def __init__(self, folder: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
        self._folder = folder
        self._entries = {name: entry for name, entry in entries.items() if name in TABLES}
        # Open from the start: whoever saves the run anew takes the old files away.
        with ExitStack() as stack:
            self._files = {
                name: stack.enter_context(_open_table(folder, name, entry))
                for name, entry in self._entries.items()
            }
            weakref.finalize(self, stack.pop_all().close)
        self._frames: dict[str, pd.DataFrame] = {}
        self._lock = threading.RLock()

    def __iter__(self) -> Iterator[str]:
        return iter(TABLES)

    def __len__(self) -> int:
        return len(TABLES)

    def __getitem__(self, name: str) -> pd.DataFrame:
        with self._lock:
            if name not in self._frames:
                self._frames[name] = self._read(name)
                if name in self._files:
                    self._files.pop(name).close()
            return self._frames[name]

    def n_rows(self, name: str) -> int | None:
        """Return `Run.n_rows` of a table that is not in memory; None where its file does not say."""
        found = self._of_file(name, 0, lambda facts: facts.num_rows)
        return None if found is None else int(found)

    def has(self, name: str, columns: Sequence[str]) -> bool | None:
        """Return `Run.has` of a table that is not in memory; None where its file does not say."""
        found = self._of_file(name, False, lambda facts: _has(facts, columns))
        return None if found is None else bool(found)

    def _of_file(self, name: str, of_none: int, ask: Callable[[pq.FileMetaData], int | None]) -> int | None:
        with self._lock:
            if name not in self._entries:  # a table without rows has no file
                return of_none
            if name not in self._files:
                return None
            try:
                return ask(pq.ParquetFile(self._files[name]).metadata)
            except Exception:  # the file is damaged: reading it says so
                return None

    def _read(self, name: str) -> pd.DataFrame:
        if name not in self._entries:
            return empty(TABLES[name])
        with wrong_is_damaged(self._folder):
            found = _read_table(self._files[name], self._folder, name, self._entries[name])
            frame = conform(TABLES[name], found)
            check_questions(name, frame, frame if name == "queries" else self["queries"])
        return frame


@contextmanager
def wrong_is_damaged(folder: Path) -> Iterator[None]:
    """Tell what is wrong with a run that is read from a folder as damage of its files."""
    try:
        yield
    except RunFormatError:
        raise
    except InputError as error:
        raise RunFormatError(f"The run in {folder} is damaged: {error}") from error


def read_sample(folder: Path, entries: Mapping[str, Mapping[str, Any]], n: int) -> dict[str, pd.DataFrame]:
    """Return the tables of a saved run with the rows of n of its questions only; RunFormatError as always.

    Which ones depends on a hash of their ids, so that two runs of the same questions have the same ones. Of
    the files no more than a piece is in memory.
    """
    known = {name: entry for name, entry in entries.items() if name in TABLES}
    with ExitStack() as stack:
        files = {name: stack.enter_context(_open_table(folder, name, entry)) for name, entry in known.items()}
        try:
            ids = _lowest(files["queries"], n)
        except Exception as error:  # its content is checked when it is read, after its ids
            raise _unreadable(f"The run in {folder} is damaged:", "queries", error) from error
        return {name: _read_table(files[name], folder, name, entry, ids) for name, entry in known.items()}


def _lowest(queries: BufferedReader, n: int) -> pa.Array:
    """Return the n ids with the lowest hashes."""
    ids = pq.ParquetFile(queries).read(columns=["query_id"])["query_id"].combine_chunks()
    hashes = pd.util.hash_array(ids.to_numpy(zero_copy_only=False), categorize=False)
    return ids.take(pa.array(np.argsort(hashes, kind="stable")[:n]))


def _has(facts: pq.FileMetaData, columns: Sequence[str]) -> bool | None:
    """Tell whether one of the columns has a value; None where the statistics do not say, as of lists."""
    if not facts.num_rows:
        return False
    there = set(columns) & set(facts.schema.to_arrow_schema().names)
    n_values = dict.fromkeys(there, 0)
    for group in map(facts.row_group, range(facts.num_row_groups)):
        for one in map(group.column, range(group.num_columns)):
            if one.path_in_schema in there:
                if one.statistics is None or not one.statistics.has_null_count:
                    return None
                n_values[one.path_in_schema] += one.num_values - one.statistics.null_count
    return True if any(n_values.values()) else None if there - _plain(facts) else False


def _plain(facts: pq.FileMetaData) -> set[str]:
    """Return the columns that are no lists."""
    return {facts.schema.column(i).path for i in range(len(facts.schema))}


def check_questions(name: str, frame: pd.DataFrame, queries: pd.DataFrame) -> None:
    """Raise InputError unless every row of a table is of a question that there is."""
    if frame.empty:
        return
    # What pandas does here makes a Python string of every id.
    found = pc.is_in(pa.array(frame["query_id"]), value_set=pa.array(queries["query_id"]))
    stray = frame["query_id"][~found.to_numpy(zero_copy_only=False)]
    if len(stray):
        raise InputError(f"Table {name}: question {stray.iloc[0]!r} is not in the table queries.")


def write_table(folder: Path, name: str, frame: pd.DataFrame) -> dict[str, str | int]:
    """Write a table, and return its entry in the manifest.

    The name of the file includes the hash of its content, so it is either absent or correct.
    """
    content = frame.to_parquet(None, index=False, compression="zstd", row_group_size=_PIECE)
    digest = hashlib.sha256(content).hexdigest()
    file = f"{name}-{digest[:12]}.parquet"
    write_atomically(folder / file, content)
    return {"file": file, "sha256": digest, "rows": len(frame)}


def _in_one_piece(frame: pd.DataFrame) -> pd.DataFrame:
    """Join the pieces that a file is read in: picking a row from several copies all texts each time."""
    for name in frame.select_dtypes("str"):
        pieces = pa.array(frame[name])
        if isinstance(pieces, pa.ChunkedArray) and pieces.num_chunks > 1:
            frame[name] = pa.chunked_array([pieces.combine_chunks()]).to_pandas()
    return frame


def _open_table(folder: Path, name: str, entry: Mapping[str, Any]) -> BufferedReader:
    damaged = f"The run in {folder} is damaged:"
    missing = next((key for key in ("file", "sha256") if entry.get(key) is None), None)
    if missing is not None:
        raise RunFormatError(f"{damaged} table {name} cannot be read, its entry has no {missing}.")
    file = entry["file"]
    if Path(file).name != file:
        raise RunFormatError(f"{damaged} table {name} points outside the folder.")
    try:
        return open_file(folder / file, _LARGEST)
    except FileNotFoundError as error:
        raise RunFormatError(f"{damaged} the file of table {name} is missing.") from error
    except Exception as error:  # a name that somebody else gave can be no name at all
        raise _unreadable(damaged, name, error) from error


def _read_table(
    content: BufferedReader, folder: Path, name: str, entry: Mapping[str, Any], ids: pa.Array | None = None
) -> pd.DataFrame:
    damaged = f"The run in {folder} is damaged:"
    try:
        # In pieces: nothing that is not ours is held in memory.
        content.seek(0)
        if hashlib.file_digest(content, "sha256").hexdigest() != entry["sha256"]:
            raise RunFormatError(f"{damaged} {shorten(entry['file'])} is not the file that was saved.")
        found = pq.ParquetFile(content).metadata.num_rows
        if found != entry.get("rows", found):
            raise RunFormatError(f"{damaged} table {name} has {found:,} rows, not {entry['rows']:,}.")
        return _in_one_piece(pd.read_parquet(content) if ids is None else _rows_of(content, ids))
    except RunFormatError:
        raise
    except Exception as error:  # a file made by somebody else can break the reader in any way
        raise _unreadable(damaged, name, error) from error


def _rows_of(content: BufferedReader, ids: pa.Array) -> pd.DataFrame:
    """Return the rows of some questions, never holding more than a piece of the others."""
    file = pq.ParquetFile(content)
    pieces = (one.filter(pc.is_in(one["query_id"], value_set=ids)) for one in file.iter_batches(_PIECE))
    return pa.Table.from_batches(pieces, file.schema_arrow).to_pandas()


def _unreadable(damaged: str, name: str, error: Exception) -> RunFormatError:
    reason = " ".join(shorten(getattr(error, "strerror", None) or error).split())
    return RunFormatError(f"{damaged} table {name} cannot be read ({reason}).")
