"""Rules of reading that few files need: limits that are just kept, and single odd cells."""

import gzip
import hashlib
import json

import pandas as pd
import pyarrow as pa
import pytest

from core.errors import InputError
from core.sources import dataset, encoding, question
from core.sources.content import entry_text
from core.sources.dataset import load_dataset
from core.sources.encoding import most_unpacked, read_source
from core.sources.fields import FieldError, Fields, as_id, text_problem
from core.sources.formats import FORMATS, abilities, import_file
from core.sources.formats.logged import _fields
from core.sources.formats.records import Record
from core.sources.mapping import guess_columns
from core.sources.question import (
    Document,
    as_passage,
    holds_gold,
    load_corpus,
    parse_question,
    read_question,
)
from core.sources.report import IssueLog, possibilities
from core.sources.shapes import _fragment, _spans
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


def test_a_document_that_is_no_passage_stays_as_it_is():
    assert _fields({"content": 1}) == {"content": {"content": 1}}
    assert _fields({"text": "Ann.", "id": "x", "title": "T"}) == {
        "content": "Ann.",
        "id": "x",
        "metadata": {"title": "T"},
    }


def test_a_cell_says_what_a_question_is_for_in_two_ways():
    roles = {"true": True, "calibration": True, "false": False, "test": False, "new": None}
    rows = "".join(f"Is {role}?,Yes.,{role}\n" for role in roles)
    run = import_file(f"question,answer,calibrates\n{rows}".encode(), "f.csv").run
    assert [None if one is pd.NA else bool(one) for one in run.queries["calibrates"]] == [*roles.values()]


@pytest.mark.parametrize("judged", [{"correct": True}, {"confidences": {"c": 0.5}}])
def test_judged_answers_without_passages_miss_none(judged):
    _, missing = abilities([Record("a", "Who?", "Ada.", **judged)])
    assert missing and not any("passage" in line for line in missing)
    _, missing = abilities([Record("a", "Who?", "Ada.")])
    assert missing[0] == (
        "influence vs retrieval: needs answers with each passage left out, and passages with text to get them"
    )


def test_the_id_of_an_imported_run_is_made_of_its_content_format_and_columns():
    """Runs imported long ago keep their ids; those of influence files do not hold the format."""
    for data, held in (
        (
            b"query,influence_score\nq,0.5\nq,0.25\nq,0\n",
            [{"question": "query", "influence_score": "influence_score"}],
        ),
        (b'{"question": "a", "answer": "b"}\n', ["jsonl", {}]),
    ):
        key = json.dumps([hashlib.sha256(data).hexdigest(), *held])
        assert import_file(data, "f").run.run_id == hashlib.sha256(key.encode()).hexdigest()[:12]


@pytest.mark.parametrize(("influence", "n"), [(0.001, 0), (0.002, 1)])
def test_an_influence_may_differ_from_its_rouge_by_rounding(influence, n):
    data = f"query,influence_score,rouge_l\nq,{influence},1\nq,0.5,0.5\nq,0.25,0.75\n"
    found = import_file(data.encode(), "f.csv").report.issues
    assert [one.expected for one in found] == ["1 - rouge_l of the same row"] * n


def test_each_file_of_a_folder_must_be_arrow(tmp_path):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("a", pa.int64())])):
        pass
    (tmp_path / "one.arrow").write_bytes(sink.getvalue().to_pybytes())
    (tmp_path / "two.arrow").write_bytes(b"PK\x03\x04")
    files = [{"filename": "one.arrow"}, {"filename": "two.arrow"}]
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": files}))
    with pytest.raises(InputError, match=r"two\.arrow is no Arrow stream"):
        read_source(tmp_path, "f")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("x" * 1_000, "x" * 1_000), ("x" * 1_001, None), (10**30 - 1, "9" * 30), (-(10**30), None), (0, "0"),
        (True, None), (" ", None), ("\ud800", None), (1.0, None),
    ],
)  # fmt: skip
def test_an_id_is_a_text_of_up_to_a_thousand_characters_or_a_whole_number(value, found):
    assert as_id(value) == found


