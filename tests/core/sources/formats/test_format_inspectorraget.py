import json

import pytest
from hypothesis import given, settings

from core.errors import InputError
from core.sources.formats import inspectorraget, ragchecker
from core.sources.formats.inspectorraget import FORMAT
from core.sources.formats.records import Record, RecordClaim, RecordPassage, records_of, run_of
from tests.core.sources.formats.roundtrip import (
    comes_back,
    content_of,
    damaged,
    issues_of,
    read_as,
    through_a_folder,
)


def user(text):
    return {"role": "user", "content": text}


def said(text):
    return {"role": "assistant", "content": text}


def result(task, model, answer, rouge, **more):
    scores = {
        "rouge": {"system": {"value": rouge}},
        "natural": {
            "ann": {"value": "4", "timestamp": 1700000000, "duration": 12},
            "bob": {"value": "3"},
        },
        "why": {"ann": {"value": "Reads <i>well</i>."}},
    }
    return {"task_id": task, "model_id": model, "output": [said(answer)], "scores": scores, **more}


FILE = {
    "schema_version": 2,
    "example_id": "abc",
    "name": "Canals",
    "models": [
        {"model_id": "m1", "name": "Model one", "owner": "us", "release_date": "2025-01-01"},
        {"model_id": "m2", "name": "Model two", "owner": "them"},
    ],
    "metrics": [
        {"name": "rouge", "display_name": "Rouge", "author": "algorithm", "type": "numerical",
         "aggregator": "average", "range": [0, 1, 0.1]},
        {"name": "natural", "author": "human", "type": "categorical", "aggregator": "majority",
         "values": [{"value": "3", "display_value": "Mostly", "numeric_value": 3},
                    {"value": "4", "display_value": "Yes", "numeric_value": 4}]},
        {"name": "why", "author": "human", "type": "text"},
    ],
    "filters": ["category"],
    "documents": [
        {"document_id": "a", "text": "The canal opened in 1914.", "title": "Canal"},
        {"document_id": "b", "text": "It has twelve locks.", "url": "https://example.org/b", "score": 0.5},
        {"document_id": "z", "text": "Nobody asked for this."},
    ],
    "tasks": [
        {
            "task_id": "t1", "task_type": "qa", "category": "dates",
            "input": [user("When did the canal open?")],
            "contexts": [{"document_id": "a"}, {"document_id": "b"}],
            "targets": [{"type": "text", "value": "1914"}, {"type": "text", "value": "In 1914."}],
            "annotations": {"context_relevance": {"ann": [0]}},
            "flagged": True,
        },
        {
            "task_id": "t2", "task_type": "rag",
            "input": [user("Hello"), said("Hello!"), user("And the locks?")],
            "contexts": [{"document_id": "b", "rank": 1}, {"document_id": "b"}],
            "targets": [],
        },
        {"task_id": "t3", "task_type": "generation", "input": "Write a line."},
        {"task_id": "t4", "task_type": "generation", "input": [user("Nobody answered this.")]},
    ],
    "results": [
        result("t1", "m1", "In 1914.", 0.75),
        result("t1", "m2", "", 0),
        result("t2", "m2", "Twelve.", 1, labels={"easy": True}),
        result("t2", "m1", "Many.", 0.5, output=[{**said("Let me see."), "trace": []}, said("Many.")]),
        result("t3", "m1", "A line.", 0.1),
        result("t3", "m2", "Two lines.", 0.2,
               contexts=[{"document_id": "own", "text": "Its own text.", "score": 0.9}]),
    ],
}  # fmt: skip
V1 = {
    "name": "Old",
    "models": [{"model_id": "m", "name": "M", "owner": "us"}],
    "metrics": [{"name": "rouge", "author": "algorithm", "type": "numerical"}],
    "documents": [{"document_id": "a", "text": "The canal opened in 1914."}],
    "tasks": [
        {
            "task_id": "1", "task_type": "rag", "contexts": [{"document_id": "a"}],
            "input": [{"speaker": "user", "text": "When?"}], "targets": [{"text": "1914"}],
        },
        {"task_id": "2", "task_type": "json_generation", "contexts": [], "input": "Say it."},
        {"task_id": "3", "task_type": "rag", "contexts": [], "input": [user("Hi"), said("Hi."), user("Bye")]},
    ],
    "evaluations": [
        {"task_id": t, "model_id": "m", "model_response": answer, "annotations": {"rouge": {"a": {"value": 1}}}}
        for t, answer in (("1", "In 1914."), ("2", "{}"), ("3", "Bye."))
    ],
}  # fmt: skip


