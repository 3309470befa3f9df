import json

import pytest
from hypothesis import assume, given, settings

from core.errors import InputError
from core.sources.formats import ragas
from core.sources.formats.ragchecker import FORMAT
from core.sources.formats.records import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    Record,
    RecordClaim,
    RecordPassage,
)
from tests.core.sources.formats.roundtrip import (
    comes_back,
    content_of,
    damaged,
    issues_of,
    lines,
    read_as,
    through_a_folder,
)

E, N, C = ENTAILMENT, NEUTRAL, CONTRADICTION
CANAL = {
    "query_id": "17",
    "query": "When did the canal open?",
    "gt_answer": "It opened in 1914 and has twelve locks.",
    "response": "The canal opened in 1914. A railway runs beside it.",
    "retrieved_context": [
        {"doc_id": "a", "text": "The canal opened in 1914."},
        {"doc_id": "b", "text": "It has twelve locks."},
        {"doc_id": "a", "text": "A road runs beside it."},
    ],
    "response_claims": [["canal", "opened in", "1914"], ["railway", "runs beside", "canal"]],
    "gt_answer_claims": [["canal", "opened in", "1914"], ["canal", "has", "twelve locks"]],
    "answer2response": [E, N],
    "response2answer": [E, N],
    "retrieved2response": [[E, N, N], [N, N, C]],
    "retrieved2answer": [[E, N, N], [N, E, N]],
    "metrics": {"precision": 0.5, "recall": 0.5, "f1": 0.5, "claim_recall": 1.0},
}
RIVER = {
    "query_id": "18",
    "query": "Is <b>this</b> a river?",
    "gt_answer": "Yes.",
    "response": "",
    "retrieved_context": [{"text": "=1+1"}],
    "response_claims": [],
    "gt_answer_claims": ["This is a river."],
    "answer2response": [],
    "response2answer": [N],
    "retrieved2response": [],
    "retrieved2answer": [[N]],
    "metrics": {"precision": 0.0},
    "comment": "checked by hand",
}
FILE = {
    "results": [CANAL, RIVER],
    "metrics": {"overall_metrics": {"precision": 25.0}, "retriever_metrics": {}, "generator_metrics": {}},
}


def one(**changes):
    """Return a file of one result: `CANAL` with some fields changed, or left out where they are None."""
    changed = {**CANAL, **changes}
    return {"results": [{name: value for name, value in changed.items() if value is not None}]}


def support(record, side="answer"):
    return [dict(claim.support) for claim in record.claims if claim.side == side]


def test_a_file_comes_back_from_a_run_as_it_was(tmp_path):
    read, log = read_as(FORMAT, FILE)
    assert through_a_folder(read.records, tmp_path / "run") == list(read.records)
    assert json.loads(FORMAT.write(through_a_folder(read.records, tmp_path / "run"))) == FILE
    assert issues_of(log) == []
    assert (len(read.records), list(read.rejected)) == (2, [])


def test_claims_labels_and_metrics_are_where_they_belong():
    canal, river = read_as(FORMAT, FILE)[0].records
    assert (canal.record_id, canal.question, canal.answer) == ("17", CANAL["query"], CANAL["response"])
    assert canal.references == (CANAL["gt_answer"],)
    assert [p.passage_id for p in canal.passages] == ["a", "b", "a (2)"]
    assert canal.claims[1] == RecordClaim(
        "railway runs beside canal", "answer", {"a": N, "b": N, "a (2)": C}, counterpart=N
    )
    assert [(c.text, c.side) for c in canal.claims[2:]] == [
        ("canal opened in 1914", "reference"),
        ("canal has twelve locks", "reference"),
    ]
    assert canal.reported["f1", "ragchecker"] == 0.5
    assert (river.answer, [p.passage_id for p in river.passages]) == ("", ["d1"])
    assert river.claims == (RecordClaim("This is a river.", "reference", {"d1": N}, counterpart=N),)


def test_matrix_on_its_side_is_noted_and_not_read():
    on_its_side = [[E, N], [N, N], [N, C]]
    read, log = read_as(FORMAT, one(retrieved2response=on_its_side, retrieved2answer=None))
    assert support(read.records[0]) == [{}, {}]
    assert issues_of(log) == [(1, "retrieved2response", "warning")]


