"""Every file that can be imported: which format it has, and the run it makes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from core.errors import InputError
from core.run import MARKS, Run
from core.sources.content import Content, read_content
from core.sources.fields import unique
from core.sources.formats import (
    deepeval,
    exported,
    influence,
    inspectorraget,
    jsonl,
    logged,
    long,
    mtrag,
    openinference,
    rag_uncertainty,
    ragas,
    ragchecker,
)
from core.sources.formats.flat import default_id, renamed
from core.sources.formats.records import (
    Format,
    ReadRecords,
    Record,
    as_dataset,
    judged,
    not_used,
    records_of,
    right_texts,
    run_of,
)
from core.sources.formats.writing import unmarked
from core.sources.mapping import MAPPABLE, first_values, guess_columns, suggest_mapping
from core.sources.question import FIELDS as DATASET
from core.sources.question import names_of
from core.sources.report import IssueLog, ValidationReport, counted, possibilities, shorten
from core.sources.shapes import shape_of
from core.sources.table import OneColumn
from core.text.strict import finite

INFLUENCE_CSV, SAMPLED = influence.FORMAT.name, "samples-csv"
_MODULES = (
    influence,
    ragas,
    ragchecker,
    inspectorraget,
    deepeval,
    openinference,
    rag_uncertainty,
    mtrag,
    jsonl,
)
FORMATS: Mapping[str, Format] = MappingProxyType(
    {f.name: f for f in (*(module.FORMAT for module in _MODULES), *logged.FORMATS, *long.FORMATS)}
)
IMPORT_FORMATS = ("auto", *FORMATS)
# Every field that a column may be named for, with what it means: the mapper and --map.
MAPPED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys((n for n in jsonl.FORMAT.fields if n not in ("references", "id")), ""),
        **{name: column.meaning for name, column in MAPPABLE.items()},
        **{name: column.meaning for name, (_, column) in long.FIELDS.items()},
    }
)


def detect(content: Content) -> Format | None:
    """Return the format with the most tell-tale names in a file, the first of equals; None without any."""
    found = {name: file_format.recognise(content) for name, file_format in FORMATS.items()}
    best = max(found, key=lambda name: found[name])
    return FORMATS[best] if found[best] > 0 else None


class UnknownFormatError(InputError):
    """A file has none of the formats that can be told by the names of their fields."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A run made of a file, and the import report."""

    run: Run
    report: ValidationReport


