import json
from dataclasses import replace
from importlib import import_module

import pytest

from core.pipeline import RunOptions
from core.pipeline.begin import PassageFinder
from core.retrieval import RETRIEVERS
from core.sources.dataset import read_dataset
from tests.core.retrieval.hashing import HashingEmbedder

WORDS = " ".join(f"w{i}" for i in range(25))


def question(**fields):
    record = {"id": "a", "question": "Where is the blue heron?", **fields}
    return read_dataset(json.dumps(record).encode(), "t.jsonl").questions[0]


def test_documents_are_cut_and_the_best_passages_come_first():
    documents = [
        {"title": "Noise", "text": WORDS},
        {"title": "Birds", "text": "The blue heron stands in the reeds. " + WORDS},
    ]
    found = PassageFinder(RunOptions(k=3, passage_words=10)).find(question(documents=documents)).passages
    assert len(found) == 3
    assert (found[0].passage_id, found[0].title) == ("2.1", "Birds")
    assert found[0].text == "The blue heron stands in the reeds. w0 w1 w2"
    assert found[0].score > found[1].score >= found[2].score
    assert found[0].is_gold is None


def test_gold_is_counted_over_the_whole_collection():
    text = f"{WORDS} The heron nests here. {WORDS} The heron nests here."
    found = PassageFinder(RunOptions(k=1, passage_words=10)).find(
        question(documents=[text], gold=["The heron nests here."])
    )
    assert found.n_gold == 2
    assert [p.is_gold for p in found.passages] == [True]


def test_given_passages_keep_their_order_scores_and_marks():
    given = [{"id": f"x{i}", "text": f"t{i}", "score": 1.0 * i, "is_gold": i == 3} for i in range(1, 5)]
    found = PassageFinder(RunOptions(k=2)).find(question(passages=given))
    assert [(p.passage_id, p.score, p.is_gold) for p in found.passages] == [
        ("x1", 1.0, False),
        ("x2", 2.0, False),
    ]
    assert found.n_gold == 1  # the third passage, which does not fit into k = 2


def test_gold_that_no_passage_holds_has_an_id_of_its_own():
    """Two rows of gold with one id ended the whole run."""
    given = [{"id": "gold 1", "text": "The heron nests here."}, {"id": "gold 2", "text": "A crane."}]
    found = PassageFinder(RunOptions()).find(question(passages=given, gold=["heron nests", "It is blue."]))
    known = [(one.passage_id, one.text, fragments) for one, fragments in found.gold]
    assert known[0] == ("gold 1", "The heron nests here.", ("heron nests",))
    (name, text, fragments), *more = known[1:]
    assert (text, fragments, more) == ("It is blue.", ("It is blue.",), [])
    assert name not in ("gold 1", "gold 2")


def test_a_passage_is_found_by_the_title_of_its_document():
    documents = [{"title": title, "text": "It is grey."} for title in ("Crane", "Heron", "Stork", "Ibis")]
    found = PassageFinder(RunOptions(k=1)).find(question(documents=documents)).passages
    assert [(one.passage_id, one.title) for one in found] == [("2.1", "Heron")]


def test_known_gold_of_documents_has_its_fragments_whether_it_was_found_or_not():
    documents = ["The blue heron. It nests.", "Nothing.", "It nests."]
    gold = ["blue heron", "It nests"]
    found = PassageFinder(RunOptions(k=1)).find(question(documents=documents, gold=gold))
    assert [(one.passage_id, one.is_gold) for one in found.passages] == [("1.1", True)]
    assert [(one.passage_id, one.text, one.score, one.is_gold, held) for one, held in found.gold] == [
        ("1.1", "The blue heron. It nests.", None, True, ("blue heron", "It nests")),
        ("3.1", "It nests.", None, True, ("It nests",)),
    ]
    assert found.n_gold == 2
    unmarked = PassageFinder(RunOptions()).find(question(documents=documents))
    assert (unmarked.n_gold, unmarked.gold) == (None, ())


@pytest.mark.parametrize(
    ("fields", "n_gold"),
    [
        ({}, None),
        ({"gold": ["nowhere"]}, 1),  # it must be somewhere
        ({"gold": ["one", "two"]}, 2),
        ({"n_gold": 3}, 3),
        ({"gold": ["one"], "n_gold": 3}, 3),
        ({"gold": ["one", "two"], "n_gold": 1}, 2),
        ({"n_gold": 0}, 0),
    ],
)
def test_gold_of_given_passages_is_as_much_as_is_known(fields, n_gold):
    given = question(passages=["one", "two", "three"], **fields)
    assert PassageFinder(RunOptions()).find(given).n_gold == n_gold


