import json

import pytest

from core.influence.step import InfluenceStep
from core.pipeline import RunOptions, begin
from core.sources.content import read_content
from core.sources.dataset import dataset_jsonl, dataset_of, read_dataset
from core.sources.formats import detect, import_file
from core.sources.formats.ragas import FORMAT
from core.sources.formats.records import Record, RecordPassage
from core.sources.report import IssueLog
from tests.core.sources.formats.roundtrip import in_csv, lines, loaded, there_and_back
from tests.scripted import ScriptedLLM

# As EvaluationDataset.to_jsonl writes samples: fields that are None are left out.
SAMPLES = [
    {
        "user_input": "When did the canal open?",
        "retrieved_contexts": ["The canal opened in 1914.", "Coffee grows on the slopes."],
        "reference_contexts": ["The canal  opened in 1914.", "Ten years of work."],
        "response": "It opened in 1914.",
        "multi_responses": ["In 1914.", "1914"],
        "reference": "In 1914.",
        "rubrics": {"score1_description": "wrong", "score2_description": "right"},
    },
    {
        "user_input": "Who built the tower?",
        "retrieved_contexts": ["Eiffel's company built it.", ""],
        "retrieved_context_ids": ["doc-7", 12],
        "reference_context_ids": [12],
        "response": "",
        "persona_name": "Engineer",
        "query_style": "POOR_GRAMMAR",
        "query_length": "SHORT",
    },
    {
        "user_input": "天安门在哪里？",
        "response": "在北京。",
        "synthesizer_name": "single_hop",
        "faithfulness": 0.75,
    },
]


def read(data, name="x.jsonl"):
    log = IssueLog()
    return FORMAT.read(read_content(data, name), log), log


def test_json_lines_come_back_as_they_were(tmp_path):
    imported, back = there_and_back(lines(SAMPLES), tmp_path)
    assert back == SAMPLES
    assert imported.report.n_issues == 0 and imported.report.n_kept == 3
    assert imported.run.manifest["dataset"]["format"] == "ragas"


@pytest.mark.parametrize(
    "wrapped",
    [SAMPLES, {"samples": SAMPLES}, {"data": SAMPLES}, SAMPLES[0]],
    ids=["list", "samples", "data", "one"],
)
def test_other_json_holds_the_same_samples(wrapped, tmp_path):
    expected = [wrapped] if wrapped is SAMPLES[0] else SAMPLES
    assert there_and_back(json.dumps(wrapped).encode(), tmp_path, "x.json")[1] == expected


def test_tables_of_columns_hold_the_same_samples(tmp_path):
    names = ("user_input", "retrieved_contexts", "response", "score")
    rows = [["q1", ["a", "b"], "r1", 0.5], ["q2", ["c"], "r2", None]]
    of_lists = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    of_objects = {name: {str(n): row[i] for n, row in enumerate(rows)} for i, name in enumerate(names)}
    expected = [
        {"user_input": "q1", "retrieved_contexts": ["a", "b"], "response": "r1", "score": 0.5},
        {"user_input": "q2", "retrieved_contexts": ["c"], "response": "r2"},
    ]
    for table in (of_lists, of_objects):
        assert there_and_back(json.dumps(table).encode(), tmp_path)[1] == expected


def test_names_of_version_0_1_come_back_as_the_current_ones(tmp_path):
    old = [
        {
            "question": "q1",
            "contexts": ["a", "b"],
            "answer": "x",
            "ground_truth": "y",
            "context_precision": 1.0,
        },
        {"question": "q2", "contexts": ["a"], "answer": "x", "ground_truths": ["y", "z", "y"]},
    ]
    imported, back = there_and_back(lines(old), tmp_path)
    assert back == [
        {"user_input": "q1", "retrieved_contexts": ["a", "b"], "response": "x", "reference": "y", "context_precision": 1},
        {"user_input": "q2", "retrieved_contexts": ["a"], "response": "x", "reference": "y", "ground_truths": ["y", "z"]},
    ]  # fmt: skip
    assert imported.run.queries["reference_answers"].to_list() == [["y"], ["y", "z"]]


