"""Load a model of Hugging Face transformers: from where, onto which device, in which dtype."""

from __future__ import annotations

from typing import Any

from core.errors import BackendError
from core.llm.packaged import quiet

_HUB_SECONDS = 10.0
_LOAD_ERRORS = (OSError, ValueError, RuntimeError, KeyError, ImportError)


def ask_hub(source: str, name: str) -> bool:
    """Tell whether the hub offers a model; False: downloaded earlier, `BackendError`: nowhere."""
    from huggingface_hub import HfApi, try_to_load_from_cache

    try:
        HfApi().model_info(source, timeout=_HUB_SECONDS)
    except Exception as error:  # no network, no such model, no permission, not even a valid name
        try:
            cached = isinstance(try_to_load_from_cache(source, "config.json"), str)
        except ValueError:
            cached = False
        if not cached:
            raise BackendError(
                f"The model {name} is not a local folder, was not downloaded before, and the Hugging Face "
                f"hub does not provide it ({type(error).__name__}); check the name and the network."
            ) from error
        return False
    return True


def load_tokenizer(source: str, name: str, *, local: bool) -> tuple[Any, Any]:
    """Return tokenizer and configuration, which need no weights; BackendError where they cannot be loaded."""
    from transformers import AutoConfig, AutoTokenizer

    try:
        with quiet():
            config = AutoConfig.from_pretrained(source, local_files_only=local)
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
    except _LOAD_ERRORS as error:
        raise _unloadable(name, error) from error
    return tokenizer, config


def load_model(source: str, name: str, *, dtype: str, device: str, local: bool) -> Any:
    """Return the model, ready to answer; BackendError where it cannot be loaded."""
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig

    from core.llm.embedded.arithmetic import speed_up

    try:
        with quiet():
            model = AutoModelForCausalLM.from_pretrained(
                source, dtype=getattr(torch, dtype), local_files_only=local
            )
            model = speed_up(model.to(device).eval())
    except _LOAD_ERRORS as error:
        raise _unloadable(name, error) from error
    # A model's own settings (repetition penalty, top_k …) would change what temperature 0 means; only its
    # end tokens are kept.
    model.generation_config = GenerationConfig(eos_token_id=model.generation_config.eos_token_id)
    return model


def end_tokens(tokenizer: Any, model: Any) -> frozenset[int]:
    """Return the tokens that end an answer."""
    own = model.generation_config.eos_token_id
    listed = own if isinstance(own, list) else [own]
    return frozenset(t for t in (*listed, tokenizer.eos_token_id) if t is not None)


def pad_token(tokenizer: Any) -> int:
    """Return the token to pad shorter prompts with; it is never attended to."""
    candidates = (tokenizer.pad_token_id, tokenizer.eos_token_id)
    return next((int(token) for token in candidates if token is not None), 0)


def choose_device(asked: str) -> str:
    """Return the requested device; ``auto`` is a GPU if available, else the processor."""
    if asked != "auto":
        return asked
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def best_dtype(device: str) -> str:
    """Return the fastest dtype of a GPU; on a processor single precision, as fast there as half and exact."""
    import torch

    if device.startswith("cuda"):
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    return "float32"


def _unloadable(name: str, error: Exception) -> BackendError:
    first = str(error).strip().split("\n")[0] or type(error).__name__
    return BackendError(f"The model {name} cannot be loaded: {first}")
