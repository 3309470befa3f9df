import gzip
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.sources import dataset as dataset_module
from core.sources.dataset import Dataset, Document, PassageIn, load_dataset, read_dataset, single_question
from core.sources.question import FIELDS

GOOD = {"question": "Who?", "documents": ["Ann did it."]}


def jsonl(*records):
    return "\n".join(r if isinstance(r, str) else json.dumps(r) for r in records).encode()


def issues(dataset):
    return [(i.row, i.column, i.severity) for i in dataset.report.issues]


def test_all_fields_of_a_line():
    data = jsonl(
        {
            "id": 7,
            "question": " When? ",
            "passages": [
                {"id": "a", "title": "T", "text": "In May.", "score": 2, "is_gold": True},
                "In June.",
            ],
            "answers": ["May", "in May"],
            "gold": "In May.",
            "kind": "single",
            "language": "en",
        }
    )
    question = read_dataset(data, "up").questions[0]
    assert (question.query_id, question.question, question.documents) == ("7", "When?", ())
    assert question.passages == (
        PassageIn("a", "T", "In May.", 2.0, True),
        PassageIn("p2", "", "In June.", None, None),
    )
    assert question.reference_answers == ("May", "in May")
    assert (question.gold, question.kind, question.language) == (("In May.",), "single", "en")


def test_gold_fragments_mark_passages_that_do_not_say_themselves():
    data = jsonl({"question": "q", "passages": ["x y", "in  May of"], "gold": ["in May"]})
    assert [p.is_gold for p in read_dataset(data, "up").questions[0].passages] == [False, True]


def test_bad_lines_are_reported_and_good_ones_kept():
    dataset = read_dataset(
        jsonl(GOOD, "{broken", {"question": 5, "documents": ["x"]}, "", GOOD, [1]), "up.jsonl"
    )
    assert [q.query_id for q in dataset.questions] == ["q0001", "q0004"]
    assert issues(dataset) == [(2, "line", "error"), (3, "question", "error"), (6, "line", "error")]
    assert (dataset.report.n_rows, dataset.report.n_kept) == (5, 2)
    assert dataset.report.rejected["row"].tolist() == [2, 3, 6]
    assert dataset.report.rejected["text"][0] == "{broken"


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"documents": ["x"]}, "question"),
        ({"question": "  ", "documents": ["x"]}, "question"),
        ({"question": "q"}, "documents"),
        ({"question": "q", "documents": []}, "documents"),
        ({"question": "q", "documents": "x"}, "documents"),
        ({"question": "q", "documents": [{"title": "t"}]}, "documents[0].text"),
        ({"question": "q", "documents": [" "]}, "documents[0].text"),
        ({"question": "q", "documents": ["x"], "passages": ["y"]}, "documents and passages"),
        ({"question": "q", "passages": [{"text": "x", "score": "high"}]}, "passages[0].score"),
        ({"question": "q", "passages": [{"text": "x", "score": True}]}, "passages[0].score"),
        ({"question": "q", "passages": [{"text": "x", "is_gold": 1}]}, "passages[0].is_gold"),
        ({"question": "q", "passages": [{"text": "x", "id": 1}, {"text": "y", "id": "1"}]}, "passages"),
        ({"question": "q", "passages": [{"text": "x", "id": {}}]}, "passages[0].id"),
        ({"question": "q", "passages": ["x"] * 201}, "passages"),
        ({"question": "q", "documents": ["x"], "answers": [1]}, "answers"),
        ({"question": "q", "documents": ["x"], "answers": {}}, "answers"),
        ({"question": "q", "documents": ["x"], "gold": [""]}, "gold"),
        ({"question": "q", "documents": ["x"], "id": True}, "id"),
        ({"question": "q", "documents": ["x"], "id": 1.5}, "id"),
        ({"question": "q", "documents": ["x"], "id": "i" * 1_001}, "id"),
        ({"question": "q", "documents": ["x"], "kind": []}, "kind"),
        ({"question": "\ud800", "documents": ["x"]}, "line"),
        ({"question": "q", "documents": ["\udfff"]}, "line"),
        ({"question": "q" * 20_001, "documents": ["x"]}, "question"),
        ({"question": "q", "documents": ["x"], "id": "first"}, "id"),
    ],
)
def test_each_wrong_field_is_named(record, field):
    dataset = read_dataset(jsonl({**GOOD, "id": "first"}, record), "up")
    assert issues(dataset) == [(2, field, "error")]
    assert dataset.report.to_frame()["expected"][0]


