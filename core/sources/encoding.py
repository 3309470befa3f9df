"""From a path or bytes to a file's content and text: size limits, gzip, folders of data sets, encodings."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from core.errors import InputError
from core.files import read_file
from core.sources.report import shorten
from core.text.strict import read_json

MAX_BYTES = 400_000_000
# A packed file may unpack to this much, or to so many times its size; more is made to fill memory.
_SMALL, _TIMES = 50_000_000, 100
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
ARROW_STREAM = b"\xff\xff\xff\xff"
_STATE, _SPLITS = "state.json", "dataset_dict.json"
_MAX_STATE = 10_000_000
_FOLDER = "a folder as `Dataset.save_to_disk` writes it"
# First bytes of files uploaded by mistake.
_BINARY = (
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a zip archive or an Excel workbook"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file"),
    (b"\x89PNG", "a PNG image"),
    (b"%PDF", "a PDF"),
)
# The longer mark first: UTF-32 little-endian starts with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WANTED = "a text file (CSV, TSV or JSON Lines, also gzipped)"


class Text(NamedTuple):
    """A file's text as UTF-8 bytes without a byte order mark, and a remark where one is due."""

    utf8: bytes
    note: str | None


def is_saved_dataset(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder was written by ``save_to_disk`` of a data set, or of one with splits."""
    return any(os.path.isfile(os.path.join(path, name)) for name in (_STATE, _SPLITS))


def read_source(source: bytes | str | os.PathLike[str], name: str) -> bytes:
    """Return the bytes of a file (its content or path), unpacked if gzipped; InputError if unreadable.

    Of a folder that ``save_to_disk`` wrote, those of its files: Arrow streams that follow each other.
    """
    if not isinstance(source, bytes) and is_saved_dataset(source):
        return _read_folder(Path(source))
    data = source if isinstance(source, bytes) else _read_file(Path(source))
    if len(data) > MAX_BYTES:
        raise InputError(f"{name} is larger than the limit of {MAX_BYTES / 1e6:,.0f} MB; split the file.")
    return _gunzip(data, name) if data[:2] == _GZIP else data


def most_unpacked(packed: int) -> int:
    """Return how many bytes a file of so many packed ones may unpack to.

    >>> most_unpacked(1_000), most_unpacked(1_000_000), most_unpacked(100_000_000)
    (50000000, 100000000, 400000000)
    """
    return min(MAX_BYTES, max(_SMALL, _TIMES * packed))


def too_much(name: str, most: int) -> InputError:
    """Return the error for a file that holds more unpacked than it may."""
    return InputError(
        f"{name} holds more than {most / 1e6:,.0f} MB unpacked, the limit for a file of its size; "
        "split the file."
    )


def to_utf8(data: bytes, name: str) -> Text:
    """Return the text of a file as UTF-8; InputError if it is empty or binary.

    UTF-8 with or without a byte order mark, UTF-16 and UTF-32 with one, else Windows-1252
    (Latin-1 where that has no such character), which is noted since it is a guess.
    """
    # Looking at the start first saves a copy of a large file.
    if not data[:4096].strip() and not data.strip():
        raise InputError(f"{name} is empty; expected {_WANTED}.")
    for magic, kind in _BINARY:
        if data.startswith(magic):
            raise InputError(f"{name} is {kind}; expected {_WANTED}.")
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _recoded(data, encoding, name)
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    if b"\0" in data:
        raise InputError(
            f"{name} holds NUL bytes, so it is binary or UTF-16 without its first mark; expected {_WANTED}."
        )
    try:
        for _ in _pieces(data, "utf-8"):
            pass
    except UnicodeDecodeError as error:
        return _guessed(data, error.start)
    return Text(data, None)


def _read_file(path: Path) -> bytes:
    try:
        return read_file(path, MAX_BYTES)
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}; give the path of {_WANTED}.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; expected {_WANTED}.") from error


def _gunzip(data: bytes, name: str) -> bytes:
    """Unpack in pieces, so that a small file that unpacks to terabytes is stopped at the limit."""
    unpacked, most = io.BytesIO(), most_unpacked(len(data))
    try:
        with gzip.open(io.BytesIO(data)) as file:
            while piece := file.read(_CHUNK):
                unpacked.write(piece)
                if unpacked.tell() > most:
                    raise too_much(name, most)
    except EOFError as error:
        raise InputError(f"{name} is a gzip file that breaks off; upload it again in full.") from error
    except (OSError, zlib.error) as error:
        raise InputError(f"{name} is a damaged gzip file ({error}); expected {_WANTED}.") from error
    return unpacked.getvalue()


def _pieces(data: bytes, encoding: str) -> Iterator[str]:
    """Decode in pieces: one character beyond Latin-1 would make a whole text two or four times as large."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for start in range(0, len(data), _CHUNK):
        end = min(start + _CHUNK, len(data))
        try:
            text = decoder.decode(data[start:end], final=end == len(data))
        except UnicodeDecodeError as error:
            before = end - len(error.object)
            error.object, error.start, error.end = data, before + error.start, before + error.end
            raise
        yield text


def _as_utf8(data: bytes, encoding: str) -> bytes:
    utf8 = io.BytesIO()
    for piece in _pieces(data, encoding):
        utf8.write(piece.encode())
    return utf8.getvalue()


def _recoded(data: bytes, encoding: str, name: str) -> Text:
    try:
        return Text(_as_utf8(data, encoding), f"Read as {encoding.upper()}.")
    except UnicodeError as error:
        raise InputError(
            f"{name} starts like {encoding.upper()} but is not valid ({error}); save it as UTF-8."
        ) from error


def _guessed(data: bytes, first_bad: int) -> Text:
    line = data.count(b"\n", 0, first_bad) + 1
    try:
        utf8, encoding = _as_utf8(data, "cp1252"), "Windows-1252"
    except UnicodeDecodeError:
        utf8, encoding = _as_utf8(data, "latin-1"), "Latin-1"
    return Text(
        utf8,
        f"Not valid UTF-8 (first at line {line}), so read as {encoding}; check accents, or save as UTF-8.",
    )


def _read_folder(source: Path) -> bytes:
    folder = _one_split(source)
    files = [_inside(folder, name) for name in _data_files(folder)]
    parts: list[bytes] = []
    for file in files:
        parts.append(read_source(file, str(file)))
        if sum(map(len, parts)) > MAX_BYTES:
            raise InputError(f"{source} is larger than the limit of {MAX_BYTES / 1e6:,.0f} MB.")
        if not parts[-1].startswith(ARROW_STREAM):
            raise InputError(f"{file} is no Arrow stream; expected {_FOLDER}.")
    return b"".join(parts)


def _one_split(folder: Path) -> Path:
    """Return the folder of a data set, which is that of its only split where it has splits."""
    if (folder / _STATE).is_file():
        return folder
    splits = _object(folder / _SPLITS).get("splits")
    names = [name for name in splits if isinstance(name, str)] if isinstance(splits, list) else []
    if len(names) != 1:
        one = f"give one of them: {folder / names[0]}" if names else f"expected {_FOLDER}"
        raise InputError(
            f"{folder} holds {len(names)} splits ({', '.join(map(shorten, names[:20]))}); {one}."
        )
    return _inside(folder, names[0])


def _data_files(folder: Path) -> list[str]:
    state = _object(folder / _STATE)
    if state.get("_indices_data_files"):
        raise InputError(
            f"{folder} is a selection of rows; call flatten_indices() and save_to_disk() on it again."
        )
    entries = state.get("_data_files")
    names = [e.get("filename") for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
    files = [name for name in names if isinstance(name, str)]
    if not files or len(files) < len(names):
        raise InputError(f"{folder / _STATE} names no data files; expected {_FOLDER}.")
    return files


def _inside(folder: Path, name: str) -> Path:
    """Return what a folder says it holds; nothing outside it is read, whatever path or link says so."""
    path = folder / name
    try:
        outside = path.resolve().parent != folder.resolve() or path.is_symlink()
    except (OSError, ValueError, RuntimeError):
        outside = True
    if outside:
        raise InputError(f"{folder} names the file {shorten(name)!r}; expected a file in the folder itself.")
    return path


def _object(path: Path) -> dict[str, Any]:
    data = read_source(path, str(path)) if path.stat().st_size <= _MAX_STATE else b""
    try:
        value = read_json(data.decode())
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON; expected {_FOLDER}.") from error
    return value if isinstance(value, dict) else {}
