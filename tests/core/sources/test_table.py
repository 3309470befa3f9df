import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.sources import table
from core.sources.encoding import read_source, to_utf8
from core.sources.table import table_of

PLAIN = "name,text\na,1\nb,2\n"


def read_table(data, name="f"):
    return table_of(to_utf8(read_source(data, name), name), name)


def cells(table):
    return table.frame.to_numpy().tolist()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiter_is_found_on_the_header(delimiter):
    # The first row holds more of the other delimiters than the header does.
    text = delimiter.join(["name", '"text; a, b"']) + "\n" + delimiter.join(['"x;;;,,,\t\t\t"', "1"]) + "\n"
    table = read_table(text.encode())
    assert table.delimiter == delimiter
    assert list(table.frame.columns) == ["name", "text; a, b"]
    assert cells(table) == [["x;;;,,,\t\t\t", "1"]]


def test_quoted_cells_may_hold_newlines_quotes_and_delimiters():
    table = read_table(b'name,text\r\na,"x\r\ny"\r\nb,"say ""hi"", twice"\r\n')
    assert cells(table) == [["a", "x\r\ny"], ["b", 'say "hi", twice']]
    assert table.frame.index.tolist() == [2, 3]


def test_rows_are_numbered_as_a_spreadsheet_does():
    table = read_table(b"# note\n#\nname,text\na,1\n\nb,2\n,\nc\nd,3\n")
    assert table.frame.index.tolist() == [4, 6, 9]
    assert table.rejected["row"].tolist() == [8]
    assert table.notes == ("Blank rows left out: 2.",)


def test_ragged_rows_are_listed_and_never_shifted():
    table = read_table(b"a,b,c\n1,2,3\n1,2\n1,2,3,4\n4,5,6\n")
    assert cells(table) == [["1", "2", "3"], ["4", "5", "6"]]
    assert table.rejected.to_dict("list") == {
        "row": [3, 4],
        "reason": ["3 cells as in the header, not 2", "3 cells as in the header, not 4"],
        "text": ["1,2", "1,2,3,4"],
    }


@pytest.mark.parametrize("text", ['a,b\n1,2\n3,"4\n5,6\n', 'a,b\n1,2\n"3,4\n5,6\n'])
def test_a_quotation_mark_that_is_never_closed(text):
    table = read_table(text.encode())
    assert cells(table) == [["1", "2"]]
    assert table.rejected["row"].tolist() == [3]
    assert "quotation mark" in table.rejected["reason"][0]


def test_comments_as_a_spreadsheet_saves_them():
    table = read_table(b'# plain,,\n"# with, comma",,\n\nsep=,\na,b,c\n1,2,3\n')
    assert cells(table) == [["1", "2", "3"]]
    assert table.frame.index.tolist() == [6]


def test_lines_of_delimiters_are_blank_whatever_their_number():
    table = read_table(b"a,b\n1,2\n,,,,\n,\n3,4\n")
    assert table.frame.index.tolist() == [2, 5] and table.rejected.empty
    assert table.notes == ("Blank rows left out: 2.",)


def test_cells_stay_text():
    assert cells(read_table(b"a,b\n007,NA\nnull,1e5\n")) == [["007", "NA"], ["null", "1e5"]]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings_and_no_last_one(ending):
    assert cells(read_table(f"a,b{ending}1,2{ending}3,4".encode())) == [["1", "2"], ["3", "4"]]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"just some words\nand more\n", "one column"),
        (b"a,b\n", "no rows"),
        (b"a,b\n\n,\n", "no rows"),
        (b"a,b,a\n1,2,3\n", "'a' twice"),
        (b",,\n1,2,3\n", "no header"),
        (b"# only\n# comments\n", "only comments"),
        (b"sep=,\n", "only comments"),
        (",".join(map(str, range(501))).encode() + b"\n1\n", "501 columns"),
    ],
)
def test_headers_that_cannot_be_used(data, word):
    with pytest.raises(InputError, match=word):
        read_table(data, "f.csv")


def test_a_column_without_a_name_gets_one():
    assert list(read_table(b"a,b,,\n1,2,3,4\n").frame.columns) == ["a", "b", "column 3", "column 4"]
    assert "column 1 (no name)" in read_table(b",column 1,c\n1,2,3\n").frame.columns


