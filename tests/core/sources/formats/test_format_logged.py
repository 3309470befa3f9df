"""Runs of LangSmith, traces of Langfuse, records of TruLens: with the tool's own models where they are there."""

import csv
import io
import json
import uuid
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langsmith.schemas import Run as LangSmithRun

from core.errors import InputError
from core.report.exports import exporters
from core.sources.content import read_content
from core.sources.dataset import read_dataset
from core.sources.formats import FORMATS, detect, import_file
from core.sources.formats.logged import TOOLS, at
from tests.core.sources.formats.roundtrip import lines

TEXTS = ["The canal was opened in 1893.", "The canal is 6.4 km long."]
QUESTION = "When was the canal opened?"
ANSWER = "It was opened in 1893."
DOCUMENTS = [{"page_content": text, "metadata": {"title": "Canal"}, "type": "Document"} for text in TEXTS]
START = "2025-03-01T12:00:00+00:00"
LATER = "2025-03-01T12:00:02+00:00"


def run(data, name="x.json"):
    return import_file(data if isinstance(data, bytes) else json.dumps(data).encode(), name)


def check(imported, file_format, **passages):
    """The one question of all these files, with its two passages and its answer."""
    run = imported.run
    assert run.manifest["dataset"]["format"] == file_format
    assert run.queries["question"].to_list() == [QUESTION]
    assert run.queries["answer"].to_list() == [ANSWER]
    assert run.passages["text"].to_list() == TEXTS
    for name, values in passages.items():
        assert run.passages[name].to_list() == values
    return run


def table(rows):
    """Return rows as a CSV whose cells hold JSON, as an interface downloads them, and as Parquet of the same."""
    cells = [
        {k: v if isinstance(v, (str, float, int)) else json.dumps(v) for k, v in row.items()} for row in rows
    ]
    names = list(dict.fromkeys(name for row in cells for name in row))
    out, sink = io.StringIO(), io.BytesIO()
    writer = csv.DictWriter(out, names)
    writer.writeheader()
    writer.writerows(cells)
    pq.write_table(pa.Table.from_pylist([{n: row.get(n) for n in names} for row in cells]), sink)
    return out.getvalue().encode(), sink.getvalue()


# --- LangSmith ------------------------------------------------------------------------------------------------------


def smith(name, kind, inputs, outputs, parent=None, trace=None, **more):
    return LangSmithRun(
        id=uuid.uuid4(),
        name=name,
        run_type=kind,
        inputs=inputs,
        outputs=outputs,
        start_time=datetime(2025, 3, 1, 12, tzinfo=UTC),
        end_time=datetime(2025, 3, 1, 12, tzinfo=UTC) + timedelta(seconds=2),
        parent_run_id=parent and parent.id,
        **({"trace_id": trace.id} if trace else {}),
        **more,
    )


def smith_trace(**more):
    root = smith("rag", "chain", {"question": QUESTION}, {"answer": ANSWER}, **more)
    retriever = smith("retrieve", "retriever", {"query": QUESTION}, {"documents": DOCUMENTS}, root, root)
    llm = smith(
        "chat", "llm", {"messages": [["?"]]}, {"generations": [[{"text": "something else"}]]}, root, root
    )
    return root, retriever, llm


def dumped(runs):
    return [json.loads(one.model_dump_json(exclude_none=True)) for one in runs]


def test_runs_that_the_sdk_lists_one_by_one_make_one_question():
    rows = dumped(smith_trace(feedback_stats={"correctness": {"n": 1, "avg": 1.0}, "notes": {"n": 1}}))
    for data in (json.dumps(rows).encode(), lines(rows), *table(rows)):
        found = check(run(data), "langsmith", title=["Canal", "Canal"])
        assert found.queries["latency"].to_list() == [2.0]
        assert found["reported"][["name", "value"]].to_numpy().tolist() == [["correctness", 1.0]]
    assert run(rows).report.notes[1] == "3 calls in 1 trace; a trace is a question."


def test_runs_inside_their_parent_make_one_question():
    root, *children = smith_trace()
    check(run(dumped([root.model_copy(update={"child_runs": children})])), "langsmith")


def below(tree):
    yield tree
    for child in tree.child_runs:
        yield from below(child)


