"""Guesses of a file's columns, against files for which a person can tell what each holds."""

import json

import pytest

from core.sources.mapping import examples, guess_columns, values_in

PASSAGE = "Die Hafenbrücke wurde im Mai 1931 für den Verkehr geöffnet, nach vier Jahren Bau."
GERMAN = "\n".join(
    ["Frage,Antwort,Platz,Punkte,Einfluss,Stelle"]
    + [
        f"Wann wurde Brücke {q} geöffnet?,Im Jahr 193{q}.,{d},{9.5 - d},{0.25 * d},{PASSAGE} {q} {d}"
        for q in range(3)
        for d in range(1, 4)
    ]
).replace(", nach", " nach")
INFLUENCE = {
    "question": "query",
    "influence_score": "influence_score",
    "answer": "baseline_answer",
    "retrieval_rank": "retrieval_rank",
    "retrieval_score": "retrieval_score",
    "text": "passage",
    "passage_id": "doc_id",
}


def test_columns_in_another_language_are_told_by_their_values():
    found = guess_columns(values_in(GERMAN.encode(), "deutsch.csv"), INFLUENCE)
    assert {field: column for field, (column, _) in found.items()} == {
        "question": "Frage",
        "influence_score": "Einfluss",
        "answer": "Antwort",
        "retrieval_rank": "Platz",
        "retrieval_score": "Punkte",
        "text": "Stelle",
    }
    assert {how for _, how in found.values()} == {"values"}


def test_a_name_goes_before_what_values_look_like():
    columns = {"Query": ["x", "y"], "note": ["Why?", "How?"]}
    assert dict(guess_columns(columns, INFLUENCE)) == {
        "question": ("Query", "name"),
        "answer": ("note", "values"),
    }


def test_records_of_flat_formats_are_guessed_too():
    records = [{"Frage": "Wer?", "Fundstellen": ["a", "b"], "Antwort": "Unwin"}]
    columns = values_in(json.dumps(records).encode(), "r.json")
    fields = {"question": "user_input", "answer": "response", "passages": "retrieved_contexts"}
    assert {field: column for field, (column, _) in guess_columns(columns, fields).items()} == {
        "question": "Frage",
        "answer": "Antwort",
        "passages": "Fundstellen",
    }
    assert columns["Fundstellen"] == ['["a", "b"]']


@pytest.mark.parametrize("values", [[], ["", ""], ["x" * 10_000]])
def test_empty_and_long_columns_are_no_trouble(values):
    assert dict(guess_columns({"a": values}, {"retrieval_rank": "rank"})) == {}


def test_the_start_of_a_long_table_is_enough():
    rows = "".join(f"{n},Wer war {n}?\n" for n in range(700_000))
    assert values_in(f"Nr,Frage\n{rows}".encode("utf-16"), "long.csv")["Frage"][:1] == ["Wer war 0?"]


def test_three_different_examples():
    assert examples(["1", "1", "2", "3", "4"]) == ["1", "2", "3"]