def import_file(
    source: bytes | str | os.PathLike[str],
    name: str | None = None,
    file_format: str = "auto",
    mapping: Mapping[str, str] | None = None,
) -> Imported:
    """Read a file of another tool as a run.

    Parameters
    ----------
    source : bytes or path
        JSON, JSON Lines, CSV or Parquet, also gzipped; or a folder written by Hugging Face's
        ``save_to_disk``.
    name : str, optional
        Name of the run and of the file in messages; a path's own name by default.
    file_format : str
        One of `IMPORT_FORMATS`; "auto" detects it from field names.
    mapping : Mapping of str to str, optional
        Field to column, where the file has names of its own: the fields of an influence CSV, or question,
        answer, passages, references, samples, id in formats of flat records. Other fields keep their columns.

    Returns
    -------
    Imported
        The run of the good records; ``report`` names everything else, and lists what the run allows.
        Equal bytes read in the same way give the same run id, whatever the file is called.

    Raises
    ------
    InputError
        No such format, nothing recognised, or nothing that can be used.

    Notes
    -----
    Cost: no LLM calls; a million rows of an influence CSV take seconds.
    """
    if file_format not in IMPORT_FORMATS:
        raise InputError(
            f"The format must be one of {', '.join(IMPORT_FORMATS)}, got {shorten(file_format)!r}."
        )
    label = name or (Path(source).name if not isinstance(source, bytes) else "The file")
    given = dict(mapping or {})
    try:
        content = read_content(source, label)
    except OneColumn as error:
        if error.first.casefold() in names_of("question"):
            raise InputError(_questions_only(label)) from error
        raise
    content, marked = unmarked(content if given else exported.held(content))
    found, content = _format_of(content, file_format, given)
    log = IssueLog()
    content.log_bad(log)
    read = found.read(content, log)
    records, remarks, taken = read.records, list[str](), set[str]()
    if read.n_rows is None:
        records, numbered = _named(records)
        records, said, taken = judged(records)
        remarks = [*numbered, *said]
    if not read.n_rows and not any(map(_says_something, records)):
        raise InputError(_nothing_usable(content, read, log))
    how = "Auto-detected from field names" if file_format == "auto" else "Read as chosen"
    notes = [f"{how}: {found.title} ({found.name}).", *content.notes, *read.notes]
    ignored = [name for name in read.unused if name not in taken]
    rejected = content.rejected(read.rejected)
    named = read.mapping or content.given
    # The ids of influence files are from a time when there were no other formats.
    key = [content.digest, *([] if read.mapping else [found.name]), named]
    facts: dict[str, Any] = {"name": label, "digest": content.digest, "format": found.name}
    del content  # whatever else was made of the file is free again when the run is made
    pa.default_memory_pool().release_unused()
    bare = {"source": marked or "upload", "run_id": hashlib.sha256(json.dumps(key).encode()).hexdigest()[:12]}
    made = Run.create(bare, **read.tables) if read.n_rows else run_of(records, bare)
    if read.possible is None:
        if n := n_asked_again(made):
            notes.append(
                f"{counted(n, 'question')} in several rows, each with its own answer: if these were sampled "
                f"from one model, read the file as sampled answers ({SAMPLED})."
            )
        notes += not_used(ignored, kept=read.n_rows is None)
    notes += remarks
    if marked:
        says = f"data are {MARKS[marked]}, so the run is marked as {MARKS[marked]}."
        notes.append(f"The file says that its {says}")
    possible = read.possible or abilities(records or records_of(made))
    n_kept = len(records) if read.n_rows is None else read.n_rows
    report = log.report(n_kept, rejected, notes, possible, ignored)
    facts |= {"rows": report.n_rows, "kept": report.n_kept, "rejected": report.n_rejected}
    facts |= {"mapping": dict(named)} if named else {}
    manifest = {**made.manifest, "name": label, "dataset": facts, "notes": notes}
    return Imported(replace(made, manifest=MappingProxyType(manifest)), report)


def n_asked_again(run: Run) -> int:
    """Return how many questions have several answers, without passages or samples of their own."""
    alone = ~run.queries["query_id"].isin({*run.passages["query_id"], *run["samples"]["query_id"]})
    asked = run.queries.loc[alone & run.queries["answer"].notna(), "question"]
    return int((asked.value_counts() > 1).sum())


def _says_something(record: Record) -> bool:
    """Return whether a record has more than a question."""
    judged = record.correct is not None or record.confidences or record.signals
    return bool(record.answer is not None or record.passages or record.samples or judged)


def _format_of(content: Content, file_format: str, given: Mapping[str, str]) -> tuple[Format, Content]:
    """Return the format of a file, and its content with the named columns under the format's own names."""
    content = replace(content, given=given)
    found = FORMATS[file_format] if file_format != "auto" else detect(content)
    if found is not influence.FORMAT:
        if file_format == "auto":
            found = long.of_fields(given) or found
        # Whose right answers would be taken for those of a model, unless the column of these is named.
        if "answer" not in given and (shape := shape_of(content)):
            what = f"is a data set in the form of {shape}"
            raise InputError(f"{content.name} {what}: {as_dataset(content.name)}.")
    if found is None and given:
        found = jsonl.FORMAT
    if found is None:
        names = content.opened().names()
        if names.isdisjoint(names_of("question")) or unknown_columns(names):
            raise UnknownFormatError(_unknown(content))
        raise InputError(_questions_only(content.name))
    if not given or found is influence.FORMAT:
        return found, content
    if not found.fields:
        flat = ", ".join(f.name for f in FORMATS.values() if f.fields)
        raise InputError(f"Columns can be named in flat formats only ({flat}), not in {found.name}.")
    return found, renamed(content.opened(given.values()), given, found.fields)


