import json
from dataclasses import replace

import pytest

from core.errors import InputError
from core.sources.content import read_content
from core.sources.formats import detect, import_file
from core.sources.formats.deepeval import FORMAT
from core.sources.formats.records import Record, RecordPassage, records_of
from core.sources.report import IssueLog
from tests.core.sources.formats.roundtrip import in_csv, there_and_back

CASES = [
    {
        "name": "returns",
        "input": "What if the shoes do not fit?",
        "actual_output": "You get a full refund.",
        "expected_output": "A full refund within 30 days.",
        "context": ["All customers get a full refund.", "Within 30 days."],
        "retrieval_context": ["All customers get  a full refund.", {"context": "Shoes run small.", "source": "faq.md"}],
        "completion_time": 1.5,
        "metadata": {"team": "support", "n": 3},
        "tools_called": [{"name": "search", "inputParameters": {"q": "refund"}}],
        "expected_tools": [{"name": "search"}],
        "token_cost": 0.002,
        "comments": "checked",
        "tags": ["shoes", "refund"],
        "custom_column_key_values": {"release": "1.2"},
    },
    {"name": "empty", "input": "Who?", "actual_output": "", "retrieval_context": ["Nobody.", ""], "some_metric": 0.5},
    {"name": "golden", "input": "When?", "expected_output": "In May.", "context": ["May."], "source_file": "a.txt"},
]  # fmt: skip
CAMEL = {
    "actual_output": "actualOutput", "expected_output": "expectedOutput", "retrieval_context": "retrievalContext",
    "metadata": "additionalMetadata", "tools_called": "toolsCalled", "expected_tools": "expectedTools",
    "token_cost": "tokenCost", "completion_time": "completionTime",
    "custom_column_key_values": "customColumnKeyValues", "source_file": "sourceFile",
}  # fmt: skip


def read(value, name="x.json"):
    log = IssueLog()
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return FORMAT.read(read_content(data, name), log), log


def test_a_list_of_test_cases_comes_back_as_it_was(tmp_path):
    imported, back = there_and_back(CASES, tmp_path)
    assert back == CASES
    assert imported.report.n_issues == 0 and imported.run.manifest["dataset"]["format"] == "deepeval"
    assert imported.run.queries["query_id"].to_list() == ["returns", "empty", "golden"]


def test_what_a_test_case_becomes():
    record = read(CASES)[0].records[0]
    assert record.passages == (
        RecordPassage("p1", "All customers get  a full refund.", "", None, True),
        RecordPassage("p2", "Shoes run small.", "faq.md", None, False),
    )
    assert (record.references, record.n_gold, record.latency) == (("A full refund within 30 days.",), 2, 1.5)
    assert record.reported["token_cost", ""] == 0.002 and record.reported["tags", ""] == ["shoes", "refund"]


@pytest.mark.parametrize("key", ["testCases", "test_cases", "goldens", "test_results"])
def test_camel_case_inside_a_larger_file(key, tmp_path):
    camel = [{CAMEL.get(name, name): value for name, value in case.items()} for case in CASES]
    assert there_and_back({key: camel, "hyperparameters": {"k": 2}}, tmp_path)[1] == CASES


def test_scores_of_a_test_run_are_reported_by_their_judge(tmp_path):
    metrics = [
        {"name": "Faithfulness", "score": 0.8, "threshold": 0.5, "success": True, "reason": "…", "evaluationModel": "judge-1"},
        {"name": "Hallucination", "score": None, "success": False, "error": "timeout"},
        "odd",
    ]  # fmt: skip
    run_file = {
        "testCases": [{**CASES[0], "metricsData": metrics, "success": False, "runDuration": 2.5}],
        "testPassed": 0,
    }
    imported, back = there_and_back(run_file, tmp_path)
    assert back == [{**CASES[0], "metrics_data": metrics, "success": False, "runDuration": 2.5}]
    reported = imported.run["reported"].set_index(["name", "by"])["value"]
    assert reported["Faithfulness", "judge-1"] == 0.8 and ("Hallucination", "") not in reported.index


