from pathlib import Path

import pytest

from core.files import user_cache_dir
from core.llm.packaged import fingerprint


def test_the_cache_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path))
    assert user_cache_dir() == tmp_path
    monkeypatch.delenv("LEADLINE_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert user_cache_dir() == tmp_path / "x" / "leadline"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert user_cache_dir() == Path.home() / ".cache" / "leadline"


def test_the_fingerprint_sees_names_sizes_and_both_ends(tmp_path):
    weights = tmp_path / "w.bin"
    weights.write_bytes(b"a" * 3_000_000)
    (tmp_path / "marker.json").write_text("x")
    first = fingerprint(tmp_path, frozenset({"marker.json"}))
    (tmp_path / "marker.json").write_text("y")
    assert fingerprint(tmp_path, frozenset({"marker.json"})) == first
    seen = {first}
    for content in (b"b" + b"a" * 2_999_999, b"a" * 2_999_999 + b"b", b"a" * 2_999_999):
        weights.write_bytes(content)
        seen.add(fingerprint(tmp_path, frozenset({"marker.json"})))
    weights.write_bytes(b"a" * 3_000_000)
    weights.rename(tmp_path / "v.bin")
    seen.add(fingerprint(tmp_path, frozenset({"marker.json"})))
    assert len(seen) == 5
    assert all(len(one) == 16 for one in seen)


@pytest.mark.parametrize(
    ("size", "place", "seen"),
    [
        (3_000_000, 2**20 - 1, True),
        (3_000_000, 2**20, False),  # between the first megabyte and the last
        (3_000_000, 3_000_000 - 2**20 - 1, False),
        (3_000_000, 3_000_000 - 2**20, True),
        (1_500_000, 2**20, True),
        (1_500_000, 1_499_999, True),
    ],
)
def test_the_fingerprint_reads_the_first_and_the_last_megabyte(tmp_path, size, place, seen):
    content = bytearray(size)
    (tmp_path / "w.bin").write_bytes(content)
    first = fingerprint(tmp_path)
    content[place] = 1
    (tmp_path / "w.bin").write_bytes(content)
    assert (fingerprint(tmp_path) != first) is seen


def test_the_fingerprint_passes_over_folders_and_what_is_hidden_at_the_top(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"a")
    first = fingerprint(tmp_path)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "new").write_bytes(b"b")
    (tmp_path / "sub").mkdir()
    assert fingerprint(tmp_path) == first
    (tmp_path / "sub" / ".b").write_bytes(b"b")
    assert fingerprint(tmp_path) != first
