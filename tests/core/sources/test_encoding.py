import gzip
import json

import pytest

from core.errors import InputError
from core.sources import encoding
from core.sources.encoding import read_source, to_utf8


@pytest.mark.parametrize("name", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_every_encoding_gives_the_same_text(name):
    assert to_utf8("naïve,é\n".encode(name), "f").utf8.decode() == "naïve,é\n"


def test_utf16_big_endian_by_its_mark():
    assert to_utf8(b"\xfe\xff" + "a,ü".encode("utf-16-be"), "f").utf8.decode() == "a,ü"


def test_only_a_guess_or_a_rare_encoding_is_noted():
    assert to_utf8("é".encode(), "f").note is None
    assert "line 2" in to_utf8(b"a\n\xe9", "f").note
    assert "Latin-1" in to_utf8(b"\xe9\x81", "f").note  # 0x81 has no meaning in Windows-1252
    assert "UTF-16" in to_utf8("é".encode("utf-16"), "f").note


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b" \n\t ", "empty"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"PK\x03\x04rest", "zip"),
        (b"PAR1rest", "Parquet"),
        (b"%PDF-1.7", "PDF"),
        (b"a,b\x00c", "NUL"),
        (b"\xff\xfea", "UTF-16"),  # half a character
    ],
)
def test_what_is_no_text_is_named(data, word):
    with pytest.raises(InputError, match=word):
        to_utf8(data, "upload.bin")


def test_gzip_is_unpacked_also_in_several_members():
    assert read_source(gzip.compress(b"ab", mtime=0) + gzip.compress(b"cd"), "f") == b"abcd"


def test_gzip_bomb_stops_at_the_limit(monkeypatch):
    monkeypatch.setattr(encoding, "MAX_BYTES", 1_000_000)
    packed = gzip.compress(b"0" * 5_000_000, mtime=0)
    assert len(packed) < 10_000
    with pytest.raises(InputError, match="holds more than 1 MB unpacked"):
        read_source(packed, "bomb.gz")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (gzip.compress(b"abc" * 1000, mtime=0)[:-12], "breaks off"),
        (gzip.compress(b"abc", mtime=0)[:10] + b"\xff" * 20, "damaged"),
        (gzip.compress(b"abc", mtime=0) + b"tail", "damaged"),
    ],
)
def test_damaged_gzip(data, word):
    with pytest.raises(InputError, match=word):
        read_source(data, "f.gz")


def test_paths(tmp_path, monkeypatch):
    file = tmp_path / "a.csv"
    file.write_bytes(b"x" * 11)
    assert read_source(file, "a") == b"x" * 11
    with monkeypatch.context() as patch, pytest.raises(InputError, match="limit"):
        patch.setattr(encoding, "MAX_BYTES", 10)
        read_source(file, "a")
    with pytest.raises(InputError, match="no file"):
        read_source(tmp_path / "absent.csv", "a")
    with pytest.raises(InputError, match="folder"):
        read_source(tmp_path, "a")
    with pytest.raises(InputError, match="cannot be read"):
        read_source("a\0b", "a")


@pytest.mark.parametrize("piece", [1, 2, 3, 1 << 20])
def test_a_file_is_decoded_in_pieces_as_in_one(piece, monkeypatch):
    monkeypatch.setattr(encoding, "_CHUNK", piece)
    assert to_utf8("aé日😀".encode(), "f") == ("aé日😀".encode(), None)
    assert to_utf8("aé日😀".encode("utf-16"), "f").utf8.decode() == "aé日😀"
    # é begins in UTF-8 and ends as something else, in line 3.
    assert to_utf8(b"a\nb\n\xc3\xa9\xc3x", "f").note.startswith("Not valid UTF-8 (first at line 3)")
    with pytest.raises(InputError, match=r"byte 0x62 in position 4: truncated data"):
        to_utf8(b"\xff\xfea\x00b", "f")


def test_the_limit_of_unpacking_is_told_in_millions_of_bytes():
    assert str(encoding.too_much("f", 10**12)).startswith("f holds more than 1,000,000 MB unpacked")


@pytest.mark.parametrize("more", [0, 1])
def test_a_file_may_be_as_large_as_the_limit_says(more, monkeypatch):
    monkeypatch.setattr(encoding, "MAX_BYTES", 2_000_000)
    monkeypatch.setattr(encoding, "_SMALL", 1_000)
    monkeypatch.setattr(encoding, "_TIMES", 1)
    for data, unpacked, limit in (
        (b"a" * (2_000_000 + more), 2_000_000, "larger than the limit of 2 MB; split the file"),
        (gzip.compress(b"a" * (1_000 + more)), 1_000, "more than 0 MB unpacked"),
    ):
        if more:
            with pytest.raises(InputError, match=limit):
                read_source(data, "f")
        else:
            assert read_source(data, "f") == b"a" * unpacked


STREAM = encoding.ARROW_STREAM + bytes(96)


@pytest.fixture
def folder(tmp_path):
    """A folder of two files of 100 bytes that begin as Arrow streams do."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(STREAM)
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "a"}, {"filename": "b"}]}')
    return tmp_path


def test_a_folder_may_be_as_large_as_a_file(folder, monkeypatch):
    monkeypatch.setattr(encoding, "MAX_BYTES", 200)
    assert read_source(folder, "f") == STREAM * 2
    monkeypatch.setattr(encoding, "MAX_BYTES", 199)
    with pytest.raises(InputError, match=r"is larger than the limit of 0 MB\.$"):
        read_source(folder, "f")


def test_the_description_of_a_folder_has_a_limit_too(folder, monkeypatch):
    monkeypatch.setattr(encoding, "_MAX_STATE", (folder / "state.json").stat().st_size)
    assert read_source(folder, "f") == STREAM * 2
    monkeypatch.setattr(encoding, "_MAX_STATE", encoding._MAX_STATE - 1)
    with pytest.raises(InputError, match=r"state\.json is not valid JSON"):
        read_source(folder, "f")


def test_a_folder_names_all_its_files(folder):
    (folder / "state.json").write_text('{"_data_files": [{"filename": "a"}, {"filename": 5}]}')
    with pytest.raises(InputError, match="names no data files"):
        read_source(folder, "f")


def test_twenty_splits_are_named(tmp_path):
    splits = {"splits": [f"s{i}" for i in range(25)]}
    (tmp_path / "dataset_dict.json").write_text(json.dumps(splits))
    with pytest.raises(InputError, match=r"holds 25 splits \(s0, .*, s19\); give one of them: .*s0\.$"):
        read_source(tmp_path, "f")
    (tmp_path / "dataset_dict.json").write_text('{"splits": [5]}')
    with pytest.raises(InputError, match=r"holds 0 splits \(\); expected a folder"):
        read_source(tmp_path, "f")
