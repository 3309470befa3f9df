from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from core.errors import InputError
from core.sources.fields import MAX_TEXT
from core.sources.question import PassageIn, as_passage


def test_a_text_is_a_passage_named_by_its_place():
    assert as_passage("Bern", 3) == PassageIn("p3", "", "Bern", None, None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (("Bern", 0.5), PassageIn("p1", "", "Bern", 0.5, None)),
        (["Bern", 2], PassageIn("p1", "", "Bern", 2.0, None)),
        (("Bern", None), PassageIn("p1", "", "Bern", None, None)),
        (("Bern", np.float32(0.25)), PassageIn("p1", "", "Bern", 0.25, None)),
        (("Bern", float("nan")), PassageIn("p1", "", "Bern", None, None)),
        (({"text": "Bern", "score": 9}, 1.5), PassageIn("p1", "", "Bern", 1.5, None)),
        ({"text": "Bern"}, PassageIn("p1", "", "Bern", None, None)),
        (
            {"text": "Bern", "title": "Cities", "id": 7, "score": 1, "is_gold": True},
            PassageIn("7", "Cities", "Bern", 1.0, True),
        ),
        ({"content": "Bern", "meta": {"title": "Cities"}}, PassageIn("p1", "Cities", "Bern", None, None)),
        ({"text": "Bern", "title": None, "id": "", "score": "high"}, PassageIn("p1", "", "Bern", None, None)),
        ({"text": "", "id": "empty"}, PassageIn("empty", "", "", None, None)),
    ],
)
def test_pairs_and_mappings(value, expected):
    assert as_passage(value) == expected


def test_documents_of_frameworks_by_what_they_look_like():
    langchain = SimpleNamespace(page_content="Bern", metadata={"title": "Cities", "is_gold": False}, id="a")
    assert as_passage(langchain) == PassageIn("a", "Cities", "Bern", None, False)
    assert as_passage((langchain, 0.5)).score == 0.5
    haystack = SimpleNamespace(content="Bern", meta={"title": "Cities"}, score=2.5, id="b")
    assert as_passage(haystack) == PassageIn("b", "Cities", "Bern", 2.5, None)

    class Node:
        node_id, metadata = "n1", {"title": "Cities"}

        def get_content(self):
            return "Bern"

    scored = SimpleNamespace(node=Node(), score=0.75, get_content=lambda: "not this one")
    assert as_passage(scored) == PassageIn("n1", "Cities", "Bern", 0.75, None)
    assert as_passage(Node()) == PassageIn("n1", "Cities", "Bern", None, None)


def test_a_record_with_two_fields_is_no_pair():
    row = namedtuple("Row", ["text", "score"])("Bern", 0.5)
    assert as_passage(row) == PassageIn("p1", "", "Bern", 0.5, None)

    @dataclass
    class Chunk:
        text: str
        title: str

    assert as_passage(Chunk("Bern", "Cities")).title == "Cities"


def test_half_a_surrogate_pair_is_replaced_so_that_the_run_can_be_saved():
    found = as_passage({"text": "a\ud800b", "title": "\udfff", "id": "\ud800"})
    assert (found.text, found.title, found.passage_id) == ("a\ufffdb", "\ufffd", "\ufffd")


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (None, "NoneType"),
        (5, "int"),
        (b"Bern", "bytes"),
        ({"body": "Bern"}, "dict"),
        (SimpleNamespace(content=None, meta={}), "SimpleNamespace"),
        (("title", "text"), "tuple"),
        (("id", "text", 0.5), "tuple"),
        ((SimpleNamespace(page_content="a"), SimpleNamespace(page_content="b")), "tuple"),
    ],
)
def test_what_holds_no_text_is_named(value, named):
    with pytest.raises(InputError, match=rf"Passage 2 is of the type {named} and holds no text"):
        as_passage(value, 2)


def test_a_text_beyond_all_measure_is_refused():
    assert len(as_passage("x" * MAX_TEXT).text) == MAX_TEXT
    with pytest.raises(InputError, match="1,000,001 characters; expected at most 1,000,000"):
        as_passage("x" * (MAX_TEXT + 1))
