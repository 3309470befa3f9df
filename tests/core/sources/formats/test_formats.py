import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.influence import analyse
from core.run import Run
from core.sources.content import read_content
from core.sources.formats import FORMATS, IMPORT_FORMATS, detect, import_file
from core.sources.formats.records import records_of
from core.sources.formats.writing import marked, unmarked
from core.sources.mapping import suggest_mapping
from core.sources.templates import template_csv
from tests.core.sources.formats.roundtrip import damaged

ROOT = Path(__file__).parents[4]
RAGAS = {"user_input": "q", "retrieved_contexts": ["c"], "response": "r", "reference": "x"}
EXAMPLES = {
    "claims-csv": [{"question": "q", "claim": "a", "passage_id": "d", "text": "c", "support": 1}],
    "influence-csv": [{"question": "q", "text": "c", "influence_score": 1}],
    "samples-csv": [{"question": "q", "sample": "a", "seed": 1}],
    "verdicts-csv": [{"question": "q", "answer": "a", "validator": "v", "passed": True}],
    "passages-csv": [{"question": "q", "passage_id": "d", "text": "c"}],
    "ragas": [RAGAS],
    "ragchecker": {
        "results": [
            {
                "query_id": "0",
                "query": "q",
                "gt_answer": "g",
                "response": "r",
                "retrieved_context": [{"doc_id": "d", "text": "c"}],
            }
        ]
    },
    "inspectorraget": {
        "schema_version": 2,
        "name": "n",
        "models": [{"model_id": "m", "name": "M", "owner": "o"}],
        "metrics": [{"name": "f", "display_name": "F", "author": "algorithm", "type": "numerical"}],
        "documents": [{"document_id": "d", "text": "c"}],
        "filters": [],
        "tasks": [
            {
                "task_id": "t",
                "task_type": "rag",
                "input": [{"role": "user", "content": "q"}],
                "contexts": [{"document_id": "d"}],
                "targets": [{"type": "text", "value": "g"}],
            }
        ],
        "results": [
            {
                "task_id": "t",
                "model_id": "m",
                "output": [{"role": "assistant", "content": "r"}],
                "scores": {"f": {"algorithm": {"value": 0.5}}},
            }
        ],
    },
    "deepeval": [{"input": "q", "actual_output": "r", "retrieval_context": ["c"]}],
    "openinference": [
        {
            "name": "retrieve",
            "context": {"trace_id": "t", "span_id": "s"},
            "parent_id": None,
            "attributes": {
                "openinference.span.kind": "RETRIEVER",
                "input.value": "q",
                "retrieval.documents.0.document.content": "c",
                "retrieval.documents.0.document.score": 0.5,
            },
        }
    ],
    "rag-uncertainty": [
        {"question": "q", "answer": "r", "atomic_facts": ["r is so"], "cem_matrix": {"doc_0": {"r is so": 1}}}
    ],
    "jsonl": [{"question": "q", "passages": ["c"], "answer": "r"}],
    "mtrag": [
        {
            "task_id": "t",
            "conversation_id": "k",
            "input": [{"speaker": "user", "text": "q"}],
            "contexts": [{"document_id": "d", "text": "c", "score": 0.5}],
            "targets": [{"speaker": "agent", "text": "g"}],
            "predictions": [{"text": "r"}],
        }
    ],
    "langsmith": [
        {
            "id": "a",
            "trace_id": "a",
            "run_type": "chain",
            "start_time": "2025-03-01T12:00:00",
            "end_time": "2025-03-01T12:00:02",
            "inputs": {"question": "q"},
            "outputs": {"answer": "r"},
            "feedback_stats": {"f": {"n": 1, "avg": 0.5}},
            "child_runs": [
                {
                    "id": "b",
                    "parent_run_id": "a",
                    "run_type": "retriever",
                    "inputs": {"query": "q"},
                    "outputs": {"documents": [{"page_content": "c", "metadata": {"title": "t"}}]},
                }
            ],
        }
    ],
    "langfuse": [
        {
            "id": "t",
            "timestamp": "2025-03-01T12:00:00Z",
            "input": "q",
            "output": "r",
            "latency": 2,
            "scores": [{"name": "f", "value": 0.5, "source": "EVAL"}],
            "observations": [
                {
                    "id": "o",
                    "traceId": "t",
                    "parentObservationId": None,
                    "type": "RETRIEVER",
                    "input": "q",
                    "output": [{"page_content": "c", "metadata": {"title": "t"}}],
                }
            ],
        }
    ],
    "trulens": [
        {
            "record_id": "t",
            "app_id": "a",
            "input": "q",
            "output": "r",
            "record_json": {
                "record_id": "t",
                "main_input": "q",
                "main_output": "r",
                "calls": [
                    {"stack": [{"method": {"name": "retrieve"}}], "args": {"query": "q"}, "rets": ["c"]}
                ],
            },
            "Context Relevance": 0.5,
        }
    ],
    "trulens-events": [
        {
            "event_id": "a",
            "record_attributes": {
                "ai.observability.record_id": "t",
                "ai.observability.span_type": "record_root",
                "ai.observability.record_root.input": "q",
                "ai.observability.record_root.output": "r",
            },
            "trace": {"span_id": "a", "parent_id": ""},
        },
        {
            "event_id": "b",
            "record_attributes": {
                "ai.observability.record_id": "t",
                "ai.observability.span_type": "retrieval",
                "ai.observability.retrieval.retrieved_contexts": ["c"],
            },
            "trace": {"span_id": "b", "parent_id": "a"},
        },
    ],
}
WRITTEN = [name for name, file_format in FORMATS.items() if file_format.write is not None]