def test_a_csv_as_ragas_writes_it(tmp_path):
    rows = [{**sample, "answer_relevancy": "0.5"} for sample in SAMPLES[:2]]
    imported, back = there_and_back(in_csv(rows), tmp_path, "x.csv")
    assert back == [
        {**SAMPLES[0], "answer_relevancy": 0.5},
        {**SAMPLES[1], "answer_relevancy": 0.5},
    ]
    assert imported.report.n_issues == 0


def test_a_csv_of_a_hugging_face_table_has_lists_as_numpy_prints_them():
    data = in_csv(
        [
            {
                "question": "q",
                "answer": "a",
                "contexts": "['one' \"it's two\"\n 'three']",
                "faithfulness": "nan",
            }
        ]
    )
    records = read(data, "x.csv")[0].records
    assert [p.text for p in records[0].passages] == ["one", "it's two", "three"]
    assert records[0].reported == {}


def test_json_lists_and_single_texts_in_cells():
    data = in_csv(
        [
            {
                "user_input": "q",
                "retrieved_contexts": '["a", "b"]',
                "reference_contexts": "[1] is a note",
                "response": "r",
            }
        ]
    )
    record = read(data, "x.csv")[0].records[0]
    assert [p.text for p in record.passages] == ["a", "b"] and record.reported[
        "reference_contexts", ""
    ] == "[1] is a note"


def test_a_cell_that_was_cut_off_is_named():
    data = in_csv(
        [
            {"user_input": "q1", "retrieved_contexts": "['a', 'b", "response": "r"},
            {"user_input": "q2", "response": "r"},
        ]
    )
    result, log = read(data, "x.csv")
    assert [r.question for r in result.records] == ["q2"]
    assert result.rejected[0][0] == 2 and result.rejected[0][1] == "retrieved_contexts: expected a list"
    assert (log.listed()[0].row, log.listed()[0].value) == (2, "['a', 'b")


def test_a_second_name_for_the_same_thing_is_kept_as_it_stands():
    data = in_csv(
        [
            {
                "user_input": "q",
                "question": "other",
                "retrieved_contexts": "['a']",
                "contexts": "['cut",
                "response": "r",
            }
        ]
    )
    record = read(data, "x.csv")[0].records[0]
    assert (record.question, [p.text for p in record.passages]) == ("q", ["a"])
    assert record.reported == {("question", ""): "other", ("contexts", ""): "['cut"}
    assert read(FORMAT.write([record]))[0].records[0].reported == record.reported


def test_blank_cells_are_empty_answers_only_beside_others():
    rows = [{"user_input": "q1", "response": ""}, {"user_input": "q2", "response": "x"}]
    assert [r.answer for r in read(in_csv(rows), "x.csv")[0].records] == ["", "x"]
    rows = [{"user_input": "q1", "retrieved_contexts": "['a']", "response": ""}]
    assert [r.answer for r in read(in_csv(rows), "x.csv")[0].records] == [None]


def test_gold_is_told_by_text_or_by_id():
    records = read(lines(SAMPLES))[0].records
    assert [p.is_gold for p in records[0].passages] == [True, False] and records[0].n_gold == 2
    assert [p.is_gold for p in records[1].passages] == [False, True] and records[1].n_gold == 1
    assert [p.passage_id for p in records[1].passages] == ["doc-7", "12"]
    assert records[2].n_gold is None and records[2].passages == ()
    composed = {
        "user_input": "q",
        "retrieved_contexts": ["caf\u00e9\n1"],
        "reference_contexts": ["cafe\u0301 1"],
    }
    assert read(lines([composed]))[0].records[0].passages[0].is_gold is True