def smaller(**changes):
    """Return a file of one task and one result, with some of its parts changed."""
    parts = {
        "documents": FILE["documents"],
        "tasks": [FILE["tasks"][0]],
        "results": [FILE["results"][0]],
        **changes,
    }
    return {
        **{name: FILE[name] for name in ("schema_version", "metrics")},
        "models": FILE["models"][:1],
        **parts,
    }


def task(**changes):
    return smaller(tasks=[{**FILE["tasks"][0], **changes}])


def test_a_file_comes_back_from_a_run_as_it_was(tmp_path):
    read, log = read_as(FORMAT, FILE)
    records = through_a_folder(read.records, tmp_path / "run")
    assert records == list(read.records)
    assert json.loads(FORMAT.write(records)) == FILE
    assert issues_of(log) == []
    assert len(read.records) + len(read.rejected) == 7


def test_one_record_for_each_task_and_model():
    read, _ = read_as(FORMAT, FILE)
    assert [(r.record_id, r.question, r.answer) for r in read.records] == [
        ("t1 | m1", "When did the canal open?", "In 1914."),
        ("t1 | m2", "When did the canal open?", ""),
        ("t2 | m2", "And the locks?", "Twelve."),
        ("t2 | m1", "And the locks?", "Many."),
        ("t3 | m1", "Write a line.", "A line."),
        ("t3 | m2", "Write a line.", "Two lines."),
        ("t4", "Nobody answered this.", None),
    ]
    first = read.records[0]
    assert first.references == ("1914", "In 1914.")
    assert first.passages == (
        RecordPassage("a", "The canal opened in 1914.", "Canal"),
        RecordPassage("b", "It has twelve locks.", "", 0.5),
    )
    assert {key: value for key, value in first.reported.items() if ":" not in key[0]} == {
        ("model_id", ""): "m1",
        ("task_type", ""): "qa",
        ("rouge", "system"): 0.75,
        ("natural", "ann"): "4",
        ("natural", "bob"): "3",
        ("why", "ann"): "Reads <i>well</i>.",
    }
    assert [p.passage_id for p in read.records[2].passages] == ["b", "b (2)"]
    assert [p.text for p in read.records[5].passages] == ["Its own text."]
    assert read.notes == (
        "Of 8 pairs of task and model 2 have no result; InspectorRAGet itself leaves out tasks that lack one.",
    )


def test_with_one_model_a_record_is_called_after_its_task():
    read, _ = read_as(FORMAT, smaller())
    assert [record.record_id for record in read.records] == ["t1"]
    assert read.notes == ()


def test_ids_that_would_collide_differ():
    tasks = [FILE["tasks"][0], {**FILE["tasks"][3], "task_id": "t1 | m1"}]
    read, _ = read_as(FORMAT, {**FILE, "tasks": tasks, "results": FILE["results"][:2]})
    assert [record.record_id for record in read.records] == ["t1 | m1", "t1 | m2", "t1 | m1 (2)"]
    written = json.loads(FORMAT.write(read.records))
    assert [t["task_id"] for t in written["tasks"]] == ["t1", "t1 | m1"]


def test_version_1_is_read_and_comes_back_as_version_2():
    read, log = read_as(FORMAT, V1)
    assert issues_of(log) == []
    assert [(r.question, r.answer, r.references, len(r.passages)) for r in read.records] == [
        ("When?", "In 1914.", ("1914",), 1),
        ("Say it.", "{}", (), 0),
        ("Bye", "Bye.", (), 0),
    ]
    assert "version 1" in read.notes[0]
    written = json.loads(FORMAT.write(read.records))
    assert (written["schema_version"], written["name"]) == (2, "Old")
    assert [t["task_type"] for t in written["tasks"]] == ["qa", "generation", "rag"]
    assert written["tasks"][0]["targets"] == [{"type": "text", "value": "1914"}]
    assert written["results"][0] == {
        "task_id": "1",
        "model_id": "m",
        "output": [said("In 1914.")],
        "scores": {"rouge": {"a": {"value": 1}}},
    }
    again, _ = read_as(FORMAT, written)
    assert again.records == read.records