def test_gold_that_no_passage_holds_is_numbered():
    given = question(passages=["The heron nests."], gold=["heron nests", "It is blue.", "It is old."])
    found = PassageFinder(RunOptions()).find(given)
    assert [(one.passage_id, one.title, one.text, one.score, one.is_gold) for one, _ in found.gold] == [
        ("p1", "", "The heron nests.", None, True),
        ("gold 1", "", "It is blue.", None, True),
        ("gold 2", "", "It is old.", None, True),
    ]


def test_the_two_collections_used_last_are_kept(monkeypatch):
    built = []

    def make(name, texts, **more):
        built.append(texts[0].strip())
        return real(name, texts, **more)

    retrieve = import_module("core.pipeline.begin")
    real = retrieve.make_retriever
    monkeypatch.setattr(retrieve, "make_retriever", make)
    finder = PassageFinder(RunOptions())
    asked = {name: question(documents=[name]) for name in ("heron", "crane", "stork")}
    for name in ("heron", "crane", "heron", "stork", "heron", "stork", "crane"):
        assert finder.find(asked[name]).passages[0].text == name
    assert built == ["heron", "crane", "stork", "crane"]


def test_a_shared_collection_is_indexed_once(monkeypatch):
    retrieve = import_module("core.pipeline.begin")  # the package's `begin` is the function
    built = []
    real = retrieve.make_retriever
    monkeypatch.setattr(retrieve, "make_retriever", lambda *a, **k: built.append(1) or real(*a, **k))
    rows = [{"question": f"heron {i}?", "documents": ["A heron.", "A crane."]} for i in range(5)]
    data = read_dataset("\n".join(map(json.dumps, rows)).encode(), "t.jsonl")
    finder = PassageFinder(RunOptions())
    found = [finder.find(q) for q in data.questions]
    assert len(built) == 1
    assert all(f.passages[0].text == "A heron." for f in found)


def test_nothing_to_retrieve_is_a_reason_not_a_crash():
    finder = PassageFinder(RunOptions())
    bare = question(documents=["x"])
    assert "no documents and no passages" in finder.find(replace(bare, documents=())).problem
    assert "is empty" in finder.find(replace(bare, documents=(), passages=())).problem
    wordless = replace(bare.documents[0], text="… !")
    assert "hold no words" in finder.find(replace(bare, documents=(wordless,))).problem


def test_repeated_passage_ids_are_told_apart():
    given = question(passages=[{"id": "a", "text": "1"}, {"id": "b", "text": "2"}])
    same = tuple(replace(p, passage_id="a") for p in given.passages)
    found = PassageFinder(RunOptions()).find(replace(given, passages=same))
    assert [p.passage_id for p in found.passages] == ["a", "a (2)"]


@pytest.mark.parametrize("name", RETRIEVERS)
def test_every_retriever_gives_ranked_passages_with_its_own_scores(name):
    documents = [
        {"title": "Noise", "text": WORDS},
        {"title": "Birds", "text": "The blue heron stands. " + WORDS},
    ]
    finder = PassageFinder(RunOptions(k=3, passage_words=10, retriever=name), HashingEmbedder())
    found = finder.find(question(documents=documents, gold=["The blue heron stands."]))
    assert len(found.passages) == 3
    assert found.passages[0].text.startswith("The blue heron stands.")
    assert found.passages[0].score > found.passages[1].score >= found.passages[2].score
    assert [p.is_gold for p in found.passages] == [True, False, False]


def test_the_embedder_is_shared_by_all_collections_and_not_asked_twice():
    embedder = HashingEmbedder()
    finder = PassageFinder(RunOptions(retriever="hybrid"), embedder)
    rows = [{"question": f"heron {i}?", "documents": ["A heron.", "A crane."]} for i in range(3)]
    for q in read_dataset("\n".join(map(json.dumps, rows)).encode(), "t.jsonl").questions:
        finder.find(q)
    assert embedder.batches == [2, 1, 1, 1]  # the passages once, then each question


def test_without_an_embedder_the_shared_one_of_the_model_is_used():
    from core.llm.embeddings import shared_embedder

    dense = PassageFinder(RunOptions(retriever="dense", embedding_model="some/model"))
    assert dense._embedder is shared_embedder("some/model")
    assert PassageFinder(RunOptions())._embedder is None
