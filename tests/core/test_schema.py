import pandas as pd
import pytest

from core.errors import InputError
from core.schema import CONTEXT_SAMPLES, SIGNALS, TABLES, conform, empty


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


def test_columns_without_values_share_nothing_that_a_change_would_show():
    frame = conform(SIGNALS, pd.DataFrame({"query_id": ["q", "r"]}))
    frame.loc[0, "similarity"] = 0.5
    assert frame["similarity"].tolist()[0] == 0.5 and frame["lexical"].isna().all()
