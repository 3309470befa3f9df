"""Models of an Ollama server, through its official client."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from core.errors import BackendError, InputError, LeadlineError
from core.llm.ollama.context import Attempts, ContextWindow, prompt_size
from core.llm.ollama.server import (
    DEFAULT_MODEL,
    CallRefused,
    ModelFacts,
    PromptTooLong,
    Unreadable,
    client_errors,
    explain,
    find_server,
    full_name,
    model_facts,
)
from core.llm.remote import Received, Remote, estimate_tokens, without_prefill
from core.llm.types import Capabilities, Completion, IsCancelled, Message, OnDone, Request, prompt_too_long

# A model's own settings (repetition penalty, top_k …) would change what temperature 0 means, and penalise
# an answer for repeating the words of its passage.
_NEUTRAL = {
    "top_k": 0,
    "min_p": 0.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


class OllamaLLM:
    """A model of an Ollama server.

    The server is first asked for the model's facts when `options` are used. A prompt that Ollama truncated
    never counts as answered: it is asked again with more context, and refused at the limit; see
    `core.llm.ollama.context`. `InputError` for an invalid address or number.

    Parameters
    ----------
    model : str or None
        As in ``ollama list``; None is ``llama3.2:3b``. It is never fetched without a `pull`.
    base_url : str or None
        Address of the server; None is ``OLLAMA_HOST``, else this machine.
    api_key : str or None
        None is ``OLLAMA_API_KEY``, "" none.
    timeout : float
        Seconds after which a call is abandoned. Long, because loading a large model takes minutes.
    parallel : int
        Calls at once; Ollama queues those beyond its own limit.
    keep_alive : str or float
        How long the model stays loaded after a call, as in Ollama (``5m``, seconds, -1 for ever).
    context : int or None
        Max tokens of prompt and answer together, to save memory; None is the model's own limit.
    """

    kind = "ollama"

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 600.0,
        parallel: int = 4,
        keep_alive: str | float = "5m",
        context: int | None = None,
    ) -> None:
        self._remote = Remote(parallel, timeout)
        if context is not None and context <= 0:
            raise InputError(f"context must be above 0, got {context}.")
        self.name = full_name(model or DEFAULT_MODEL)
        self._server = find_server(base_url, api_key)
        self._keep_alive = keep_alive
        self._context = context
        self._parallel = parallel
        self._lock = threading.Lock()
        self._facts: ModelFacts | None = None
        self._window = ContextWindow(context)
        self._gives_logprobs = True
        self._streams: bool | None = None  # unknown before the first answer
        self._client: Any = None

    @property
    def address(self) -> str:
        """The address that texts go to, without secrets."""
        return self._server.url

    @property
    def options(self) -> Mapping[str, object]:
        """The digest of the model, so that the same model on another host shares the cache."""
        return {"backend": self.kind, "digest": self._known().digest}

    @property
    def capabilities(self) -> Capabilities:
        """Log-probabilities until a reply has none, JSON Schema, seeds, parallel calls."""
        with suppress(BackendError):
            self._known()
        return Capabilities(
            token_logprobs=self._gives_logprobs,
            json_schema=True,
            seed=True,
            parallel=self._parallel,
            context_length=self._window.limit,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a run should say about its server."""
        if self._streams is not False:
            return ()
        return (f"The server at {self.address} does not stream answers; they were asked for whole.",)

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Estimate the tokens of the prompt; improves with every answer."""
        return round(estimate_tokens(messages) * self._window.ratio)

    def generate(
        self, requests: Sequence[Request], on_done: OnDone | None = None, cancelled: IsCancelled | None = None
    ) -> list[Completion]:
        """Answer every request, several at once; see `LLM.generate`."""
        facts = self._known()
        self._ready_client()
        sizes = [(prompt_size(request.messages), request.max_tokens) for request in requests]
        least = self._window.common_size(sizes)

        return self._remote.generate(requests, lambda r: self._answer(r, facts, least), on_done, cancelled)

    async def _answer(self, request: Request, facts: ModelFacts, least: int) -> Completion:
        """Ask until the whole prompt was read."""
        attempts = Attempts(self._window, prompt_size(request.messages), request.max_tokens, least)
        while True:
            try:
                reply = await self._chat(request, facts, attempts.num_ctx)
            except CallRefused as error:
                return Completion.failed(str(error))
            except PromptTooLong as error:
                if not attempts.refused(error.tokens):
                    return self._too_long(request, error.tokens, attempts.num_ctx)
                continue
            if not reply.prompt_tokens:
                return Completion.failed(
                    f"Ollama at {self.address} does not report how many prompt tokens it read, so a "
                    "truncated prompt would go unnoticed; update it to 0.5 or later."
                )
            whole = attempts.answered(reply.prompt_tokens, reply.completion_tokens)
            if whole:
                return self._completion(request, reply)
            if whole is False:
                return self._too_long(request, None, attempts.num_ctx)

    async def _chat(self, request: Request, facts: ModelFacts, num_ctx: int) -> Received:
        """Ask for a stream; once for a whole answer where no stream from this server was ever whole."""
        if self._streams is False:
            return await self._reply(request, facts, num_ctx, stream=False)
        try:
            reply = await self._reply(request, facts, num_ctx, stream=True)
        except (Unreadable, CallRefused) as error:
            if self._streams or (isinstance(error, CallRefused) and "stream" not in str(error).casefold()):
                raise
            with suppress(LeadlineError):
                reply = await self._reply(request, facts, num_ctx, stream=False)
                self._streams = False
                return reply
            raise
        self._streams = True
        return reply

    async def _reply(self, request: Request, facts: ModelFacts, num_ctx: int, *, stream: bool) -> Received:
        turns, _ = without_prefill(request.messages)
        try:
            said = await self._ready_client().chat(
                facts.name,
                turns,
                stream=stream,
                think=False if facts.thinks else None,
                logprobs=request.logprobs or None,
                format=json.loads(request.schema) if request.schema is not None else None,
                options={
                    "temperature": request.temperature,
                    "top_p": request.top_p,
                    "seed": request.seed % 2**31,  # a negative one would mean a random one
                    "num_predict": request.max_tokens,
                    "num_ctx": num_ctx,
                    **_NEUTRAL,
                },
                keep_alive=self._keep_alive,
            )
            if stream:
                async with aclosing(said):
                    said = [part async for part in said]
            reply = received(said if stream else [said])
        except client_errors() as error:
            raise explain(error, self.address, self.name) from error
        if reply is None:
            raise Unreadable(f"Ollama at {self.address} stopped in the middle of an answer.")
        return reply

    def _completion(self, request: Request, reply: Received) -> Completion:
        _, prefix = without_prefill(request.messages)
        completion = reply.completion(request, prefix)
        if request.logprobs and completion.text:
            self._gives_logprobs = completion.logprobs is not None
        return completion

    def _too_long(self, request: Request, read: int | None, num_ctx: int) -> Completion:
        limit = self._window.limit or num_ctx
        length = f"{read:,}" if read is not None else f"more than {limit - request.max_tokens:,}"
        reader = "this run lets the model read" if limit == self._context else "the model reads"
        why = prompt_too_long(length, request.max_tokens, f"{reader} {limit:,} in all")
        return Completion.failed(why, read or 0)

    def _known(self) -> ModelFacts:
        """Fetch the model's facts once; `BackendError` where the server does not give them."""
        with self._lock:
            if self._facts is None:
                facts = model_facts(self.name, self._server)
                limits = [n for n in (self._context, facts.context_length) if n is not None]
                self._window = ContextWindow(min(limits, default=None))
                self._facts = facts
            return self._facts

    def _ready_client(self) -> Any:
        # First called outside the event loop: importing the package takes a second.
        with self._lock:
            if self._client is None:
                self._client = self._server.async_client(self._remote.timeout)
            return self._client


def received(parts: Sequence[Any]) -> Received | None:
    """Join the lines of a streamed answer; None where the last one is missing. Counts not reported are 0."""
    last = next((part for part in reversed(parts) if part.done), None)
    if last is None:
        return None
    tokens = [
        (token.token.encode("utf-8", "replace"), token.logprob)
        for part in parts
        if not part.message.thinking
        for token in part.logprobs or ()
    ]
    return Received(
        "".join(part.message.content or "" for part in parts),
        "length" if last.done_reason == "length" else "stop",
        any((part.message.thinking or "").strip() for part in parts),
        tokens or None,
        last.prompt_eval_count or 0,
        last.eval_count or 0,
        (last.total_duration or 0) / 1e9,
    )
