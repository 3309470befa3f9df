import csv
import io
import json
from dataclasses import replace

import pytest

from core.errors import InputError
from core.sources.content import read_content
from core.sources.dataset import read_dataset
from core.sources.formats import detect, import_file
from core.sources.formats.jsonl import FORMAT
from core.sources.formats.records import Record, RecordClaim, RecordPassage
from core.sources.report import IssueLog
from tests.core.sources.formats.roundtrip import in_csv, lines, loaded, there_and_back

RECORDS = [
    {
        "id": "canal",
        "question": "When did the canal open?",
        "passages": [
            {"id": "c1", "title": "Canal", "text": "It opened in 1914.", "score": 7.25, "is_gold": True},
            {"text": "Coffee grows there.", "score": 2, "is_gold": False},
        ],
        "answer": "In 1914.",
        "answers": ["1914", "in 1914"],
        "samples": ["1914.", "In 1914, I think."],
        "n_gold": 2,
        "kind": "single",
        "language": "en",
        "latency": 0.5,
        "similarity": 0.75,
        "lexical": 31.5,
        "llm_score": 0.9,
    },
    {
        "id": "tower",
        "question": "Who built it?",
        "passages": [{"text": "=cmd()"}],
        "answer": "",
        "source": "web",
        "cost": 0.1,
    },
    {"id": "q3", "question": "天安门在哪里？", "answer": "在北京。"},
]


def read(data, name="x.jsonl"):
    log = IssueLog()
    return FORMAT.read(read_content(data, name), log), log


def test_json_lines_come_back_as_they_were(tmp_path):
    imported, back = there_and_back(lines(RECORDS), tmp_path)
    assert back == RECORDS
    assert imported.report.n_issues == 0 and imported.run.manifest["dataset"]["format"] == "jsonl"


def test_what_is_written_is_a_data_set():
    records = read(lines(RECORDS))[0].records
    dataset = read_dataset(FORMAT.write(records), "back")
    assert [q.query_id for q in dataset.questions] == ["canal", "tower"]
    first = dataset.questions[0]
    assert [(p.passage_id, p.title, p.text, p.score, p.is_gold) for p in first.passages] == [
        ("c1", "Canal", "It opened in 1914.", 7.25, True),
        ("p2", "", "Coffee grows there.", 2.0, False),
    ]
    assert (first.reference_answers, first.kind, first.language) == (("1914", "in 1914"), "single", "en")
    assert dataset.report.issues[0].row == 3  # no passages, so nothing to ask with


def test_other_names_come_back_as_the_first_ones(tmp_path):
    data = json.dumps(
        [
            {"query_id": 7, "query": "q1", "documents": ["a", {"doc_id": "x", "content": "b"}], "response": "r", "reference_answers": "s"},
            {"query": "q2", "docs": [{"title": "T", "passage": "c", "page": 4}], "output": "r"},
        ]
    ).encode()  # fmt: skip
    imported, back = there_and_back(data, tmp_path)
    assert back == [
        {"id": "7", "question": "q1", "passages": [{"text": "a"}, {"id": "x", "text": "b"}], "answer": "r", "answers": ["s"]},
        {"id": "q0002", "question": "q2", "passages": [{"title": "T", "text": "c"}], "answer": "r"},
    ]  # fmt: skip
    assert "Documents were read as passages, in the order of the file." in imported.report.notes


def test_a_csv_with_lists_and_texts_split_by_lines(tmp_path):
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(
        ["question", "answer", "passages", "answers", "samples", "latency", "n_gold", "note", "lexical"]
    )
    writer.writerow(["q1", "a", "one\n---\ntwo", "['x', 'y']", '["s1", "s2"]', "1.5", "1", "7", "31.5"])
    writer.writerow(["q2", "", '[{"text": "t", "score": 1.5}]', "just one", "", "", "", "", ""])
    assert there_and_back(out.getvalue().encode(), tmp_path, "x.csv")[1] == [
        {"question": "q1", "passages": [{"text": "one"}, {"text": "two"}], "answer": "a", "answers": ["x", "y"],
         "samples": ["s1", "s2"], "latency": 1.5, "n_gold": 1, "lexical": 31.5, "note": "7"},
        {"question": "q2", "passages": [{"text": "t", "score": 1.5}], "answer": "", "answers": ["just one"]},
    ]  # fmt: skip


def test_confidence_signals_are_measured_values_of_the_run():
    one = {"question": "q", "answer": "a", "similarity": 0.7, "lexical": 120, "llm_score": 0}
    found = read(lines([one, {"question": "r", "answer": "b", "similarity": "high"}]))
    run = import_file(lines([one, {"question": "r", "answer": "b"}]), "x.jsonl").run
    assert found[0].records[0].signals == {"similarity": 0.7, "lexical": 120.0, "llm_score": 0.0}
    assert found[0].records[1].signals == {} and not found[0].records[0].reported
    signals = run["signals"].merge(run.queries[["query_id", "question"]])
    assert signals[["question", "similarity", "lexical", "llm_score"]].to_numpy().tolist() == [
        ["q", 0.7, 120.0, 0.0]
    ]


@pytest.mark.parametrize("name", ["gold", "gold_contexts", "reference_contexts"])
def test_gold_in_no_passage_is_a_gold_passage_that_was_not_retrieved(name):
    row = {
        "question": "q",
        "answer": "a",
        "passages": ["x y", "It was in  May of"],
        name: ["in May", "by boat"],
    }
    for data, file in ((lines([row]), "a.jsonl"), (in_csv([row]), "a.csv")):
        [record] = FORMAT.read(read_content(data, file), IssueLog()).records
        assert [p.is_gold for p in record.passages] == [False, True]
        assert [(one.passage_id, one.text, one.evidence) for one in record.gold] == [
            ("p2", None, ("in May",)), ("gold 1", "by boat", ()),
        ]  # fmt: skip
        assert json.loads(FORMAT.write([record]))["gold"] == ["in May", "by boat"]
        # Also where a run that was not imported holds them.
        assert json.loads(FORMAT.write([replace(record, reported={})]))["gold"] == ["in May", "by boat"]


