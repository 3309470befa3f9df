import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.sources import content as content_module
from core.sources.content import MAX_VALUES, Content, entry_text, looks_like_json, read_content
from core.text.strict import MAX_DEPTH, JsonReader, NotJson


def nested(depth):
    return "[" * depth + "]" * depth


def test_a_json_list_has_numbered_entries():
    content = read_content(b'[{"a": 1}, 2, {"b": null}]', "x.json")
    assert (content.kind, content.value) == ("json", [{"a": 1}, 2, {"b": None}])
    assert content.entries == ((1, {"a": 1}), (2, 2), (3, {"b": None}))
    assert (content.bad, content.notes, content.columns) == ((), (), ())


def test_a_json_object_is_not_opened():
    content = read_content(b' \n{"results": [{"a": 1}]}', "x.json")
    assert (content.kind, content.value, content.entries) == ("json", {"results": [{"a": 1}]}, ())
    assert content.keys() == ["results"]


def test_json_lines_keep_the_good_ones_and_number_the_bad_ones():
    content = read_content(b'{"a": 1}\n\n{"a": \n[1]\n{"a": 2}\r\n{"b": 3}\n{"c": 4}', "x.jsonl")
    assert content.kind == "jsonl" and content.value is None
    assert content.entries == ((1, {"a": 1}), (5, {"a": 2}), (6, {"b": 3}), (7, {"c": 4}))
    assert [(b.number, b.text) for b in content.bad] == [(3, '{"a":'), (4, "[1]")]
    assert "JSON object" in content.bad[0].expected and content.bad[1].expected == "a JSON object"


def test_lines_are_told_from_a_broken_document():
    broken = b'{\n"results": [\n{"a": 1},\n{"a": 2}\n],\n'
    with pytest.raises(InputError, match=r"x\.json, line 6, is not valid JSON"):
        read_content(broken, "x.json")
    with pytest.raises(InputError, match=r"x\.json, line 2, is not valid JSON"):
        read_content(b'[{"a": 1}\n{"a": 2}', "x.json")


def test_a_first_line_that_is_broken_does_not_hide_the_others():
    content = read_content(b'oops\n{"a": 1}\n{"a": 2}\n', "lines")
    assert (content.kind, len(content.entries), content.bad[0].number) == ("jsonl", 2, 1)
    assert read_content(b'oops,x\n{"a": 1}\n', "x.jsonl.gz").kind == "jsonl"


def test_csv_rows_are_texts_and_blank_cells_are_absent():
    content = read_content(
        b"question;contexts;score\nWer?;['a'];0,5\nWas?;;\nzu;viele;Zellen;hier\n", "x.csv"
    )
    assert (content.kind, content.columns) == ("csv", ("question", "contexts", "score"))
    assert tuple(content.entries) == (
        (2, {"question": "Wer?", "contexts": "['a']", "score": "0,5"}),
        (3, {"question": "Was?"}),
    )
    assert [(b.number, b.text) for b in content.bad] == [(4, "zu;viele;Zellen;hier")]
    assert "3 cells" in content.bad[0].expected
    assert content.notes == ("Cells are separated by semicolon.",)


