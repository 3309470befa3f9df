"""Files of every kind, good and broken, and a digest of all that an import makes of each.

Only the standard library decides what is in them, so they are the same on every machine.
``python -m tests.core.sources.import_cases`` prints the digests of the code it runs on. Those in
``tests/data/import_digests.json`` are of commit 775deca, from before files were read in pieces.
Seven files of ragas and DeepEval, whose gold passages are not among the retrieved ones word for word, have later
ones: the table ``gold`` keeps these passages, and a passage that contains a gold text is marked.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from core.errors import InputError
from core.sources.formats import INFLUENCE_CSV, Imported, import_file
from core.sources.mapping import PUBLISHED_COLUMNS
from core.sources.templates import template_csv
from core.spreadsheet import csv_bytes

DATA = Path(__file__).parents[2] / "data"
DIGESTS = DATA / "import_digests.json"
N_INFLUENCE, N_DAMAGED, N_OTHER = 400, 200, 80
_OTHER = ("ragas-dataset.csv", "langsmith-runs.csv", "deepeval-goldens.csv", "trulens-events.csv")

_HEADS = [
    ["query", "doc_id", "retrieval_rank", "influence_score"],
    list(PUBLISHED_COLUMNS),
    ["query", "baseline_answer", "doc_id", "passage", "retrieval_rank", "ablated_answer", "influence_score"],
    ["query_id", "query", "answer", "closed_book_answer", "reference_answers", "rouge_l", "is_gold"],
    ["question", "rouge_l"],
    ["query", "doc_id", "influence_score", "data_source", "row", "reason", "colour"],
]
_ODD = ["", " ", "nan", "NaN", "inf", "-1", "7", "1e400", "0,5", "x", "=1+1", "'=1", "é", "\n", "日本", " 1 "]
_VALUES: dict[str, list[str]] = {
    "query": ["who?", "who? ", "what?", "=cmd", "wo\nist?", "q", "r"],
    "question": ["who?", "what?", "q"],
    "query_id": ["a", "b", "a ", "c"],
    "doc_id": [str(i) for i in range(12)],
    "retrieval_rank": [str(i) for i in range(1, 8)],
    "retrieval_score": ["9.5", "3", "1e3", "high", "-2.25"],
    "influence_score": ["0", "0.5", "1", "0.25", "1.0000000001", "0.3333"],
    "rouge_l": ["1", "0.5", "0", "0.75"],
    "baseline_answer": ["Paris", "", "I don't know.", "an answer, with a comma"],
    "answer": ["Paris", "", "I don't know."],
    "ablated_answer": ["Paris", "", "Rome", "I don't know."],
    "passage": ["one text", "", "another text", "a text\nof two lines"],
    "reference_answers": ['["a", "b"]', "a", "", "[odd", "[1]"],
    "is_gold": ["True", "no", "1.0", "", "perhaps"],
    "is_divergent": ["True", "False"],
    "spearman_rho": ["0.5", "-1", "1.05", "0.123456789012345678"],
    "data_source": ["upload", "simulated", "", "composed"],
}


def cases() -> Iterator[tuple[str, bytes, Callable[[bytes], Imported]]]:
    """Yield the name of each file, its content, and what reads it."""
    for number in range(N_INFLUENCE):
        yield f"made-{number}", _made(random.Random(f"made {number}")), _influence
    whole = template_csv().encode()
    for number in range(N_DAMAGED):
        yield f"damaged-{number}", _damaged(whole, random.Random(f"damaged {number}")), _influence
    for number in range(N_OTHER):
        chance = random.Random(f"other {number}")
        name = _OTHER[number % len(_OTHER)]
        data = _damaged((DATA / "files" / name).read_bytes(), chance)
        yield f"{name}-{number}", data, lambda data: import_file(data, "f.csv")


def digest(data: bytes, read: Callable[[bytes], Imported]) -> str:
    """Return a digest of run and report, every value with its type, or of the error."""
    try:
        imported = read(data)
    except InputError as error:
        return _sha(f"{type(error).__name__}: {error}")
    run, report = imported.run, imported.report
    manifest, notes = {key: value for key, value in run.manifest.items() if key != "created"}, report.notes
    if read is _influence:  # what names the format is younger than the digests
        notes = notes[1:]
        dataset = {key: value for key, value in manifest["dataset"].items() if key != "format"}
        manifest |= {"dataset": dataset, "notes": list(notes)}
    facts: list[Any] = [
        manifest,
        [str(issue) + issue.severity for issue in report.issues],
        [report.n_rows, report.n_kept, report.n_issues, report.n_errors],
        [notes, report.enables, report.missing],
        [_frame(report.rejected), *(f"{name} {_frame(run[name])}" for name in run if len(run[name]))],
    ]
    return _sha(json.dumps(facts, sort_keys=True))


def _frame(frame: pd.DataFrame) -> str:
    # The schema may grow: a column without values is as good as none.
    held = frame.dropna(axis="columns", how="all") if len(frame) else frame
    columns = [(name, str(held[name].dtype), list(map(repr, held[name].to_list()))) for name in held]
    return repr((list(frame.index), columns))


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:12]


def _influence(data: bytes) -> Imported:
    return import_file(data, "f.csv", INFLUENCE_CSV)


def _made(chance: random.Random) -> bytes:
    """Return a table of questions in blocks, with odd cells, ragged and blank rows, in some way of writing."""
    head = list(chance.choice(_HEADS))
    rows: list[list[str]] = []
    odd = chance.choice((0, 0, 0.02, 0.2))
    for _ in range(chance.randint(1, 8)):
        question = {
            name: chance.choice(_VALUES.get(name, ["0.5", "1"])) for name in ("query", "answer", "query_id")
        }
        question["question"] = question["query"]
        question["baseline_answer"] = question["answer"]
        size, shuffled = chance.choice((1, 2, 3, 5, 5, 210)), chance.random() < 0.2
        block = []
        for place in range(size):
            given = question | {"doc_id": str(place), "retrieval_rank": str(place + chance.choice((0, 1, 1)))}
            row = [
                given[name]
                if name in given and not shuffled
                else chance.choice(_VALUES.get(name, ["0", "0.5"]))
                for name in head
            ]
            row = [chance.choice(_ODD) if chance.random() < odd else cell for cell in row]
            block.append(row + [""] * 2 if chance.random() < odd / 4 else row)
        rows += block * chance.choice((1, 1, 1, 2))
    if chance.random() < 0.1:
        chance.shuffle(rows)
    if chance.random() < 0.2:
        rows.insert(chance.randrange(len(rows)), [""] * len(head))
    if chance.random() < 0.1:
        frame = pd.DataFrame([row[: len(head)] for row in rows], columns=head)
        return csv_bytes(frame, None if "data_source" in head else "simulated")
    out = io.StringIO(newline="")
    ending, delimiter = chance.choice(("\n", "\r\n", "\r")), chance.choice(",,,;\t")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=ending)
    writer.writerows([head, *rows])
    text = chance.choice(("", "", "# a comment, with a comma\n\n")) + out.getvalue()
    text += chance.choice(("", "", "", '"never closed', ",,,,,,,,\n"))
    data = text.encode(chance.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16")), "replace")
    if chance.random() < 0.1:
        data = text.encode("cp1252", "replace")
    return gzip.compress(data, mtime=0) if chance.random() < 0.1 else data


def _damaged(data: bytes, chance: random.Random) -> bytes:
    """Return a file with bytes put in, taken out, repeated or cut off."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice((1, 1, 3, 20, 200)))
        mark = chance.choice((b'"', b",", b"\n", b"\r", b"\xff", b"\xef\xbb\xbf", b"\x00", b"#", b";"))
        ways = (data[:at] + mark + data[at:],) * 3
        data = chance.choice((*ways, data[:at] + data[end:], data[:end] + data[at:], data[:at]))
    return data


if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: digest(data, read) for name, data, read in cases()}, indent=0))