def test_the_last_test_run_and_the_result_of_evaluate_are_read():
    scores = [{"name": "Faithfulness", "score": 0.5, "success": True, "evaluationModel": "gpt"}]
    cases = [
        {
            "name": "a",
            "input": "Who?",
            "actualOutput": "She.",
            "retrievalContext": ["She did."],
            "metricsData": scores,
        }
    ]
    last = {"testRunData": {"testCases": cases, "metricsScores": [], "testPassed": 1}}
    judged = [{"name": "Faithfulness", "score": 0.5, "evaluation_model": "gpt"}]
    snake = [
        {
            "name": "a",
            "input": "Who?",
            "actual_output": "She.",
            "retrieval_context": ["She did."],
            "metrics_data": judged,
        }
    ]
    for file in (last, {"test_results": snake, "confident_link": None, "test_run_id": None}):
        imported = import_file(json.dumps(file).encode(), "x.json")
        [record] = records_of(imported.run)
        assert imported.run.manifest["dataset"]["format"] == "deepeval"
        assert (record.question, record.answer, [p.text for p in record.passages]) == (
            "Who?",
            "She.",
            ["She did."],
        )
        assert record.reported["Faithfulness", "gpt"] == 0.5


def test_context_that_was_not_retrieved_is_a_gold_passage_with_its_text():
    case = {
        "input": "q",
        "actual_output": "a",
        "retrieval_context": ["one", "two"],
        "context": ["one", "three"],
    }
    [record] = FORMAT.read(read_content(json.dumps([case]).encode(), "a.json"), IssueLog()).records
    assert [p.is_gold for p in record.passages] == [True, False] and record.n_gold == 2
    assert [(one.passage_id, one.text) for one in record.gold] == [("gold 1", "three")]
    written = json.loads(FORMAT.write([replace(record, reported={})]))
    assert written[0]["context"] == ["one", "three"]


def test_a_csv_as_deepeval_saves_goldens(tmp_path):
    rows = [
        {"input": "q1", "actual_output": "a; b", "expected_output": "", "retrieval_context": "one; two|three", "context": "one; two",
         "name": "n1", "tools_called": '[{"name": "t"}]', "additional_metadata": "{'x': 1, 'y': None}", "source_file": ""},
        {"input": "q2", "actual_output": "", "expected_output": "e", "retrieval_context": "", "context": "", "name": "n2",
         "tools_called": "", "additional_metadata": "", "source_file": "f.txt"},
    ]  # fmt: skip
    imported, back = there_and_back(in_csv(rows), tmp_path, "x.csv")
    assert back == [
        {"name": "n1", "input": "q1", "actual_output": "a; b", "context": ["one", " two"], "retrieval_context": ["one; two", "three"],
         "tools_called": [{"name": "t"}], "metadata": {"x": 1, "y": None}},
        {"name": "n2", "input": "q2", "actual_output": "", "expected_output": "e", "source_file": "f.txt"},
    ]  # fmt: skip
    assert "Texts in retrieval_context were split at a vertical bar (|)." in imported.report.notes
    assert "Texts in context were split at a semicolon (;)." in imported.report.notes


def test_a_csv_with_other_lists_and_numbers():
    rows = [
        {
            "input": "q1",
            "actualOutput": "a",
            "retrieval_context": "['one; two', 'three']",
            "completion_time": "2.5",
            "tags": "x",
        },
        {
            "input": "q2",
            "actualOutput": "b",
            "retrieval_context": "just one",
            "completion_time": "fast",
            "tags": "",
        },
        {"input": "q3", "actualOutput": "c", "retrieval_context": "['cut", "completion_time": "", "tags": ""},
    ]
    result, log = read(in_csv(rows), "x.csv")
    assert [[p.text for p in r.passages] for r in result.records] == [["one; two", "three"], ["just one"]]
    assert [r.latency for r in result.records] == [2.5, None]
    assert result.unused == ("tags",)
    assert [(i.row, i.column, i.severity) for i in log.listed()] == [
        (3, "completion_time", "warning"),
        (4, "retrieval_context", "error"),
    ]
    assert result.rejected[0][2]["retrieval_context"] == "['cut"


def test_json_lines_have_their_lists_joined():
    lines = "\n".join(
        json.dumps(c)
        for c in (
            {"input": "q", "actual_output": "a", "retrieval_context": "one|two", "context": "one"},
            CASES[1],
        )
    )
    record = read(lines.encode(), "x.jsonl")[0].records[0]
    assert [(p.text, p.is_gold) for p in record.passages] == [("one", True), ("two", False)]
    whole = read([{"input": "q", "actual_output": "a", "retrieval_context": "one|two"}])[0].records[0]
    assert [p.text for p in whole.passages] == ["one|two"]


def test_conversations_are_refused_by_name():
    talk = {"scenario": "refund", "turns": [{"role": "user", "content": "hi"}], "expected_outcome": "done"}
    assert detect(read_content(json.dumps([talk]).encode(), "x")) is FORMAT
    result, log = read([talk, CASES[1]])
    assert [(n, reason) for n, reason, _ in result.rejected] == [
        (1, "turns: expected a test case of one turn (input, actual_output)")
    ]
    assert log.first_error.column == "turns" and len(result.records) == 1