def test_gold_fragments_mark_the_passages():
    data = lines([{"question": "q", "answer": "a", "passages": ["x y", "in  May of"], "gold": "in May"}])
    record = read(data)[0].records[0]
    assert [p.is_gold for p in record.passages] == [False, True]
    assert loaded(FORMAT.write([record])) == [
        {"question": "q", "passages": [{"text": "x y", "is_gold": False}, {"text": "in  May of", "is_gold": True}], "answer": "a", "gold": ["in May"]}
    ]  # fmt: skip
    said = {
        "question": "q",
        "answer": "a",
        "passages": [{"text": "in May", "is_gold": False}],
        "gold": ["in May"],
    }
    assert loaded(FORMAT.write(read(lines([said]))[0].records)) == [said]


@pytest.mark.parametrize("evidence", [{"passages": ["p"]}, {"documents": ["d"]}, {"corpus": "folder"}])
def test_questions_without_answers_are_a_data_set(evidence):
    with pytest.raises(
        InputError, match=r"mine\.jsonl holds questions and passages but no answers.*core analyze mine\.jsonl"
    ):
        import_file(lines([{"question": "q", "answers": ["a"], **evidence}]), "mine.jsonl")
    with pytest.raises(InputError, match="questions only"):
        import_file(lines([{"question": "q", "answers": ["a"]}]), "mine.jsonl")


def test_some_answers_are_enough():
    data = lines(
        [{"question": "q", "passages": ["p"]}, {"question": "q", "passages": ["p"], "samples": ["a"]}]
    )
    assert [r.answer for r in read(data)[0].records] == [None, None]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"answer": "x"}, "question"),
        ({"question": ["q"]}, "question"),
        ({"question": "q", "passages": "p"}, "passages"),
        ({"question": "q", "passages": {"a": 1}}, "passages"),
        ({"question": "q", "passages": ["a", 5]}, "passages[1]."),
        ({"question": "q", "passages": [{"title": "T"}]}, "passages[0].text"),
        ({"question": "q", "documents": [{"content": 5}]}, "documents[0].content"),
        ({"question": "q", "docs": [None]}, "docs[0]."),
        (["q"], "record"),
    ],
)
def test_records_that_cannot_be_used_are_named(record, field):
    result, log = read(json.dumps([RECORDS[2], record]).encode(), "x.json")
    assert [(n, reason.split(":")[0]) for n, reason, _ in result.rejected] == [(2, field.rstrip("."))]
    assert [(i.row, i.column, i.severity) for i in log.listed()] == [(2, field.rstrip("."), "error")]


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        ({"answer": 5}, "answer"),
        ({"answers": [5]}, "answers"),
        ({"samples": {"a": 1}}, "samples"),
        ({"kind": []}, "kind"),
        ({"id": [1]}, "id"),
        ({"passages": [{"text": "t", "id": {}}]}, "passages[0].id"),
        ({"latency": "slow"}, "latency"),
        ({"latency": -1}, "latency"),
        ({"similarity": "high"}, "similarity"),
        ({"n_gold": 1.5}, "n_gold"),
        ({"n_gold": 10**30}, "n_gold"),
        ({"n_gold": True}, "n_gold"),
        ({"passages": [{"text": "t", "score": "high"}]}, "passages[0].score"),
        ({"passages": [{"text": "t", "is_gold": 1}]}, "passages[0].is_gold"),
        ({"passages": [{"text": "t", "title": 1}]}, "passages[0].title"),
        ({"passages": [{"text": "t", "id": "a"}, {"text": "u", "id": "a"}]}, "passages"),
        ({"reported": [{"name": 5, "value": 1}]}, "reported[0]"),
        ({"reported": "x"}, "reported"),
    ],
)
def test_odd_optional_fields_cost_only_themselves(extra, field):
    result, log = read(lines([RECORDS[2], {"question": "q", "answer": "a", **extra}]))
    assert len(result.records) == 2 and result.rejected == []
    assert [(i.row, i.column, i.severity) for i in log.listed()] == [(2, field, "warning")]


def test_what_other_formats_know_stands_beside_or_aside():
    record = Record(
        "x",
        "Q?",
        None,
        (RecordPassage("p1", "one"), RecordPassage("b", None)),
        claims=(RecordClaim("lost"),),
        reported={
            ("score", "judge"): 0.5,
            ("query", ""): "aside",
            ("tags", ""): ["t"],
            ("ragchecker:record", ""): "{}",
            ("n", ""): 3.0,
        },
    )
    line = {
        "id": "x",
        "question": "Q?",
        "passages": [{"text": "one"}],
        "reported": [
            {"name": "score", "by": "judge", "value": 0.5},
            {"name": "query", "by": "", "value": "aside"},
        ],
        "tags": ["t"],
        "n": 3,
    }
    assert loaded(FORMAT.write([record])) == [line]
    again = read(lines([RECORDS[2], line]))[0].records[1]
    assert again.reported == {
        ("score", "judge"): 0.5,
        ("query", ""): "aside",
        ("tags", ""): ["t"],
        ("n", ""): 3,
    }


def test_it_is_recognised_by_a_question_with_something_beside_it():
    assert detect(read_content(lines(RECORDS), "x")) is FORMAT
    assert FORMAT.recognise(read_content(b'[{"question": "q"}]', "x")) == 0
    assert FORMAT.recognise(read_content(b'[{"answer": "q", "passages": []}]', "x")) == 0