def _named(records: Sequence[Record]) -> tuple[list[Record], list[str]]:
    """Give every record an id of its own, and say where a file's ids are not kept."""
    wanted = [r.record_id or default_id(place) for place, r in enumerate(records, start=1)]
    ids = unique(wanted)
    notes = []
    without = sum(not r.record_id for r in records)
    if 0 < without < len(records):
        notes.append(f"Without an id, so numbered: {counted(without, 'record')}.")
    if again := sum(new != old for new, old in zip(ids, wanted, strict=True)):
        notes.append(f"With an id that another record has, so numbered: {counted(again, 'record')}.")
    return [replace(r, record_id=i) for r, i in zip(records, ids, strict=True)], notes


def unknown_columns(names: Iterable[str]) -> list[str]:
    """Return the names that neither the schema nor a data set has."""
    own = {name for field in DATASET for name in names_of(field)}
    return sorted({*names} - {*suggest_mapping(names).values()} - own)


def _questions_only(name: str, corpus: bool = True) -> str:
    what = "holds questions only, without answers or passages, so it is a data set"
    return f"{name} {what}: {as_dataset(name, corpus=corpus)}."


def _unknown(content: Content) -> str:
    names = content.keys()
    if not names and content.bad:
        first = content.bad[0]
        row = "line" if content.kind == "jsonl" else "record"
        return f"No {row} of {content.name} can be read: {row} {first.number} is not {first.expected}."
    if not names:
        return f'{content.name} has no fields with names; expected records, such as {{"question": …}}.'
    what = "columns" if content.kind == "csv" else "names"
    guessed = guess_columns(first_values(content), {field: field for field in MAPPED})
    pairs = " ".join(f"{field}={shorten(column)}" for field, (column, _) in guessed.items())
    perhaps = f", perhaps {pairs}" if "question" in guessed else ""
    return (
        f"{content.name} has no known format ({', '.join(IMPORT_FORMATS[1:])}): its {what} are "
        f"{', '.join(map(shorten, names))}; name its format, or its columns "
        f"(question=…, answer=…, passages=…{perhaps})."
    )


def _nothing_usable(content: Content, read: ReadRecords, log: IssueLog) -> str:
    if read.records:
        return _questions_only(content.name, corpus=not any(map(right_texts, read.records)))
    if log.first_error is None:
        return f"{content.name} holds no record; expected questions with answers and passages."
    return log.nothing_usable(content.name, len(read.rejected) + len(content.bad), "records", "row")


def abilities(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """Return which analyses the records (one or more) allow, and what the others need."""
    enables, missing = possibilities(records, _ANALYSES)
    labelled = any(record.correct is not None or record.confidences for record in records)
    if labelled and not any(record.passages for record in records):
        return enables, [line for line in missing if "passages" not in line]
    needs = "needs answers with each passage left out"
    texts = any(passage.text and passage.text.strip() for record in records for passage in record.passages)
    how = "; continue live with the same passages" if texts else ", and passages with text"
    return enables, [f"influence vs retrieval: {needs}{how} to get them", *missing]


_ANALYSES: tuple[tuple[str, Callable[[Record], bool], str], ...] = (
    ("empty answers and refusals", lambda r: r.answer is not None, "answers"),
    ("retrieval metrics", lambda r: any(p.is_gold is not None for p in r.passages), "gold passages"),
    (
        "correct and incorrect answers",
        lambda r: r.correct is not None or (bool(r.references) and r.answer is not None),
        "answers and correct answers to compare them with",
    ),
    (
        "confidence of the answers",
        lambda r: bool(r.signals or r.confidences),
        "similarity, lexical and llm_score, or the step that measures them",
    ),
    (
        "the file's own scores beside each question",
        lambda r: any(finite(value) is not None for value in r.reported.values()),
        "scores in the file",
    ),
    (
        "claims and evidence, with verdicts and uncertainty",
        lambda r: any(c.side == "answer" and (c.support or c.verdict) for c in r.claims),
        "claims, which can be found offline where there are answers and passages with text",
    ),
    # Kept in the run and exported, nothing more yet.
    (
        "sampled answers, kept and exported",
        lambda r: len(r.samples) > 1,
        "two sampled answers or more a question",
    ),
)
