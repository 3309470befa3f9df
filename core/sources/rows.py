"""A file of records as a table of the columns that are wanted, each value as the file has it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

import pandas as pd

from core.errors import InputError
from core.sources.content import read_content
from core.sources.encoding import read_source
from core.sources.report import IssueLog, ValidationReport


def read_rows(
    source: bytes | str | os.PathLike[str], name: str, columns: Collection[str]
) -> tuple[pd.DataFrame, ValidationReport]:
    """Read JSON, JSON Lines, CSV or Parquet, also gzipped.

    Parameters
    ----------
    source : bytes or path
        The file's content, or where it is.
    name : str
        Of the file, for messages.
    columns : collection of str
        The columns to keep; others are not read.

    Returns
    -------
    (DataFrame, ValidationReport)
        Those of the columns that some record has, missing where a record lacks one; and what could not be
        read, which is left out.

    Raises
    ------
    InputError
        The file cannot be read, or holds no record.
    """
    content = read_content(read_source(source, name), name).opened()
    log = IssueLog()
    content.log_bad(log)
    kept, rejected = [], []
    for number, entry in content.entries:
        if isinstance(entry, Mapping):
            kept.append({column: entry[column] for column in columns if column in entry})
        else:
            log.add(number, None, entry, "a record with named fields")
            rejected.append((number, "not a record", entry))
    if not kept:
        raise InputError(f"{name} holds no record with named fields; expected one for each answer.")
    found = [column for column in columns if any(column in one for one in kept)]
    report = log.report(len(kept), content.rejected(rejected), content.notes)
    return pd.DataFrame(kept, columns=pd.Index(found), dtype=object), report
