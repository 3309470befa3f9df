"""Questions with their documents or passages, from a file, an upload or a form: what a live run needs."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from core.errors import InputError
from core.run import Run
from core.sources.columnar import is_columnar
from core.sources.content import Content, read_content
from core.sources.encoding import MAX_BYTES, Text, is_saved_dataset, read_source, to_utf8
from core.sources.fields import MAX_LIST, FieldError, Fields, read_each
from core.sources.formats import detect
from core.sources.formats.records import Record, not_used, question_of, records_of, right_texts
from core.sources.question import (
    EVIDENCE,
    FIELDS,
    CorpusLoader,
    Document,
    PassageIn,
    Question,
    askable,
    document_from_text,
    gold_spans,
    load_corpus,
    names_of,
    parse_question,
    question_record,
    row_of_cells,
    split_texts,
)
from core.sources.report import IssueLog, ValidationReport, counted, possibilities, rejected_frame, shorten
from core.sources.shapes import Given, given_by, reshaped

__all__ = [
    "Dataset",
    "Document",
    "PassageIn",
    "Question",
    "dataset_jsonl",
    "load_dataset",
    "make_dataset",
    "read_dataset",
    "single_question",
]

MAX_QUESTIONS = 100_000
_QUESTION = set(names_of("question"))
_OWN = {name for field in EVIDENCE for name in names_of(field)}
_SHARED = "right passages of the file"
# The search for gold fragments that occur nowhere reads every document for every question.
_MAX_GOLD_SEARCH = 20_000_000


@dataclass(frozen=True, slots=True)
class Dataset:
    """Questions to run, at least one, with unique ids.

    ``digest`` is the SHA-256 of the questions and their documents; ``report`` lists problems in the file and
    what was kept.
    """

    name: str
    questions: tuple[Question, ...] = field(repr=False)
    digest: str
    report: ValidationReport = field(repr=False)

    def head(self, n: int) -> Dataset:
        """Return the first ``n`` questions (n >= 1) as a data set with its own digest."""
        if n < 1:
            raise InputError(f"The number of questions must be at least 1, got {n}.")
        if n >= len(self.questions):
            return self
        questions = self.questions[:n]
        return replace(self, questions=questions, digest=digest_of(questions))


def load_dataset(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | None = None,
    *,
    documents: tuple[Document, ...] | None = None,
) -> Dataset:
    """Read a data set or a list of prompts from a file; its lines may name a corpus beside it.

    Parameters
    ----------
    path : path
        JSON Lines or CSV, UTF-8 (or with a byte order mark), also gzipped; Parquet, or a folder that
        ``save_to_disk`` wrote; SQuAD's or HotpotQA's own form; a file of any tool that can be imported
        (`core.sources.formats`); or plain text, named ``.txt``, with one prompt a line. A ``corpus`` in a
        line is a path relative to this file and inside its folder.
    corpus : path, optional
        A folder or a JSON Lines file of documents (see `load_corpus`) to search for lines that have
        neither passages nor documents.
    documents : tuple of Document, optional
        The same, already read; () where their passages will come from elsewhere. Without both, such a line
        cannot be used.

    Returns
    -------
    Dataset
        Good lines only; bad ones are in ``report``.

    Raises
    ------
    InputError
        No such file, no text, too large, no line that can be used, or a corpus that cannot be read.
    """
    source = Path(path)
    folder = source.parent.resolve()
    attached = documents if corpus is None else load_corpus(Path(corpus))

    @cache
    def beside(value: str) -> tuple[Document, ...]:
        expected = "a path inside the folder of the data set"
        try:
            if (found := (folder / value).resolve()).is_relative_to(folder):
                return load_corpus(found)
        except InputError as error:
            expected = f"a folder of .md or .txt files, or a JSON Lines file ({str(error).rstrip('.')})"
        except (OSError, ValueError, RuntimeError):
            expected = "the path of a folder of .md or .txt files, or of a JSON Lines file"
        raise FieldError("corpus", value, expected)

    name = source.name.removesuffix(".gz")
    return _read(read_source(source, str(path)), str(path), Path(name).stem or name, beside, attached)


def read_dataset(data: bytes, name: str, *, documents: tuple[Document, ...] | None = None) -> Dataset:
    """Read an uploaded data set; see `load_dataset`.

    A ``corpus`` in a line names a path of this machine, so it is refused here: every line needs its own
    ``documents`` or ``passages``, unless ``documents`` for all of them are given.
    """

    def refused(value: str) -> tuple[Document, ...]:
        raise FieldError(
            "corpus", value, "documents or passages in the line itself: an upload cannot name files"
        )

    return _read(read_source(data, name), name, name, refused, documents)


def single_question(
    question: str,
    documents_text: str | Sequence[str],
    *,
    reference_answers: Sequence[str] = (),
) -> Dataset:
    """Make a data set of one typed question and pasted documents; InputError if one is missing or too long.

    One text is split at lines that hold only ``---``. The first line of each document may be ``# Title``.
    """
    pieces = split_texts(documents_text) if isinstance(documents_text, str) else list(documents_text)
    documents = [document_from_text(piece) for piece in pieces]
    fields = {
        "question": question,
        "documents": [{"title": d.title, "text": d.text} for d in documents],
        "answers": list(reference_answers),
    }
    try:
        parsed = parse_question(Fields(fields, strict=True), "q0001", lambda _: ())
    except FieldError as error:
        raise InputError(
            f"The field {error.field} holds {shorten(error.value)!r}; expected {error.expected}."
        ) from error
    return make_dataset("Typed question", (parsed,))


def make_dataset(name: str, questions: Sequence[Question], report: ValidationReport | None = None) -> Dataset:
    """Make a data set of questions that are already read; without a report, an empty one."""
    kept = tuple(questions)
    if report is None:
        report = IssueLog().report(len(kept), rejected_frame(()), ())
    return Dataset(name, kept, digest_of(kept), report)


def _read(
    data: bytes, source: str, name: str, corpus: CorpusLoader, attached: tuple[Document, ...] | None
) -> Dataset:
    log = IssueLog()
    given = _question_entries(data, source, log)
    content = given.content
    content.log_bad(log, "row" if content.kind == "csv" else "line")
    loaded = given.corpora.get

    def beside(value: str) -> tuple[Document, ...]:
        return loaded(value) or corpus(value)

    numbers = sorted([*(n for n, _ in content.entries), *(bad.number for bad in content.bad)])
    default_ids = {number: f"q{place:04d}" for place, number in enumerate(numbers, start=1)}
    taken: set[str] = set()
    unused: dict[str, None] = {}
    # Lines that repeat the same documents get one tuple of them, so that they are indexed once.
    first: dict[tuple[Document, ...], tuple[Document, ...]] = {}
    shared: dict[int, tuple[Document, ...]] = {}

    def read(row: int, entry: Any) -> Question:
        fields = Fields(row_of_cells(entry) if content.kind == "csv" else entry, row, log, strict=True)
        if len(taken) >= MAX_QUESTIONS:
            raise FieldError("question", "", f"at most {MAX_QUESTIONS:,} questions")
        question = parse_question(fields, default_ids[row], beside, attached)
        unused.update(dict.fromkeys(fields.rest()))
        if question.query_id in taken:
            raise FieldError("id", question.query_id, "an id that no earlier line has")
        taken.add(question.query_id)
        note_oddities(log, row, question)
        # A large corpus that is shared already is not compared document by document for every question.
        if id(question.documents) in shared:
            return question
        documents = first.setdefault(question.documents, question.documents)
        shared[id(documents)] = documents
        return replace(question, documents=documents)

    kept, rejected = read_each(content.entries, log, read)
    if not kept:
        none = f"{source} holds no question; expected one JSON object a line, or CSV with a column question."
        some = log.nothing_usable(source, len(numbers), "lines", "line")
        raise InputError(none if log.first_error is None else some)
    notes = [*content.notes, *given.notes]
    if unused:
        notes.append(f"Fields not used: {', '.join(map(shorten, list(unused)[:20]))}.")
    if n_bare := sum(q.documents is attached for q in kept) if attached else 0:
        bare = counted(n_bare, "line")
        notes.append(f"{bare} without passages or documents: the corpus given is searched.")
    report = log.report(len(kept), content.rejected([*given.rejected, *rejected]), notes, possible(kept))
    return make_dataset(name, kept, report)


def _question_entries(data: bytes, source: str, log: IssueLog) -> Given:
    """Parse the unpacked file of a data set into its records; InputError where it cannot be read as a whole.

    In a file named ``.txt`` each line is a prompt, unless the file is JSON or its first line is a
    CSV header with a column for the question. A file of that one column is read under any name.
    """
    text = Text(b"", None) if is_columnar(data) else to_utf8(data, source)
    plain = text.utf8.decode()
    notes = (text.note,) if text.note else ()
    if plain and plain.lstrip()[:1] not in ("{", "["):
        header = _cells(plain)
        if len(header) == 1 and header <= _QUESTION:
            return Given(Content(source, "csv", None, _one_column(plain, source), notes=notes))
        if source.lower().removesuffix(".gz").endswith(".txt") and not header & _QUESTION:
            return Given(Content(source, "jsonl", None, prompts(plain), notes=notes))
    wrong, content = None, None
    try:
        content = read_content(data, source, strict=True)
    except InputError as error:
        wrong = error
    # Other tools write NaN for a missing value, which in a file of ours is a mistake.
    loose = read_content(data, source) if content is None or content.bad else content
    if (given := _foreign(loose, log)) is not None:
        return given
    if content is None:
        assert wrong is not None
        raise wrong
    content = content.opened()
    if content.kind == "csv" and not _QUESTION & set(content.columns):
        raise InputError(
            f"{source} has the columns {', '.join(map(shorten, content.columns[:20]))}; "
            f"expected question and one of documents, passages and corpus (of {', '.join(FIELDS)}); "
            "a plain list of prompts is named .txt."
        )
    return Given(content)


def _foreign(content: Content, log: IssueLog) -> Given | None:
    """Return the questions of a file that is not in our own schema; None where it is, or is unknown."""
    if (shape := reshaped(content, log)) is not None:
        return shape
    if not content.opened().names().isdisjoint(_OWN):
        return None
    found = detect(content)
    if found is None or found.name == "jsonl":
        return None
    read = found.read(content, log)
    notes = [f"Auto-detected from field names: {found.title} ({found.name})."]
    whole = records_of(Run.create({"source": "upload"}, **read.tables)) if read.n_rows else read.records
    records = list({(r.question, r.passages): r for r in reversed(whole)}.values())[::-1]
    if again := len(whole) - len(records):
        notes.append(f"Left out, as the same question with the same passages: {counted(again, 'record')}.")
    right = [() if record.passages else right_texts(record) for record in records]
    pool = tuple(Document("", text) for text in dict.fromkeys(text for texts in right for text in texts))
    if pool:
        notes.append(
            "Without retrieved passages, so these are retrieved from the right passages of all questions: "
            f"{counted(len(pool), 'text')}."
        )
    entries = tuple(
        (place, _entry_of(record, texts, bool(pool)))
        for place, (record, texts) in enumerate(zip(records, right, strict=True), start=1)
    )
    notes += [*read.notes, *not_used(read.unused)]
    rejected = read.rejected
    if isinstance(rejected, pd.DataFrame):
        rejected = [(row, reason, "") for row, reason in rejected[["row", "reason"]].itertuples(index=False)]
    return given_by(content, entries, {_SHARED: pool} if pool else {}, notes, rejected)


def _entry_of(record: Record, right: Sequence[str], pooled: bool) -> dict[str, Any]:
    entry = question_record(question_of(record))
    if not record.record_id:
        entry.pop("id", None)
    if record.passages or not pooled:
        return entry
    entry.pop("n_gold", None)  # it counts the right texts, not the passages that they are cut into
    return {**entry, "corpus": _SHARED, **({"gold": list(right)} if right else {})}


def prompts(text: str) -> list[tuple[int, dict[str, str]]]:
    """Return a record for each line of plain text that is not blank."""
    return [(n, {"question": line}) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _one_column(text: str, source: str) -> list[tuple[int, dict[str, str]]]:
    """Return a record for each row of a CSV with a question as its only column."""
    rows = csv.reader(io.StringIO(text.lstrip(), newline=""))
    try:
        # Commas that nobody put between quotes are the prompt's own: there is no other column.
        lines = [(row, ",".join(cells)) for row, cells in enumerate(rows, start=1)]
    except csv.Error as error:
        raise InputError(
            f"{source}, line {rows.line_num} is not CSV ({error}); expected one prompt a line."
        ) from error
    return [(row, {"question": prompt}) for row, prompt in lines[1:] if prompt.strip()]


def _cells(text: str) -> set[str]:
    """Return the cells of the first line, whatever separates them."""
    first = text.lstrip().split("\n", 1)[0].lower()
    return {cell.strip().strip('"') for cell in re.split("[,;\t|]", first)}


def dataset_jsonl(dataset: Dataset) -> bytes:
    """Write a data set as JSON Lines in UTF-8, each question with its documents in one line.

    Reading it gives equal questions, and so the same digest. `InputError` where the file would be too large
    to be read again: questions that share a large corpus are better kept beside it.
    """
    lines: list[bytes] = []
    size = 0
    for question in dataset.questions:
        fits = len(question.documents) <= MAX_LIST
        line = json.dumps(question_record(question), ensure_ascii=False).encode() if fits else b""
        size += len(line) + 1
        if not fits or size > MAX_BYTES:
            raise InputError(
                f"The data set {dataset.name} is too large for one file with all documents in every line; "
                "keep its questions as a list of prompts, and the documents as a corpus beside it."
            )
        lines.append(line)
    return b"\n".join([*lines, b""])


def digest_of(questions: Sequence[Question]) -> str:
    """Return the SHA-256 over questions and their documents: equal content, equal digest."""
    digest = hashlib.sha256()
    corpora: dict[int, str] = {}
    for q in questions:
        key = id(q.documents)
        if key not in corpora:
            corpora[key] = _hash([[d.title, d.text] for d in q.documents])
        passages = q.passages and [[p.passage_id, p.title, p.text, p.score, p.is_gold] for p in q.passages]
        asked = (q.query_id, q.question, corpora[key], passages)
        known = (q.reference_answers, q.gold, q.kind, q.language)
        # Only where it is known, so that digests of data sets without it stay what they were.
        n_gold = () if q.n_gold is None else (q.n_gold,)
        digest.update(_hash([*asked, *known, *n_gold]).encode())
    return digest.hexdigest()


def note_oddities(log: IssueLog, row: int, question: Question) -> None:
    """Note what is odd but can be run: gold that occurs nowhere, the same passage twice."""
    texts = [passage.text for passage in question.passages or ()]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        log.add(row, "passages", twice, "passages that differ within the question", "warning")
    if not question.gold:
        return
    texts += [document.text for document in question.documents]
    if sum(map(len, texts)) > _MAX_GOLD_SEARCH:
        return
    for fragment in question.gold:
        # Mostly it stands there with the same white space, which is seen sooner.
        there = any(fragment in text for text in texts)
        if not there and not any(gold_spans(text, [fragment]) for text in texts):
            log.add(row, "gold", fragment, "a fragment that occurs word for word in the documents", "warning")


def possible(questions: Sequence[Question]) -> tuple[list[str], list[str]]:
    """Return what a run of these questions will show, and what it cannot."""
    return possibilities(questions, _ANALYSES)


def _is_golden(question: Question) -> bool:
    return bool(question.gold) or any(p.is_gold is not None for p in question.passages or ())


_GOLD = "gold, or is_gold of each passage"
_ANALYSES: tuple[tuple[str, Callable[[Question], bool], str], ...] = (
    ("influence vs retrieval", lambda _: True, ""),
    ("correct and incorrect answers, harmful passages", lambda q: bool(q.reference_answers), "answers"),
    ("missed evidence", _is_golden, _GOLD),
    ("hit, recall, MRR and nDCG of the retriever", _is_golden, _GOLD),
)


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def open_questions(path: str | os.PathLike[str]) -> Dataset:
    """Return the questions of a data set file, or of a saved run where the path is a folder."""
    return dataset_of(Run.load(path)) if is_run(path) else load_dataset(path)


def is_run(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is meant as that of a saved run: a folder that holds no saved data set."""
    return os.path.isdir(path) and not is_saved_dataset(path)


