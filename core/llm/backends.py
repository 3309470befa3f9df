"""The back ends a user can choose: one entry each, so that pages and command line need no special cases."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import InputError
from core.llm.embedded.llm import EmbeddedLLM
from core.llm.ollama.llm import OllamaLLM
from core.llm.ollama.server import DEFAULT_MODEL
from core.llm.ollama.server import list_models as ollama_models
from core.llm.ollama.server import pull as ollama_pull
from core.llm.ollama.server import server_address as ollama_address
from core.llm.openai.endpoint import server_address as openai_address
from core.llm.openai.llm import OpenAICompatibleLLM
from core.llm.openai.llm import list_models as openai_models
from core.llm.packaged import PACKAGED_MODEL
from core.llm.types import DEFAULT_MAX_TOKENS, LLM, PullProgress


@dataclass(frozen=True, slots=True)
class Backend:
    """One kind of back end: its name in commands and for people, and where text is sent.

    The signature of ``open(model, **options)`` lists the options. ``default_model`` is what None means, None
    where the server decides. ``list_models``, ``pull`` and ``address`` (without contacting it, user and
    password) take a ``base_url``; `BackendError` where a server does not answer, `InputError` for no address.
    """

    kind: str
    title: str
    about: str
    open: Callable[..., LLM]
    default_model: str | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    list_models: Callable[..., Sequence[str]] | None = None
    pull: Callable[..., Iterator[PullProgress]] | None = None
    address: Callable[..., str] | None = None


BACKENDS: Mapping[str, Backend] = {
    backend.kind: backend
    for backend in (
        Backend(
            "embedded",
            "Embedded, on this machine",
            "A Hugging Face model in this process; your texts are sent nowhere.",
            EmbeddedLLM,
            default_model=PACKAGED_MODEL,
        ),
        Backend(
            "openai",
            "OpenAI-compatible server",
            "vLLM, llama.cpp, LM Studio, OpenRouter, OpenAI or others; your texts go to the address given.",
            OpenAICompatibleLLM,
            # Many of these models reason before they answer; the others stop by themselves.
            max_tokens=300,
            list_models=openai_models,
            address=openai_address,
        ),
        Backend(
            "ollama",
            "Ollama",
            "A model of an Ollama server, by default on this machine; your texts go to that server.",
            OllamaLLM,
            default_model=DEFAULT_MODEL,
            max_tokens=300,
            list_models=ollama_models,
            pull=ollama_pull,
            address=ollama_address,
        ),
    )
}


def backend(kind: str) -> Backend:
    """Return the back end of that kind; InputError lists the kinds."""
    if kind not in BACKENDS:
        raise InputError(f"The back end must be one of {', '.join(BACKENDS)}, got {kind!r}.")
    return BACKENDS[kind]


def open_llm(kind: str, model: str | None = None, **options: Any) -> LLM:
    """Open a language model.

    ``kind`` is one of `BACKENDS`: ``embedded`` runs in this process, with no server. ``model`` is a name or
    path; None is the back end's default. ``options`` are the back end's own, see the signature of its
    ``open``. Weights are loaded, and servers asked for answers, at the first call.

    `InputError` for an unknown kind or option, `BackendError` where the model cannot be found or loaded.
    """
    chosen = backend(kind)
    try:
        inspect.signature(chosen.open).bind(model, **options)
    except TypeError as error:
        raise InputError(f"The back end {kind} cannot be opened with these options: {error}.") from error
    return chosen.open(model, **options)