@pytest.mark.parametrize("score", ["NaN", "Infinity", "1" + "0" * 400])
def test_scores_must_be_finite(score):
    line = '{"question": "q", "passages": [{"text": "x", "score": ' + score + "}]}"
    dataset = read_dataset(jsonl(GOOD, line), "up")
    assert issues(dataset) == [(2, "line", "error")]
    assert (
        "is not JSON" in dataset.report.issues[0].expected or "too large" in dataset.report.issues[0].expected
    )


def test_warnings_do_not_cost_the_line():
    dataset = read_dataset(jsonl({"question": "q", "passages": ["x", "x"], "gold": ["nowhere"]}), "up")
    assert issues(dataset) == [(1, "passages", "warning"), (1, "gold", "warning")]
    assert dataset.report.n_kept == 1


def test_unused_fields_and_what_the_file_allows_are_said():
    report = read_dataset(jsonl({**GOOD, "gold_index": 0}, {**GOOD, "answers": ["Ann"]}), "up").report
    assert report.notes == ("Fields not used: gold_index.",)
    assert "correct and incorrect answers, harmful passages (1 of 2 questions)" in report.enables
    assert any(text.startswith("missed evidence: needs gold") for text in report.missing)


def test_a_list_of_objects_reads_like_lines():
    assert len(read_dataset(json.dumps([GOOD, GOOD], indent=1).encode(), "up").questions) == 2
    with pytest.raises(InputError, match="not valid JSON"):
        read_dataset(b"[{]", "up")


def test_csv_with_the_same_names():
    data = b'question,documents,answers,kind,more\nWho?,"Ann did.\n---\nBob did.","[""Ann"", ""A.""]",single,1\nWhat?,,x,,\nW?,"[1",y,,\nV?,"[bad]",,,\nU?\n'
    dataset = read_dataset(data, "up.csv")
    assert [q.question for q in dataset.questions] == ["Who?", "W?"]
    first = dataset.questions[0]
    assert first.documents == (Document("", "Ann did."), Document("", "Bob did."))
    assert (first.reference_answers, first.kind, first.language) == (("Ann", "A."), "single", None)
    assert issues(dataset) == [(3, "documents", "error"), (5, "documents", "error"), (6, "row", "error")]
    assert dataset.report.rejected["row"].tolist() == [3, 5, 6]


def test_csv_passages_as_json():
    cell = json.dumps([{"text": "x", "score": 1.5}]).replace('"', '""')
    data = f'question,passages\nq,"{cell}"\n'.encode("utf-16")
    assert read_dataset(data, "up").questions[0].passages == (PassageIn("p1", "", "x", 1.5, None),)


def test_csv_of_something_else():
    with pytest.raises(InputError, match=r"name, price; .*question"):
        read_dataset(b"name,price\na,1\n", "up.csv")


def test_no_usable_line_is_one_sentence():
    with pytest.raises(InputError, match="None of the 2 lines of up can be used: line 1, field question"):
        read_dataset(jsonl({"a": 1}, {"a": 1}), "up")
    with pytest.raises(InputError, match="empty"):
        read_dataset(b"", "up")
    with pytest.raises(InputError, match="holds no question"):
        read_dataset(b"[]", "up")


def test_uploads_cannot_name_files():
    with pytest.raises(InputError, match="an upload cannot name files"):
        read_dataset(jsonl({"question": "q", "corpus": "articles"}), "up")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "articles").mkdir()
    (tmp_path / "articles" / "a.md").write_text("# Bees\nBees hum.", encoding="utf-8")
    (tmp_path / "more.jsonl").write_text('{"title": "T", "text": "text"}\n', encoding="utf-8")
    return tmp_path


def write(folder, *records):
    path = folder / "questions.jsonl.gz"
    path.write_bytes(gzip.compress(jsonl(*records)))
    return path


def test_a_shared_corpus_is_one_object(folder):
    path = write(
        folder,
        {"question": "a", "corpus": "articles", "gold": ["Bees hum."]},
        {"question": "b", "corpus": "articles"},
        {"question": "c", "corpus": "more.jsonl"},
    )
    dataset = load_dataset(path)
    a, b, c = dataset.questions
    assert a.documents == (Document("Bees", "Bees hum."),)
    assert a.documents is b.documents
    assert c.documents == (Document("T", "text"),)
    assert (dataset.name, dataset.report.issues) == ("questions", ())


def test_equal_documents_in_lines_are_shared_too():
    a, b = read_dataset(jsonl(GOOD, GOOD), "up").questions
    assert a.documents is b.documents