def test_the_runs_of_a_real_chain():
    class Shelf(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [
                Document(page_content=text, id=f"d{i}", metadata={"title": "Canal"})
                for i, text in enumerate(TEXTS)
            ]

    chain = (
        RunnablePassthrough.assign(context=lambda given: Shelf().invoke(given["question"]))
        | ChatPromptTemplate.from_template("{context}\n{question}")
        | FakeListChatModel(responses=[ANSWER])
        | StrOutputParser()
    )
    collector = RunCollectorCallbackHandler()
    chain.invoke({"question": QUESTION}, {"callbacks": [collector]})
    (tree,) = collector.traced_runs
    runs = list(below(tree))
    assert {one.run_type for one in runs} >= {"chain", "retriever", "llm", "prompt"}
    data = lines(json.loads(one.model_dump_json()) for one in runs)
    check(run(data), "langsmith", passage_id=["d0", "d1"], title=["Canal"] * 2)


def test_a_traceable_retriever_returns_its_documents_as_output():
    root, _, _ = smith_trace()
    other = smith("retrieve", "retriever", {"question": QUESTION}, {"output": DOCUMENTS}, root, root)
    check(run(dumped([root, other])), "langsmith")


def test_a_table_of_root_runs_only_has_the_passages_that_the_root_returned():
    root = smith("rag", "chain", {"question": QUESTION}, {"answer": ANSWER, "context": TEXTS})
    check(run(table(dumped([root]))[0], "runs.csv"), "langsmith")
    bare = run(dumped([smith("rag", "chain", {"question": QUESTION}, {"answer": ANSWER})]))
    assert bare.run.queries["answer"].to_list() == [ANSWER] and len(bare.run.passages) == 0
    assert "Without retrieved documents: 1 trace." in bare.report.notes


def test_an_experiment_has_the_right_answers_beside_the_outputs():
    (row,) = dumped([smith("rag", "chain", {"question": QUESTION}, {"answer": ANSWER, "context": TEXTS})])
    found = check(run([{**row, "reference_outputs": {"answer": "1893"}}]), "langsmith")
    assert found.queries["reference_answers"].to_list() == [["1893"]]


def test_fields_that_nobody_reads_are_named():
    assert any(
        note.startswith("Fields not read: ") and "extra" in note
        for note in run(dumped(smith_trace())).report.notes
    )


def test_the_same_passages_can_be_asked_again():
    (question,) = read_dataset(json.dumps(dumped(smith_trace())).encode(), "runs.json").questions
    assert question.question == QUESTION and [p.text for p in question.passages] == TEXTS


# --- Langfuse -------------------------------------------------------------------------------------------------------


def fuse_trace(**more):
    """A trace as its API returns it."""
    return {
        "id": "t1",
        "timestamp": START,
        "name": "rag",
        "input": {"question": QUESTION},
        "output": ANSWER,
        "sessionId": None,
        "htmlPath": "/project/p/traces/t1",
        "latency": 2.5,
        "totalCost": 0.001,
        "tags": [],
        "observations": [
            {"id": "o1", "traceId": "t1", "type": "RETRIEVER", "name": "VectorStoreRetriever", "startTime": START, "endTime": LATER, "input": QUESTION, "output": DOCUMENTS, "parentObservationId": None},
            {"id": "o2", "traceId": "t1", "type": "GENERATION", "name": "chat", "startTime": LATER, "endTime": LATER, "input": [{"role": "user", "content": "prompt"}], "output": {"role": "assistant", "content": "something else"}, "model": "m", "usageDetails": {"input": 5}},
        ],
        "scores": [
            {"id": "s1", "name": "faithful", "value": 0.75, "source": "EVAL", "dataType": "NUMERIC"},
            {"id": "s2", "name": "tone", "stringValue": "kind", "value": None, "source": "ANNOTATION"},
        ],
        **more,
    }  # fmt: skip


def test_a_trace_with_its_observations():
    page = {
        "trace": {k: v for k, v in fuse_trace().items() if k != "observations"},
        "observations": fuse_trace()["observations"],
    }
    for value in (fuse_trace(), [fuse_trace()], {"data": [fuse_trace()], "meta": {"page": 1}}, page):
        found = check(run(value), "langfuse", title=["Canal", "Canal"])
        assert found.queries["latency"].to_list() == [2.5]
        reported = found["reported"].sort_values("name")[["name", "by", "value", "text"]]
        assert reported.astype("object").where(reported.notna(), None).to_numpy().tolist() == [
            ["faithful", "EVAL", 0.75, None],
            ["tone", "ANNOTATION", None, "kind"],
        ]


def test_observations_alone_as_rows_with_their_parents():
    root = {"id": "o0", "trace_id": "t1", "type": "SPAN", "name": "rag", "start_time": "2025-03-01 12:00:00.000000", "end_time": "2025-03-01 12:00:03.000000", "input": json.dumps({"question": QUESTION}), "output": ANSWER, "parent_observation_id": ""}  # fmt: skip
    below = {"id": "o1", "trace_id": "t1", "type": "SPAN", "name": "VectorStoreRetriever", "start_time": "2025-03-01 12:00:01.000000", "end_time": "2025-03-01 12:00:02.000000", "input": QUESTION, "output": json.dumps(DOCUMENTS), "parent_observation_id": "o0"}  # fmt: skip
    for data in (json.dumps([below, root]).encode(), lines([root, below]), *table([root, below])):
        assert check(run(data), "langfuse").queries["latency"].to_list() == [3.0]


def test_a_list_of_traces_without_observations_has_questions_and_answers():
    trace = {k: v for k, v in fuse_trace().items() if k != "scores"} | {
        "observations": ["o1", "o2"],
        "bookmarked": False,
    }
    imported = run([trace])
    assert imported.run.queries["answer"].to_list() == [ANSWER] and len(imported.run.passages) == 0


def test_chat_messages_are_no_documents():
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    trace = fuse_trace(
        observations=[{"id": "o", "type": "SPAN", "name": "chat", "input": "x", "output": turns}]
    )
    assert len(run([trace]).run.passages) == 0


# --- TruLens --------------------------------------------------------------------------------------------------------


def lens_call(name, args, rets, seconds=1):
    frame = {"path": "app", "method": {"name": name, "obj": {"cls": {"name": "RAG"}}}}
    return {
        "call_id": str(uuid.uuid4()),
        "stack": [{"path": "app", "method": {"name": "query"}}, frame],
        "args": args,
        "rets": rets,
        "error": None,
        "perf": {"start_time": START, "end_time": LATER},
        "pid": 1,
        "tid": 2,
    }


RECORD = {
    "record_id": "record_hash_1",
    "app_id": "app_hash_1",
    "cost": {"n_tokens": 10},
    "perf": {"start_time": START, "end_time": LATER},
    "ts": START,
    "tags": "-",
    "meta": None,
    "main_input": QUESTION,
    "main_output": ANSWER,
    "main_error": None,
    "calls": [
        lens_call("retrieve", {"query": QUESTION}, TEXTS),
        lens_call("generate", {"query": QUESTION, "context": TEXTS}, "something else"),
    ],
}
LENS_ROW = {
    "app_name": "RAG",
    "app_version": "base",
    "app_id": "app_hash_1",
    "app_json": {"app_id": "app_hash_1"},
    "type": "RAG(trulens)",
    "record_id": "record_hash_1",
    "input": json.dumps(QUESTION),
    "output": json.dumps(ANSWER),
    "tags": "-",
    "record_json": RECORD,
    "cost_json": {"n_tokens": 10},
    "perf_json": {"start_time": START},
    "ts": START,
    "latency": 2,
    "total_tokens": 10,
    "total_cost": 0.1,
    "Context Relevance": 0.5,
    "Context Relevance_calls": [
        {"args": {"question": QUESTION, "context": text}, "ret": 0.5} for text in TEXTS
    ],
    "Context Relevance feedback cost in USD": 0.002,
}


def test_a_record_with_its_calls():
    found = check(run([RECORD]), "trulens")
    assert found.queries["latency"].to_list() == [2.0] and found.queries["query_id"].to_list() == [
        "record_hash_1"
    ]


def test_records_with_feedback_as_a_table():
    for data in (json.dumps([LENS_ROW]).encode(), *table([LENS_ROW])):
        found = check(run(data), "trulens")
        assert found["reported"][["name", "value"]].to_numpy().tolist() == [["Context Relevance", 0.5]]


def test_the_passages_that_a_judge_was_asked_about_where_no_call_returned_any():
    bare = {**LENS_ROW, "record_json": {**RECORD, "calls": []}}
    check(run([bare]), "trulens")
    without = {k: v for k, v in bare.items() if k != "record_json"}
    check(run([without]), "trulens")


def lens_event(span_id, parent, kind, **attributes):
    """One row of the table of events, with the names of TruLens' own conventions."""
    own = {f"ai.observability.{name.replace('__', '.')}": value for name, value in attributes.items()}
    return {
        "event_id": span_id,
        "record": {"name": kind, "kind": "SPAN_KIND_TRULENS", "parent_span_id": parent, "status": ""},
        "record_attributes": {"ai.observability.span_type": kind, "ai.observability.record_id": "r1", **own},
        "record_type": "SPAN",
        "resource_attributes": {},
        "start_timestamp": "2025-03-01 12:00:00.000000",
        "timestamp": "2025-03-01 12:00:02.000000",
        "trace": {"trace_id": "t1", "span_id": span_id, "parent_id": parent},
    }


EVENTS = [
    lens_event("e9", "", "eval_root", eval_root__metric_name="Groundedness", eval_root__score=0.25),
    lens_event("e2", "e1", "retrieval", retrieval__query_text=QUESTION, retrieval__retrieved_contexts=TEXTS),
    lens_event("e3", "e1", "generation", call__return="something else"),
    lens_event("e1", "", "record_root", record_root__input=QUESTION, record_root__output=ANSWER, record_root__ground_truth_output="1893"),
]  # fmt: skip


def test_the_events_of_a_database():
    for data in (json.dumps(EVENTS).encode(), lines(EVENTS), *table(EVENTS)):
        found = check(run(data), "trulens-events")
        assert found.queries["reference_answers"].to_list() == [["1893"]]
        assert found.queries["latency"].to_list() == [2.0]
        assert found["reported"][["name", "value"]].to_numpy().tolist() == [["Groundedness", 0.25]]


# --- all of them ----------------------------------------------------------------------------------------------------

FILES = {
    "langsmith": dumped(smith_trace()),
    "langfuse": [fuse_trace()],
    "trulens": [LENS_ROW],
    "trulens-events": EVENTS,
}


@pytest.mark.parametrize("name", FILES)
def test_such_files_are_recognised_and_read_only(name):
    assert detect(read_content(json.dumps(FILES[name]).encode(), "x")) is FORMATS[name]
    assert FORMATS[name].write is None and name not in exporters()


def test_there_is_a_file_of_every_tool():
    assert [tool.name for tool in TOOLS] == list(FILES)


def test_calls_inside_each_other_without_end_are_cut_off():
    deep = {"id": "0", "run_type": "chain", "inputs": {"question": QUESTION}, "outputs": {"answer": ANSWER}}
    for place in range(1, 45):
        deep = {"id": str(place), "run_type": "chain", "inputs": {"question": QUESTION}, "outputs": {"answer": ANSWER}, "child_runs": [deep]}  # fmt: skip
    assert run([deep]).report.notes[1].startswith("21 calls in 1 trace")


def two_roots():
    """Two chains in one trace of LangSmith, each with its retriever."""
    rows = []
    for name, question, answer in (("a", "Who?", "Ann"), ("b", "Where?", "Rome")):
        found = {"documents": [{"page_content": f"{answer} it is."}]}
        for own, above, kind, outputs in (
            (name, None, "chain", {"answer": answer}),
            (f"{name}1", name, "retriever", found),
        ):
            rows.append({
                "id": own, "trace_id": "t", "parent_run_id": above, "run_type": kind, "start_time": START,
                "dotted_order": own, "inputs": {"question": question}, "outputs": outputs,
            })  # fmt: skip
    return rows


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)], ids=["in order", "children first"])
@pytest.mark.parametrize("written", [json.dumps, lambda rows: "\n".join(map(json.dumps, rows))])
def test_each_root_of_a_trace_is_a_question(order, written):
    rows = two_roots()
    found = import_file(written([rows[i] for i in order]).encode(), "x.json").run
    rows = found.queries[["query_id", "question", "answer"]].to_numpy().tolist()
    assert sorted(rows) == [["b", "Where?", "Rome"], ["t", "Who?", "Ann"]]
    assert sorted(found.passages[["query_id", "text"]].to_numpy().tolist()) == [
        ["b", "Rome it is."],
        ["t", "Ann it is."],
    ]