def test_ragged_rows_leave_their_claim_unscored():
    read, log = read_as(FORMAT, one(retrieved2response=[[E, N], [N, N, C]]))
    assert support(read.records[0]) == [{}, {"a": N, "b": N, "a (2)": C}]
    assert issues_of(log) == [(1, "retrieved2response[0]", "warning")]


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("retrieved2response", [[E, N, N]], "retrieved2response"),
        ("retrieved2response", "Entailment", "retrieved2response"),
        ("retrieved2response", [[E, N, "yes"], [N, N, N]], "retrieved2response[0][2]"),
        ("answer2response", [E], "answer2response"),
        ("answer2response", [E, "Abstain"], "answer2response[1]"),
        ("response_claims", [["canal", 1914], ["a", "b", "c"]], "response_claims[0]"),
        ("response_claims", [" ", ["a", "b", "c"]], "response_claims[0]"),
        ("retrieved_context", [7, {"text": "x"}, {"text": "y"}], "retrieved_context[0]"),
        ("retrieved_context", [{"text": 7}, {"text": "x"}, {"text": "y"}], "retrieved_context[0].text"),
        ("retrieved_context", [{"doc_id": {}, "text": "x"}] * 3, "retrieved_context[0].doc_id"),
        ("metrics", {"f1": "high"}, "metrics.f1"),
        ("metrics", [0.5], "metrics"),
        ("query_id", ["17"], "query_id"),
        ("gt_answer", 7, "gt_answer"),
        ("response", ["x"], "response"),
    ],
)
def test_odd_values_are_noted_and_cost_only_themselves(name, value, field):
    read, log = read_as(FORMAT, one(**{name: value}))
    assert len(read.records) == 1
    assert (1, field, "warning") in issues_of(log)
    assert not any(severity == "error" for *_, severity in issues_of(log))


def test_unreadable_claim_takes_its_row_of_labels_along():
    read, _ = read_as(FORMAT, one(response_claims=[7, ["railway", "runs beside", "canal"]]))
    claims = [claim for claim in read.records[0].claims if claim.side == "answer"]
    assert claims == [RecordClaim("railway runs beside canal", "answer", {"a": N, "b": N, "a (2)": C}, N)]


def test_unreadable_passage_keeps_its_column():
    read, _ = read_as(FORMAT, one(retrieved_context=[None, *CANAL["retrieved_context"][1:]]))
    assert read.records[0].passages[0] == RecordPassage("d1", None)
    assert support(read.records[0])[1] == {"d1": N, "b": N, "a": C}


def test_flat_list_of_labels_is_the_column_of_an_only_passage():
    passages = CANAL["retrieved_context"][:1]
    flat = one(retrieved2response=[E, N], retrieved2answer=None, retrieved_context=passages)
    assert support(read_as(FORMAT, flat)[0].records[0]) == [{"a": E}, {"a": N}]


def test_entries_without_a_question_are_put_aside():
    read, log = read_as(FORMAT, {"results": [CANAL, {**RIVER, "query": " "}, "x", RIVER]})
    assert [record.record_id for record in read.records] == ["17", "18 (2)"]
    assert [(row, entry) for row, _, entry in read.rejected] == [(2, {**RIVER, "query": " "}), (3, "x")]
    assert issues_of(log) == [(2, "query", "error"), (3, "record", "error")]


def test_missing_and_repeated_ids():
    results = [
        {**CANAL, "query_id": 5},
        {**RIVER, "query_id": 5},
        {k: RIVER[k] for k in ("query", "response")},
    ]
    read, _ = read_as(FORMAT, {"results": results})
    assert [record.record_id for record in read.records] == ["5", "5 (2)", "q3"]
    assert read.notes == ("Ids were made for 2 questions without one, or with that of another.",)
    assert [r.get("query_id") for r in json.loads(FORMAT.write(read.records))["results"]] == [5, 5, None]


