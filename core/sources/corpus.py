"""A shared collection of documents: a folder of Markdown or text files, or a JSON Lines file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from core.errors import InputError
from core.sources.encoding import MAX_BYTES, read_source, to_utf8

MAX_DOCUMENTS = 200_000
MAX_TEXT = 1_000_000
_SUFFIXES = (".md", ".txt")
# Half of a surrogate pair: JSON can spell it, but it is no character and no file can hold it.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SEPARATOR = re.compile(r"^[ \t]*---[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """A text to be cut into passages; ``title`` may be empty."""

    title: str
    text: str


def load_corpus(path: Path) -> tuple[Document, ...]:
    """Read a collection of documents.

    Parameters
    ----------
    path : Path
        A folder (every ``.md`` and ``.txt`` file in it, by name, README files left out) or a JSON
        Lines file of ``{"title", "text"}``.

    Returns
    -------
    tuple of Document
        At least one; at most 200,000, each of at most a million characters.

    Raises
    ------
    InputError
        Nothing there, nothing usable, or a document that cannot be read; the message names it.
    """
    if path.is_dir():
        documents = _folder(path)
    else:
        documents = _json_lines(path)
    if not documents:
        raise InputError(f"The corpus {path} holds no document; expected .md or .txt files, or JSON Lines.")
    return tuple(documents)


def document_from_text(text: str, title: str = "") -> Document:
    """Make a document of plain text whose first line may be ``# Title``."""
    text = text.strip()
    first, _, rest = text.partition("\n")
    if first.startswith("# ") and rest.strip():
        return Document(first[2:].strip(), rest.strip())
    return Document(title, text)


def split_texts(text: str) -> list[str]:
    """Split pasted texts at lines that hold only ``---``; empty pieces are left out."""
    return [piece.strip() for piece in _SEPARATOR.split(text) if piece.strip()]


def parse_document(value: object) -> Document | str:
    """Read one document of a JSON value; a string says what would be right instead."""
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, dict):
        return "a text or an object with title and text"
    text, title = value.get("text"), value.get("title", "")
    if not isinstance(text, str) or not text.strip():
        return "a text that is not empty"
    if title is not None and not isinstance(title, str):
        return "a title that is text"
    wrong = text_problem(text) or text_problem(title or "")
    return wrong or Document((title or "").strip(), text)


def text_problem(text: str) -> str | None:
    """Say what would be right where a text cannot be used, or None."""
    if len(text) > MAX_TEXT:
        return f"a text of at most {MAX_TEXT:,} characters"
    if _LONE_SURROGATE.search(text):
        return "valid Unicode (this holds half of a surrogate pair)"
    return None


def _folder(path: Path) -> list[Document]:
    files = [
        file
        for file in sorted(path.iterdir())
        if file.suffix.lower() in _SUFFIXES and file.stem.lower() != "readme" and file.is_file()
    ]
    if len(files) > MAX_DOCUMENTS:
        raise InputError(f"The corpus {path} holds {len(files):,} files; the limit is {MAX_DOCUMENTS:,}.")
    documents = []
    for file in files:
        text = to_utf8(read_source(file, str(file)), str(file)).utf8.decode()
        document = document_from_text(text, title=file.stem)
        if wrong := text_problem(document.text):
            raise InputError(f"{file} cannot be used as a document; expected {wrong}.")
        documents.append(document)
    return documents


def _json_lines(path: Path) -> list[Document]:
    text = to_utf8(read_source(path, str(path), MAX_BYTES), str(path)).utf8.decode()
    documents = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            document = parse_document(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {number} is not JSON; expected {{title, text}}.") from error
        if isinstance(document, str):
            raise InputError(f"{path}, line {number}: found {line[:80]!r}, expected {document}.")
        documents.append(document)
        if len(documents) > MAX_DOCUMENTS:
            raise InputError(f"The corpus {path} holds more than {MAX_DOCUMENTS:,} documents.")
    return documents