def dataset_of(run: Run) -> Dataset:
    """Return the questions of a run with its own passages, to be asked again.

    An imported run has answers and passages but mostly no ablations, which a live run adds. Passages are in
    the order of their retrieval ranks, with titles, scores and gold marks; references, kind and language come
    along. Questions that have no passage with text are left out, and so are single passages without text;
    ``report`` names both. InputError where no question has a passage with text.
    """
    log = IssueLog()
    records = records_of(run)
    questions, rejected = read_each(enumerate(records, start=1), log, lambda row, r: _question(r, row, log))
    if not questions:
        raise InputError(
            f"The run {run.name!r} cannot be continued live: none of its {len(records):,} questions has "
            "a passage with text."
        )
    frame = pd.DataFrame(
        [(row, reason, record.record_id, record.question) for row, reason, record in rejected],
        columns=["row", "reason", "id", "question"],
    )
    note = "Passages are those of the run, in the order of their retrieval ranks."
    return make_dataset(run.name, questions, log.report(len(questions), frame, [note], possible(questions)))


def _question(record: Record, row: int, log: IssueLog) -> Question:
    if not record.question.strip():
        raise FieldError("question", record.question, "a question")
    question = question_of(record)
    usable = {passage.passage_id for passage in question.passages or ()}
    if not usable:
        found = f"{record.record_id}: {counted(len(record.passages), 'passage')} without text"
        raise FieldError("passages", found, "one passage with text or more")
    askable(question)
    for passage in record.passages:
        if passage.passage_id not in usable:
            log.add(row, "passages", passage.passage_id, "a passage with text; it is left out", "warning")
    return question