def lines(*records):
    return "\n".join(r if isinstance(r, str) else json.dumps(r) for r in records).encode()


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_knows_its_own_file_and_no_other_takes_it(name):
    content = read_content(json.dumps(EXAMPLES[name]).encode(), "x.json")
    assert detect(content) is FORMATS[name]
    imported = import_file(json.dumps(EXAMPLES[name]).encode(), "x.json")
    assert imported.run.manifest["dataset"]["format"] == name
    assert imported.run.queries["question"].to_list() == ["q"]
    texts = imported.run.passages["text"].dropna().to_list()
    assert texts == (
        [] if name in ("rag-uncertainty", "samples-csv", "verdicts-csv") else ["c"]
    )  # these do not keep them
    assert imported.report.notes[0] == f"Auto-detected from field names: {FORMATS[name].title} ({name})."
    assert imported.run.manifest["notes"] == list(imported.report.notes)


def test_names_of_formats():
    assert ("auto", *FORMATS) == IMPORT_FORMATS
    assert all(
        name == f.name and f.title and (f.write is None or (f.losses and f.suffix in (".json", ".jsonl")))
        for name, f in FORMATS.items()
    )
    assert set(EXAMPLES) == set(FORMATS)


def test_where_two_formats_fit_equally_the_first_wins():
    content = read_content(b'[{"question": "q", "answer": "a", "contexts": ["c"]}]', "x")
    scores = {name: f.recognise(content) for name, f in FORMATS.items()}
    assert scores["ragas"] > scores["jsonl"] > 0
    assert detect(content) is FORMATS["ragas"]


def test_nothing_recognised_says_what_is_known_and_what_was_seen():
    for data, seen in (
        (b'{"apples": [1], "pears": 2}', "apples, pears"),
        (b"a,b\n1,2\n", "a, b"),
    ):
        with pytest.raises(InputError) as caught:
            import_file(data, "file.x")
        message = str(caught.value)
        assert f": its {'columns' if data.startswith(b'a') else 'names'} are {seen};" in message
        assert all(name in message for name in IMPORT_FORMATS[1:]) and "question=" in message


def test_a_format_that_is_named_is_used():
    data = lines({"question": "q", "answer": "a", "contexts": ["c"]})
    imported = import_file(data, "x", "jsonl")
    assert imported.run.manifest["dataset"]["format"] == "jsonl" and len(imported.run.passages) == 0
    assert imported.report.notes[0] == "Read as chosen: Plain JSON Lines (jsonl)."
    with pytest.raises(InputError, match=r"must be one of auto, .*got 'excel'"):
        import_file(data, "x", "excel")


