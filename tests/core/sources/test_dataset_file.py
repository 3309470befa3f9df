import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.sources import dataset as dataset_file
from core.sources.dataset import (
    Document,
    dataset_jsonl,
    load_dataset,
    make_dataset,
    note_oddities,
    read_dataset,
    single_question,
)
from core.sources.question import Question
from core.sources.report import IssueLog
from tests.test_sample_data import SAMPLES

RECORDS = [
    {"id": "a", "question": "Wer?", "documents": [{"title": "T", "text": "Ünïcode \u2028 大\n text"}, "two"],
     "answers": ["x", "y"], "gold": ["two"], "kind": "k", "language": "de"},
    {"question": "b", "passages": [{"id": "p", "title": "t", "text": "x", "score": -1.5, "is_gold": False}, "y"]},
]  # fmt: skip


def read(content):
    return read_dataset(content, "t.jsonl")


def test_reading_what_was_written_gives_the_same_data_set():
    dataset = read("\n".join(map(json.dumps, RECORDS)).encode())
    again = read(dataset_jsonl(dataset))
    assert (again.questions, again.digest) == (dataset.questions, dataset.digest)
    assert not again.report.issues
    assert dataset_jsonl(again) == dataset_jsonl(dataset)


def test_the_number_of_gold_passages_comes_back():
    data = read(json.dumps({**RECORDS[1], "n_gold": 3}).encode())
    assert data.questions[0].n_gold == 3
    assert read(dataset_jsonl(data)).digest == data.digest
    with pytest.raises(InputError, match="n_gold"):
        read(json.dumps({**RECORDS[1], "n_gold": 0.5}).encode())


def test_only_what_is_known_is_written():
    lines = dataset_jsonl(read("\n".join(map(json.dumps, RECORDS)).encode())).decode().split("\n")
    assert lines[2] == ""
    assert json.loads(lines[1]) == {
        "id": "q0002",
        "question": "b",
        "passages": [
            {"id": "p", "title": "t", "text": "x", "score": -1.5, "is_gold": False},
            {"text": "y"},
        ],
    }


def test_the_sample_questions_with_their_shared_corpus():
    dataset = load_dataset(SAMPLES / "questions.jsonl")
    again = read(dataset_jsonl(dataset.head(3)))
    assert again.digest == dataset.head(3).digest
    assert again.questions[0].documents is again.questions[1].documents


@given(st.text(max_size=40).filter(str.strip), st.text(max_size=40).filter(str.strip))
def test_any_text_comes_back(question, text):
    try:
        dataset = single_question(question, [text])
    except InputError:  # a lone surrogate is no text
        return
    assert read(dataset_jsonl(dataset)).questions == dataset.questions


def test_what_could_not_be_read_again_is_refused(monkeypatch):
    dataset = read("\n".join(map(json.dumps, RECORDS)).encode())
    many = dataclasses.replace(dataset.questions[0], documents=(Document("", "x"),) * 10_001)
    with pytest.raises(InputError, match="corpus beside it"):
        dataset_jsonl(make_dataset("large", [many]))
    monkeypatch.setattr(dataset_file, "MAX_BYTES", 100)
    with pytest.raises(InputError, match=r"The data set t\.jsonl is too large"):
        dataset_jsonl(dataset)


def test_a_file_may_be_as_large_as_the_limit_that_reading_it_has(monkeypatch):
    dataset = read("\n".join(map(json.dumps, RECORDS)).encode())
    size = len(dataset_jsonl(dataset))
    monkeypatch.setattr(dataset_file, "MAX_BYTES", size)
    assert len(dataset_jsonl(dataset)) == size
    monkeypatch.setattr(dataset_file, "MAX_BYTES", size - 1)
    with pytest.raises(InputError, match="too large for one file"):
        dataset_jsonl(dataset)


@pytest.mark.parametrize(("size", "n"), [(20_000_000, 1), (20_000_001, 0)])
def test_gold_is_looked_for_in_twenty_million_letters_at_most(size, n):
    log = IssueLog()
    document = Document("T", "x" * size)
    note_oddities(log, 1, Question("a", "Who?", (document,), None, (), ("y z",), None, None))
    assert log.n_issues == n