def test_limits(monkeypatch):
    with pytest.raises(InputError, match="limit is 2"):
        monkeypatch.setattr(table, "MAX_ROWS", 2)
        read_table(b"a,b\n1,2\n3\n5,6\n")
    monkeypatch.undo()
    with pytest.raises(InputError, match="row 3, column b holds 12"):
        monkeypatch.setattr(table, "MAX_TEXT", 11)
        read_table(b"a,b\n1,2\n3,abcdefghijkl\n")
    monkeypatch.undo()
    with pytest.raises(InputError, match="quotation mark is probably never closed"):
        read_table(b'a,b\n1,2\n3,"' + b"4,5\n" * 18_000_000)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8), min_size=3, max_size=3),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(",;\t"),
)  # fmt: skip
def test_what_the_csv_module_writes_comes_back(rows, delimiter):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerows([["one", "two", "three"], *rows])
    kept = [row for row in rows if any(row)]
    if not kept:
        with pytest.raises(InputError, match="no rows"):
            read_table(out.getvalue().encode())
        return
    table = read_table(out.getvalue().encode())
    assert cells(table) == kept
    assert table.rejected.empty


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_table_or_one_sentence(data):
    try:
        table = read_table(data, "f")
    except InputError as error:
        assert str(error).startswith("f")
    else:
        assert len(table.frame) + len(table.rejected) >= 1


@pytest.mark.parametrize(
    ("header", "n"),
    [
        (",".join(f"column {i}" for i in range(100_000)), "100,000"),
        (";".join(f'"a;{i}\n"' for i in range(501)), "501"),
        ("a" * 99_995 + ",b" * 600, "601"),
    ],
)
def test_columns_are_counted_however_many_there_are(header, n):
    with pytest.raises(InputError, match=f"^f.csv has {n} columns; the limit is 500.$"):
        read_table(f"{header}\n1,2\n".encode(), "f.csv")


def test_a_long_header_is_read_whole():
    names = [f"{i}{'x' * 1_000}" for i in range(200)]
    assert list(read_table(f"{','.join(names)}\n{',' * 198}1,2\n".encode()).frame.columns) == names


@pytest.mark.parametrize("texts", [["a", " a", "", "b", "b "], ["a", "a", " a", "", " ", "a", "b", "a", "a"]])
@pytest.mark.parametrize("repeat", [False, True])
def test_columns_of_strings_and_of_categories_say_the_same(texts, repeat, monkeypatch):
    monkeypatch.setattr(table, "_TAKEN", 2)
    column = pd.Series(texts, dtype="category" if repeat else "str")
    rows = np.array([0, 2, 3, len(texts) - 1])
    assert table.some_rows(column, rows).to_list() == [texts[i] for i in rows]
    assert table.some_rows(column, rows, strip=True).to_list() == [texts[i].strip() for i in rows]
    assert table.some_rows(column, rows).dtype == "str"
    assert table.is_blank(column).tolist() == [text == "" for text in texts]
    assert table.is_blank(column, strip=True).tolist() == [not text.strip() for text in texts]
    for strip in (False, True):
        plain = [text.strip() if strip else text for text in texts]
        codes = table.text_codes(column, strip=strip)
        assert [[a == b for a in codes] for b in codes] == [[a == b for a in plain] for b in plain]


def test_a_file_of_many_blocks_is_read_as_one_of_a_single_block(monkeypatch):
    text = "name,text\n" + "".join(f"{i % 3},row {i}\n" for i in range(40)) + "1,2,3\n,\n4,last\n"
    whole = read_table(text.encode())
    assert isinstance(whole.frame["name"].dtype, pd.CategoricalDtype) and whole.frame["text"].dtype == "str"
    monkeypatch.setattr(table, "_BLOCK", 64)
    parts = read_table(text.encode())
    assert cells(parts) == cells(whole) == [*([str(i % 3), f"row {i}"] for i in range(40)), ["4", "last"]]
    assert parts.frame.index.tolist() == whole.frame.index.tolist() == [*range(2, 42), 44]
    assert parts.rejected.to_dict("list") == whole.rejected.to_dict("list")
    # A row that no small block holds.
    long = "x" * 300
    assert cells(read_table(f"a,b\n1,{long}\n2,y\n".encode())) == [["1", long], ["2", "y"]]


@pytest.mark.parametrize(
    ("text", "rows", "rejected"),
    [
        ('a,b\n1,"x\ny"\n', [["1", "x\ny"]], []),  # a cell of two lines, quoted as it must be
        ('a,b\n"1",2\n3,"x\ny\n', [["1", "2"]], [3]),  # of three marks the third is never closed
        ('a,b\n1,5" tube\n', [["1", '5" tube']], []),  # a mark inside a cell swallows nothing
    ],
)
def test_a_last_cell_of_two_lines_is_set_aside_only_where_its_quotation_mark_stays_open(text, rows, rejected):
    table = read_table(text.encode())
    assert cells(table) == rows and table.rejected["row"].tolist() == rejected