def test_messages_of_version_1_name_their_speaker_and_are_references_too():
    old = json.loads(json.dumps(V1))
    turns = [
        {"speaker": "user", "text": "Hi"},
        {"speaker": "agent", "text": "Hi."},
        {"speaker": "user", "text": "When?"},
    ]
    targets = [{"speaker": "agent", "text": "1914"}, {"speaker": "agent", "text": "In 1914.", "timestamp": 5}]
    old["tasks"] = [{**old["tasks"][0], "input": turns, "targets": targets}]
    old["evaluations"] = old["evaluations"][:1]
    read, log = read_as(FORMAT, old)
    assert issues_of(log) == []
    assert [(r.question, r.references) for r in read.records] == [("When?", ("1914", "In 1914."))]
    [task] = json.loads(FORMAT.write(read.records))["tasks"]
    assert task["input"] == [user("Hi"), said("Hi."), user("When?")]
    assert task["targets"] == [
        {"type": "text", "value": "1914"},
        {"type": "text", "value": "In 1914.", "timestamp": 5},
    ]
    again, log = read_as(FORMAT, json.loads(FORMAT.write(read.records)))
    assert again.records == read.records and issues_of(log) == []


def test_the_model_of_a_run_gives_its_results_their_model(tmp_path):
    manifest = {"source": "live", "model": {"backend": "ollama", "name": "llama3.2:3b", "options": {}}}
    records = records_of(run_of([Record("q1", "Who?", "She.")], manifest))
    written = json.loads(FORMAT.write(records))
    assert [m["model_id"] for m in written["models"]] == ["llama3.2:3b"]
    assert [r["model_id"] for r in written["results"]] == ["llama3.2:3b"]
    for odd in (None, {}, {"name": [5]}, {"name": " "}):
        records = records_of(run_of([Record("q1", "Who?", "She.")], {**manifest, "model": odd}))
        assert json.loads(FORMAT.write(records))["models"][0]["model_id"] == "model"


def test_newer_versions_are_read_with_a_word():
    for version, said_of_it in (
        (3, ("The file is in version 3 of the schema; read as version 2.",)),
        (2, ()),
        (1, ("The file is in version 1 of the schema; it is exported in version 2.",)),
        (True, ("The file is in version 1 of the schema; it is exported in version 2.",)),
    ):
        assert read_as(FORMAT, {**smaller(), "schema_version": version})[0].notes == said_of_it


@pytest.mark.parametrize(("most", "read_scores"), [(2, {1, 2}), (1, set())])
def test_a_metric_has_up_to_so_many_annotators(most, read_scores, monkeypatch):
    monkeypatch.setattr(inspectorraget, "MAX_LIST", most)
    scores = {"good": {"a": {"value": 1}, "b": {"value": 2}}}
    read, log = read_as(FORMAT, smaller(results=[{**FILE["results"][0], "scores": scores}]))
    found = {value for (name, _), value in read.records[0].reported.items() if name == "good"}
    assert found == read_scores
    assert issues_of(log) == ([] if found else [(1, "results.scores.good", "warning")])


def test_tasks_of_tools_and_agents_are_put_aside_with_every_result():
    tools = {"task_id": "t9", "task_type": "tool_calling", "input": [user("Call it.")], "tools": []}
    agent = {"task_id": "t8", "task_type": "agentic", "input": [user("Do it.")]}
    calls = [result("t9", model, "", 0) for model in ("m1", "m2")]
    read, log = read_as(
        FORMAT, {**FILE, "tasks": [*FILE["tasks"], tools, agent], "results": [*FILE["results"], *calls]}
    )
    assert len(read.records) == 7
    assert [row for row, *_ in read.rejected] == [7, 8, 6]
    assert issues_of(log) == [
        (6, "tasks.task_type", "error"),
        (7, "tasks.task_type", "error"),
        (8, "tasks.task_type", "error"),
    ]
    assert "calling tools and agents" in read.rejected[0][1]