@pytest.mark.parametrize("corpus", ["absent", "..", "../x", "/etc", "a\0b", "empty", "questions.jsonl.gz"])
def test_a_corpus_that_cannot_be_read(folder, corpus):
    (folder / "empty").mkdir()
    path = write(folder, {"question": "a", "corpus": corpus}, GOOD)
    assert issues(load_dataset(path)) == [(1, "corpus", "error")]


def test_a_link_does_not_lead_out_of_the_folder(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.txt").write_text("secret", encoding="utf-8")
    os.symlink(outside, folder / "linked")
    dataset = load_dataset(write(folder, {"question": "a", "corpus": "linked"}, GOOD))
    assert issues(dataset) == [(1, "corpus", "error")]


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="no file"):
        load_dataset(tmp_path / "absent.jsonl")


def test_digest_follows_the_content():
    one, two = jsonl(GOOD), jsonl({**GOOD, "documents": ["Bob did it."]})
    assert read_dataset(one, "a").digest == read_dataset(b"\n" + one, "b").digest
    assert read_dataset(one, "a").digest != read_dataset(two, "a").digest


def test_head():
    dataset = read_dataset(jsonl(GOOD, GOOD, GOOD), "up")
    assert [q.query_id for q in dataset.head(2).questions] == ["q0001", "q0002"]
    assert dataset.head(1).digest == read_dataset(jsonl(GOOD), "up").digest
    assert dataset.head(5) is dataset
    with pytest.raises(InputError, match="at least 1"):
        dataset.head(0)


def test_single_question():
    dataset = single_question("Who?", "# Report\nAnn did.\n---\nBob did.", reference_answers=["Ann"])
    question = dataset.questions[0]
    assert question.documents == (Document("Report", "Ann did."), Document("", "Bob did."))
    assert question.reference_answers == ("Ann",)
    for bad in ((" ", "x"), ("q", " "), ("q", "---"), ("q", ["x", ""])):
        with pytest.raises(InputError, match="expected"):
            single_question(*bad)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "title", "text", "score", "is_gold"]), inner, max_size=4)
    ),
    max_leaves=6,
)
names = st.sampled_from([*FIELDS, "query", "x"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.dictionaries(names, anything, max_size=6) | anything, min_size=1, max_size=4))
def test_any_json_gives_a_dataset_or_one_sentence(records):
    try:
        dataset = read_dataset(jsonl(*[json.dumps(r) for r in records]), "up")
    except InputError as error:
        assert str(error)
    else:
        assert isinstance(dataset, Dataset)
        assert 1 <= len(dataset.questions) == dataset.report.n_kept
        assert len(dataset.report.to_frame()) == len(dataset.report.issues)
        assert len({q.query_id for q in dataset.questions}) == len(dataset.questions)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=100), st.sampled_from([b"", b"{", b'{"question":', b"question,documents\n"]))
def test_any_bytes_give_a_dataset_or_one_sentence(data, start):
    try:
        dataset = read_dataset(start + data, "up")
    except InputError as error:
        assert str(error)
    else:
        assert dataset.questions


def test_deep_nesting_is_one_bad_line():
    deep = '{"question": ' + "[" * 200_000 + "]" * 200_000 + "}"
    assert issues(read_dataset(jsonl(GOOD, deep), "up")) == [(2, "line", "error")]


def test_an_influence_csv_is_asked_again_with_its_passages():
    table = b"query,doc_id,passage,retrieval_rank,influence_score\nq,a,t,1,0.5\nq,b,u,x,0.5\nq,c\n"
    dataset = read_dataset(table, "f.csv")
    assert [[p.text for p in q.passages] for q in dataset.questions] == [["t"]]
    assert dataset.report.rejected["row"].to_list() == [3, 4]


@pytest.mark.parametrize(("texts", "noted"), [(range(200), []), ([1, 2, 1, 3, 3], ["1"])])
def test_passages_that_are_the_same_are_noted_once_a_question(texts, noted):
    line = {"question": "Who?", "passages": [str(text) for text in texts]}
    found = read_dataset(jsonl(line), "up").report.issues
    assert [one.value for one in found] == noted


@pytest.mark.parametrize(("most", "noted"), [(9, []), (10, ["gold"])])
def test_gold_is_searched_in_texts_up_to_a_length(most, noted, monkeypatch):
    monkeypatch.setattr(dataset_module, "_MAX_GOLD_SEARCH", most)
    line = {"question": "Who?", "passages": ["abcde", "fghij"], "gold": ["x"]}
    assert [one.column for one in read_dataset(jsonl(line), "up").report.issues] == noted
