"""Records of a file as a table of the columns that are wanted."""

import json

import pytest

from core.errors import InputError
from core.sources.content import read_rows

WANTED = ("query", "score", "missing")


def test_json_lines_keep_values_and_leave_out_what_is_no_record():
    data = b'{"query": "a", "score": 1, "other": 2}\n[1]\n{"score": [3]}\nnot json\n'
    table, report = read_rows(data, "f.jsonl", WANTED)
    assert table.columns.tolist() == ["query", "score"]
    assert table["score"].tolist() == [1, [3]] and table["query"].isna().tolist() == [False, True]
    assert (report.n_rows, report.n_kept, report.n_errors) == (4, 2, 2)
    assert [issue.row for issue in report.issues] == [2, 4]


def test_csv_cells_are_text_and_empty_ones_missing(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("query;score\na;0.5\nb;\nc;1;2\n")
    table, report = read_rows(path, "f.csv", WANTED)
    assert table["query"].tolist() == ["a", "b"]
    assert table["score"].tolist()[0] == "0.5" and table["score"].isna().tolist() == [False, True]
    assert report.n_rejected == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", "f holds no record"),
        (b"[1, 2]", "f holds no record"),
        (b"", "f is empty"),
        (b"\x00\x01\x02", "f"),
        (json.dumps({"query": "a"}).encode()[:-1], "f"),
    ],
)
def test_a_file_that_cannot_be_read(data, message):
    with pytest.raises(InputError, match=message):
        read_rows(data, "f", WANTED)
