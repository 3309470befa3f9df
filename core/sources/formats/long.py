"""Long tables in the columns of the schema: a row for each claim and passage, sampled answer, or verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from core.errors import InputError
from core.schema import TABLES, Column
from core.sources.content import Content
from core.sources.fields import Rejected
from core.sources.formats.records import Format, ReadRecords
from core.sources.mapping import suggest_mapping
from core.sources.report import IssueLog, shorten
from core.sources.table import ColumnChecks
from core.text.abstention import answer_status

# What a column is called in a file where several tables have one of its name.
_CALLED = {
    ("claims", "text"): "claim",
    ("support", "probability"): "support",
    ("support", "label"): "support_label",
    ("joint_support", "probability"): "joint_probability",
    ("joint_support", "judge"): "joint_judge",
    ("samples", "answer"): "sample",
}
_WORDS = {
    "entailment": "1", "supported": "1", "true": "1", "yes": "1",
    "neutral": "0", "contradiction": "0", "not_supported": "0", "not supported": "0", "false": "0", "no": "0",
}  # fmt: skip
_IRRELEVANT = "IRRELEVANT"
Fields = Mapping[str, tuple[str, Column]]


def _fields(*tables: str) -> Fields:
    """Return the columns of some tables by their names in a file; of two with one name that of the first."""
    found: dict[str, tuple[str, Column]] = {}
    for table in tables:
        for column in TABLES[table].columns:
            if not column.name.startswith(("planted", "reported", "answer_status")):
                called = _CALLED.get((table, column.name), column.name)
                aliases = (*column.aliases, column.name)
                found.setdefault(called, (table, replace(column, aliases=aliases)))
    return found


def format_of(name: str, title: str, row: str, telltale: tuple[str, ...], fields: Fields) -> Format:
    """Return the format of a long table, whose rows are each a ``row``: a field that every row needs."""

    def recognise(content: Content) -> int:
        found = _mapped(content.names(), row, fields)
        n = sum(one in found for one in telltale)
        wanted = row in found and "question" in found and (n > 0 or row not in _ELSEWHERE)
        return 10 * (1 + n) if wanted else 0

    def read(content: Content, log: IssueLog) -> ReadRecords:
        content = content.opened()
        if not content.names():
            raise InputError(f"{content.name} is no table; expected the columns question and {row}.")
        return _read(content, log, row, fields)

    return Format(name, title, ".csv", recognise, read, None, fields={one: one for one in fields})


def of_fields(fields: Iterable[str]) -> Format | None:
    """Return the format of which a user named fields that no other has, or None."""
    return next((one for one, row in zip(FORMATS, _ROWS, strict=True) if row in fields), None)


def is_long(names: Iterable[str]) -> bool:
    """Return whether columns are those of a row for each claim or sample, whatever else they are."""
    return any(row in _mapped(names, row, fields) for row, fields in _ROWS.items() if row not in _ELSEWHERE)


def _mapped(names: Iterable[str], row: str, fields: Fields) -> dict[str, str]:
    """Return field to column; samples may be called answers where each has a number."""
    found = dict(suggest_mapping(names, {name: column for name, (_, column) in fields.items()}))
    if row == "sample" and row not in found and {"answer", "sample_id"} <= set(found):
        found[row] = found.pop("answer")
    return found


def _read(content: Content, log: IssueLog, row: str, fields: Fields) -> ReadRecords:
    frame = replace(content, table=None).as_table().frame
    rows = [entry if isinstance(entry, Mapping) else {} for _, entry in content.entries]
    mapping = _mapped(list(frame), row, fields)
    if row == "sample" and row not in mapping and "answer" in mapping:
        mapping[row] = mapping.pop("answer")
    if row not in mapping or "question" not in mapping:
        lacking = " and ".join(name for name in ("question", row) if name not in mapping)
        raise InputError(
            f"{content.name} has no column for {lacking}; its columns are {', '.join(map(shorten, frame))}."
        )
    labels = None
    if "support" in mapping:
        said = frame[mapping["support"]].str.strip()
        labels = said.where(said.str.lower().isin(_WORDS))
        frame[mapping["support"]] = said.str.lower().replace(_WORDS)
    if "verdict" in mapping and "relevance" not in mapping:  # one column for both, as in our own export
        irrelevant = frame[mapping["verdict"]].str.strip().str.upper() == _IRRELEVANT
        frame["relevance"] = irrelevant.map({True: _IRRELEVANT, False: ""})
        frame.loc[irrelevant, mapping["verdict"]] = ""
        mapping["relevance"] = "relevance"
    checks = ColumnChecks(frame, mapping, log, decimal_comma=False)
    for name in ("question", *([row] if row in ("claim", "validator") else [])):
        checks.flag((checks.text(name).str.strip() == "").to_numpy(), name, f"a {name}")
    kept = np.flatnonzero(~checks.bad)
    typed = pd.DataFrame({name: checks.values(name, fields[name][1], kept) for name in mapping})
    if labels is not None and "support_label" not in typed:
        typed["support_label"] = labels.array[kept]
    typed = _numbered(typed)
    tables = {table: _table(typed, table, fields) for table in dict.fromkeys(t for t, _ in fields.values())}
    bad = np.flatnonzero(checks.bad)
    rejected: list[Rejected] = [(int(frame.index[i]), str(checks.reason[i]), rows[i]) for i in bad]
    unused = tuple(name for name in frame if name not in mapping.values())
    return ReadRecords((), rejected, unused=unused, tables=tables, n_rows=len(typed))


def _numbered(typed: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a number, in the order of the file, for whatever has no id."""
    if "query_id" not in typed:
        typed["query_id"] = [f"q{place + 1:04d}" for place in pd.factorize(typed["question"])[0]]
    by = typed.groupby("query_id", sort=False)
    for key, text, letter in (("passage_id", "text", "p"), ("claim_id", "claim", "c")):
        if key not in typed and text in typed:
            places = by[text].transform(lambda texts: pd.factorize(texts)[0] + 1)
            typed[key] = [f"{letter}{place}" if place else None for place in places]
    if "sample" in typed and "sample_id" not in typed:
        typed["sample_id"] = "s" + (by.cumcount() + 1).astype("str")
    if "passage_id" in typed:
        order = by["passage_id"].transform(lambda ids: pd.factorize(ids)[0] + 1.0)
        typed["retrieval_rank"] = (
            typed["retrieval_rank"].fillna(order) if "retrieval_rank" in typed else order
        )
    return typed


