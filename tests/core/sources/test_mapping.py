import pytest

from core.errors import InputError
from core.influence import influence_score
from core.sources.formats import import_file
from core.sources.mapping import MAPPABLE, PUBLISHED_COLUMNS, check_mapping, suggest_mapping
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