def test_an_influence_csv_goes_its_own_way():
    data = template_csv().encode()
    imported, plain = import_file(data, "t.csv"), import_file(data, "t.csv", "influence-csv")
    assert imported.run.run_id == plain.run.run_id
    assert imported.run.manifest["dataset"]["format"] == "influence-csv"
    assert imported.report.notes == ("Auto-detected from field names: Influence CSV (influence-csv).",)
    assert imported.run.manifest["notes"][0].startswith("Auto-detected from field names: Influence CSV")
    assert imported.run.passages.equals(plain.run.passages)
    assert import_file(gzip.compress(data), "t.csv.gz").run.queries.equals(plain.run.queries)
    with pytest.raises(InputError, match="no column for the question"):
        import_file(b"a,b\n1,2\n", "x.csv", "influence-csv")


def test_columns_of_an_influence_csv_that_are_named_go_before_the_suggested_ones():
    data = b"frage,query,influence_score,rank\nq1,other,0.5,1\nq1,other,0.1,2\n"
    assert suggest_mapping(["frage", "query", "influence_score", "rank"])["question"] == "query"
    imported = import_file(data, "x.csv", mapping={"question": "frage"})
    assert imported.run.queries["question"].to_list() == ["q1"]
    assert imported.run.manifest["dataset"]["mapping"]["question"] == "frage"
    named = import_file(
        b"f,i,r\nq1,0.5,1\nq1,0.1,2\n", "x.csv", mapping={"question": "f", "influence_score": "i"}
    )
    assert named.run.passages["influence_score"].to_list() == [0.5, 0.1]


def test_a_score_called_rouge_beside_no_passage_makes_no_influence_csv():
    data = b"question,answer,contexts,rouge_l\nq,a,\"['c']\",0.5\n"
    assert import_file(data, "x.csv").run.manifest["dataset"]["format"] == "ragas"
    data = b"question,doc_id,rouge_l\nq,1,0.5\nq,2,0.2\n"
    assert import_file(data, "x.csv").run.manifest["dataset"]["format"] == "influence-csv"


@pytest.mark.parametrize(
    ("record", "mapping", "name"),
    [
        ({"prompt": "q", "reply": "r", "hits": ["c"]}, {"question": "prompt", "answer": "reply", "passages": "hits"}, "jsonl"),
        ({"prompt": "q", "reply": "r", "contexts": ["c"]}, {"question": "prompt", "answer": "reply"}, "ragas"),
        ({"text": "q", "actual_output": "r", "found": ["c"]}, {"question": "text", "passages": "found"}, "deepeval"),
        ({"question": "wrong", "q": "q", "answer": "r", "passages": ["c"]}, {"question": "q"}, "jsonl"),
    ],
)  # fmt: skip
def test_columns_can_be_named(record, mapping, name):
    asked = "auto" if name != "deepeval" else name
    for data in (
        lines(record),
        json.dumps([record]).encode(),
        json.dumps({k: [v] for k, v in record.items()}).encode(),
    ):
        imported = import_file(data, "x", asked, mapping)
        assert imported.run.manifest["dataset"]["format"] == name
        assert imported.run.manifest["dataset"]["mapping"] == mapping
        row = imported.run.queries.iloc[0]
        assert (row["question"], row["answer"], imported.run.passages["text"].to_list()) == ("q", "r", ["c"])


def test_columns_of_a_csv_can_be_named():
    data = b"Frage;Antwort;Belege;Nr\nq;r;['c', 'd'];7\n"
    mapping = {"question": "Frage", "answer": "Antwort", "passages": "Belege", "id": "Nr"}
    for name in ("auto", "jsonl", "ragas"):
        run = import_file(data, "x.csv", name, mapping).run
        assert run.queries["query_id"].to_list() == ["7"] and run.passages["text"].to_list() == ["c", "d"]


