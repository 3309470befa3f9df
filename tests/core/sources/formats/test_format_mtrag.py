import json

import pytest

from core.sources.content import read_content
from core.sources.dataset import read_dataset
from core.sources.formats import FORMATS, detect, import_file, mtrag
from tests.core.sources.formats.roundtrip import lines


def vote(*values):
    return {"relevant": {f"someone{i}": {"value": value, "timestamp": 1} for i, value in enumerate(values)}}


TASK = {
    "conversation_id": "c1",
    "task_id": "c1::2",
    "task_type": "rag",
    "turn": 2,
    "collection": "canals",
    "contexts": [
        {"document_id": "d1", "text": "The canal was opened in 1893.", "title": "Canal", "score": 20.5, "feedback": vote("yes", "yes")},
        {"document_id": "d2", "text": "Coffee grows on slopes.", "score": 3.5, "feedback": vote("no")},
        {"document_id": "d1", "text": "The canal is 6.4 km long.", "feedback": vote("yes", "no")},
        {"document_id": "d4", "text": "It has no lock."},
    ],
    "input": [
        {"speaker": "user", "text": "Where is the canal?", "metadata": {"author_type": "human"}},
        {"speaker": "agent", "text": "In Corinth."},
        {"speaker": "user", "text": "And when was it opened?"},
    ],
    "targets": [{"speaker": "agent", "text": "In 1893."}],
    "answerability": ["ANSWERABLE"],
}  # fmt: skip
FIRST = {**TASK, "task_id": "c1::1", "turn": 1, "input": TASK["input"][:1]}


def test_a_task_is_known_by_its_name_and_its_conversation():
    assert mtrag.recognise(read_content(lines([TASK]), "t.jsonl")) > 0
    for missing in ("task_id", "input"):
        other = {name: value for name, value in TASK.items() if name != missing}
        assert mtrag.recognise(read_content(lines([other]), "t.jsonl")) == 0


def test_a_task_asks_the_last_question_of_its_conversation():
    imported = import_file(
        lines([FIRST, {**TASK, "predictions": [{"text": "It opened in 1893.", "class": "A"}]}]), "t.jsonl"
    )
    run = imported.run
    assert run.manifest["dataset"]["format"] == "mtrag"
    assert run.queries["query_id"].to_list() == ["c1::1", "c1::2"]
    assert run.queries["question"].to_list() == ["Where is the canal?", "And when was it opened?"]
    assert run.queries["answer"].fillna("–").to_list() == ["–", "It opened in 1893."]
    assert run.queries["reference_answers"].to_list() == [["In 1893."]] * 2
    second = run.passages[run.passages["query_id"] == "c1::2"]
    assert second["passage_id"].to_list() == ["d1", "d2", "d1 (2)", "d4"]
    assert [
        None if gold is None or gold != gold else bool(gold)
        for gold in second["is_gold"].astype("object").where(second["is_gold"].notna(), None)
    ] == [True, False, None, None]
    assert second["retrieval_score"].to_list()[:2] == [20.5, 3.5] and second["title"].to_list()[0] == "Canal"
    assert any(note.startswith("Later turns of a conversation: 1 task;") for note in imported.report.notes)
    reported = run["reported"]
    assert set(reported["name"][reported["query_id"] == "c1::1"]) == {
        "conversation_id",
        "task_type",
        "turn",
        "collection",
        "answerability",
    }
    kept = reported[(reported["query_id"] == "c1::2") & (reported["name"] == "input")]["text"].item()
    assert json.loads(kept) == TASK["input"]


def test_tasks_are_a_data_set_to_run():
    (question,) = read_dataset(lines([TASK]), "reference.jsonl").questions
    assert question.query_id == "c1::2" and len(question.passages) == 4
    assert question.reference_answers == ("In 1893.",)


def test_the_nan_of_a_missing_label_costs_no_task():
    text = lines([{**TASK, "Validity": float("nan")}, {**FIRST, "Validity": float("nan")}])
    assert b"NaN" in text
    assert len(read_dataset(text, "reference.jsonl").questions) == 2
    assert len(import_file(text, "reference.jsonl").run.queries) == 2


def test_a_task_without_passages_is_listed():
    data = read_dataset(lines([TASK, {**FIRST, "contexts": []}]), "reference.jsonl")
    assert len(data.questions) == 1 and data.report.n_rejected == 1


def test_what_cannot_be_used_is_named():
    odd = [
        TASK,
        {**TASK, "task_id": "x", "input": [{"speaker": "agent", "text": "Hello."}]},
        {**TASK, "task_id": "y", "contexts": [5]},
        {
            **TASK,
            "task_id": "z",
            "contexts": [{"document_id": [], "text": 5, "feedback": {"relevant": {"a": 5}}}],
            "targets": [5],
        },
    ]
    report = import_file(lines(odd), "t.jsonl").report
    assert [(i.row, i.column, i.severity) for i in report.issues] == [
        (2, "input", "error"),
        (3, "contexts[0]", "error"),
        (4, "contexts[0].document_id", "warning"),
        (4, "contexts[0].text", "warning"),
    ]


def test_a_file_of_inspectorraget_with_such_tasks_stays_one():
    own = {"schema_version": 1, "models": [], "metrics": [], "tasks": [TASK], "results": []}
    assert detect(read_content(json.dumps(own).encode(), "x")) is FORMATS["inspectorraget"]


def test_further_predictions_are_samples_of_the_answer():
    two = [{"text": "In 1893."}, {"text": "In 1894."}]
    for predictions, samples in ((two, ["In 1893.", "In 1894."]), (two[:1], [])):
        run = import_file(lines([{**TASK, "predictions": predictions}]), "t.jsonl").run
        assert run.queries["answer"].to_list() == ["In 1893."]
        assert run["samples"]["answer"].to_list() == samples


@pytest.mark.parametrize("before", [49, 50])
def test_a_file_is_recognised_by_its_first_fifty_entries(before):
    file = read_content(lines([{"a": 1}] * before + [TASK]), "t.jsonl")
    assert (FORMATS["mtrag"].recognise(file) > 0) == (before < 50)