def test_gold_passages_that_were_not_retrieved_are_kept_with_their_texts(tmp_path):
    sample = {
        "user_input": "When?", "response": "1893", "reference": "1893",
        "retrieved_contexts": ["Long. It was opened  in\n1893. Wide.", "Coffee.", "In May."],
        "reference_contexts": ["It was opened in 1893.", "In May.", "By boat."],
    }  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines([sample]))
    run = import_file(path).run
    # The first contains one text, the third is one; the third text is in no passage.
    assert run.passages["is_gold"].tolist() == [True, False, True] and run.queries["n_gold"].tolist() == [3]
    assert run["gold"]["passage_id"].tolist() == ["p1", "gold 1"]
    assert run["gold"]["text"].isna().tolist() == [True, False] and run["gold"]["text"][1] == "By boat."
    assert (
        list(run["gold"]["evidence"][0]) == ["It was opened in 1893."] and run["gold"]["evidence"][1] is None
    )
    # Asked again, no gold passage is lost: three are known, one of them by its text alone.
    [question] = dataset_of(run).questions
    assert question.gold == ("It was opened in 1893.", "By boat.") and question.n_gold == 3
    assert read_dataset(dataset_jsonl(dataset_of(run)), "b.jsonl").questions == (question,)
    again = begin(dataset_of(run), RunOptions(), ScriptedLLM(lambda request: "x"), InfluenceStep())
    assert again.passages["is_gold"].tolist() == [True, False, True]
    assert again["gold"].set_index("passage_id")["text"].dropna().to_dict() == {"gold 1": "By boat."}
    assert list(again["gold"].set_index("passage_id")["evidence"]["p1"]) == ["It was opened in 1893."]
    assert again.queries["n_gold"].tolist() == [3]


def test_a_gold_passage_told_by_its_id_is_not_missing():
    sample = {
        "user_input": "q", "retrieved_contexts": ["cut off", "x"], "retrieved_context_ids": ["a", "b"],
        "reference_contexts": ["cut off here", "elsewhere"], "reference_context_ids": ["a", "z"],
    }  # fmt: skip
    record = read(lines([sample]))[0].records[0]
    assert [p.is_gold for p in record.passages] == [True, False] and record.n_gold == 2
    assert [(one.passage_id, one.text) for one in record.gold] == [("gold 1", "elsewhere")]


def test_a_passage_may_have_the_name_of_a_missing_one():
    sample = {
        "user_input": "q", "retrieved_contexts": ["x"], "retrieved_context_ids": ["gold 1"],
        "reference_contexts": ["y", " y ", "", "z"],
    }  # fmt: skip
    record = read(lines([sample]))[0].records[0]
    assert [(one.passage_id, one.text) for one in record.gold] == [("gold 1 (2)", " y "), ("gold 2", "z")]
    assert record.passages[0].is_gold is False and record.n_gold == 2


def test_gold_ids_without_ids_of_the_passages_say_nothing_of_them():
    sample = {"user_input": "q", "retrieved_contexts": ["a"], "reference_context_ids": ["x", "y"]}
    record = read(lines([sample]))[0].records[0]
    assert record.passages[0].is_gold is None and record.n_gold == 2


def test_ids_that_do_not_fit_are_warned_of_and_given_back(tmp_path):
    sample = {
        "user_input": "q",
        "retrieved_contexts": ["a", "b"],
        "retrieved_context_ids": ["x"],
        "response": "r",
    }
    imported, back = there_and_back(lines([sample]), tmp_path)
    assert back == [sample] and imported.run.passages["passage_id"].to_list() == ["p1", "p2"]
    issue = imported.report.issues[0]
    assert (issue.row, issue.column, issue.severity) == (1, "retrieved_context_ids", "warning")


def test_repeated_and_lone_ids():
    sample = {"user_input": "q", "retrieved_contexts": ["a", "b"], "retrieved_context_ids": ["x", "x"]}
    assert [p.passage_id for p in read(lines([sample]))[0].records[0].passages] == ["x", "x (2)"]
    sample = {"user_input": "q", "retrieved_context_ids": [1, 2], "response": "r"}
    record = read(lines([sample]))[0].records[0]
    assert record.passages == (RecordPassage("1", None), RecordPassage("2", None))
    assert loaded(FORMAT.write([record])) == [sample]
    for ids in ([{}], [1, None], [" "]):
        result, log = read(
            lines([{"user_input": "q", "retrieved_contexts": ["a"], "retrieved_context_ids": ids}])
        )
        assert result.records[0].passages[0].passage_id == "p1" and log.listed()[0].severity == "warning"


def test_conversations_are_refused_by_name():
    turns = [{"content": "Hi", "type": "human"}, {"content": "Hello", "type": "ai"}]
    result, log = read(lines([{"user_input": turns, "reference": "x"}, SAMPLES[0]]))
    assert [(number, reason) for number, reason, _ in result.rejected] == [
        (1, "user_input: expected one question as text, not a conversation of several turns")
    ]
    assert len(result.records) == 1 and log.first_error.column == "user_input"
    result, _ = read(
        in_csv(
            [{"user_input": str(turns), "reference": "x"}, {"user_input": "[{ is text", "reference": "x"}]
        ),
        "x.csv",
    )
    assert [number for number, _, _ in result.rejected] == [2] and result.records[0].question == "[{ is text"


