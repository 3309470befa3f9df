"""Language models behind one small protocol."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from core.errors import InputError
from core.llm.cache import CompletionCache, default_cache_path, request_key
from core.llm.types import LLM, Capabilities, Completion, Message, Request

__all__ = [
    "BACKENDS",
    "LLM",
    "Capabilities",
    "Completion",
    "CompletionCache",
    "Message",
    "Request",
    "default_cache_path",
    "open_llm",
    "request_key",
]


def _embedded(model: str | None, *, dtype: str = "auto", device: str = "auto", batch_size: int = 16) -> LLM:
    from core.llm.embedded import EmbeddedLLM

    return EmbeddedLLM(model, dtype=dtype, device=device, batch_size=batch_size)


BACKENDS: Mapping[str, Callable[..., LLM]] = {"embedded": _embedded}


def open_llm(kind: str, model: str | None = None, **options: Any) -> LLM:
    """Open a language model.

    Parameters
    ----------
    kind : str
        One of `BACKENDS`. ``embedded`` runs in this process, with no server.
    model : str or None
        Name or path; None is the back end's own default.
    **options
        The back end's own; for ``embedded``: ``dtype``, ``device``, ``batch_size``.

    Returns
    -------
    LLM
        Ready to count tokens; the weights are loaded at the first call.

    Raises
    ------
    InputError
        An unknown kind or option.
    BackendError
        The model cannot be found or loaded.
    """
    if kind not in BACKENDS:
        raise InputError(f"The back end must be one of {', '.join(BACKENDS)}, got {kind!r}.")
    try:
        inspect.signature(BACKENDS[kind]).bind(model, **options)
    except TypeError as error:
        raise InputError(f"The back end {kind} cannot be opened with these options: {error}.") from error
    return BACKENDS[kind](model, **options)