def test_a_text_has_a_million_characters_at_most_and_a_list_ten_thousand_entries():
    assert text_problem("x" * 1_000_000) is None
    assert text_problem("x" * 1_000_001) == "a text of at most 1,000,000 characters"
    fields = Fields({"a": [1] * 10_000, "b": [1] * 10_001, "c": 0, "d": -0.5, "e": "x"})
    assert len(fields.items("a")) == 10_000 and fields.items("b") == () == fields.items("f")
    assert [fields.seconds(name) for name in "cdef"] == [0, None, None, None]
    assert [(one.column, one.expected) for one in fields.log.listed()] == [
        ("b", "a list of at most 10,000 entries"),
        ("d", "seconds, 0 or more"),
        ("e", "seconds, 0 or more"),
    ]
    assert fields.rest() == {}
    with pytest.raises(FieldError, match="at most 10,000 entries"):
        fields.required_items("b")


def test_twelve_of_the_fields_there_are_named_where_one_is_missing():
    with pytest.raises(FieldError, match=r"there are only x00, .*, x11$"):
        Fields({f"x{i:02}": 1 for i in range(20)}).required_text("question")


@pytest.mark.parametrize(
    ("n", "found", "n_warnings"), [(0, 0, 0), (3.0, 3, 0), (2.5, None, 1), (-1, None, 1), (None, None, 0)]
)
def test_the_number_of_right_passages_is_whole(n, found, n_warnings):
    fields = Fields({"question": "Who?", "n_gold": n})
    assert read_question(fields).n_gold == found and fields.log.n_issues == n_warnings


def test_a_question_may_have_as_many_letters_and_passages_as_the_limits_say(monkeypatch):
    monkeypatch.setattr(question, "MAX_QUESTION", 4)
    monkeypatch.setattr(question, "MAX_PASSAGES", 2)

    def read(text, *passages):
        return parse_question(Fields({"question": text, "passages": [*passages]}, strict=True), "q", None)

    assert len(read("Who?", "a", "b").passages) == 2
    with pytest.raises(FieldError, match="a text of at most 4 characters"):
        read("Whom?", "a")
    with pytest.raises(FieldError, match="at most 2 passages"):
        read("Who?", "a", "b", "c")


def test_a_data_set_may_have_as_many_questions_as_the_limit_says(monkeypatch):
    monkeypatch.setattr(dataset, "MAX_QUESTIONS", 2)
    lines = [json.dumps({"question": f"Who is {i}?", "passages": ["Ann."]}) for i in range(3)]
    found = dataset.read_dataset("\n".join(lines).encode(), "q.jsonl")
    assert [one.query_id for one in found.questions] == ["q0001", "q0002"]
    [issue] = found.report.issues
    assert (issue.row, issue.expected, issue.severity) == (3, "at most 2 questions", "error")
    assert found.head(2) is found.head(3) is found
    first = found.head(1)
    assert first.questions == found.questions[:1] and first.digest != found.digest
    with pytest.raises(InputError, match="must be at least 1, got 0"):
        found.head(0)


def test_a_corpus_of_lines_may_hold_as_many_documents_as_the_limit_says(tmp_path, monkeypatch):
    monkeypatch.setattr(question, "MAX_DOCUMENTS", 2)
    file = tmp_path / "c.jsonl"
    file.write_text('{"title": " T ", "text": "a"}\n\n"b"\n')
    assert load_corpus(file) == (Document("T", "a"), Document("", "b"))
    file.write_text('"a"\n"b"\n"c"\n')
    with pytest.raises(InputError, match="holds more than 2 documents"):
        load_corpus(file)
    file.write_text('"a"\n{"text": ""}\n')
    with pytest.raises(InputError, match=r"line 2: found .* expected a text that is not empty"):
        load_corpus(file)


@pytest.mark.parametrize(
    ("start", "end", "holds"), [(0, 5, True), (0, 4, False), (5, 10, True), (6, 10, False), (10, 20, False)]
)
def test_a_passage_holds_gold_from_half_of_it_on(start, end, holds):
    assert holds_gold(start, end, [(0, 10)]) is holds


