"""A shared collection of documents: a folder of Markdown or text files, or a JSON Lines file."""

from __future__ import annotations

from pathlib import Path

from core.errors import InputError
from core.sources.encoding import read_source, to_utf8
from core.sources.fields import FieldError, Fields, text_problem
from core.sources.question import Document, read_document, split_texts
from core.sources.report import shorten
from core.text.strict import read_json

__all__ = ["Document", "document_from_text", "load_corpus", "split_texts"]

MAX_DOCUMENTS = 200_000
_SUFFIXES = (".md", ".txt")


def load_corpus(path: Path) -> tuple[Document, ...]:
    """Read documents: the ``.md`` and ``.txt`` files of a folder (not README), or JSON Lines.

    Each line of a JSON Lines file is ``{"title", "text"}``. InputError where there is no usable document, and
    for the first one that cannot be read.
    """
    documents = _folder(path) if path.is_dir() else _json_lines(path)
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
    text = to_utf8(read_source(path, str(path)), str(path)).utf8.decode()
    documents = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            documents.append(read_document(read_json(line), Fields({}, strict=True), "document")[0])
        except ValueError as error:
            raise InputError(f"{path}, line {number} is not JSON; expected {{title, text}}.") from error
        except FieldError as error:
            raise InputError(
                f"{path}, line {number}: found {shorten(line)!r}, expected {error.expected}."
            ) from error
        if len(documents) > MAX_DOCUMENTS:
            raise InputError(f"The corpus {path} holds more than {MAX_DOCUMENTS:,} documents.")
    return documents
