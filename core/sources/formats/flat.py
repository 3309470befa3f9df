"""What formats of flat records have in common: one object a record, its fields named at the top."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from core.errors import InputError
from core.sources.corpus import text_problem
from core.sources.formats.cells import Unreadable
from core.sources.formats.content import MAX_VALUES, keys_of
from core.sources.formats.fields import Fields
from core.sources.formats.kept import as_id, is_kept
from core.sources.formats.records import Record, RecordPassage
from core.sources.formats.types import Content
from core.sources.question import FieldError
from core.sources.report import shorten

_WRAPPERS = ("samples", "data", "testCases", "test_cases", "goldens", "records", "questions", "rows")
_QUESTIONS = ("question", "query", "user_input", "input")


def opened(content: Content, questions: Collection[str] = ()) -> Content:
    """Return content whose entries are its records, also where a JSON object holds them.

    A JSON object may hold a list of records under a usual name (``samples``, ``data``, ``test_cases`` …), be
    a table of columns (as pandas and Hugging Face write one), or be a single record itself.

    Parameters
    ----------
    content : Content
        Any file; CSV, JSON Lines and JSON lists are returned as they are.
    questions : collection of str
        Further names that the field of the question may have.
    """
    value = content.value
    if not isinstance(value, Mapping):
        return content
    for key in _WRAPPERS:
        if isinstance(value.get(key), list) and not any(name in value for name in _QUESTIONS):
            return replace(content, value=None, entries=tuple(enumerate(value[key], start=1)))
    rows = _rows_of_columns(value, {*_QUESTIONS, *questions}) or [dict(value)]
    return replace(content, value=None, entries=tuple(enumerate(rows, start=1)))


def renamed(content: Content, mapping: Mapping[str, str], names: Mapping[str, str]) -> Content:
    """Return opened content in which the columns that a user names stand under a format's own names.

    Parameters
    ----------
    content : Content
        As `opened` returns it.
    mapping : Mapping of str to str
        Field (question, answer, …) to column.
    names : Mapping of str to str
        Field to the format's own name of it.

    Raises
    ------
    InputError
        No such field in this format, or no such column in the file.
    """
    present = {key for _, entry in content.entries if isinstance(entry, Mapping) for key in entry}
    present |= set(content.columns)
    for field, column in mapping.items():
        if field not in names:
            raise InputError(f"There is no field {shorten(field)!r} to map; fields are {', '.join(names)}.")
        if column not in present:
            raise InputError(
                f"{content.name} has no column {shorten(column)!r} for the field {field}; "
                f"it has {', '.join(map(shorten, keys_of(content)))}."
            )
    new = {column: names[field] for field, column in mapping.items()}
    entries = tuple((number, _renamed(entry, new)) for number, entry in content.entries)
    columns = tuple(_renamed(dict.fromkeys(content.columns), new))
    return replace(content, entries=entries, columns=columns)


def counted_names(content: Content, names: Iterable[str], most: int = 50) -> int:
    """Return how many of these names stand in the first entries, or among the columns."""
    entries = [entry for _, entry in content.entries[:most] if isinstance(entry, Mapping)]
    present = set(content.columns).union(*entries)
    return sum(name in present for name in names)


def with_blank_answers(content: Content, names: Sequence[str]) -> Content:
    """Fill in the answers that a CSV leaves blank: beside other answers, a blank one is an empty answer."""
    if content.kind != "csv":
        return content
    filled = {name for name in names for _, entry in content.entries if name in entry}
    blank = dict.fromkeys(filled, "")
    return replace(content, entries=tuple((number, {**blank, **entry}) for number, entry in content.entries))


def own_id(fields: Fields, *names: str) -> str:
    """Return the id of a record, "" where it has none that is of use."""
    name = fields.present(*names)
    given = None if name is None else as_id(fields.record[name])
    if name is not None and given is None:
        fields.warn(name, fields.record[name], "a text that is not empty, or a whole number")
    return given or ""


def passage_texts(fields: Fields, *names: str) -> tuple[str, ...]:
    """Return the texts of passages, which may be empty; () where the field is absent.

    `FieldError` names the one that is no text: without it the others would not keep their places.
    """
    name = fields.present(*names)
    if name is None:
        return ()
    value = fields.record[name]
    entries = [value] if isinstance(value, str) else fields.required_items(name)
    return tuple(passage_text(f"{fields.path}{name}[{i}]", entry) for i, entry in enumerate(entries))


def passage_text(name: str, value: object) -> str:
    """Return the text of one passage, which may be empty; `FieldError` where it is none."""
    if not isinstance(value, str):
        raise FieldError(name, value, "a text")
    if wrong := text_problem(value):
        raise FieldError(name, value, wrong)
    return value


def marked_gold(
    passages: Sequence[RecordPassage], texts: Iterable[str], ids: Collection[str] = ()
) -> tuple[RecordPassage, ...]:
    """Say of each passage whether it is a gold one, by its text or its id; unknown where no gold is given.

    Two texts are the same whatever their white space and Unicode forms.
    """
    wanted = distinct(texts)
    if not wanted and not ids:
        return tuple(passages)
    return tuple(
        replace(p, is_gold=(p.text is not None and folded(p.text) in wanted) or p.passage_id in ids)
        for p in passages
    )


def distinct(texts: Iterable[str]) -> set[str]:
    """Return the texts that differ in more than white space and Unicode form; blank ones are none."""
    return {folded(text) for text in texts} - {""}


def folded(text: str) -> str:
    """Return a text in one Unicode form, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def reported_rest(fields: Fields) -> dict[tuple[str, str], Any]:
    """Return every field that nobody asked for, as a record reports it."""
    return {
        (name, ""): value.cell if isinstance(value, Unreadable) else value
        for name, value in fields.rest().items()
    }


