"""One question with its documents or passages: their one schema, how they are read and written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.sources.encoding import read_source, to_utf8
from core.sources.fields import MAX_TEXT, FieldError, Fields, text_problem, unique, with_cells, without_null
from core.sources.report import shorten
from core.text.strict import clean, finite, read_json

# What can be asked of a model: more passages are usually a wrong column or a whole corpus. What was asked
# elsewhere may be longer.
MAX_QUESTION = 20_000
MAX_PASSAGES = 200
MAX_DOCUMENTS = 200_000  # of a corpus
_SUFFIXES = (".md", ".txt")

# Field of a record -> other names it goes by.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": ("query_id",),
    "question": ("query", "prompt", "user_input", "input"),
    "documents": ("docs",),
    "passages": (),
    "corpus": (),
    "answers": (
        "reference_answers",
        "references",
        "reference",
        "expected_answer",
        "correct_answer",
        "expected_output",
    ),
    "gold": ("gold_contexts", "reference_contexts"),
    "kind": ("topic",),
    "language": (),
}
EVIDENCE = ("documents", "passages", "corpus")
_LISTS = ("documents", "docs", "passages", "answers", *FIELDS["answers"], "gold", *FIELDS["gold"])
_SEPARATOR = re.compile(r"^[ \t]*---[ \t]*$", re.MULTILINE)
_TEXT = ("text", "passage", "content")
_MOST_GOLD = 1_000_000_000
_PASSAGE_ID = ("id", "passage_id", "doc_id")


@dataclass(frozen=True, slots=True)
class Document:
    """A text to be cut into passages; ``title`` may be empty."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class PassageIn:
    """A passage that is already retrieved; its place in the tuple is its retrieval rank."""

    passage_id: str
    title: str
    text: str
    score: float | None
    is_gold: bool | None


@dataclass(frozen=True, slots=True)
class Question:
    """One question with what may be retrieved for it.

    ``documents`` are to be cut into passages and searched; questions that share a corpus hold the very same
    tuple (compare with ``is``), so that it is indexed once. ``passages`` are used as they are, in retrieval
    order; None where they must be retrieved. ``gold`` are exact fragments of the documents that hold the
    answer. ``problem`` says why an earlier retrieval failed; such a question is not asked. ``n_gold`` counts
    the relevant passages, retrieved or not, where known beyond ``passages`` and ``gold``.
    """

    query_id: str
    question: str
    documents: tuple[Document, ...]
    passages: tuple[PassageIn, ...] | None
    reference_answers: tuple[str, ...]
    gold: tuple[str, ...]
    kind: str | None
    language: str | None
    problem: str | None = None
    n_gold: int | None = None


Span = tuple[int, int]
CorpusLoader = Callable[[str], tuple[Document, ...]]


def names_of(field: str) -> tuple[str, ...]:
    """Return all names of a field of `FIELDS`, its own first."""
    return (field, *FIELDS[field])