@pytest.mark.parametrize(
    ("asked", "mapping", "message"),
    [
        ("jsonl", {"colour": "q"}, "no field 'colour' to map; fields are question, answer, passages, references, samples, id"),
        ("deepeval", {"samples": "q"}, "no field 'samples'"),
        ("jsonl", {"question": "gone"}, "no column 'gone' for the field question; its columns are q, answer"),
        ("ragchecker", {"question": "q"}, "Columns can be named in flat formats only"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_named(asked, mapping, message):
    with pytest.raises(InputError, match=message):
        import_file(lines({"q": "x", "answer": "y"}), "x", asked, mapping)


def test_rows_that_are_left_out_are_listed_with_their_place_and_text():
    data = lines(
        {**RAGAS, "id": "a"},
        "{broken",
        {**RAGAS, "user_input": 5},
        "",
        {"user_input": "q2", "response": 5},
        "[1]",
        {**RAGAS, "id": "a"},
    )
    imported = import_file(data, "x.jsonl")
    report = imported.report
    assert (report.n_rows, report.n_kept, report.n_rejected) == (6, 3, 3)
    assert report.rejected["row"].to_list() == [2, 3, 6]
    assert report.rejected["reason"].to_list()[1] == "user_input: expected a text that is not empty"
    assert (
        report.rejected["text"].to_list()[0] == "{broken" and '"user_input": 5' in report.rejected["text"][1]
    )
    assert [(i.row, i.column, i.severity) for i in report.issues] == [
        (2, None, "error"), (3, "user_input", "error"), (5, "response", "warning"), (6, None, "error"),
    ]  # fmt: skip
    assert (report.n_issues, report.n_errors) == (4, 3)
    assert imported.run.queries["query_id"].to_list() == ["a", "q0002", "a (2)"]
    assert "With an id that another record has, so numbered: 1 record." in report.notes
    dataset = imported.run.manifest["dataset"]
    assert (dataset["rows"], dataset["kept"], dataset["rejected"]) == (6, 3, 3)


def test_nothing_that_can_be_used_says_why():
    with pytest.raises(
        InputError, match=r"None of the 2 records of x can be used: row 1, field user_input: found '5'"
    ):
        import_file(lines({**RAGAS, "user_input": 5}, {**RAGAS, "user_input": 6}), "x")
    with pytest.raises(InputError, match=r"holds questions only, .* so it is a data set: run it with"):
        import_file(lines({"user_input": "q", "reference": "r"}), "x")
    with pytest.raises(InputError, match="holds no record"):
        import_file(b"[]", "x", "ragas")


def test_a_million_broken_lines_would_not_be_a_million_issues():
    imported = import_file(lines(RAGAS, RAGAS, *["x", json.dumps(RAGAS)] * 1_500), "x.jsonl")
    assert imported.report.n_errors == 1_500 and len(imported.report.issues) == 1_000
    assert len(imported.report.rejected) == 1_500


@pytest.mark.parametrize(
    ("record", "passages", "references", "kept"),
    [
        ({"context": "c", "response": "r", "target": "t"}, ["c"], ["t"], []),
        ({"context": ["c", "d"], "answer": "r", "ground_truth": "t"}, ["c", "d"], ["t"], []),
        ({"contexts": ["c"], "response": "r", "target": "t"}, ["c"], ["t"], []),
        ({"contexts": ["c"], "context": "d", "response": "r", "ground_truth": "t", "target": "u"}, ["c"], ["t"], ["context", "target"]),
        ({"passages": ["c"], "context": "d", "answers": ["t"], "target": "u", "answer": "r"}, ["c"], ["t"], ["context", "target"]),
        ({"context": {"title": ["c"]}, "answer": "r", "target": 1}, [], [], ["context", "target"]),
        ({"context": "c", "answer": "r", "target": ["t", "u"]}, ["c"], ["t", "u"], []),
    ],
)  # fmt: skip
def test_what_plain_files_call_passages_and_correct_answers(record, passages, references, kept):
    """Read, or listed as not used: nothing of a file goes without a word."""
    tables = [lines({"question": "q", **record}), json.dumps([{"question": "q", **record}]).encode()]
    for data in tables:
        imported = import_file(data, "x")
        [found] = records_of(imported.run)
        assert [p.text for p in found.passages] == passages and list(found.references) == references
        assert found.answer == "r" and {name for name, _ in found.reported} >= set(kept)
        said = [
            note for note in imported.report.notes if note.startswith("Not used in calculations, only kept: ")
        ]
        assert [set(note.rstrip(".").split(": ")[1].split(", ")) for note in said] == (
            [set(kept)] if kept else []
        )


def test_a_csv_with_a_single_context_and_a_target():
    data = b"question,context,response,target\nq,It opened in 1931.,r,1931\n"
    [record] = records_of(import_file(data, "x.csv").run)
    assert ([p.text for p in record.passages], record.references) == (["It opened in 1931."], ("1931",))
    data = b"question,context,answer,ground_truth\nq,\"['c', 'd']\",r,1931\n"
    [record] = records_of(import_file(data, "x.csv").run)
    assert ([p.text for p in record.passages], record.references) == (["c", "d"], ("1931",))


def test_an_error_names_the_fields_that_a_file_has():
    data = lines({"input": "q", "response": "r", "retrieved_contexts": ["c"]})
    with pytest.raises(
        InputError,
        match=r"user_input: found '', expected a text that is not empty; there are only input, response, retrieved_contexts\.",
    ):
        import_file(data, "x")
    imported = import_file(data + b"\n" + lines(RAGAS), "x")
    assert "there are only input" in imported.report.issues[0].expected
    wide = {f"a\n{n}": n for n in range(50)}
    with pytest.raises(InputError, match="there are only input, a 0, a 1, ") as caught:
        import_file(lines({"input": "q", **wide, "retrieved_contexts": ["c"]}), "x")
    assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


def test_a_long_list_of_unused_fields_is_cut():
    imported = import_file(lines({"question": "q", "answer": "r", **{f"f{n}": n for n in range(30)}}), "x")
    assert imported.report.notes[1].endswith("f18, f19 and 10 more.")


def test_what_a_file_enables_and_what_is_missing():
    bare = import_file(lines({"question": "q", "answer": "a"}), "x").report
    assert bare.enables == ("empty answers and refusals",)
    assert bare.missing[0] == (
        "influence vs retrieval: needs answers with each passage left out, and passages with text to get them"
    )
    assert [line.split(":")[0] for line in bare.missing] == [
        "influence vs retrieval", "retrieval metrics", "correct and incorrect answers", "confidence of the answers",
        "the file's own scores beside each question", "claims and evidence, with verdicts and uncertainty",
        "sampled answers, kept and exported",
    ]  # fmt: skip
    full = import_file(
        lines(
            {**RAGAS, "multi_responses": ["a", "b"], "reference_contexts": ["c"], "faithfulness": 0.5},
            {"user_input": "q", "retrieved_contexts": ["c"], "multi_responses": ["a"]},
        ),
        "x",
    ).report
    assert full.enables == (
        "empty answers and refusals (1 of 2 questions)",
        "retrieval metrics (1 of 2 questions)",
        "correct and incorrect answers (1 of 2 questions)",
        "the file's own scores beside each question (1 of 2 questions)",
        "sampled answers, kept and exported (1 of 2 questions)",
    )
    assert [line.split(":")[0] for line in full.missing] == [
        "influence vs retrieval",
        "confidence of the answers",
        "claims and evidence, with verdicts and uncertainty",
    ]
    assert "continue live with the same passages" in full.missing[0]


def test_claims_that_are_imported_enable_their_analysis():
    file = {
        "results": [
            {
                **EXAMPLES["ragchecker"]["results"][0],
                "response_claims": [["r", "is", "so"]],
                "retrieved2response": [["Entailment"]],
            }
        ]
    }
    assert (
        "claims and evidence, with verdicts and uncertainty"
        in import_file(json.dumps(file).encode(), "x").report.enables
    )


def test_equal_files_make_equal_runs_and_another_name_changes_nothing(tmp_path):
    data = lines(RAGAS)
    path = tmp_path / "records.jsonl"
    path.write_bytes(data)
    first, second = import_file(data, "a"), import_file(path)
    assert first.run.run_id == second.run.run_id and second.run.name == "records.jsonl"
    assert import_file(data, "a", mapping={"answer": "reference"}).run.run_id != first.run.run_id
    # Also where the mapping changes nothing that is read: a run says how it was made.
    named = import_file(data, "a", "ragas", {"answer": "response"})
    assert named.run.run_id != import_file(data, "a", "ragas").run.run_id
    other = import_file(data, "a", "ragas", {"answer": "response", "question": "user_input"})
    assert other.run.run_id != named.run.run_id
    assert import_file(lines({**RAGAS, "response": "s"}), "a").run.run_id != first.run.run_id


def test_an_imported_run_is_saved_and_analysed(tmp_path):
    contexts = {"retrieved_contexts": ["c", "d", "e"]}
    imported = import_file(lines({**RAGAS, **contexts}, {**RAGAS, **contexts, "response": ""}), "x")
    imported.run.save(tmp_path / "run")
    run = Run.load(tmp_path / "run")
    assert analyse(run).queries["reason"].to_list() == ["no_ablations", "empty_baseline"]
    assert run.manifest["source"] == "upload"


def test_the_mark_of_a_simulation():
    for value, suffix in (({"a": [1]}, ".json"), ([{"a": 1}, 2], ".json")):
        content = read_content(marked(json.dumps(value).encode(), suffix, "simulated"), "x")
        assert unmarked(content)[0].value == value and unmarked(content)[1]
    content = read_content(marked(b'{"a": 1}\n{"data_source": "other"}\n', ".jsonl", "simulated"), "x")
    assert [entry for _, entry in unmarked(content)[0].entries] == [{"a": 1}, {}]
    assert not unmarked(read_content(b'{"data_source": "web"}\n{}', "x"))[1]
    imported = import_file(lines(RAGAS, {**RAGAS, "data_source": "simulated"}), "x")
    assert imported.run.simulated and "simulated" in imported.report.notes[-1]
    assert len(imported.run["reported"]) == 0


@pytest.mark.parametrize("name", WRITTEN)
def test_a_partly_simulated_file_of_any_format_makes_a_simulated_run(name):
    file_format, example = FORMATS[name], EXAMPLES[name]
    data = json.dumps(example).encode()
    real = file_format.write(records_of(import_file(data, "x.json", name).run))
    both = marked(real, file_format.suffix, "simulated")
    if file_format.suffix == ".jsonl" or both.lstrip().startswith(b"["):
        entries = (
            [json.loads(part) for part in both.splitlines()]
            if file_format.suffix == ".jsonl"
            else json.loads(both)
        )
        plain = [{k: v for k, v in entry.items() if k != "data_source"} for entry in entries]
        both = json.dumps([*plain, entries[-1]]).encode()
    imported = import_file(both, "x.json", name)
    assert imported.run.simulated and not import_file(real, "x", name).run.simulated
    assert not any("data_source" in key for key in imported.run["reported"]["name"])


def test_the_document_names_every_format_and_every_loss():
    text = " ".join((ROOT / "docs/reference/formats.md").read_text(encoding="utf-8").split())
    for name, file_format in FORMATS.items():
        assert f"`{name}`" in text and file_format.title in text
        for loss in file_format.losses:
            assert " ".join(loss.split()) in text, loss


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=25)
@given(data=st.data())
def test_any_value_anywhere_gives_a_run_or_one_sentence(name, data):
    changed = data.draw(damaged(EXAMPLES[name], most=1))
    try:
        imported = import_file(json.dumps(changed).encode(), "x.json", name)
    except InputError as error:
        assert str(error) and "\n" not in str(error)
    else:
        if name not in WRITTEN:
            return
        back = FORMATS[name].write(records_of(imported.run))
        again = import_file(back, "back", name)
        assert again.run.queries["question"].to_list() == imported.run.queries["question"].to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[{"question": "a", "question": "b"}]',
            "No record of f.json can be read: record 1 is not JSON that can be used "
            "(the name 'question' comes twice in one object).",
        ),
        ('[5, "a"]', 'f.json has no fields with names; expected records, such as {"question": …}.'),
    ],
    ids=["a name twice", "no names"],
)
def test_a_file_without_names_is_told_why(text, expected):
    with pytest.raises(InputError) as raised:
        import_file(text.encode(), "f.json")
    assert str(raised.value) == expected