@pytest.mark.parametrize(
    ("value", "passage_id", "text", "score"),
    [
        ("Ann.", "p3", "Ann.", None),
        (("Ann.", 0.5), "p3", "Ann.", 0.5),
        (["Ann.", None], "p3", "Ann.", None),
        ({"text": "Ann.", "id": 0, "score": float("nan")}, "0", "Ann.", None),
        ({"text": "", "id": ""}, "p3", "", None),
        (({"text": "Ann.", "score": 1}, 2), "p3", "Ann.", 2),
    ],
)
def test_what_a_retriever_returned_is_a_passage(value, passage_id, text, score):
    found = as_passage(value, 3)
    assert (found.passage_id, found.text, found.score) == (passage_id, text, score)


def test_a_file_may_be_as_large_packed_and_unpacked_as_the_limits_say(monkeypatch):
    sizes = (500_000, 500_001, 1_000_000_000)
    assert [most_unpacked(size) for size in sizes] == [50_000_000, 50_000_100, encoding.MAX_BYTES]
    monkeypatch.setattr(encoding, "MAX_BYTES", 10)
    assert read_source(b"x" * 10, "f") == b"x" * 10
    with pytest.raises(InputError, match="larger than the limit"):
        read_source(b"x" * 11, "f")
    monkeypatch.setattr(encoding, "most_unpacked", lambda packed: 3)
    monkeypatch.setattr(encoding, "MAX_BYTES", 100)
    assert read_source(gzip.compress(b"abc"), "f") == b"abc"
    with pytest.raises(InputError, match="holds more than 0 MB unpacked"):
        read_source(gzip.compress(b"abcd"), "f")


def test_a_thousand_problems_of_each_kind_are_listed_and_errors_first():
    log = IssueLog()
    log.add_many(range(1, 1_002), "a", range(1_001), "x", "warning")
    log.add(7, "b", "y", "z")
    log.count_more(2)
    assert (len(log.listed()), log.n_issues, log.counts) == (1_000, 1_004, {"error": 3, "warning": 1_001})
    rows = [one.row for one in log.listed()]
    assert rows == sorted(rows) and rows[-1] == 999 and log.first_error.row == 7
    assert [one.severity for one in log.listed() if one.row == 7] == ["error", "warning"]
    assert log.nothing_usable("f", 1_500, "rows", "row") == (
        "None of the 1,500 rows of f can be used: row 7, field b: found 'y', expected z."
    )
    assert IssueLog().nothing_usable("f", 0, "rows", "row") == "f has no rows with content."


@pytest.mark.parametrize(
    ("start", "fragment"),
    # Where no answer stands at the given place, the first one is taken; a place is a whole number from 0.
    [(27, "so is Arles"), (0, "Arles is a"), (9, "Arles is a"), (-5, "Arles is a"), (True, "Arles is a")],
)
def test_an_answer_stands_where_its_start_says(start, fragment):
    context = "Arles is a town, and so is Arles"
    assert _fragment(context, context, "Arles", start) == fragment


def test_a_nested_entry_is_named_however_deep():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert entry_text(deep) == "(nested too deeply)"
    assert entry_text("x" * 2_000) == "x" * 2_000 and entry_text("x" * 2_001) == "x" * 1_999 + "…"


def test_a_file_of_no_known_format_is_told_which_there_are():
    with pytest.raises(InputError) as told:
        import_file(b'{"a": 1, "b": 2}\n', "x.jsonl")
    assert f"x.jsonl has no known format ({', '.join(FORMATS)})" in str(told.value)


def test_ranks_may_begin_at_0_or_1():
    for first in (0, 1, 2):
        columns = {"q": ["Who?"] * 3, "place": [str(first + i) for i in range(3)]}
        assert ("retrieval_rank" in guess_columns(columns, {"retrieval_rank": "retrieval_rank"})) == (
            first < 2
        )
