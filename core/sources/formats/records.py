"""What every other tool's file holds, in one form, and the description of a format that reads it so.

An importer reads a file into records and `run_of` makes a run of them; `records_of` gives the records of
any run back, and an exporter writes them. So each format is described once, in one module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from core.run import Run
from core.schema import TABLES as SCHEMA
from core.sources.content import Content
from core.sources.fields import Rejected, as_id, is_missing, said_number, text_problem, unique, without_null
from core.sources.question import PassageIn, Question, gold_spans
from core.sources.report import IssueLog, counted, shorten
from core.text import answer_status
from core.text.strict import finite

ENTAILMENT, NEUTRAL, CONTRADICTION = "Entailment", "Neutral", "Contradiction"
SIGNALS = SCHEMA["signals"].names[1:]  # beside the question's id
_PROBABILITY: Mapping[str, float] = {ENTAILMENT: 1.0, NEUTRAL: 0.0, CONTRADICTION: 0.0}
_TABLES = ("passages", "samples", "claims", "support", "reported", "signals", "confidences", "gold")
# Table -> what a record, passage or claim has, and the column that holds it.
_HELD: Mapping[str, Mapping[str, str]] = {
    "queries": {
        name: name
        for name in "question answer correct correct_by n_gold kind language calibrates latency".split()
    },
    "passages": {
        **{name: name for name in ("passage_id", "text", "title", "is_gold")},
        "score": "retrieval_score",
    },
    "claims": {name: name for name in ("text", "side", "counterpart", "relevance", "verdict")},
}
# Names of a label of the answer, the surest first.
LABELS = ("correct", "is_correct", "correctness", "label", "score")
_RIGHT = (("reference_contexts", ""), ("context", ""))
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordPassage:
    """One passage; its place in the record is its retrieval rank."""

    passage_id: str
    text: str | None
    title: str = ""
    score: float | None = None
    is_gold: bool | None = None


@dataclass(frozen=True, slots=True)
class RecordGold:
    """One gold passage, with its text where it was not retrieved, and the fragments that make it gold."""

    passage_id: str
    text: str | None = None
    evidence: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class RecordClaim:
    """One claim of the answer, or of the reference answer.

    ``support`` maps passage ids to a label (Entailment, Neutral, Contradiction) or a probability, which a
    judge with labels of its own has, too; passages that were not judged are absent. ``counterpart`` is the
    label against the other text: the reference for a claim of the answer, and the reverse.
    """

    text: str
    side: str = "answer"
    support: Mapping[str, str | float] = field(default_factory=dict)
    counterpart: str | None = None
    relevance: str | None = None
    verdict: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One question as another tool recorded it.

    ``answer`` is None where the file gives none. Passages are in retrieval order, with unique ids. ``n_gold``
    counts the passages known to be relevant, retrieved or not. ``reported`` maps ``(name, by)`` to whatever
    else the file says, as JSON can hold it; a run gives it back unchanged, and ``by`` is "" where nobody is
    named. ``latency`` is in seconds; ``judge`` verified the claims, ``model`` gave the answer. ``signals``
    are confidence signals, by column of that table; ``confidences`` those that a file names itself.
    ``correct`` is what ``correct_by`` says of the answer, ``calibrates`` as in the schema; ``gold`` are gold
    passages of which more is known than that they were retrieved.
    """

    record_id: str
    question: str
    answer: str | None = None
    passages: tuple[RecordPassage, ...] = ()
    references: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    n_gold: int | None = None
    claims: tuple[RecordClaim, ...] = ()
    reported: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    kind: str | None = None
    language: str | None = None
    latency: float | None = None
    judge: str | None = None
    model: str | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    correct: bool | None = None
    correct_by: str | None = None
    confidences: Mapping[str, float] = field(default_factory=dict)
    calibrates: bool | None = None
    gold: tuple[RecordGold, ...] = ()


def run_of(records: Sequence[Record], manifest: Mapping[str, Any]) -> Run:
    """Return a run of records, in their order; ``manifest`` as for `Run.create`."""
    tables: dict[str, list[Row]] = {}
    for record in records:
        for table, row in _rows(record):
            tables.setdefault(table, []).append({"query_id": record.record_id, **row})
    return Run.create(manifest, **{name: pd.DataFrame(rows) for name, rows in tables.items()})


def records_of(run: Run) -> list[Record]:
    """Return the records of a run, in its order: the inverse of `run_of` on what records can hold."""
    frames = {name: run[name] for name in _TABLES}
    frames["passages"] = frames["passages"].sort_values("retrieval_rank", kind="stable")
    tables = {name: _by_question(frame) for name, frame in frames.items()}
    model = as_id((run.manifest.get("model") or {}).get("name"))
    return [
        _record(q, {name: table.get(q["query_id"], []) for name, table in tables.items()}, model)
        for q in _plain_rows(run.queries)
    ]