def test_averages_come_back_only_while_all_questions_are_there():
    records = read_as(FORMAT, FILE)[0].records
    assert "metrics" in json.loads(FORMAT.write(records))
    assert "metrics" not in json.loads(FORMAT.write(records[:1]))


def test_claims_that_changed_are_written_as_they_read_now():
    record = read_as(FORMAT, FILE)[0].records[0]
    changed = Record("17", record.question, claims=(RecordClaim("New."),), reported=record.reported)
    assert json.loads(FORMAT.write([changed]))["results"][0]["response_claims"] == ["New."]


def test_records_of_other_sources():
    record = Record(
        "one",
        "Who?",
        None,
        (RecordPassage("a", None), RecordPassage("b", "Ann did it.")),
        ("Ann", "Anna"),
        ("Ann.",),
        claims=(RecordClaim("Ann did it.", support={"a": 0.1, "b": 0.9}, verdict="SUPPORTED"),),
        reported={("faithfulness", ""): 0.9},
    )
    assert json.loads(FORMAT.write([record])) == {
        "results": [
            {
                "query_id": "one",
                "query": "Who?",
                "gt_answer": "Ann",
                "response": "",
                "retrieved_context": [{"doc_id": "a", "text": ""}, {"doc_id": "b", "text": "Ann did it."}],
                "response_claims": ["Ann did it."],
                "retrieved2response": [[N, E]],
            }
        ]
    }


def test_probabilities_become_labels_and_talk_is_left_out():
    claims = (
        RecordClaim("At the limit.", support={"a": 0.5, "b": 0.49}, counterpart=E),
        RecordClaim("I hope this helps!", relevance="IRRELEVANT"),
        RecordClaim(
            "No matter, but judged.", support={"a": C, "b": 0.0}, counterpart=N, relevance="IRRELEVANT"
        ),
        RecordClaim("Half judged.", "reference", {"a": 0.9}),
    )
    record = Record("one", "Who?", "x", (RecordPassage("a", "A"), RecordPassage("b", "B")), claims=claims)
    result = json.loads(FORMAT.write([record]))["results"][0]
    assert result["response_claims"] == ["At the limit.", "No matter, but judged."]
    assert result["retrieved2response"] == [[E, N], [C, N]]
    assert result["answer2response"] == [E, N]
    # A passage that was not judged has no label, so there is no matrix; a missing comparison is none.
    assert result["gt_answer_claims"] == ["Half judged."]
    assert "retrieved2answer" not in result and "response2answer" not in result


def test_recognised_by_names_that_only_it_has():
    assert FORMAT.recognise(content_of(FILE)) == 11
    assert FORMAT.recognise(content_of([CANAL])) > ragas.FORMAT.recognise(content_of([CANAL]))
    assert FORMAT.recognise(content_of(lines([CANAL, RIVER]))) == 11
    others = [
        {"results": [{"task_id": "1", "scores": {}}], "tasks": [], "models": []},
        [{"user_input": "q", "response": "a", "retrieved_contexts": ["x"], "reference": "a"}],
        [{"query": "q", "response": "a"}],
        {"testCases": [{"input": "q", "actualOutput": "a", "retrievalContext": ["x"]}]},
        b"query,response,gt_answer\nq,a,a\n",
    ]
    assert [FORMAT.recognise(content_of(other)) for other in others] == [0] * len(others)


@pytest.mark.parametrize("value", [{"results": {"a": 1}}, {"rows": []}, b"query,response\nq,a\n"])
def test_other_files_are_refused(value):
    with pytest.raises(InputError, match='expected a JSON object with a list "results"'):
        read_as(FORMAT, value)


def test_bare_list_and_lines_are_read_too():
    for value in ([CANAL, RIVER], lines([CANAL, RIVER])):
        assert json.loads(FORMAT.write(read_as(FORMAT, value)[0].records)) == {"results": FILE["results"]}


@given(damaged(FILE["results"]))
@settings(max_examples=60)
def test_whatever_was_read_comes_back_as_it_stood(value):
    assume(value)  # a file without an entry is refused
    read, _ = read_as(FORMAT, value)
    written = json.loads(FORMAT.write(read.records))["results"]
    comes_back(read, written, content_of(value).entries)