def _table(typed: pd.DataFrame, table: str, fields: Fields) -> pd.DataFrame:
    """Return the rows of one table: the first row of a key speaks for all of them."""
    definition = TABLES[table]
    named = {column.name: _CALLED.get((table, column.name), column.name) for column in definition.columns}
    own = {
        name: field
        for name, field in named.items()
        if field in typed and (name in definition.key or fields.get(field, (table,))[0] == table)
    }
    if not set(definition.key) <= set(own):
        return pd.DataFrame({name: [] for name in definition.key})
    found = pd.DataFrame({name: typed[field] for name, field in own.items()})
    found = found.dropna(subset=list(definition.key)).drop_duplicates(list(definition.key))
    if table == "support":
        found = found[found[[name for name in own if name in ("probability", "label")]].notna().any(axis=1)]
    if table == "queries" and "answer" in found:
        found["answer_status"] = [answer_status(text) for text in found["answer"]]
    if table == "claims" and "verdict" not in found:
        found["scored"] = "support" in typed
    return found.reset_index(drop=True)


_ROWS = {
    "claim": _fields("queries", "passages", "claims", "support", "joint_support"),
    "sample": _fields("queries", "samples"),
    "validator": _fields("queries", "verdicts"),
    "text": _fields("queries", "passages"),
}
_ELSEWHERE = ("text",)  # what other files have, too, each in a way of its own
FORMATS = (
    format_of("claims-csv", "Claims × passages", "claim", ("support", "passage_id"), _ROWS["claim"]),
    format_of("samples-csv", "Sampled answers, a row each", "sample", ("sample_id",), _ROWS["sample"]),
    format_of("verdicts-csv", "Verdicts of validators", "validator", ("passed",), _ROWS["validator"]),
    format_of(
        "passages-csv", "Questions × passages", "text", ("passage_id", "retrieval_rank"), _ROWS["text"]
    ),
)
# Every field of these, by name.
FIELDS = {name: found for fields in reversed(_ROWS.values()) for name, found in fields.items()}