def question_of(record: Record) -> Question:
    """Return a record as a question with its passages; those without a text that can be used are left out."""
    passages = (p for p in record.passages if p.text and p.text.strip() and text_problem(p.text) is None)
    return Question(
        record.record_id,
        record.question,
        (),
        tuple(PassageIn(p.passage_id, p.title, p.text or "", p.score, p.is_gold) for p in passages),
        record.references,
        gold_fragments(record),
        record.kind,
        record.language,
        n_gold=record.n_gold,
    )


def gold_fragments(record: Record) -> tuple[str, ...]:
    """Return the texts of gold passages that were not retrieved, and of the others what makes them gold."""
    texts = {passage.passage_id: passage.text or "" for passage in record.passages}
    found = (
        [one.text]
        if one.text
        else [part for part in one.evidence if gold_spans(texts.get(one.passage_id, ""), [part])]
        for one in record.gold
    )
    return tuple(dict.fromkeys(text for each in found for text in each if text.strip()))


def right_texts(record: Record) -> tuple[str, ...]:
    """Return the texts that a file names as right for a question, whether or not they were retrieved."""
    values = next((record.reported[name] for name in _RIGHT if record.reported.get(name)), ())
    texts: Sequence[Any] = values if isinstance(values, (list, tuple)) else ()
    return tuple(text for text in texts if isinstance(text, str) and text.strip())


def _row(table: str, held: Any) -> Row:
    return {column: getattr(held, name) for name, column in _HELD[table].items()}


def _held(table: str, row: Row) -> dict[str, Any]:
    return {name: row[column] for name, column in _HELD[table].items()}


def _rows(record: Record) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a record, each with its table and without the id of the question."""
    status = None if record.answer is None else answer_status(record.answer)
    references = list(record.references) or None
    yield (
        "queries",
        {**_row("queries", record), "answer_status": status, "reference_answers": references},
    )
    for rank, passage in enumerate(record.passages, start=1):
        row = _row("passages", passage) | {"title": passage.title or None}
        yield "passages", {**row, "retrieval_rank": float(rank), "slot": rank}
    for gold in record.gold:
        row = {"passage_id": gold.passage_id, "title": gold.title or None, "text": gold.text}
        yield "gold", {**row, "evidence": list(gold.evidence) or None}
    for n, answer in enumerate(record.samples, start=1):
        yield "samples", {"sample_id": f"s{n}", "answer": answer}
    for n, claim in enumerate(record.claims, start=1):
        scored = bool(claim.support) or claim.verdict is not None
        yield "claims", {"claim_id": f"c{n}", **_row("claims", claim), "scored": scored}
        for passage_id, value in claim.support.items():
            label = value if isinstance(value, str) else None
            probability = _PROBABILITY.get(value) if isinstance(value, str) else float(value)
            judged = {"probability": probability, "label": label, "judge": record.judge}
            yield "support", {"claim_id": f"c{n}", "passage_id": passage_id, **judged}
    if record.signals:
        yield "signals", {**record.signals}
    for name, confidence in record.confidences.items():
        yield "confidences", {"name": name, "value": confidence}
    for (name, by), value in record.reported.items():
        yield "reported", {"name": name, "by": by, **stored(value)}


def _plain_rows(frame: pd.DataFrame) -> list[Row]:
    """Return rows as dictionaries in which a missing value is None."""
    if frame.empty:  # most tables of most imported runs; pandas would take a while over nothing
        return []
    columns = {name: frame[name].astype("object").where(frame[name].notna(), None) for name in frame.columns}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _by_question(frame: pd.DataFrame) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for row in _plain_rows(frame):
        rows.setdefault(row["query_id"], []).append(row)
    return rows


def _record(query: Row, tables: Mapping[str, Sequence[Row]], model: str | None) -> Record:
    judged: dict[str, dict[str, str | float]] = {}
    for row in tables["support"]:
        # A judge's own words for its verdict are no label here; what it is sure of is the probability.
        own = row["label"] is None or (row["label"] not in _PROBABILITY and row["probability"] is not None)
        value = row["probability"] if own else row["label"]
        if value is not None:
            judged.setdefault(row["claim_id"], {})[row["passage_id"]] = value
    reported = {(r["name"], r["by"]): restored(r["value"], r["text"]) for r in tables["reported"]}
    if query["correct"] is not None and not any(name in LABELS for name, _ in reported):
        reported["correct", query["correct_by"] or ""] = query["correct"]
    return Record(
        query["query_id"],
        **_held("queries", query),
        passages=tuple(
            RecordPassage(**_held("passages", row) | {"title": row["title"] or ""})
            for row in tables["passages"]
        ),
        references=tuple(query["reference_answers"] or ()),
        samples=tuple(row["answer"] for row in tables["samples"] if row["answer"] is not None),
        claims=tuple(
            RecordClaim(
                **_held("claims", row) | {"side": row["side"] or "answer"},
                support=judged.get(row["claim_id"], {}),
            )
            for row in tables["claims"]
        ),
        reported=reported,
        judge=next((row["judge"] for row in tables["support"] if row["judge"] is not None), None),
        model=model,
        signals={name: row[name] for row in tables["signals"] for name in SIGNALS if row[name] is not None},
        confidences={row["name"]: row["value"] for row in tables["confidences"]},
        gold=tuple(
            RecordGold(row["passage_id"], row["text"], tuple(row["evidence"] or ()), row["title"] or "")
            for row in tables["gold"]
        ),
    )


def stored(value: Any) -> dict[str, Any]:
    """Return the columns ``value`` (numbers) and ``text`` (all else) of a JSON value; see `restored`.

    A text that reads as JSON itself is written as a JSON text, so that it does not come back parsed.
    """
    if isinstance(value, str):
        return {"value": None, "text": json.dumps(value, ensure_ascii=False) if _is_json(value) else value}
    if isinstance(value, (int, float)) and not isinstance(value, bool) and finite(value) == value:
        return {"value": float(value), "text": None}
    return {"value": None, "text": json.dumps(value, ensure_ascii=False)}


def restored(value: float | None, text: str | None) -> Any:
    """Return the JSON value that `stored` put into these columns."""
    if text is None:
        return value
    return json.loads(text) if _is_json(text) else text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """The result of a format's reader.

    ``rejected`` holds ``(number, reason, entry)`` of each entry that could not be used; the issue log says
    the same with field and value. ``unused`` are the fields that no reader used. A table of whole columns
    gives the ``tables`` of the run, made of ``n_rows`` rows; it may say itself what is ``possible``, what was
    rejected (as a table) and which columns it took for which fields (``mapping``).
    """

    records: Sequence[Record]
    rejected: Sequence[Rejected] | pd.DataFrame = ()
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    n_rows: int | None = None
    possible: tuple[list[str], list[str]] | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Format:
    """One file format.

    ``name`` is as in ``--format``, ``title`` for people, ``suffix`` the ending of written files, with the
    dot. ``recognise`` returns the number of tell-tale names found: 0 = not this format, and the largest wins.
    ``read`` raises InputError only where the file as a whole is not of this format. Without ``write`` a
    format is read only. ``losses`` are what a round trip loses, one sentence each. ``fields`` are what a user
    may name columns for, with the format's own name of each; empty where records are not flat.
    """

    name: str
    title: str
    suffix: str
    recognise: Callable[[Content], int]
    read: Callable[[Content, IssueLog], ReadRecords]
    write: Callable[[Sequence[Record]], bytes] | None
    losses: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


def not_used(names: Sequence[str], kept: bool = True) -> list[str]:
    """Return the note on fields that are only kept, or not even that, if there are any."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    shown = ", ".join(map(shorten, names[:_SHOWN]))
    how = "Not used in calculations, only kept" if kept else "Columns not used"
    return [f"{how}: {shown}{more}."] if names else []


