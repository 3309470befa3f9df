import json

import pytest

from core.errors import InputError
from core.influence import influence_score
from core.sources.formats import import_file
from core.sources.mapping import (
    MAPPABLE,
    PUBLISHED_COLUMNS,
    check_mapping,
    examples,
    guess_columns,
    suggest_mapping,
    values_in,
)
from core.sources.templates import template_csv


def test_the_published_columns_all_find_their_place():
    assert dict(suggest_mapping(PUBLISHED_COLUMNS)) == {
        "question": "query",
        "answer": "baseline_answer",
        "reported_rho": "spearman_rho",
        "reported_p_value": "spearman_pvalue",
        "reported_dominance": "dominance_ratio",
        "reported_entropy": "influence_entropy",
        "reported_divergent": "is_divergent",
        "passage_id": "doc_id",
        "text": "passage",
        "retrieval_rank": "retrieval_rank",
        "retrieval_score": "retrieval_score",
        "reported_rouge_l": "rouge_l",
        "influence_score": "influence_score",
        "reported_influence_rank": "influence_rank",
    }


def test_our_own_names_map_to_themselves():
    assert dict(suggest_mapping(list(MAPPABLE))) == {name: name for name in MAPPABLE}


def test_exact_names_win_over_aliases_and_aliases_over_spelling():
    found = suggest_mapping(["TEXT", "passage", "Retrieval Rank", "pvalue", "Doc-ID", "colour"])
    assert found == {
        "text": "passage",
        "retrieval_rank": "Retrieval Rank",
        "reported_p_value": "pvalue",
        "passage_id": "Doc-ID",
    }
    assert suggest_mapping(["passage", "text"])["text"] == "text"
    assert suggest_mapping([]) == {}


@pytest.mark.parametrize(
    ("mapping", "word"),
    [
        ({"nonsense": "a"}, "no field 'nonsense'"),
        ({"question": "z"}, "no column 'z'"),
        ({"influence_score": "a"}, "for the question"),
        ({"question": "a"}, "for the influence"),
        ({"question": "a", "ablated_answer": "b"}, "baseline answer"),
    ],
)
def test_mappings_that_cannot_work(mapping, word):
    with pytest.raises(InputError, match=word):
        check_mapping(mapping, ["a", "b"], "f.csv")


def test_the_template_reads_without_a_remark():
    text = template_csv()
    imported = import_file(text.encode(), "template")
    assert imported.report.n_issues == 0 and len(imported.report.notes) == 1
    assert len(imported.run.queries) == 3 and len(imported.run.passages) == 9
    header = next(line for line in text.splitlines() if not line.startswith("#"))
    for column in header.split(","):
        assert f"# {column}: " in text


def test_the_template_states_the_influence_its_answers_give():
    run = import_file(template_csv().encode(), "template").run
    answers = dict(zip(run.queries["query_id"], run.queries["answer"], strict=True))
    computed = [
        influence_score(answers[q], ablated)
        for q, ablated in zip(run.passages["query_id"], run.passages["ablated_answer"], strict=True)
    ]
    assert computed == pytest.approx(run.passages["influence_score"].to_list(), abs=1e-4)


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


def test_another_name_of_a_field_goes_before_what_values_look_like():
    columns = {"score": ["1"], "rank": ["7"], "place": ["1", "2"]}
    assert dict(guess_columns(columns, INFLUENCE)) == {
        "retrieval_rank": ("rank", "name"),
        "retrieval_score": ("score", "name"),
    }
    assert guess_columns({"rank": ["7"]}, {"tempo": "speed"}) == {}


def test_three_different_values_are_examples():
    assert examples("abacadbe") == ["a", "b", "c"]