@pytest.mark.parametrize(
    ("sample", "field"),
    [
        ({"user_input": 5}, "user_input"),
        ({"user_input": " "}, "user_input"),
        ({"response": "r"}, "user_input"),
        ({"user_input": None, "question": []}, "question"),
        ({"user_input": "q", "retrieved_contexts": 5}, "retrieved_contexts"),
        ({"user_input": "q", "retrieved_contexts": {"a": 1}}, "retrieved_contexts"),
        ({"user_input": "q", "retrieved_contexts": ["a", None]}, "retrieved_contexts[1]"),
        ({"user_input": "q", "contexts": ["a", "b", ["c"]]}, "contexts[2]"),
        ({"user_input": "q", "retrieved_contexts": ["x" * 1_000_001]}, "retrieved_contexts[0]"),
        (5, "record"),
        ([], "record"),
    ],
)
def test_samples_that_cannot_be_used_are_named(sample, field):
    result, log = read(json.dumps([SAMPLES[0], sample]).encode(), "x.json")
    assert len(result.records) == 1
    assert [(number, reason.split(":")[0], entry) for number, reason, entry in result.rejected] == [
        (2, field, sample)
    ]
    assert [(i.row, i.column, i.severity) for i in log.listed()] == [(2, field, "error")]


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        ({"response": 5}, "response"),
        ({"response": ["a"]}, "response"),
        ({"multi_responses": [1]}, "multi_responses"),
        ({"reference": {"a": 1}}, "reference"),
        ({"reference_contexts": [None]}, "reference_contexts"),
        ({"reference_context_ids": "one"}, "reference_context_ids"),
        ({"ground_truths": 5}, "ground_truths"),
        ({"id": {"a": 1}}, "id"),
        ({"id": " "}, "id"),
    ],
)
def test_odd_optional_fields_cost_only_themselves(extra, field):
    result, log = read(lines([{"user_input": "q", "retrieved_contexts": ["a"], **extra}]))
    assert len(result.records) == 1 and result.rejected == []
    assert [(i.row, i.column, i.severity) for i in log.listed()] == [(1, field, "warning")]


def test_what_other_formats_know_is_written_as_far_as_ragas_can_hold_it():
    record = Record(
        "mine",
        "Q?",
        "A",
        (RecordPassage("a", "one", "Title", 2.0, True), RecordPassage("p2", None)),
        ("x", "y"),
        reported={("accuracy", "judge"): 1.0, ("query", ""): "kept", ("ragchecker:record", ""): "{}", ("response", ""): "no"},
    )  # fmt: skip
    assert loaded(FORMAT.write([record])) == [
        {
            "id": "mine",
            "user_input": "Q?",
            "retrieved_contexts": ["one", ""],
            "retrieved_context_ids": ["a", "p2"],
            "reference_contexts": ["one"],
            "response": "A",
            "reference": "x",
            "ground_truths": ["x", "y"],
            "accuracy (judge)": 1,
            "query": "kept",
        }
    ]


def test_ids_of_samples_are_kept(tmp_path):
    samples = [{"id": "a", "user_input": "q", "response": "r"}, {"user_input": "q", "response": "r"}]
    imported, back = there_and_back(lines(samples), tmp_path)
    assert [s["id"] for s in back] == ["a", "q0002"]
    assert "Without an id, so numbered: 1 record." in imported.report.notes
    for all_alike in (samples[:1], samples[1:]):
        notes = import_file(lines(all_alike), "x").report.notes
        assert not any("so numbered" in note for note in notes)


def test_it_is_recognised_by_its_names_only():
    assert detect(read_content(lines(SAMPLES), "x")) is FORMAT
    assert detect(read_content(b'[{"question": "q", "answer": "a", "ground_truth": "g"}]', "x")) is FORMAT
    assert FORMAT.recognise(read_content(b'[{"question": "q", "answer": "a", "response": "g"}]', "x")) == 0
    assert FORMAT.recognise(read_content(b"[1, 2]", "x")) == 0
    assert FORMAT.recognise(read_content(b"{}", "x")) == 0