def row_of_cells(
    cells: Mapping[str, str], lists: tuple[str, ...] = (), numbers: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Read the cells of a CSV row: lists are JSON, or texts split at lines of ``---``."""
    row = with_cells(cells, (*_LISTS, *lists), numbers)
    for name in row.keys() & set(_LISTS):
        if isinstance(row[name], str):
            row[name] = split_texts(row[name])
    return row


def split_texts(text: str) -> list[str]:
    """Split pasted texts at lines that hold only ``---``; empty pieces are left out."""
    return [piece.strip() for piece in _SEPARATOR.split(text) if piece.strip()]


def read_question(fields: Fields, passages: tuple[str, ...] = ("passages",)) -> Question:
    """Read one question record, without documents; ``passages`` are the names of that field.

    ``query_id`` is "" where the record has none. ``gold`` fragments mark the passages unless a passage says
    itself whether it is gold.
    """
    question = fields.required_text(*names_of("question"))
    gold = _filled_texts(fields, *names_of("gold"))
    found = None if (name := fields.present(*passages)) is None else _passages(fields, name)
    return Question(
        fields.identifier(*names_of("id")) or "",
        question,
        (),
        found and with_gold(found, gold),
        _filled_texts(fields, *names_of("answers")),
        gold,
        fields.text(*names_of("kind")),
        fields.text("language"),
        n_gold=_count(fields),
    )


def with_gold(passages: tuple[PassageIn, ...], gold: Sequence[str]) -> tuple[PassageIn, ...]:
    """Mark passages by the gold fragments in them, unless a passage says itself whether it is gold."""
    if not gold or any(passage.is_gold is not None for passage in passages):
        return passages
    return tuple(replace(passage, is_gold=bool(gold_spans(passage.text, gold))) for passage in passages)


def parse_question(
    fields: Fields, default_id: str, load_corpus: CorpusLoader, shared: tuple[Document, ...] | None = None
) -> Question:
    """Read one question to be asked; `FieldError` for the first field that cannot be used.

    ``load_corpus`` reads the value of ``corpus``. ``shared`` are the documents of a question without its own
    evidence; None where it must have some.
    """
    read = read_question(fields)
    given = [name for name in EVIDENCE if fields.present(*names_of(name))]
    if not given and shared is None:
        alone = "a list of questions alone needs a corpus for all of them (--corpus)"
        raise FieldError("documents", "", f"documents, passages or corpus; {alone}")
    if len(given) > 1:
        raise FieldError(" and ".join(given), "", "exactly one of documents, passages and corpus")
    documents = shared or ()
    if given == ["corpus"]:
        documents = load_corpus(fields.required_text("corpus"))
    elif given == ["documents"]:
        name = fields.present(*names_of("documents")) or ""
        documents = tuple(
            read_document(entry, fields, f"{name}[{i}]")[0] for i, entry in enumerate(_entries(fields, name))
        )
    return askable(
        replace(
            read,
            query_id=(read.query_id or default_id).strip(),
            question=read.question.strip(),
            documents=documents if read.passages is None else (),
            reference_answers=tuple(text.strip() for text in read.reference_answers),
            gold=tuple(text.strip() for text in read.gold),
            kind=(read.kind or "").strip() or None,
            language=(read.language or "").strip() or None,
        )
    )


def askable(question: Question) -> Question:
    """Return a question that is short enough to be asked; `FieldError` where it is not."""
    if len(question.question) > MAX_QUESTION:
        raise FieldError("question", question.question, f"a text of at most {MAX_QUESTION:,} characters")
    if len(question.passages or ()) > MAX_PASSAGES:
        found = f"{len(question.passages or ()):,} passages"
        raise FieldError("passages", found, f"at most {MAX_PASSAGES} passages")
    return question


def read_document(value: object, fields: Fields, path: str) -> tuple[Document, Fields]:
    """Read a text, or an object with title and text, whose fields are returned too; else `FieldError`."""
    inner = fields.inner({"text": value} if isinstance(value, str) else value, path)
    name = inner.present(*_TEXT) or _TEXT[0]
    text = passage_text(inner.path + name, inner.record.get(name))
    if fields.strict and not text.strip():
        raise FieldError(inner.path + name, text, "a text that is not empty")
    title = inner.text("title") or ""
    return Document(title.strip() if fields.strict else title, text), inner


def passage_text(field: str, value: object) -> str:
    """Return the text of one passage, which may be empty; else `FieldError`."""
    if not isinstance(value, str):
        raise FieldError(field, value, "a text")
    if wrong := text_problem(value):
        raise FieldError(field, value, wrong)
    return value


def question_record(question: Question) -> dict[str, Any]:
    """Return the record that `read_question` and `parse_question` read as this question."""
    passages = [
        {
            "id": passage.passage_id if passage.passage_id != f"p{place}" else None,
            "title": passage.title or None,
            "text": passage.text,
            "score": passage.score,
            "is_gold": passage.is_gold,
        }
        for place, passage in enumerate(question.passages or (), start=1)
    ]
    record = {
        "id": question.query_id,
        "question": question.question,
        "passages": [without_null(passage) for passage in passages],
        "documents": [{"title": document.title, "text": document.text} for document in question.documents],
        "answers": list(question.reference_answers),
        "gold": list(question.gold),
        "kind": question.kind,
        "language": question.language,
        "n_gold": question.n_gold,
    }
    return {name: value for name, value in record.items() if value not in (None, [], "")}


def _count(fields: Fields) -> int | None:
    number = fields.number("n_gold")
    if number is None or (number.is_integer() and 0 <= number <= _MOST_GOLD):
        return None if number is None else int(number)
    fields.warn("n_gold", number, "a whole number, 0 or more")
    return None


def _passages(fields: Fields, name: str) -> tuple[PassageIn, ...]:
    found, ids = [], []
    for place, entry in enumerate(_entries(fields, name)):
        document, inner = read_document(entry, fields, f"{name}[{place}]")
        found.append((document.title, document.text, inner.number("score"), inner.flag("is_gold")))
        ids.append(inner.identifier(*_PASSAGE_ID))
    if twice := [i for i, n in Counter(ids).items() if i is not None and n > 1]:
        fields.warn(name, ", ".join(twice), "passage ids that differ within the question")
    return tuple(PassageIn(i, *values) for i, values in zip(unique(ids, "p"), found, strict=True))


def _entries(fields: Fields, name: str) -> Any:
    """Return the entries of a list, which only in a lenient reading may be empty."""
    entries = fields.required_items(name)
    if fields.strict and not entries:
        raise FieldError(name, entries, "a list that is not empty")
    return entries


def _filled_texts(fields: Fields, *names: str) -> tuple[str, ...]:
    texts = fields.texts(*names)
    filled = tuple(text for text in texts if text.strip())
    if fields.strict and len(filled) < len(texts):
        raise FieldError(names[0], "", "texts that are not empty")
    return filled


def gold_spans(text: str, fragments: Iterable[str]) -> list[Span]:
    """Return the character spans of every occurrence of the fragments; only white space may differ."""
    spans = []
    for fragment in fragments:
        parts = fragment.split()
        if parts:
            pattern = r"\s+".join(map(re.escape, parts))
            spans += [match.span() for match in re.finditer(pattern, text)]
    return spans


def holds_gold(start: int, end: int, spans: Iterable[Span]) -> bool:
    """Return whether the passage ``text[start:end]`` holds at least half of one of the spans."""
    return any(2 * (min(end, last) - max(start, first)) >= last - first for first, last in spans)


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


def as_passage(value: object, place: int = 1) -> PassageIn:
    """Read one retrieved passage; ``place``, from 1, names one that has no id.

    ``value`` is a text; a pair of a passage and its score; a mapping with ``text`` and, if known, ``title``,
    ``id``, ``score``, ``is_gold``; or an object with such attributes: a ``Document`` of LangChain
    (``page_content``, ``metadata``) or Haystack (``content``, ``meta``, ``score``), a node of LlamaIndex,
    with its score or without. The title may also be in the metadata. An empty text stays one: a retriever
    that returns empty passages should be seen doing so. InputError without a text, or with one too long.

    Examples
    --------
    >>> as_passage(("Bern is the capital.", 0.5)).score
    0.5
    """
    value, score = _pair(value)
    node = _first(value, ("node",))
    body = value if node is None else node
    text = _text(body)
    if text is None:
        raise InputError(
            f"Passage {place} is of the type {type(body).__name__} and holds no text; expected a text, a "
            "mapping with text, or a document of LangChain, LlamaIndex or Haystack."
        )
    if len(text) > MAX_TEXT:
        raise InputError(f"Passage {place} holds {len(text):,} characters; expected at most {MAX_TEXT:,}.")
    meta = _first(body, ("metadata", "meta"))
    meta = meta if isinstance(meta, Mapping) else {}
    title = _first(body, ("title",)) or meta.get("title")
    identifier = _first(body, ("id", "id_", "node_id", "passage_id"))
    is_gold = next(
        (g for g in (_first(body, ("is_gold",)), meta.get("is_gold")) if isinstance(g, bool)), None
    )
    return PassageIn(
        clean(str(identifier)) if isinstance(identifier, (str, int)) and identifier != "" else f"p{place}",
        clean(title) if isinstance(title, str) else "",
        clean(text),
        finite(_first(value, ("score",)) if score is None else score),
        is_gold,
    )


def _pair(value: Any) -> tuple[Any, object]:
    """Split a pair of a passage and its score; a record that happens to have two fields is not one."""
    is_pair = isinstance(value, (tuple, list)) and len(value) == 2 and not hasattr(value, "_fields")
    if is_pair and (value[1] is None or hasattr(value[1], "__float__")):
        return value[0], value[1]
    return value, None


def _first(value: object, names: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return None
    for name in names:
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if found is not None:
            return found
    return None


def _text(body: object) -> str | None:
    if isinstance(body, str):
        return body
    read = getattr(body, "get_content", None)  # LlamaIndex: the text without the metadata
    text = read() if callable(read) else _first(body, ("text", "page_content", "content", "passage"))
    return text if isinstance(text, str) else None
