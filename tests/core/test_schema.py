import pandas as pd
import pytest

from core.errors import InputError
from core.schema import CONTEXT_SAMPLES, SIGNALS, TABLES, Column, Table, conform, empty


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda t: t.name)
def test_every_table_is_well_defined(table):
    assert len(set(table.names)) == len(table.names)
    assert set(table.key) <= set(table.names) and all(table.column(k).required for k in table.key)
    assert all(
        c.type in ("str", "float", "int", "bool", "list") and c.meaning.endswith(".") for c in table.columns
    )
    claimed = [a for c in table.columns for a in (c.name, *c.aliases)]
    assert len(set(claimed)) == len(claimed), "one foreign name, two columns"
    assert empty(table).columns.tolist() == list(table.names)
    assert conform(table, empty(table)).dtypes.equals(empty(table).dtypes)


RANGES = {
    (0, None): "n_gold latency prompt_tokens completion_tokens reported_entropy temperature start end",
    (1, None): "retrieval_rank slot repeat reported_influence_rank planted_meaning",
    (None, 0): "logprob logprob_sum",
    (-1, 1): "reported_rho planted_rho",
    (0, 1): "reported_p_value reported_dominance reported_rouge_l influence_score planted_influence top_p entailment "
            "contradiction probability similarity llm_score support confidences.value",
    (0, 100): "lexical",
    (0.5, 1): "agreement",  # of two verdicts or more, with the majority
}  # fmt: skip


def test_numbers_have_the_range_of_what_they_are():
    """An upload turns away what lies outside it."""
    wanted = {name: limits for limits, names in RANGES.items() for name in names.split()}
    # An answer that was sampled may be empty; one that is measured again has at least one token.
    wanted |= {
        "samples.n_tokens": (0, None),
        "context_samples.n_tokens": (0, None),
        "ablations.n_tokens": (1, None),
    }
    for table in TABLES.values():
        for name in table.names:
            assert table.column(name).range == wanted.get(f"{table.name}.{name}", wanted.get(name)), name


def test_a_row_needs_its_key_and_what_it_is_about():
    further = {
        f"{table.name}.{name}"
        for table in TABLES.values()
        for name in table.names
        if table.column(name).required and name not in table.key
    }
    assert further == {
        "queries.question", "passages.retrieval_rank", "ablations.kept", "claims.text",
        "planted_claims.text", "planted_claims.start", "planted_claims.end", "planted_claims.planted",
    }  # fmt: skip


def test_conform_adds_missing_columns_as_missing_values():
    found = conform(TABLES["repeats"], pd.DataFrame({"query_id": ["a"], "repeat": [1]}))
    assert found["answer"].isna().all() and list(found.columns) == list(TABLES["repeats"].names)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"repeat": [1]}, "Table repeats needs the column 'query_id'"),
        ({"query_id": ["a"], "repeat": ["x"]}, "row 1, column repeat: 'x' is not of type int"),
        ({"query_id": ["a", "a"], "repeat": [1, 1]}, "row 2: query_id = 'a', repeat = .*twice"),
        ({"query_id": ["a"], "repeat": [None]}, "row 1, column repeat: a value is required"),
        ({"query_id": ["a"], "repeat": [1], "colour": ["red"]}, "no column 'colour'"),
    ],
)
def test_what_does_not_conform_is_named(frame, message):
    with pytest.raises(InputError, match=message):
        conform(TABLES["repeats"], pd.DataFrame(frame))


def test_a_key_of_three_columns_repeats_only_where_all_three_do():
    rows = [("q", "without_support", "s1"), ("q", "without_support", "s2"), ("q", "unrelated_added", "s1"),
            ("r", "without_support", "s1")]  # fmt: skip
    names = ["query_id", "condition", "sample_id"]
    assert len(conform(CONTEXT_SAMPLES, pd.DataFrame(rows, columns=names))) == 4
    with pytest.raises(InputError, match=r"row 5: query_id = 'r', .* occurs twice"):
        conform(CONTEXT_SAMPLES, pd.DataFrame([*rows, rows[3]], columns=names))


def test_a_key_of_many_columns_repeats_only_where_all_do():
    """The number of possible keys, here 4 to the power of 33, is beyond what an integer holds."""
    names = tuple(f"c{i}" for i in range(33))
    table = Table("wide", "?", names, tuple(Column(name, "int", "?", required=True) for name in names))
    frame = pd.DataFrame([[0] * 33, [1] * 33, [2] * 33, [1] + [0] * 32], columns=names)
    assert len(conform(table, frame)) == 4
    with pytest.raises(InputError, match=r"row 5: .* occurs twice"):
        conform(table, pd.concat([frame, frame[3:]], ignore_index=True))


def test_columns_without_values_share_nothing_that_a_change_would_show():
    frame = conform(SIGNALS, pd.DataFrame({"query_id": ["q", "r"]}))
    frame.loc[0, "similarity"] = 0.5
    assert frame["similarity"].tolist()[0] == 0.5 and frame["lexical"].isna().all()
