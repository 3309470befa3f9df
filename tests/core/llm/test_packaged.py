"""The conversion's bookkeeping, with a small stand-in for the model itself."""

import threading

import pytest

from core.errors import BackendError
from core.llm import packaged


@pytest.fixture
def conversions(monkeypatch, tmp_path):
    """Convert a 64-byte file by copying it; return the list of conversions made."""
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"weights!" * 8)
    made = []

    def write(source, folder):
        made.append(folder)
        (folder / "model.safetensors").write_bytes(source.read_bytes())
        (folder / "config.json").write_text("{}")

    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packaged, "packaged_gguf", lambda: gguf)
    monkeypatch.setattr(packaged, "_write_model", write)
    return made


def test_converted_once(conversions):
    first, second = packaged.converted_model(), packaged.converted_model()
    assert first == second
    assert len(conversions) == 1
    assert sorted(p.name for p in first.parent.iterdir()) == [first.name]


@pytest.mark.parametrize("damage", ["cut off", "file missing", "record missing", "record broken"])
def test_a_damaged_conversion_is_made_again(conversions, damage):
    folder = packaged.converted_model()
    if damage == "cut off":
        (folder / "model.safetensors").write_bytes(b"weights!")
    elif damage == "file missing":
        (folder / "config.json").unlink()
    elif damage == "record missing":
        (folder / "leadline.json").unlink()
    else:
        (folder / "leadline.json").write_text("[1")
    assert packaged.converted_model() == folder
    assert len(conversions) == 2
    assert (folder / "model.safetensors").read_bytes() == b"weights!" * 8
    assert sorted(p.name for p in folder.parent.iterdir()) == [folder.name]


def test_another_process_that_finishes_first_is_no_error(conversions, monkeypatch):
    write = packaged._write_model
    calls = []

    def slow(source, folder):
        write(source, folder)
        if not calls:
            calls.append(1)
            packaged._convert(source, target)

    gguf = packaged.packaged_gguf()
    target = packaged.user_cache_dir() / "models" / "m"
    target.parent.mkdir(parents=True)
    monkeypatch.setattr(packaged, "_write_model", slow)
    assert packaged._convert(gguf, target) == target
    assert packaged._intact(target)
    assert [p.name for p in target.parent.iterdir()] == ["m"]


def test_threads_wait_for_each_other(conversions):
    threads = [threading.Thread(target=packaged.converted_model) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(conversions) == 1


def test_a_cache_that_cannot_be_written_says_what_to_do(conversions, monkeypatch, tmp_path):
    (tmp_path / "blocked").write_text("a file")
    monkeypatch.setenv("LEADLINE_CACHE", str(tmp_path / "blocked"))
    with pytest.raises(BackendError, match="set LEADLINE_CACHE to a folder"):
        packaged.converted_model()
    assert conversions == []


def test_leftovers_of_killed_conversions_go_after_an_hour(conversions):
    models = packaged.user_cache_dir() / "models"
    (models / "old.tmp").mkdir(parents=True)
    (models / "new.tmp").mkdir()
    now = packaged.time.time()

    packaged.os.utime(models / "old.tmp", (now, now - 7200))
    packaged.converted_model()
    assert not (models / "old.tmp").exists()
    assert (models / "new.tmp").exists()