def as_dataset(name: str, corpus: bool = False) -> str:
    """Return what to do with a file of questions; with ``corpus`` it has nothing to answer them from."""
    documents = " --corpus DOCUMENTS" if corpus else ""
    return f"run it with `python -m core analyze {name}{documents} --out RUN`, or on the page Live run"


def count_names(present: set[str], telltale: Iterable[str], common: Iterable[str]) -> int:
    """Return how many names of a format are there; 0 without one that only this format uses."""
    n = len(present.intersection(telltale))
    return n + len(present.intersection(common)) if n else 0


CONFIDENCE = "confidence"
_YES, _NO = ("true", "yes", "1", "1.0", "correct", "right"), ("false", "no", "0", "0.0", "incorrect", "wrong")
Key = tuple[str, str]


def judged(records: Sequence[Record]) -> tuple[list[Record], list[str], set[str]]:
    """Return records with the labels and confidences that they report, a note on each, and their names.

    A label is yes or no wherever the file has it; of judges of an answer who disagree none is believed. A
    confidence is a number in [0, 1], under any name with that word.
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
        plain = [re.sub(r"\W+", "_", " ".join(key).lower()).strip("_") for key in sure]
        names = dict(zip(sure, unique(plain), strict=True))
        shares = ({name: _share(r.reported.get(key)) for key, name in names.items()} for r in found)
        found = [replace(r, confidences=without_null(own)) for r, own in zip(found, shares, strict=True)]
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


def _all(records: Iterable[Record], key: Key, read: Any) -> bool:
    """Return whether some record has a value there, and all that have one can be read so."""
    values = [record.reported.get(key) for record in records]
    values = [v for v in values if v is not None and not (isinstance(v, str) and is_missing(v))]
    return bool(values) and all(read(value) is not None for value in values)


def _truth(value: Any) -> bool | None:
    said = str(value).strip().lower() if isinstance(value, (str, int, float)) else ""
    return True if said in _YES else False if said in _NO else None


def _share(value: Any) -> float | None:
    number = said_number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _plain(name: str) -> str:
    """Return a name as `LABELS` has it; what stands before a full stop is who says so."""
    return name.rpartition(".")[2].strip().lower().replace(" ", "_")
