"""The back ends a user can choose: one entry each, so that pages and command line special-case none."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import InputError
from core.llm.types import DEFAULT_MAX_TOKENS, LLM


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far a download is: what happens now, and bytes where they are known."""

    what: str
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """One kind of back end.

    Attributes
    ----------
    kind, title, about : str
        Its name in commands, its name for people, and one sentence about where text is sent.
    open : callable
        ``open(model, **options) -> LLM``; its signature says which options there are.
    default_model : str or None
        What ``model=None`` means, for people; None where the server decides.
    max_tokens : int
        Answer tokens where the user gives none.
    takes_base_url : bool
        Whether ``base_url`` is one of its options.
    list_models : callable or None
        ``list_models(base_url=None) -> sequence of str``: what the server has now; `BackendError` where
        it cannot be asked.
    pull : callable or None
        ``pull(model, base_url=None) -> iterator of PullProgress``: fetches a model, once it is iterated.
    address : callable or None
        ``address(base_url=None) -> str``: the server that texts go to, without asking it anything and without
        a user or password that the given address may hold; `InputError` where it is no address.
    """

    kind: str
    title: str
    about: str
    open: Callable[..., LLM]
    default_model: str | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    takes_base_url: bool = False
    list_models: Callable[..., Sequence[str]] | None = None
    pull: Callable[..., Iterator[PullProgress]] | None = None
    address: Callable[..., str] | None = None


def _embedded(model: str | None, *, dtype: str = "auto", device: str = "auto", batch_size: int = 16) -> LLM:
    from core.llm.embedded.llm import EmbeddedLLM

    return EmbeddedLLM(model, dtype=dtype, device=device, batch_size=batch_size)


def _ollama(
    model: str | None,
    *,
    base_url: str | None = None,
    timeout: float = 600.0,
    parallel: int = 4,
    keep_alive: str | float = "5m",
    context: int | None = None,
) -> LLM:
    from core.llm.ollama.llm import OllamaLLM

    return OllamaLLM(
        model, base_url=base_url, timeout=timeout, parallel=parallel, keep_alive=keep_alive, context=context
    )


def _ollama_models(base_url: str | None = None) -> Sequence[str]:
    from core.llm.ollama.llm import list_models

    return list_models(base_url)


def _ollama_pull(model: str, base_url: str | None = None) -> Iterator[PullProgress]:
    from core.llm.ollama.llm import pull

    return pull(model, base_url)


def _ollama_address(base_url: str | None = None) -> str:
    from core.llm.ollama.server import server_address

    return server_address(base_url)


def _openai(
    model: str | None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = 300.0,
    parallel: int = 8,
) -> LLM:
    from core.llm.openai.llm import OpenAICompatibleLLM

    return OpenAICompatibleLLM(model, base_url=base_url, api_key=api_key, timeout=timeout, parallel=parallel)


def _openai_models(base_url: str | None = None, api_key: str | None = None) -> Sequence[str]:
    from core.llm.openai.llm import list_models

    return list_models(base_url, api_key)


def _openai_address(base_url: str | None = None) -> str:
    from core.llm.openai.endpoint import server_address

    return server_address(base_url)


BACKENDS: Mapping[str, Backend] = {
    backend.kind: backend
    for backend in (
        Backend(
            "embedded",
            "Embedded, on this machine",
            "A Hugging Face model in this process; your texts are sent nowhere.",
            _embedded,
            default_model="SmolLM2-135M-Instruct",
        ),
        Backend(
            "openai",
            "OpenAI-compatible server",
            "vLLM, llama.cpp, LM Studio, OpenRouter, OpenAI or others; your texts go to the address given.",
            _openai,
            # Many of these models reason before they answer; the others stop by themselves.
            max_tokens=300,
            takes_base_url=True,
            list_models=_openai_models,
            address=_openai_address,
        ),
        Backend(
            "ollama",
            "Ollama",
            "A model of an Ollama server, by default on this machine; your texts go to that server.",
            _ollama,
            default_model="llama3.2:3b",
            max_tokens=300,
            takes_base_url=True,
            list_models=_ollama_models,
            pull=_ollama_pull,
            address=_ollama_address,
        ),
    )
}


def backend(kind: str) -> Backend:
    """Return the back end of that kind; InputError names the kinds there are."""
    if kind not in BACKENDS:
        raise InputError(f"The back end must be one of {', '.join(BACKENDS)}, got {kind!r}.")
    return BACKENDS[kind]


def open_llm(kind: str, model: str | None = None, **options: Any) -> LLM:
    """Open a language model.

    Parameters
    ----------
    kind : str
        One of `BACKENDS`. ``embedded`` runs in this process, with no server.
    model : str or None
        Name or path; None is the back end's own default.
    **options
        The back end's own, as the signature of its ``open`` has them.

    Returns
    -------
    LLM
        Ready to count tokens; weights are loaded, and servers asked for answers, at the first call.

    Raises
    ------
    InputError
        An unknown kind or option.
    BackendError
        The model cannot be found or loaded.
    """
    chosen = backend(kind)
    try:
        inspect.signature(chosen.open).bind(model, **options)
    except TypeError as error:
        raise InputError(f"The back end {kind} cannot be opened with these options: {error}.") from error
    return chosen.open(model, **options)
