import io
import json

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import InputError
from core.sources.dataset import load_dataset, read_dataset
from core.sources.formats import import_file

TOWER = "The tower of Arles has 12 bells. The largest bell was cast in 1893 by a smith from Lyon."
BRIDGE = "A bridge of 1893 crosses the river. It has 12 arches and was painted green."
SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "Arles",
            "paragraphs": [
                {
                    "context": TOWER,
                    "qas": [
                        {
                            "id": "a1",
                            "question": "When was the largest bell cast?",
                            "answers": [
                                {"text": "1893", "answer_start": TOWER.index("1893")},
                                {"text": "in 1893", "answer_start": TOWER.index("in 1893")},
                            ],
                            "is_impossible": False,
                        },
                        {
                            "id": "a2",
                            "question": "Who stole the bell?",
                            "answers": [],
                            "plausible_answers": [{"text": "a smith", "answer_start": 5}],
                            "is_impossible": True,
                        },
                    ],
                },
                {
                    "context": BRIDGE,
                    "qas": [
                        {
                            "id": "b1",
                            "question": "How many arches are there?",
                            "answers": [{"text": "12", "answer_start": BRIDGE.index("12")}],
                        }
                    ],
                },
            ],
        }
    ],
}
HOPS = {
    "_id": "h1",
    "question": "Which river does the bridge of the tower's town cross?",
    "answer": "Rhône",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Tower", 0], ["Bridge", 1]],
    "context": [
        ["Tower", ["The tower stands in Arles.", " It is old."]],
        ["Coffee", ["Coffee grows in Brazil."]],
        ["Bridge", ["Arles has a bridge.", " It crosses the Rhône."]],
    ],
}


def read(value, name="data.json", **options):
    return read_dataset(value if isinstance(value, bytes) else json.dumps(value).encode(), name, **options)


def test_squad_asks_with_the_paragraphs_of_the_article():
    data = read(SQUAD)
    first, impossible, other = data.questions
    assert [q.query_id for q in data.questions] == ["a1", "a2", "b1"]
    assert [d.text for d in first.documents] == [TOWER, BRIDGE] and first.documents[0].title == "Arles"
    assert first.documents is other.documents  # indexed once
    assert first.reference_answers == ("1893", "in 1893") and other.reference_answers == ("12",)
    # Both numbers stand in both paragraphs; the words around the answer tell which one is meant.
    assert first.gold and all(text in TOWER and text not in BRIDGE for text in first.gold)
    assert other.gold[0] in BRIDGE and other.gold[0] not in TOWER
    assert (impossible.kind, impossible.reference_answers, impossible.gold) == ("unanswerable", (), ())
    assert first.kind is None
    assert data.report.notes == ("Read as SQuAD.", "Fields not used: plausible_answers.")


def test_squad_of_version_1_has_neither_field():
    old = json.loads(json.dumps(SQUAD))
    for paragraph in old["data"][0]["paragraphs"]:
        paragraph["qas"] = [
            {k: q[k] for k in ("id", "question", "answers")} for q in paragraph["qas"] if q["answers"]
        ]
    assert [q.kind for q in read(old).questions] == [None, None]


def test_squad_as_the_hub_writes_it_gives_the_same_questions(tmp_path):
    rows = [
        {
            "id": q["id"],
            "title": "Arles",
            "context": p["context"],
            "question": q["question"],
            "answers": {
                "text": [a["text"] for a in q["answers"]],
                "answer_start": [a["answer_start"] for a in q["answers"]],
            },
        }
        for p in SQUAD["data"][0]["paragraphs"]
        for q in p["qas"]
    ]
    whole = read(SQUAD)
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    datasets.disable_progress_bars()
    datasets.Dataset.from_list(rows).save_to_disk(tmp_path / "squad")
    lines = "\n".join(map(json.dumps, rows)).encode()
    for data in (
        read(sink.getvalue(), "x.parquet"),
        load_dataset(tmp_path / "squad"),
        read(lines, "x.jsonl"),
    ):
        assert data.questions == whole.questions and data.digest == whole.digest


def test_what_cannot_be_used_is_listed_and_the_rest_is_kept():
    broken = json.loads(json.dumps(SQUAD))
    article = broken["data"][0]
    article["paragraphs"][0]["qas"][0]["answers"] = [{"text": "nowhere in it", "answer_start": 3}]
    article["paragraphs"].append({"context": 5, "qas": [{"id": "x", "question": "q", "answers": []}]})
    article["paragraphs"].append({"context": "c", "qas": [5]})
    broken["data"].append("no article")
    data = read(broken)
    assert len(data.questions) == 3 and data.questions[0].gold == ()
    assert [(i.row, i.column, i.severity) for i in data.report.issues] == [
        (1, "answers", "warning"), (4, "context", "error"), (5, "qas", "error"), (6, "qas", "error"),
    ]  # fmt: skip
    assert data.report.n_rejected == 3


def test_hotpot_marks_the_supporting_paragraphs():
    data = read([HOPS])
    (q,) = data.questions
    assert [(p.title, p.is_gold) for p in q.passages] == [
        ("Tower", True),
        ("Coffee", False),
        ("Bridge", True),
    ]
    assert q.passages[2].text == "Arles has a bridge. It crosses the Rhône."
    assert (q.query_id, q.reference_answers, q.kind) == ("h1", ("Rhône",), "bridge")
    assert data.report.notes == ("Read as HotpotQA.", "Fields not used: level.")