def test_a_root_without_a_question_costs_its_row():
    *rows, root, child = two_roots()
    found = run([*rows, root | {"inputs": None, "outputs": None}, child | {"parent_run_id": "gone"}])
    assert found.run.queries["question"].to_list() == ["Who?"]
    (issue,) = found.report.issues
    assert (issue.row, issue.expected) == (3, "a question in the root or a RETRIEVER")


def test_a_root_that_is_no_chain_belongs_to_the_first():
    rows = two_roots()
    rows[2] |= {"run_type": "llm"}
    assert run(rows).run.queries["question"].to_list() == ["Who?"]


def test_a_page_of_one_trace_is_row_1():
    page = {
        "trace": {k: v for k, v in fuse_trace(input=None).items() if k != "observations"},
        "observations": [],
    }
    with pytest.raises(InputError, match="row 1, field "):
        run(page)


def found_by(*observations):
    """Return the passages of a trace of calls (type, name, output)."""
    calls = [
        {"id": f"o{n}", "type": kind, "name": name, "input": "x", "output": output}
        for n, (kind, name, output) in enumerate(observations)
    ]
    return run([fuse_trace(observations=calls)]).run.passages["text"].to_list()


OTHER = [{"page_content": "Another."}]


@pytest.mark.parametrize(
    ("calls", "texts"),
    [
        ([("RETRIEVER", "a", DOCUMENTS), ("TOOL", "rank", OTHER)], TEXTS),
        ([("TOOL", "rank", OTHER), ("SPAN", "fetch", TEXTS)], TEXTS),
        ([("RETRIEVER", "a", []), ("TOOL", "rank", OTHER)], ["Another."]),
        ([("RETRIEVER", "a", "no list")], []),
        ([("RETRIEVER", "a", {"docs": {"output": {"nodes": TEXTS}}})], TEXTS),
        ([("RETRIEVER", "a", {"docs": {"output": {"nodes": {"docs": TEXTS}}}})], []),
        ([("RETRIEVER", "a", {"documents": [], "docs": TEXTS})], TEXTS),
        ([("RETRIEVER", "a", [*TEXTS, 5])], []),
        ([("TOOL", "rank", TEXTS)], []),
        ([("TOOL", "rank", [*OTHER, "a"])], []),
    ],
)
def test_which_call_retrieved(calls, texts):
    """Retrievers and what is named like one; else what returned documents, which mere texts are not."""
    assert found_by(*calls) == texts


