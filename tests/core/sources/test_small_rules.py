"""Rules of reading that few files need: limits that are just kept, and single odd cells."""

import json

import pyarrow as pa

from core.sources import question
from core.sources.dataset import load_dataset
from core.sources.question import Document, load_corpus
from core.sources.report import possibilities
from core.sources.shapes import _spans
from core.sources.unpack import BAD, _rows


def test_an_odd_cell_costs_its_row_only():
    dates = pa.array([0, 2**61, 86_400], pa.timestamp("s"))
    first, odd, last = _rows(pa.RecordBatch.from_arrays([dates], ["date"]))
    assert "1970-01-01" in first and odd.startswith(BAD) and "1970-01-02" in last


def test_a_folder_may_hold_as_many_files_as_the_limit_says(tmp_path, monkeypatch):
    monkeypatch.setattr(question, "MAX_DOCUMENTS", 2)
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("Text.")
    assert load_corpus(tmp_path) == (Document("a", "Text."), Document("b", "Text."))


def test_twenty_fields_that_are_not_used_are_named(tmp_path):
    file = tmp_path / "q.jsonl"
    more = {f"x{i:02}": 1 for i in range(25)}
    file.write_text(json.dumps({"question": "Who?", "passages": ["Ann."], **more}))
    [note] = [one for one in load_dataset(str(file)).report.notes if "not used" in one]
    assert note.endswith("x18, x19.")


def test_what_all_of_many_questions_have_is_said_without_a_number():
    some = [("a", lambda q: True, "b"), ("c", lambda q: q < 299, "d"), ("e", lambda q: False, "f")]
    assert possibilities(range(300), some) == (["a", "c (299 of 300 questions)"], ["e: needs f"])


def test_starts_of_answers_count_where_each_answer_has_one():
    assert _spans({"text": ["a", "b"], "answer_start": [3, 5]}) == [("a", 3), ("b", 5)]
    assert _spans({"text": ["a", "b"], "answer_start": [3]}) == [("a", None), ("b", None)]
    assert _spans({"text": ["a"]}) == [("a", None)]