@pytest.mark.parametrize(
    ("value", "issue"),
    [
        (task(input=[]), (1, "tasks.input")),
        (task(input=[said("Only I speak.")]), (1, "tasks.input")),
        (task(input=[user(" ")]), (1, "tasks.input")),
        (task(input=None), (1, "tasks.input")),
        (task(task_type=None), (1, "tasks.task_type")),
        (task(task_type="poem"), (1, "tasks.task_type")),
        (smaller(results=[{**FILE["results"][0], "task_id": "none"}]), (1, "results.task_id")),
        (smaller(results=[{**FILE["results"][0], "model_id": {}}]), (1, "results.model_id")),
        (smaller(results=[FILE["results"][0]] * 2), (2, "results.model_id")),
        (smaller(results=["x"]), (1, "results")),
        (smaller(tasks=[FILE["tasks"][0], FILE["tasks"][0]]), (2, "tasks.task_id")),
        (smaller(tasks=[FILE["tasks"][0], {"input": "Who?"}]), (2, "tasks.task_id")),
        (smaller(tasks=[FILE["tasks"][0], 7]), (2, "tasks")),
    ],
)
def test_what_cannot_be_a_record_is_put_aside(value, issue):
    read, log = read_as(FORMAT, value)
    assert issues_of(log) == [(*issue, "error")]
    assert [row for row, *_ in read.rejected] == [issue[0]]


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"input": None}, ""),
        ({"input": []}, "[]"),
        ({"input": [said("I.")]}, str([said("I.")])),
        ({"task_type": None}, ""),
        ({"task_type": "poem"}, "poem"),
    ],
)
def test_an_issue_shows_what_stands_there(changes, value):
    (issue,) = read_as(FORMAT, task(**changes))[1].listed()
    assert issue.value == value


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (task(contexts=[{"document_id": "gone"}]), "tasks.contexts[0]"),
        (task(contexts=[None]), "tasks.contexts[0]"),
        (task(contexts="a"), "tasks.contexts"),
        (task(targets=[{"type": "tool_calls", "calls": []}]), "tasks.targets[0]"),
        (smaller(results=[{**FILE["results"][0], "output": None}]), "results.output"),
        (smaller(results=[{**FILE["results"][0], "output": [user("I?")]}]), "results.output"),
        (smaller(results=[{**FILE["results"][0], "scores": {"rouge": {"a": {"value": True}}}}]), "results.scores.rouge.a"),
        (smaller(results=[{**FILE["results"][0], "scores": {"rouge": 0.5}}]), "results.scores.rouge"),
        (smaller(results=[{**FILE["results"][0], "scores": {"rouge": {"a": 0.5}}}]), "results.scores.rouge.a"),
        (smaller(documents=[*FILE["documents"], FILE["documents"][0]]), "documents.document_id"),
        (smaller(documents=[*FILE["documents"], "x"]), "documents"),
        (smaller(documents=[{"document_id": "a", "text": 7}, FILE["documents"][1]]), "tasks.contexts[0].text"),
    ],
)  # fmt: skip
def test_odd_values_are_noted_and_cost_only_themselves(value, field):
    read, log = read_as(FORMAT, value)
    assert len(read.records) == 1
    assert [(column, severity) for _, column, severity in issues_of(log)] == [(field, "warning")]


def test_unknown_document_is_a_passage_without_text_and_comes_back_unknown():
    value = task(contexts=[{"document_id": "gone"}])
    read, _ = read_as(FORMAT, value)
    assert read.records[0].passages == (RecordPassage("gone", None),)
    written = json.loads(FORMAT.write(read.records))
    assert written["tasks"] == value["tasks"]
    assert {d["document_id"] for d in written["documents"]} == {"a", "b", "z"}


def test_what_cannot_be_read_of_the_scores_still_comes_back():
    scores = {"rouge": {"a": {"value": True}}, "odd": 5, "none": {}}
    value = smaller(results=[{**FILE["results"][0], "scores": scores}])
    assert json.loads(FORMAT.write(read_as(FORMAT, value)[0].records))["results"][0]["scores"] == scores


def test_documents_in_tool_messages_are_passages():
    found = [{"text": "The canal opened in 1914.", "title": "Canal", "score": 0.5}, {"text": "Locks."}]
    tool = {"role": "tool", "type": "documents", "content": found}
    value = smaller(
        tasks=[{"task_id": "t1", "task_type": "rag", "input": [user("When?")]}],
        results=[{**FILE["results"][0], "output": [tool, said("In 1914.")]}],
    )
    read, log = read_as(FORMAT, value)
    assert read.records[0].passages == (
        RecordPassage("d1", "The canal opened in 1914.", "Canal", 0.5),
        RecordPassage("d2", "Locks."),
    )
    assert (read.records[0].answer, issues_of(log)) == ("In 1914.", [])
    assert json.loads(FORMAT.write(read.records)) == {**value, "documents": FILE["documents"]}


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ({"type": "text", "value": "In 1914."}, "In 1914."),
        ("In 1914.", "In 1914."),
        ([said([{"type": "text", "text": "In"}, {"type": "text", "text": "1914."}])], "In\n1914."),
        ([said("Wait."), {"role": "assistant", "content": None, "tool_calls": []}], "Wait."),
    ],
)
def test_other_forms_of_an_output(output, answer):
    value = smaller(results=[{**FILE["results"][0], "output": output}])
    read, log = read_as(FORMAT, value)
    assert (read.records[0].answer, issues_of(log)) == (answer, [])
    assert json.loads(FORMAT.write(read.records))["results"] == value["results"]


