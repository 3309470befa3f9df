"""One schema: what a data set, an import and a program say in the same words is read alike."""

import json

import pytest

from core.errors import InputError
from core.own_rag.analysis import read_questions
from core.sources.dataset import read_dataset
from core.sources.fields import FieldError, Fields
from core.sources.formats import import_file
from core.sources.formats.records import question_of, records_of
from core.sources.question import (
    MAX_PASSAGES,
    MAX_QUESTION,
    Document,
    document_from_text,
    gold_spans,
    holds_gold,
    load_corpus,
    parse_question,
    question_record,
    split_texts,
)

RECORDS = [
    {"id": "a", "question": "Who?", "passages": ["Ann did.", {"text": "Bob.", "title": "T", "score": 2, "is_gold": True}],
     "answers": ["Ann"], "kind": "who", "language": "en"},
    {"query_id": 7, "prompt": "When?", "passages": [{"doc_id": "x", "content": "In May."}, {"passage": "In June."}],
     "references": ["May", "May"], "topic": "when"},
    {"query": "Where?", "passages": ["in  Bern", "in Basel"], "gold": "in Bern", "reference_answers": "Bern"},
]  # fmt: skip


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_is_the_same_question_wherever_it_comes_from(record):
    (asked,) = read_dataset(json.dumps(record).encode(), "up.jsonl").questions
    (given,) = read_questions([record], None, retrieved_elsewhere=False).questions
    imported = import_file(json.dumps({**record, "answer": "x"}).encode(), "x.jsonl", "jsonl").run
    (seen,) = map(question_of, records_of(imported))
    assert asked == given
    assert (seen.question, seen.passages, seen.reference_answers, seen.kind, seen.language) == (
        asked.question, asked.passages, asked.reference_answers, asked.kind, asked.language,
    )  # fmt: skip
    assert seen.query_id == asked.query_id


@pytest.mark.parametrize("record", RECORDS)
def test_what_is_written_is_read_as_the_same_question(record):
    question = parse_question(Fields(record, strict=True), "q0001", lambda _: ())
    again = parse_question(Fields(question_record(question), strict=True), "q0001", lambda _: ())
    assert again == question


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"passages": [{"text": "x", "score": "high"}]}, "passages[0].score"),
        ({"passages": [{"text": "x", "title": 1}]}, "passages[0].title"),
        ({"answers": [5]}, "answers"),
        ({"kind": []}, "kind"),
    ],
)
def test_the_same_field_is_named_everywhere(change, field):
    record = {**RECORDS[0], **change}
    issue = read_dataset(json.dumps([RECORDS[1], record]).encode(), "up").report.issues[0]
    assert (issue.column, issue.severity) == (field, "error")
    with pytest.raises(InputError, match=field.replace("[", r"\[")):
        read_questions([record], None, retrieved_elsewhere=False)
    report = import_file(json.dumps([{**record, "answer": "x"}]).encode(), "x", "jsonl").report
    assert [(i.column, i.severity) for i in report.issues] == [(field, "warning")]


def test_what_is_too_long_to_be_asked_can_be_imported():
    long = {"question": "q" * (MAX_QUESTION + 1), "passages": ["x"]}
    many = {"question": "q", "passages": ["x"] * (MAX_PASSAGES + 1)}
    for record, field in ((long, "question"), (many, "passages")):
        with pytest.raises(FieldError) as caught:
            parse_question(Fields(record, strict=True), "q0001", lambda _: ())
        assert caught.value.field == field
        imported = import_file(json.dumps({**record, "answer": "x"}).encode(), "x", "jsonl")
        assert imported.report.n_kept == 1 and not imported.report.issues


def test_only_white_space_may_differ():
    text = "It opened\nin  May 1931. It opened in May."
    assert gold_spans(text, ["opened in May"]) == [(3, 17), (27, 40)]
    assert text[3:17] == "opened\nin  May"
    assert gold_spans(text, ["OPENED in May", "", "  "]) == []


def test_a_fragment_is_no_pattern():
    assert gold_spans("a+b (c)", ["a+b (c)"]) == [(0, 7)]
    assert gold_spans("aab c", ["a+b (c)"]) == []


def test_half_of_a_fragment_makes_a_passage_gold():
    spans = [(10, 20)]
    assert holds_gold(0, 15, spans) and holds_gold(15, 30, spans)
    assert not holds_gold(0, 14, spans)
    assert holds_gold(16, 30, spans) is False
    assert not holds_gold(0, 100, [])


def test_folder_of_articles(tmp_path):
    (tmp_path / "b.md").write_text("# Bees\n\nThey hum.\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("No heading here.", encoding="utf-16")
    (tmp_path / "README.md").write_text("# About", encoding="utf-8")
    (tmp_path / "c.png").write_bytes(b"\x89PNG")
    assert load_corpus(tmp_path) == (Document("a", "No heading here."), Document("Bees", "They hum."))


def test_json_lines(tmp_path):
    file = tmp_path / "c.jsonl"
    file.write_text(
        '{"title": "T", "text": "one"}\n\n"two"\n{"text": "three", "title": null}\n', encoding="utf-8"
    )
    assert load_corpus(file) == (Document("T", "one"), Document("", "two"), Document("", "three"))


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "5",
        '{"text": ""}',
        '{"text": 3}',
        '{"text": "a", "title": 1}',
        '{"text": "\\ud800"}',
        "[" * 100_000,
    ],
)
def test_a_bad_line_is_named(tmp_path, line):
    file = tmp_path / "c.jsonl"
    file.write_text('{"text": "fine"}\n' + line, encoding="utf-8")
    with pytest.raises(InputError, match="line 2"):
        load_corpus(file)


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match="holds no document"):
        load_corpus(tmp_path)


def test_titles_of_pasted_text():
    assert document_from_text("# T\nbody") == Document("T", "body")
    assert document_from_text("# only a heading") == Document("", "# only a heading")
    assert split_texts("a\n---\n\n---\nb --- c\n --- \nd") == ["a", "b --- c", "d"]