def test_conversations_of_a_test_run_are_listed_too():
    """They stand beside its test cases, of which there may be none."""
    talk = {
        "name": "c",
        "turns": [{"role": "user", "content": "hi?", "order": 0}],
        "metricsData": [],
        "flaky": False,
    }
    run = {
        "testRunData": {"testCases": [], "conversationalTestCases": [talk], "prompts": [], "testPassed": 1}
    }
    with pytest.raises(InputError, match=r"row 1, field turns: .* expected a test case of one turn"):
        import_file(json.dumps(run).encode(), ".latest_test_run.json")
    run["testRunData"]["testCases"] = [{"input": "q", "actualOutput": "r", "metricsData": None}]
    imported = import_file(json.dumps(run).encode(), ".latest_test_run.json")
    assert imported.report.rejected["row"].to_list() == [2] and imported.report.n_kept == 1


@pytest.mark.parametrize("talks", [[], "", {}, 5, "ab"])
def test_a_test_run_without_a_list_of_conversations_is_its_cases(talks):
    result, _ = read({"testRunData": {"testCases": CASES, "conversationalTestCases": talks}})
    assert [record.record_id for record in result.records] == ["returns", "empty", "golden"]
    assert result.rejected == []


@pytest.mark.parametrize(
    ("case", "field"),
    [
        ({"input": 5}, "input"),
        ({"input": ["What is this?", {"url": "image.png"}]}, "input"),
        ({"actual_output": "x"}, "input"),
        ({"input": "q", "retrieval_context": {"a": 1}}, "retrieval_context"),
        ({"input": "q", "retrievalContext": ["a", None]}, "retrieval_context[1]"),
        ({"input": "q", "retrieval_context": [{"source": "s"}]}, "retrieval_context[0]"),
        ("text", "record"),
    ],
)
def test_cases_that_cannot_be_used_are_named(case, field):
    result, log = read([CASES[1], case])
    assert [(n, reason.split(":")[0]) for n, reason, _ in result.rejected] == [(2, field)]
    assert [(i.row, i.column, i.severity) for i in log.listed()] == [(2, field, "error")]


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        ({"actual_output": 5}, "actual_output"),
        ({"expected_output": ["x"]}, "expected_output"),
        ({"context": [1]}, "context"),
        ({"completion_time": "x"}, "completion_time"),
        ({"completion_time": -1}, "completion_time"),
        ({"retrieval_context": [{"context": "c", "source": 5}]}, "retrieval_context[0].source"),
    ],
)
def test_odd_optional_fields_cost_only_themselves(extra, field):
    result, log = read([{"input": "q", "actual_output": "a", **extra}])
    assert len(result.records) == 1
    assert [(i.row, i.column, i.severity) for i in log.listed()] == [(1, field, "warning")]


def test_only_right_passages_are_no_retrieved_ones():
    result, _ = read([{"input": "q", "actual_output": "a", "context": ["one"]}])
    assert result.records[0].passages == () and "no retrieval_context" in result.notes[0]


def test_names_that_stand_twice(tmp_path):
    imported, back = there_and_back([{**CASES[1], "name": "n"}, {**CASES[1], "name": "n"}], tmp_path)
    assert [case["name"] for case in back] == ["n", "n (2)"]
    assert "With an id that another record has, so numbered: 1 record." in imported.report.notes


def test_what_other_formats_know_is_written_as_far_as_deepeval_can_hold_it():
    record = Record(
        "", "Q?", "A", (RecordPassage("a", "one", "Title", 2.0, True), RecordPassage("b", None)), ("x", "y"),
        reported={("accuracy", "judge"): 0.5, ("query", ""): "kept", ("ragchecker:record", ""): "{}"},
    )  # fmt: skip
    assert json.loads(FORMAT.write([record])) == [
        {
            "input": "Q?", "actual_output": "A", "expected_output": "x", "context": ["one"],
            "retrieval_context": [{"context": "one", "source": "Title"}, ""],
            "accuracy (judge)": 0.5, "query": "kept",
        }
    ]  # fmt: skip


def test_it_is_recognised_by_its_names_only():
    assert detect(read_content(json.dumps(CASES).encode(), "x")) is FORMAT
    assert FORMAT.recognise(read_content(b'[{"input": "q", "output": "a", "context": []}]', "x")) == 0
    assert FORMAT.recognise(read_content(b'[{"actual_output": "q"}]', "x")) == 0
    assert FORMAT.recognise(read_content(b"[null]", "x")) == 0