def test_changed_answer_is_written_in_place_of_the_old_output():
    record = read_as(FORMAT, FILE)[0].records[3]
    changed = Record(record.record_id, record.question, "Twelve, it seems.", reported=record.reported)
    assert json.loads(FORMAT.write([changed]))["results"][0]["output"] == [said("Twelve, it seems.")]


def test_records_of_other_sources():
    records = [
        Record(
            "one",
            "Who?",
            "Ann.",
            (RecordPassage("p1", "Ann did it.", "News", 3.0), RecordPassage("p2", None)),
            ("Ann",),
            ("Bob.",),
            claims=(RecordClaim("Ann did it."),),
            reported={("faithfulness", ""): 0.5, ("grade", "ann"): "good", ("recall", "x"): 1.0,
                      ("ragchecker:record", ""): {"a": 1}},
        ),
        Record("two", "What?", None, (RecordPassage("p1", "Another text."),), reported={("faithfulness", "nli"): 1.0}),
        Record("three", "Why?", "So.", (RecordPassage("p1", "Ann did it.", "News"),), reported={("faithfulness", ""): 0}),
        Record("four", "How?", "Thus.", reported={("faithfulness", ""): 1}),
    ]  # fmt: skip
    written = json.loads(FORMAT.write(records))
    assert written["models"] == [{"model_id": "model", "name": "model", "owner": "unknown"}]
    assert written["metrics"] == [
        {"name": "faithfulness", "author": "algorithm", "type": "numerical", "aggregator": "average"},
        {"name": "grade", "author": "algorithm", "type": "text"},
    ]
    assert written["documents"] == [
        {"document_id": "p1", "text": "Ann did it.", "title": "News"},
        {"document_id": "p2", "text": ""},
        {"document_id": "two/p1", "text": "Another text."},
    ]
    assert [t.get("contexts") for t in written["tasks"]] == [
        [{"document_id": "p1"}, {"document_id": "p2"}],
        [{"document_id": "two/p1"}],
        [{"document_id": "p1"}],
        None,
    ]
    assert [t["task_type"] for t in written["tasks"]] == ["qa", "qa", "qa", "generation"]
    assert [r["output"] for r in written["results"]] == [
        [said("Ann.")],
        [said("")],
        [said("So.")],
        [said("Thus.")],
    ]
    assert written["results"][0]["scores"] == {
        "faithfulness": {"unknown": {"value": 0.5}},
        "grade": {"ann": {"value": "good"}},
        "recall": {"x": {"value": 1}},
    }
    again, log = read_as(FORMAT, written)
    assert issues_of(log) == []
    assert [(r.record_id, r.question, r.answer or None) for r in again.records] == [
        (r.record_id, r.question, r.answer) for r in records
    ]


def test_recognised_by_the_lists_at_its_top():
    assert FORMAT.recognise(content_of(FILE)) == 7
    assert FORMAT.recognise(content_of(V1)) == 5
    assert ragchecker.FORMAT.recognise(content_of(FILE)) == 0
    others = [
        {"results": [{"query": "q", "gt_answer": "a"}]},
        {"tasks": [], "models": []},
        [{"task_id": "1", "results": [], "tasks": []}],
        b"tasks,results\n1,2\n",
    ]
    assert [FORMAT.recognise(content_of(other)) for other in others] == [0] * len(others)


@pytest.mark.parametrize("value", [{"tasks": []}, {"tasks": {}, "results": []}, [FILE], b"a,b\n1,2\n"])
def test_other_files_are_refused(value):
    with pytest.raises(InputError, match='"tasks" and "results"'):
        read_as(FORMAT, value)


@given(damaged(FILE["results"]))
@settings(max_examples=60)
def test_whatever_was_read_of_a_result_comes_back_as_it_stood(results):
    value = {**FILE, "results": results}
    read, _ = read_as(FORMAT, value)
    written = json.loads(FORMAT.write(read.records))
    # Those of tasks are rejected with the tasks themselves, which are whole here.
    comes_back(read, written["results"], list(enumerate(content_of(value).value["results"], start=1)))
    assert all(task in FILE["tasks"] for task in written["tasks"])
