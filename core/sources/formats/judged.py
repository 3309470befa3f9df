"""What a file says of its own answers: whether each is correct, and how sure somebody is of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.sources.fields import unique
from core.sources.formats.records import LABELS, Record
from core.sources.report import counted, shorten
from core.text.strict import finite

CONFIDENCE = "confidence"
_YES, _NO = ("true", "yes", "1", "1.0", "correct", "right"), ("false", "no", "0", "0.0", "incorrect", "wrong")
Key = tuple[str, str]


def judged(records: Sequence[Record]) -> tuple[list[Record], list[str], set[str]]:
    """Return records with the labels and confidences that they report, a note on each, and their names.

    A label is a value under one of `LABELS` that is yes or no wherever the file has it; of several judges of
    an answer who disagree none is believed. A confidence is a number in [0, 1], under any name with that
    word.
    """
    keys = dict.fromkeys(key for record in records for key in record.reported)
    found, notes, own = list(records), list[str](), list[Key]()
    for wanted in LABELS:
        own = [key for key in keys if _plain(key[0]) == wanted and _all(records, key, _truth)]
        if own:
            found = [_labelled(record, own) for record in found]
            n = sum(record.correct is not None for record in found)
            taken = ", ".join(shorten(name) for name in dict.fromkeys(name for name, _ in own))
            notes.append(f"Correct or not is taken from {taken}: {counted(n, 'answer')}.")
            break
    sure = [key for key in keys if CONFIDENCE in _plain(key[0]) and _all(records, key, _share)]
    if sure:
        names = dict(zip(sure, unique([_name(*key) for key in sure]), strict=True))
        found = [_confident(record, names) for record in found]
        notes.append(f"Confidences in [0, 1]: {', '.join(map(shorten, names.values()))}.")
    return found, notes, {name for name, _ in (*own, *sure)}


def may_judge(name: str) -> bool:
    """Return whether a field of this name may hold a label or a confidence."""
    return _plain(name) in LABELS or CONFIDENCE in _plain(name)


def _labelled(record: Record, keys: Iterable[Key]) -> Record:
    said = {key: value for key in keys if (value := _truth(record.reported.get(key))) is not None}
    if len(set(said.values())) != 1:
        return record
    by = ", ".join(dict.fromkeys(judge or name for name, judge in said))
    return replace(record, correct=next(iter(said.values())), correct_by=by)


def _confident(record: Record, names: Mapping[Key, str]) -> Record:
    values = {name: _share(record.reported.get(key)) for key, name in names.items()}
    known = {name: value for name, value in values.items() if value is not None}
    return replace(record, confidences=known)


def _all(records: Iterable[Record], key: Key, read: Any) -> bool:
    """Return whether some record has a value there, and all that have one can be read so."""
    values = [record.reported[key] for record in records if not _is_missing(record.reported.get(key))]
    return bool(values) and all(read(value) is not None for value in values)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in ("", "nan", "null"))


def _truth(value: Any) -> bool | None:
    said = str(value).strip().lower() if isinstance(value, (str, int, float)) else ""
    return True if said in _YES else False if said in _NO else None


def _share(value: Any) -> float | None:
    try:
        number = finite(float(value) if isinstance(value, str) else value)
    except ValueError:
        return None
    return number if number is not None and 0 <= number <= 1 else None


def _name(name: str, by: str) -> str:
    return re.sub(r"\W+", "_", f"{name} {by}".lower()).strip("_")


def _plain(name: str) -> str:
    """Return a name as `LABELS` has it; what stands before a full stop is who says so."""
    return name.rpartition(".")[2].strip().lower().replace(" ", "_")