def test_hotpot_as_the_hub_writes_it_gives_the_same_questions():
    row = {
        **{k: v for k, v in HOPS.items() if k not in ("_id", "context", "supporting_facts")},
        "id": "h1",
        "context": {"title": [t for t, _ in HOPS["context"]], "sentences": [s for _, s in HOPS["context"]]},
        "supporting_facts": {"title": ["Tower", "Bridge"], "sent_id": [0, 1]},
    }
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([row]), sink)
    assert read(sink.getvalue(), "x.parquet").questions == read([HOPS]).questions


def test_without_supporting_facts_nothing_is_known_to_be_gold():
    (q,) = read([{k: v for k, v in HOPS.items() if k not in ("supporting_facts", "answer")}]).questions
    assert {p.is_gold for p in q.passages} == {None} and q.reference_answers == ()


def test_sentences_without_spaces_between_them_get_one():
    (q,) = read([{**HOPS, "context": [["T", ["One.", "Two."]]]}]).questions
    assert q.passages[0].text == "One. Two."


@pytest.mark.parametrize("value", [SQUAD, [HOPS]], ids=["squad", "hotpot"])
def test_such_a_file_is_no_run_and_the_message_says_what_to_do(value):
    data = json.dumps(value).encode()
    for chosen in (
        {},
        {"file_format": "jsonl"},
        {"file_format": "ragas"},
        {"mapping": {"question": "question"}},
    ):
        with pytest.raises(InputError, match=r"python -m core analyze dev\.json --out RUN`") as caught:
            import_file(data, "dev.json", **chosen)
        assert "--corpus" not in str(caught.value)


def test_answers_beside_paragraphs_are_those_of_a_model_where_their_column_is_named():
    mapping = {"question": "question", "answer": "answer"}
    assert (
        import_file(json.dumps([HOPS]).encode(), "x", mapping=mapping).run.queries["answer"][0]
        == HOPS["answer"]
    )


RAGAS = [
    {"user_input": "Who cast the bell?", "reference": "A smith.", "reference_contexts": [TOWER], "synthesizer_name": "s"},
    {"user_input": "What colour is it?", "reference": "Green.", "reference_contexts": [BRIDGE]},
]  # fmt: skip


def test_a_ragas_test_set_is_asked_with_the_right_passages_of_all_questions():
    data = read("\n".join(map(json.dumps, RAGAS)).encode(), "testset.jsonl")
    first, second = data.questions
    assert [d.text for d in first.documents] == [TOWER, BRIDGE] and first.documents is second.documents
    assert (first.gold, first.reference_answers) == ((TOWER,), ("A smith.",))
    assert second.gold == (BRIDGE,)
    assert any("retrieved from the right passages of all questions: 2 texts" in n for n in data.report.notes)
    with pytest.raises(InputError, match=r"analyze testset\.jsonl --out RUN`, or on the page Live run"):
        import_file(json.dumps(RAGAS).encode(), "testset.jsonl")


@pytest.mark.parametrize("name", ["question", "query", "prompt", "user_input", "input"])
def test_a_list_of_questions_is_offered_with_a_corpus(name, tmp_path):
    lines = "\n".join(json.dumps({name: q, "id": q}) for q in ("Who?", "When?")).encode()
    with pytest.raises(InputError, match=r"analyze q\.jsonl --corpus DOCUMENTS --out RUN`"):
        import_file(lines, "q.jsonl")
    (tmp_path / "q.jsonl").write_bytes(lines)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text(TOWER)
    data = load_dataset(tmp_path / "q.jsonl", corpus=tmp_path / "docs")
    assert [q.question for q in data.questions] == ["Who?", "When?"]


def test_a_csv_of_one_column_is_offered_too_where_it_names_questions():
    with pytest.raises(InputError, match=r"analyze q\.csv --corpus DOCUMENTS --out RUN`"):
        import_file(b"Question\nWho?\nWhen?\n", "q.csv")
    with pytest.raises(InputError, match="one column only"):
        import_file(b"name\nWho?\n", "q.csv")


def test_a_file_that_can_be_imported_can_be_asked_with_its_passages():
    ragas = {"user_input": "q", "retrieved_contexts": ["c", "d"], "reference_contexts": ["d"], "reference": "r", "response": "a"}  # fmt: skip
    checker = {"results": [{"query_id": "7", "query": "q", "gt_answer": "g", "response": "r", "retrieved_context": [{"doc_id": "d", "text": "c"}]}]}  # fmt: skip
    (q,) = read([ragas]).questions
    assert [(p.text, p.is_gold) for p in q.passages] == [("c", False), ("d", True)]
    assert (q.reference_answers, q.n_gold) == (("r",), 1)
    (q,) = read(checker).questions
    assert (q.query_id, q.passages[0].passage_id, q.reference_answers) == ("7", "d", ("g",))


def test_the_same_question_with_the_same_passages_is_asked_once():
    data = read([{**RAGAS[0], "retrieved_contexts": ["c"], "response": a} for a in "xyz"])
    assert len(data.questions) == 1
    assert any("same question with the same passages: 2 records" in note for note in data.report.notes)


def test_our_own_files_are_read_as_ever():
    own = {"question": "q", "documents": ["c"], "answer": "a", "contexts": ["x"], "ground_truth": "y"}
    (q,) = read([own]).questions
    assert [d.text for d in q.documents] == ["c"]
