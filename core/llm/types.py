"""What the pipeline asks of a language model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

DEFAULT_MAX_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; ``role`` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call.

    Attributes
    ----------
    messages : tuple of Message
        In order. When the last one is the assistant's, the model continues it.
    temperature : float
        0 = the most likely token every time; higher = more varied.
    top_p : float
        Share of probability that sampling may choose from, in (0, 1]; without effect at temperature 0.
    seed : int
        Seed of the sampling. Part of the request's identity even at temperature 0, so that repeats
        are really asked again.
    max_tokens : int
        Most tokens to generate.
    stop : tuple of str
        The answer ends before the first of these. White space in front of the answer does not count.
    """

    messages: tuple[Message, ...]
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    max_tokens: int = DEFAULT_MAX_TOKENS
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back.

    Attributes
    ----------
    text : str
        The answer, outer white space removed; "" when there is none.
    finish_reason : str
        ``stop``, ``length`` or ``error``.
    prompt_tokens, completion_tokens : int
        Tokens read and written.
    latency : float
        Seconds the call took; for a batch, its time shared among its calls.
    logprobs : tuple of float or None
        Natural log-probability of each generated token, where the back end gives it.
    error : str or None
        Why this one call has no answer, in one sentence. The other calls of the batch are not touched.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    latency: float
    logprobs: tuple[float, ...] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a back end can do.

    ``parallel`` is how many `LLM.generate` calls gain from running at once, ``batch`` how many
    requests it works on together, ``context_length`` its limit in tokens, None when unknown.
    """

    token_logprobs: bool = False
    answer_logprob: bool = False
    json_schema: bool = False
    seed: bool = False
    parallel: int = 1
    context_length: int | None = None
    batch: int = 1


OnDone = Callable[[int, Completion], None]


class LLM(Protocol):
    """A language model: a batch of requests in, a batch of completions out."""

    @property
    def name(self) -> str:
        """Name of the model, part of every cache key."""
        ...

    @property
    def options(self) -> Mapping[str, object]:
        """Everything else that changes answers, as plain JSON values; goes into cache key and manifest."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this back end can do."""
        ...

    def generate(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Completion]:
        """Answer every request, in order.

        Parameters
        ----------
        requests : sequence of Request
            The batch.
        on_done : callable, optional
            Called with the index and the completion as each one finishes. An exception it raises
            stops the batch and reaches the caller.

        Returns
        -------
        list of Completion
            One per request. A request that cannot be answered has ``error`` set.

        Raises
        ------
        TransientError
            The same call may succeed later.
        BackendError
            The model cannot be reached, loaded or used.
        """
        ...

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens of the prompt these messages make; no call is spent."""
        ...
