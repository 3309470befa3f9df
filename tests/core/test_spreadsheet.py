import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.diagnosis import Diagnosis
from core.report.exports import exporters
from core.run import Run
from core.sources.content import read_content
from core.sources.formats import import_file
from core.spreadsheet import csv_bytes, neutralise, neutralise_text, restore
from core.text.strict import clean

RISKY = ["=1+1", "+1", "-1", "@a", "\t=1", "\tplain", "\rx", " =1", "\n=1", "＝1", "＋1", "－1", "＠a",
         "\u00a0=1", "\u3000=1", "\ufeff=1", "\u200b=1", "\x0b=1", "\x1f@"]  # fmt: skip


@pytest.mark.parametrize("text", RISKY)
def test_formulas_get_an_apostrophe(text):
    assert neutralise(pd.Series([text], dtype="str"))[0] == "'" + text
    assert neutralise_text(text) == "'" + text


@pytest.mark.parametrize("text", ["", "a=1", "plain", "1-2", "it's", "'quoted", "<script>", "５", "'"])
def test_other_text_stays(text):
    assert neutralise(pd.Series([text], dtype="str"))[0] == text
    assert neutralise_text(text) == text


def test_missing_stays_missing():
    assert neutralise(pd.Series(["=a", None], dtype="str")).isna().tolist() == [False, True]


@pytest.mark.parametrize("dtype", ["str", "string", "object"])
def test_what_is_missing_is_still_missing_where_others_are_restored(dtype):
    found = restore(pd.Series(["'=a", None, "b"], dtype=dtype))
    assert found.isna().tolist() == [False, True, False] and found.dropna().tolist() == ["=a", "b"]


@pytest.mark.parametrize("texts", [["'=a", "b", "'=a"], ["'=a", "=a", None], ["a", "b", "a"]])
def test_categories_are_restored_as_texts_are(texts):
    found = restore(pd.Series(texts, dtype="category"))
    assert found.dropna().tolist() == [text.removeprefix("'") for text in texts if text]
    assert isinstance(found.dtype, pd.CategoricalDtype) == ("'=a" not in texts)
    safe = csv_bytes(pd.DataFrame({"a": pd.Series(["=1", "b"], dtype="category")}))
    assert safe.decode("utf-8-sig") == "a\n'=1\nb\n"


@given(st.lists(st.text(st.sampled_from("'=+-@ \t\r\n＝ab\u00a0"), max_size=6)))
def test_round_trip_is_exact(texts):
    series = pd.Series(texts, dtype="str")
    safe = neutralise(series)
    assert restore(safe).to_list() == texts
    assert [neutralise_text(text) for text in texts] == safe.to_list()


# What programs take for the end of a line, beside what has a meaning in CSV or in a spreadsheet.
ENDS = "\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
texts = st.text(st.sampled_from(ENDS + "\t\",;'=+-@\0\ud800\udfff aé哪😀") | st.characters(), max_size=8)


def held(text):
    """What of a text a file can hold."""
    return "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5), st.booleans())
def test_every_text_comes_back_from_csv(rows, objects):
    # A column of texts can hold a NUL but no half of a pair; one of objects can hold both.
    given = [[a if objects else clean(a), b if objects else clean(b)] for a, b in rows]
    frame = pd.DataFrame(given, columns=["first", "last"], dtype="object" if objects else "str")
    frame.insert(0, "id", range(len(rows)))
    data = csv_bytes(frame)
    wanted = [[str(i), held(a), held(b)] for i, (a, b) in enumerate(rows)]
    read = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))[1:]
    assert [[r[0], *restore(pd.Series(r[1:], dtype="str"))] for r in read] == wanted
    ours = read_content(data, "f").table.frame
    assert pd.DataFrame({name: restore(ours[name]) for name in ours}).values.tolist() == wanted


@pytest.mark.parametrize("end", ENDS)
def test_what_ends_a_line_stands_in_quotation_marks(end):
    text = f"Eif{end}=2+3"
    assert csv_bytes(pd.DataFrame({"a": [text], "b": [1]})).decode("utf-8-sig") == f'a,b\n"{text}",1\n'
    assert csv_bytes(pd.DataFrame({text: [1], "b": [1]})).decode("utf-8-sig") == f'"{text}",b\n1,1\n'


def test_lists_and_objects_are_json_that_people_can_read():
    cells = pd.Series([["ồ", "大"], (1, None), {"é": 0.5}, None, 7, "-"], dtype="object")
    (_, *found) = csv.reader(io.StringIO(csv_bytes(cells.to_frame("a")).decode("utf-8-sig")))
    assert [row[0] if row else "" for row in found] == [
        '["ồ", "大"]', "[1, null]", '{"é": 0.5}', "", "7", "'-",
    ]  # fmt: skip


@given(st.lists(texts.filter(lambda t: held(t).strip()), min_size=3, max_size=3), texts)
def test_our_import_reads_our_export_whatever_the_texts(passages, answer):
    run = Run.create(
        {"source": "live"},
        queries=pd.DataFrame({"query_id": ["a"], "question": ["Who?"], "answer": [held(answer)]}),
        passages=pd.DataFrame(
            {"query_id": "a", "passage_id": ["1", "2", "3"], "text": list(map(held, passages)),
             "retrieval_rank": [1.0, 2.0, 3.0], "influence_score": [0.5, 0.25, 0.0]}
        ),
    )  # fmt: skip
    imported = import_file(exporters()["csv"].write(Diagnosis(run)), "back").run
    assert imported.passages["text"].to_list() == run.passages["text"].to_list()
    assert imported.queries["answer"].fillna("").to_list() == run.queries["answer"].to_list()
