import gzip
import json

import pytest

from core.errors import InputError
from core.pipeline import RunOptions
from core.pipeline.begin import PassageFinder
from core.sources.dataset import Document, load_dataset, prompts, read_dataset

CORPUS = (Document("Bees", "Bees hum."), Document("Cats", "Cats purr."), Document("Dogs", "Dogs bark."))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "articles").mkdir()
    for document in CORPUS:
        text = f"# {document.title}\n{document.text}"
        (tmp_path / "articles" / f"{document.title}.md").write_text(text, encoding="utf-8")
    return tmp_path


def jsonl(*records):
    return "\n".join(map(json.dumps, records)).encode()


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_topics_and_prompts_with_a_corpus(folder):
    prompts = jsonl(
        {"topic": "animals", "prompt": "What do bees do?"}, {"topic": "pets", "prompt": "And cats?"}
    )
    dataset = load_dataset(write(folder, "longfact.jsonl", prompts), corpus=folder / "articles")
    bees, cats = dataset.questions
    assert (bees.question, bees.kind, bees.query_id) == ("What do bees do?", "animals", "q0001")
    assert bees.documents == CORPUS
    assert bees.documents is cats.documents  # so that it is indexed once
    assert dataset.report.notes == ("2 lines without passages or documents: the corpus given is searched.",)
    assert not dataset.report.issues
    assert PassageFinder(RunOptions(k=1)).find(cats).passages[0].text == "Cats purr."


def test_plain_text_one_prompt_a_line(folder):
    text = "\ufeffWhat do bees do?\r\n\r\n  Nói về mèo, xin mời!  \n大运河有多长？"
    for name, content in (("p.txt", text.encode()), ("p.txt.gz", gzip.compress(text.encode()))):
        dataset = load_dataset(write(folder, name, content), corpus=folder / "articles")
        assert [(q.query_id, q.question) for q in dataset.questions] == [
            ("q0001", "What do bees do?"),
            ("q0002", "Nói về mèo, xin mời!"),
            ("q0003", "大运河有多长？"),
        ]
        assert dataset.name == "p"


def test_lines_are_numbered_as_in_the_file():
    assert prompts("a\n\n b ") == [
        (1, {"question": "a"}),
        (3, {"question": " b "}),
    ]


@pytest.mark.parametrize(
    ("content", "questions"),
    [
        ("question,documents\nWho?,Ann did it.\n", ["Who?"]),
        ("question;kind\nWho?;x\n", ["Who?"]),
        ("A question, a prompt, or a query?\nWho?\n", ["A question, a prompt, or a query?", "Who?"]),
        ('{"prompt": "Who?"}', ["Who?"]),
    ],
)
def test_a_text_file_that_is_a_table_or_json_is_read_as_such(content, questions):
    dataset = read_dataset(content.encode(), "list.txt", documents=CORPUS)
    assert [q.question for q in dataset.questions] == questions


@pytest.mark.parametrize("name", ["p.csv", "p.txt", "pasted"])
def test_a_table_of_one_column(name):
    content = '"Prompt"\r\nWho, and when?\r\n\r\n"Say ""hi"",\nthen go"\r\n'
    dataset = read_dataset(content.encode(), name, documents=CORPUS)
    assert [(q.query_id, q.question) for q in dataset.questions] == [
        ("q0001", "Who, and when?"),
        ("q0002", 'Say "hi",\nthen go'),
    ]
    without = read_dataset(b"question\n" + b"x" * 30_000 + b"\nWho?\n", name, documents=CORPUS)
    assert [q.question for q in without.questions] == ["Who?"]
    assert without.report.rejected["row"].tolist() == [2]
    with pytest.raises(InputError, match=f"{name}, line 2 is not CSV .*; expected one prompt a line"):
        read_dataset(b"question\n" + b"x" * 200_000 + b"\nWho?\n", name, documents=CORPUS)


def test_evidence_of_a_line_goes_before_the_corpus(folder):
    lines = jsonl(
        {"prompt": "a"}, {"prompt": "b", "documents": ["own"]}, {"prompt": "c", "passages": ["given"]}
    )
    dataset = load_dataset(write(folder, "mixed.jsonl", lines), corpus=folder / "articles")
    a, b, c = dataset.questions
    assert (a.documents, b.documents, c.documents) == (CORPUS, (Document("", "own"),), ())
    assert c.passages[0].text == "given"
    assert dataset.report.notes == ("1 line without passages or documents: the corpus given is searched.",)


@pytest.mark.parametrize(("name", "content"), [("p.jsonl", jsonl({"prompt": "a"})), ("p.txt", b"a\n")])
def test_without_a_corpus_the_error_says_what_is_missing(folder, name, content):
    expected = (
        r"line 1, field documents: .*a list of questions alone needs a corpus for all of them \(--corpus\)"
    )
    with pytest.raises(InputError, match=expected):
        load_dataset(write(folder, name, content))


def test_a_corpus_that_cannot_be_read_is_named(folder):
    path = write(folder, "p.txt", "a\n")
    with pytest.raises(InputError, match="absent"):
        load_dataset(path, corpus=folder / "absent")
    (folder / "none").mkdir()
    with pytest.raises(InputError, match="holds no document"):
        load_dataset(path, corpus=folder / "none")


def test_a_list_that_no_line_can_be_used_of(folder):
    with pytest.raises(InputError, match="empty"):
        load_dataset(write(folder, "p.txt", ""), corpus=folder / "articles")
    with pytest.raises(InputError, match="holds no question"):
        load_dataset(write(folder, "p.txt", "prompt\n"), corpus=folder / "articles")
    with pytest.raises(InputError, match="has the columns Question, kind; expected question"):
        load_dataset(write(folder, "p.txt", "Question;kind\nWho?;x\n"), corpus=folder / "articles")
    with pytest.raises(InputError, match="at most 20,000 characters"):
        read_dataset(b"x" * 20_001, "p.txt", documents=CORPUS)


@pytest.mark.parametrize("order", [1, -1])
def test_a_fields_own_name_goes_before_its_other_names(order):
    record = {"question": "own", "prompt": "other", "kind": "k", "topic": "t"}
    record = dict(list(record.items())[::order])
    dataset = read_dataset(jsonl({**record, "documents": ["x"]}), "up")
    assert (dataset.questions[0].question, dataset.questions[0].kind) == ("own", "k")
    assert set(dataset.report.notes[0].removeprefix("Fields not used: ").strip(".").split(", ")) == {
        "prompt",
        "topic",
    }


def test_a_null_gives_way_to_the_other_name():
    assert (
        read_dataset(jsonl({"question": None, "prompt": "p", "documents": ["x"]}), "up").questions[0].question
        == "p"
    )


def test_the_digest_rests_on_the_corpus(folder):
    lines = write(folder, "p.txt", "a\nb\n")
    one = load_dataset(lines, corpus=folder / "articles")
    same = read_dataset(b"a\nb\n", "other.txt", documents=CORPUS)
    other = read_dataset(b"a\nb\n", "other.txt", documents=CORPUS[:1])
    assert one.digest == same.digest != other.digest