@pytest.mark.parametrize(
    "encode", [lambda t: b"\xef\xbb\xbf" + t, gzip.compress, lambda t: t.decode().encode("utf-16")]
)
def test_marks_encodings_and_gzip(encode):
    content = read_content(encode('{"q": "ñ"}\n{"q": "天"}\n'.encode()), "x")
    assert [entry for _, entry in content.entries] == [{"q": "ñ"}, {"q": "天"}]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (b"{", "not valid JSON"),
        (b"[1, 2", "not valid JSON"),
        (nested(5_000).encode(), "nested too deeply"),
        (('{"a":' * 5_000 + "1" + "}" * 5_000).encode(), "nested too deeply"),
        (('{"a":' * 150 + "1" + "}" * 150).encode(), "nested deeper than 100"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "'c' comes twice"),
        (b"[" + b"[]," * (MAX_VALUES // 2) + b"[]]", "the limit is 10,000,000"),
        (b"just a line", "one column only"),
        (b"PK\x03\x04rest", "zip archive"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(data, message):
    with pytest.raises(InputError, match=message) as caught:
        read_content(data, "bad.json")
    assert "\n" not in str(caught.value) and "bad.json" in str(caught.value)


def test_bad_entries_of_a_list_are_set_apart():
    deep = json.loads(nested(MAX_DEPTH))
    content = read_content(
        json.dumps([{"a": 1}, deep, [deep]]).replace('{"a": 1}', '{"a": 1, "a": 2}').encode(), "x"
    )
    assert [number for number, _ in content.entries] == [2]
    assert [b.number for b in content.bad] == [1, 3]
    assert "'a' comes twice" in content.bad[0].expected and "nested deeper" in content.bad[1].expected


def test_numbers_that_are_not_finite_are_missing_and_counted():
    digits = "9" * 5_000
    data = f'[{{"a": NaN, "b": -Infinity, "c": 1e999, "d": {digits}, "e": 2}}]'.encode()
    content = read_content(data, "x")
    assert content.value == [{"a": None, "b": None, "c": None, "d": None, "e": 2}]
    assert content.notes == ("Numbers that are not finite (NaN …) were read as missing: 4.",)


def test_numbers_of_json_lines_are_counted_once():
    content = read_content(b'{"a": NaN}\n{"a": NaN}\n', "x.jsonl")
    assert content.notes == ("Numbers that are not finite (NaN …) were read as missing: 2.",)


def test_half_surrogates_are_replaced_and_counted():
    content = read_content(rb'{"a": "x\ud800", "\udc00": ["\ud83d\ude00"]}' + b"\n{}\n{}", "x.jsonl")
    assert content.entries[0][1] == {"a": "x\ufffd", "\ufffd": ["😀"]}
    assert content.notes == ("Texts in which half a surrogate pair was replaced: 2.",)


def test_an_object_that_was_dropped_for_a_repeated_key_does_not_mark_another():
    text = '[{"a": {"b": 1, "b": 2}, "a": 3}' + ', {"c": {"d": 1}}' * 500 + "]"
    content = read_content(text.encode(), "x")
    assert [b.number for b in content.bad] == [1] and len(content.entries) == 500


def test_reading_twice_with_one_reader_forgets_the_first():
    reader = JsonReader(repair=True)
    with pytest.raises(NotJson, match="twice"):
        reader.read('{"a": 1, "a": 2}')
    assert reader.read('{"a": 1}') == {"a": 1}


def test_names_and_texts_for_messages():
    assert Content("x", "jsonl", None, ((1, 5), (2, {"q": 1}))).keys() == ["q"]
    assert Content("x", "jsonl", None, ()).keys() == []
    assert entry_text({"a": "é"}) == '{"a": "é"}' and entry_text("x" * 3_000) == "x" * 1_999 + "…"


@pytest.mark.parametrize("data", [b'[{"a": 1}, {"a": 2}]', b'{"a": 1}\n{"a": 2}\n', b"a,b\n1,2\n3,4\n"])
def test_a_file_may_hold_as_many_entries_as_the_limit_says(data, monkeypatch):
    monkeypatch.setattr(content_module, "MAX_ENTRIES", 2)
    assert len(list(read_content(data, "x").entries)) == 2
    monkeypatch.setattr(content_module, "MAX_ENTRIES", 1)
    with pytest.raises(InputError, match=r"^x holds 2 entries; the limit is 1, so split the file\.$"):
        list(read_content(data, "x").entries)


def test_a_file_may_hold_as_many_values_as_the_limit_says(monkeypatch):
    """By its commas and brackets; a table of columns has a cell for each row in every column."""
    monkeypatch.setattr(content_module, "MAX_VALUES", 5)
    columns = read_content(b'{"question": ["q", "r"], "n": [1]}', "x")
    assert [row for _, row in columns.opened().entries] == [
        {"question": "q", "n": 1},
        {"question": "r", "n": None},
    ]
    monkeypatch.setattr(content_module, "MAX_VALUES", 4)
    assert len(columns.opened().entries) == 2
    monkeypatch.setattr(content_module, "MAX_VALUES", 3)
    assert len(columns.opened().entries) == 1
    with pytest.raises(InputError, match="holds about 5 JSON values; the limit is 3, so split the file"):
        read_content(b'{"question": ["q", "r"], "n": [1]}', "x")


def test_lines_of_which_half_are_objects_are_json_lines():
    half = read_content(b'{"a": 1}\n\nx\n', "x")
    assert half.entries == ((1, {"a": 1}),) and [bad.number for bad in half.bad] == [3]
    with pytest.raises(InputError, match="x, line 2, is not valid JSON"):
        read_content(b'{"a": 1}\nx\ny\n', "x")
    assert not looks_like_json(b'x\n{"a": 1}\n', "x") and looks_like_json(b"x\n{}\n{}\n", "x")


def test_names_are_those_of_the_first_fifty_entries():
    entries = tuple((n, {f"n{n}": 1}) for n in range(1, 52))
    content = Content("x", "jsonl", None, entries)
    assert content.names() == {f"n{n}" for n in range(1, 51)}
    assert Content("x", "jsonl", None, ((1, dict.fromkeys("abcdefghijklmnopqrstuvwxyz")),)).keys()[-1] == "t"
    assert Content("x", "csv", None, (), tuple("abcdefghijklmnopqrstuvwxyz")).keys()[-1] == "t"


def test_prose_is_no_json():
    assert not looks_like_json(b"question,answer\n{a},b", "x.csv")
    assert looks_like_json(b"anything", "x.NDJSON")


@given(st.binary(max_size=300))
def test_any_bytes_give_content_or_one_sentence(data):
    try:
        content = read_content(data, "f")
    except InputError as error:
        assert str(error)
    else:
        assert content.kind in ("json", "jsonl", "csv")


@given(st.text(alphabet='{}[]",:\\ue0123456789 \ntrufalsn', max_size=120))
def test_anything_like_json_gives_content_or_one_sentence(text):
    for start in ("", "{", "["):
        try:
            content = read_content((start + text).encode(), "f.json")
        except InputError as error:
            assert str(error)
        else:
            for _, entry in content.entries:
                assert entry_text(entry)
