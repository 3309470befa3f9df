"""Rows of a question: looked up once, and never in another table."""

import gc

import numpy as np
import pandas as pd

from core import rows


def test_rows_come_in_order_with_their_index_and_none_for_a_stranger():
    frame = pd.DataFrame({"query_id": ["a", "b", "a"], "n": [1, 2, 3]}, index=[7, 8, 9])
    assert rows.rows_of(frame, "a")["n"].to_dict() == {7: 1, 9: 3}
    assert rows.rows_of(frame, "c").empty and rows.places_of(frame, "c").size == 0
    assert rows.places_of(frame, "b").tolist() == [1]


def test_rows_that_follow_each_other_are_not_copied():
    frame = pd.DataFrame({"query_id": ["a", "b", "b", "b", "c", "a"], "n": range(6)})
    assert np.shares_memory(rows.rows_of(frame, "b")["n"].to_numpy(), frame["n"].to_numpy())
    assert rows.rows_of(frame, "b")["n"].to_dict() == {1: 1, 2: 2, 3: 3}
    assert rows.rows_of(frame, "a")["n"].to_dict() == {0: 0, 5: 5}
    assert rows.rows_of(frame, "c")["n"].to_dict() == {4: 4}


def test_each_table_is_read_once_and_forgotten_with_the_table():
    read = []
    frame, other = (pd.DataFrame({"query_id": [name]}) for name in "ab")
    for table in (frame, other, frame):
        rows.once_for(table, "ids", lambda one: read.append(one["query_id"][0]))
    assert read == ["a", "b"]
    key = id(frame)
    assert key in rows._KEPT
    del frame, table
    gc.collect()
    assert key not in rows._KEPT and id(other) in rows._KEPT


def test_dicts_of_a_question_have_none_for_what_is_missing():
    frame = pd.DataFrame({"query_id": ["a", "b", "a"], "x": [1.5, 2.0, float("nan")]}, index=[7, 7, 9])
    found = rows.dicts_of(frame.rename_axis(index="query_id"))  # as an index set from the column is called
    assert found("a") == ({"query_id": "a", "x": 1.5}, {"query_id": "a", "x": None})
    assert found("c") == ()


def test_texts_that_are_missing_are_among_none():
    texts = pd.Series(["a", None, "b"], dtype="str")
    assert rows.is_among(texts, ["b", "c"]).tolist() == [False, False, True]
    assert rows.is_among(texts, texts[:2]).tolist() == [True, False, False]
