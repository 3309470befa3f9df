"""The conversion's bookkeeping, with a small stand-in for the model itself."""

import logging
import os
import re
import sys
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

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
    assert re.fullmatch(r"SmolLM2-135M-Instruct-[0-9a-f]{16}", first.name)


@pytest.mark.parametrize(
    "damage", ["cut off", "file missing", "record missing", "[1", "[1]", "{}", '{"fingerprint": "0"}']
)
def test_a_damaged_conversion_is_made_again(conversions, damage):
    folder = packaged.converted_model()
    if damage == "cut off":
        (folder / "model.safetensors").write_bytes(b"weights!")
    elif damage == "file missing":
        (folder / "config.json").unlink()
    elif damage == "record missing":
        (folder / "leadline.json").unlink()
    else:
        (folder / "leadline.json").write_text(damage)
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
    with pytest.raises(
        BackendError,
        match=r"cannot be converted into \S*models: Not a directory; set LEADLINE_CACHE to a folder with 600 MB of",
    ):
        packaged.converted_model()
    assert conversions == []


def test_what_the_library_says_of_a_conversion_that_fails_is_told(conversions, monkeypatch):
    def refuse(source, folder):
        raise OSError("there is no tokenizer in it")

    monkeypatch.setattr(packaged, "_write_model", refuse)
    with pytest.raises(BackendError, match=r"models: there is no tokenizer in it; set LEADLINE_CACHE"):
        packaged.converted_model()
    assert list((packaged.user_cache_dir() / "models").iterdir()) == []


def test_leftovers_of_killed_conversions_go_after_an_hour(conversions, monkeypatch):
    models = packaged.user_cache_dir() / "models"
    (models / "old.tmp").mkdir(parents=True)
    (models / "new.tmp").mkdir()
    (models / "old").mkdir()
    now = 1_700_000_000.0
    monkeypatch.setattr(packaged, "time", SimpleNamespace(time=lambda: now))
    os.utime(models / "old.tmp", (now, now - 3600.5))
    os.utime(models / "new.tmp", (now, now - 3599.5))
    os.utime(models / "old", (now, now - 7200))
    target = packaged.converted_model()
    assert sorted(path.name for path in models.iterdir()) == sorted(["new.tmp", "old", target.name])


def test_a_leftover_that_has_gone_meanwhile_hides_no_other(tmp_path):
    old = tmp_path / "old.tmp"
    old.mkdir()
    os.utime(old, (0, 0))
    packaged._remove_leftovers(SimpleNamespace(glob=lambda _: [tmp_path / "gone.tmp", old]))
    assert not old.exists()


def test_a_file_of_a_package_counts_where_it_is_there_and_has_the_ending(monkeypatch, tmp_path):
    def file(name):
        return SimpleNamespace(locate=lambda: tmp_path / name, as_posix=lambda: name)

    listed = [file(name) for name in ("__init__.py", "gone.gguf", "there.gguf", "other.gguf")]
    for name in ("__init__.py", "there.gguf", "other.gguf"):
        (tmp_path / name).touch()
    monkeypatch.setattr(packaged.metadata, "files", lambda package: listed)
    assert packaged.packaged_gguf() == tmp_path / "there.gguf"
    for nothing in ([], None, listed[:2]):
        monkeypatch.setattr(packaged.metadata, "files", lambda package, nothing=nothing: nothing)
        with pytest.raises(BackendError, match="SmolLM2-135M-Instruct is not installed; run: pip install"):
            packaged.packaged_gguf()


@pytest.mark.parametrize("missing", [None, "torch", "transformers", "sentence_transformers"])
def test_what_to_install_is_said_where_a_library_is_missing(monkeypatch, missing):
    monkeypatch.setattr(packaged, "find_spec", lambda name: None if name == missing else object())
    if missing is None:
        packaged.require_local_models("The model m")
    else:
        with pytest.raises(BackendError, match=r"^The model m runs in this process and needs torch and"):
            packaged.require_local_models("The model m")


@pytest.fixture
def library(monkeypatch):
    """A stand-in for the library that reads and writes models, and what was asked of it."""
    seen = SimpleNamespace(level=logging.WARNING, bars=True, asked={}, saved=[], bar=None, model=None)

    def of(kind):
        def from_pretrained(folder, **options):
            seen.asked[kind] = (folder, options, seen.bar("items") if seen.bar else None)
            return seen.model if kind == "model" else SimpleNamespace(save_pretrained=seen.saved.append)

        return SimpleNamespace(from_pretrained=from_pretrained)

    def level(value):
        seen.level = value

    def bars(value):
        seen.bars = value

    log = SimpleNamespace(
        get_verbosity=lambda: seen.level,
        set_verbosity=level,
        set_verbosity_error=lambda: level(logging.ERROR),
        is_progress_bar_enabled=lambda: seen.bars,
        disable_progress_bar=lambda: bars(False),
        enable_progress_bar=lambda: bars(True),
    )
    seen.reader = SimpleNamespace(tqdm=lambda items, desc=None: f"bar of {items}")
    seen.bar = lambda items: seen.reader.tqdm(items, desc="Converting")
    whole = SimpleNamespace(
        utils=SimpleNamespace(logging=log),
        modeling_gguf_pytorch_utils=seen.reader,
        AutoTokenizer=of("tokenizer"),
        AutoModelForCausalLM=of("model"),
    )
    monkeypatch.setitem(sys.modules, "transformers", whole)
    monkeypatch.setitem(sys.modules, "transformers.utils", whole.utils)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(float32="32 bits"))
    return seen


@pytest.mark.parametrize("bars", [True, False])
def test_the_library_says_nothing_while_it_works_and_then_as_much_as_before(library, bars):
    library.bars = bars
    with pytest.raises(ZeroDivisionError), packaged.quiet():
        assert (library.level, library.bars) == (logging.ERROR, False)
        warnings.warn("advice to programmers", stacklevel=1)  # an error elsewhere
        raise ZeroDivisionError
    assert (library.level, library.bars) == (logging.WARNING, bars)


@pytest.mark.parametrize("noted", [True, False])
def test_the_model_is_written_as_plain_numbers_that_the_library_can_save(library, noted):
    config = SimpleNamespace(**({"quantization_config": "of the file"} if noted else {}), size=1)
    library.model = SimpleNamespace(
        hf_quantizer="one", is_quantized=True, config=config, save_pretrained=library.saved.append
    )
    bar = library.reader.tqdm
    packaged._write_model(Path("folder/m.gguf"), Path("target"))
    model = library.model
    assert (model.hf_quantizer, model.is_quantized, vars(config)) == (None, False, {"size": 1})
    file = {"gguf_file": "m.gguf", "local_files_only": True}
    assert library.asked == {  # without a bar
        "tokenizer": (Path("folder"), file, "items"),
        "model": (Path("folder"), file | {"dtype": "32 bits"}, "items"),
    }
    assert library.saved == [Path("target")] * 2
    assert library.reader.tqdm is bar


def test_a_library_without_that_bar_needs_none_hidden(library):
    del library.reader.tqdm
    with packaged._no_conversion_bar():
        assert not hasattr(library.reader, "tqdm")
    assert not hasattr(library.reader, "tqdm")
