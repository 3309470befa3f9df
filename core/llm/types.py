"""The protocol of language models: requests, completions, capabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from core.errors import Cancelled

DEFAULT_MAX_TOKENS = 24
FINISH_REASONS = ("stop", "length", "content_filter", "reasoning", "error")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; ``role`` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call.

    Where the last of ``messages`` is the assistant's, the model continues it. ``temperature`` 0 = the most
    likely token every time; ``top_p``, in (0, 1], is then without effect. ``seed`` is part of the request's
    identity even at temperature 0, so that repeats make new calls. The answer has at most ``max_tokens``, and
    ends before the first of ``stop``, where leading white space does not count.

    ``schema`` is a JSON Schema as canonical JSON text (`core.llm.structured.canonical`): the answer must be
    JSON that follows it; a back end without ``Capabilities.json_schema`` ignores it. ``logprobs`` asks for
    those of each generated token; `Completion.logprobs` is None where the back end has none.
    """

    messages: tuple[Message, ...]
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    max_tokens: int = DEFAULT_MAX_TOKENS
    stop: tuple[str, ...] = ()
    schema: str | None = None
    logprobs: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply to one request.

    ``text`` has no outer white space; "" when there is none. ``finish_reason`` is one of `FINISH_REASONS`:
    ``stop`` (the model ended), ``length`` (the token limit ended it), ``content_filter`` (the server withheld
    the answer), ``reasoning`` (the token limit was spent on reasoning before any answer), ``error``.
    ``latency`` in seconds; for a batch, its time divided among its calls. ``logprobs`` are natural ones, of
    each generated token. ``error`` says in one sentence why this call has no answer; other calls of the batch
    are not affected.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    latency: float
    logprobs: tuple[float, ...] | None = None
    error: str | None = None

    @classmethod
    def failed(cls, why: str, prompt_tokens: int = 0, latency: float = 0.0) -> Completion:
        """Return the completion of a failed call and the reason."""
        return cls("", "error", prompt_tokens, 0, latency, error=why)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a back end can do.

    ``token_logprobs`` of what it generates; ``answer_logprob`` of a *given* answer: it has a method
    ``score(messages, answers) -> list of (tuple of float or None)``; ``screen`` estimates that without each
    passage, from one reading of the prompt: ``screen(messages, without, answers) -> list of list of (tuple of
    float or None)``. ``json_schema``: follows one while generating. ``seed``: the same gives the same answer.
    ``parallel``: how many `LLM.generate` calls are worth running at once, and ``batch`` how many requests one
    processes together. ``context_length``: max tokens of prompt and answer together; None when unknown.
    ``prefill``: continues an answer that the prompt has begun; else that beginning is left out.
    """

    token_logprobs: bool = False
    answer_logprob: bool = False
    screen: bool = False
    json_schema: bool = False
    seed: bool = False
    parallel: int = 1
    context_length: int | None = None
    batch: int = 1
    prefill: bool = False


@dataclass(frozen=True, slots=True)
class PullProgress:
    """Progress of a download: the current step, and bytes where known."""

    what: str
    done: int | None = None
    total: int | None = None


OnDone = Callable[[int, Completion], None]
IsCancelled = Callable[[], bool]
# From conversations and an answer to each: log-probabilities of the answer's tokens, where available.
Score = Callable[[Sequence[Sequence[Message]], Sequence[str]], Sequence[tuple[float, ...] | None]]


def stop_if(cancelled: IsCancelled | None) -> None:
    """Raise `core.errors.Cancelled` if the user asked to stop."""
    if cancelled is not None and cancelled():
        raise Cancelled("Stopped on request; everything finished so far is kept.")


def prompt_too_long(tokens: str, max_tokens: int, limit: str) -> str:
    """Return the message about a prompt that leaves no room for its answer."""
    return (
        f"The prompt has {tokens} tokens and the answer may take {max_tokens:,}, but {limit}: "
        "use fewer or shorter passages."
    )


class LLM(Protocol):
    """A language model: a batch of requests in, a batch of completions out."""

    @property
    def name(self) -> str:
        """Name of the model, part of every cache key."""
        ...

    @property
    def options(self) -> Mapping[str, object]:
        """Everything else that changes answers, as plain JSON values; part of cache key and manifest."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this back end can do."""
        ...

    def generate(
        self, requests: Sequence[Request], on_done: OnDone | None = None, cancelled: IsCancelled | None = None
    ) -> list[Completion]:
        """Answer every request, in order.

        ``on_done`` gets index and completion as each finishes; what it raises stops the batch. Once
        ``cancelled`` is true, calls are abandoned and `core.errors.Cancelled` is raised. A request that
        cannot be answered gets a completion with ``error``. `TransientError` where the same call may succeed
        later, else `BackendError`.
        """
        ...

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the number of prompt tokens of these messages, without a call to the model."""
        ...
