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


def _embedded(model: str | None, *, dtype: str = "auto", device: str = "auto", batch_size: int = 16) -> LLM:
    from core.llm.embedded import EmbeddedLLM

    return EmbeddedLLM(model, dtype=dtype, device=device, batch_size=batch_size)


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