def further_fields(record: Record, own: Collection[str]) -> dict[str, Any]:
    """Return what a record reports under names that are not a format's own, for a file of that format.

    Who said it is put behind the name, in brackets.
    """
    fields: dict[str, Any] = {}
    for (name, by), value in record.reported.items():
        key = f"{name} ({by})" if by else name
        if value is not None and key not in own and not is_kept(name):
            fields[key] = value
    return fields


def default_id(place: int) -> str:
    """Return the id of a record that has none: q0001 for the first."""
    return f"q{place:04d}"


def has_own_ids(records: Iterable[Record]) -> bool:
    """Tell whether any record has an id that is not just its number."""
    return any(r.record_id not in ("", default_id(place)) for place, r in enumerate(records, start=1))


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that hold something: no None, no empty list or object."""
    return {name: value for name, value in fields.items() if value is not None and value not in ([], {}, ())}


def _renamed(entry: Any, new: Mapping[str, str]) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    moved = {new[key]: value for key, value in entry.items() if key in new}
    return {**{key: value for key, value in entry.items() if key not in new and key not in moved}, **moved}


def _rows_of_columns(value: Mapping[str, Any], questions: Collection[str]) -> list[dict[str, Any]] | None:
    """Return the rows of a table written column by column, None where it is none."""
    columns = list(value.values())
    if not any(name in value for name in questions):
        return None
    # Ragged columns are filled up, so a file of few values could ask for very many.
    if len(columns) * max(len(c) if isinstance(c, (list, Mapping)) else 0 for c in columns) > MAX_VALUES:
        return None
    rows: Iterable[tuple[Any, ...]]
    if all(isinstance(column, list) for column in columns):
        rows = zip_longest(*columns)
    elif all(isinstance(column, Mapping) for column in columns):
        keys = list(next(column for name, column in value.items() if name in questions))
        rows = zip(*([column.get(key) for key in keys] for column in columns), strict=True)
    else:
        return None
    return [dict(zip(value, row, strict=True)) for row in rows]