@pytest.mark.parametrize(
    ("value", "paths", "found"),
    [
        ({"a": None, "b": 1}, ("a", "b"), 1),
        ({"a": "", "b": 0}, ("a", "b"), 0),
        ({"a": 1, "b": 2}, ("b", "a"), 2),
        ({"a.b": 1, "a": {"b": 2}}, ("a.b",), 1),
        ({"a": [{"b": 3}]}, ("a.0.b",), 3),
        ([1, 2], ("1",), 2),
        ([1, 2], ("2",), None),
        ([1, 2], ("-2",), 1),
        ([1, 2], ("-3",), None),
        ([1, 2], ("x",), None),
        ("text", ("a",), None),
    ],
)
def test_a_path_leads_into_objects_and_lists(value, paths, found):
    assert at(value, paths) == found


def test_twenty_unread_fields_are_named():
    more = {f"x{n:02}": 1 for n in range(25)}
    (note,) = [one for one in run([fuse_trace(**more)]).report.notes if one.startswith("Fields not read")]
    assert note.endswith("x14, x15.")


@pytest.mark.parametrize(("latency", "found"), [(0, None), (-1, None), ("x", None), (0.5, 0.5), (1, 1)])
def test_a_latency_is_more_than_nothing(latency, found):
    (seconds,) = run([fuse_trace(latency=latency)]).run.queries["latency"]
    assert seconds == found if found else seconds != seconds


def test_scores_are_numbers_and_texts_with_their_author():
    scores = [
        {"key": "a", "value": 0, "author": "Ann"},
        {"name": "b", "score": 0.5, "source": 7},
        {"name": "c", "value": [1]},
        {"name": "d", "value": None},
        {"name": 5, "value": 1},
        "odd",
        {"name": "e", "string_value": "good"},
    ]
    reported = run([fuse_trace(scores=scores)]).run["reported"]
    found = reported[["name", "by", "value", "text"]].astype("object")
    assert found.where(reported[["name", "by", "value", "text"]].notna(), None).to_numpy().tolist() == [
        ["a", "Ann", 0, None],
        ["b", "", 0.5, None],
        ["e", "", None, "good"],
    ]
