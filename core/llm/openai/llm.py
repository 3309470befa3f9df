"""Models behind the OpenAI chat API: OpenAI itself, vLLM, llama.cpp, LM Studio, OpenRouter and many more."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from core.errors import BackendError
from core.llm.openai.endpoint import find_endpoint
from core.llm.openai.facts import ServerFacts, count_prompt, fetch_models, server_facts, shown_names
from core.llm.openai.parameters import Parameters
from core.llm.openai.replies import (
    ServerError,
    completion,
    error_to_raise,
    inner_error,
    read_json,
    reply_or_error,
    server_message,
    too_long,
)
from core.llm.remote import Remote, background_loop, estimate_tokens, run_on_loop, without_prefill
from core.llm.types import Capabilities, Completion, IsCancelled, Message, OnDone, Request

T = TypeVar("T")
_MOST_TRIES = 10  # more than the parameters that a server can refuse
_FORGET_SECONDS = 30.0  # before asking again for facts that a server did not give


class OpenAICompatibleLLM:
    """A model behind a server that speaks OpenAI's chat API.

    A begun answer at the end of a prompt is not sent, as most servers would answer it as a turn of its own.
    Stop sequences are not sent either, since a server would stop at the white space before the answer; they
    are applied to the reply. A parameter that the server refuses is left out from then on; `notes` says where
    that changes answers. `InputError` for an invalid address, key or number.

    Parameters
    ----------
    model : str or None
        The server's name for it; None where the server has exactly one, else `BackendError`.
    base_url : str or None
        Address, with the version: ``http://localhost:8000/v1``. None is ``OPENAI_BASE_URL``, else OpenAI.
    api_key : str or None
        None is ``OPENAI_API_KEY``; "" is no key, even where that is set. It is sent to the server and kept
        nowhere else: not in `options`, not in an error.
    timeout : float
        Seconds after which a call is abandoned.
    parallel : int
        Max calls at once; fewer where the server is overloaded or reports fewer slots. A server that reports
        slots gets the calls of one question one after another, and so many questions at once.
    """

    kind = "openai"

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 300.0,
        parallel: int = 8,
    ) -> None:
        self._remote = Remote(parallel, timeout)
        self._server = find_endpoint(base_url, api_key)
        self._parallel = parallel
        self._parameters = Parameters()
        self._gives_logprobs = True
        self._lock = threading.Lock()
        self._facts = ServerFacts()
        self._facts_until = 0.0  # when to ask again
        self._client_lock = threading.Lock()
        self._client: Any = None
        self.name = (model or "").strip() or self._only_model()

    def __repr__(self) -> str:
        return f"OpenAICompatibleLLM({self.name!r}, base_url={self.address!r})"

    @property
    def address(self) -> str:
        """The address that texts go to, without secrets."""
        return self._server.url

    @property
    def options(self) -> Mapping[str, object]:
        """Which server: another one may have another model under the same name."""
        return {"backend": self.kind, "base_url": self.address}

    @property
    def notes(self) -> tuple[str, ...]:
        """Settings that the server did not accept, for readers of the answers."""
        return self._parameters.notes()

    @property
    def capabilities(self) -> Capabilities:
        """What the server can do; anything not refused yet counts."""
        facts, refused = self._known(), self._parameters.refused
        return Capabilities(
            token_logprobs=self._gives_logprobs and "logprobs" not in refused,
            json_schema=self._parameters.json_schema,
            seed="seed" not in refused,
            parallel=self._remote.limit.most,
            context_length=facts.context_length,
        )

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the tokens of the prompt: counted where a local server can, else estimated."""
        turns, _ = without_prefill(messages)
        tokenizer = self._known().tokenizer
        counted = None
        if tokenizer is not None:
            counted = self._run(
                lambda client: count_prompt(client, self._server, self.name, turns, tokenizer)
            )
        return estimate_tokens(messages) if counted is None else counted

    def generate(
        self, requests: Sequence[Request], on_done: OnDone | None = None, cancelled: IsCancelled | None = None
    ) -> list[Completion]:
        """Answer every request, several at once; see `LLM.generate`."""
        self._server.check_key()
        self._known()  # how many calls at once
        self._ready_client()
        return self._remote.generate(requests, self._ask, on_done, cancelled)

    async def _ask(self, request: Request) -> Completion:
        """Ask until the server accepts all the parameters."""
        turns, prefix = without_prefill(request.messages)
        chat = self._ready_client().chat.completions.with_raw_response
        started = time.perf_counter()
        for _ in range(_MOST_TRIES):
            sent = self._parameters.body(request)
            reply = await reply_or_error(chat.create(model=self.name, messages=turns, **sent), self._server)
            if isinstance(reply, ServerError):
                error = reply
            else:
                content = read_json(reply.content, self.address)
                found = inner_error(content)
                if found is None:
                    return self._checked(
                        completion(content, request, prefix, time.perf_counter() - started), request
                    )
                error = found
            if error.too_long or error.filtered or not self._parameters.learn(error, sent, request):
                break
        return await self._unanswered(error, request, time.perf_counter() - started)

    def _checked(self, answer: Completion, request: Request) -> Completion:
        if request.logprobs and answer.text and answer.logprobs is None:
            self._gives_logprobs = False
        text = self._server.without_key(answer.text)
        if text == answer.text:
            return answer
        return replace(answer, text=text, logprobs=None)  # they belong to the original text

    async def _unanswered(self, error: ServerError, request: Request, seconds: float) -> Completion:
        """Return why this request has no answer, or raise where others would fail too."""
        estimated = estimate_tokens(request.messages)
        if error.too_long:
            why = too_long(error, estimated, request.max_tokens, self._facts.context_length)
            return Completion.failed(why, latency=seconds)
        if error.filtered:
            return Completion("", "content_filter", estimated, 0, seconds)
        if error.no_model:
            raise BackendError(await self._no_such_model())
        raised = error_to_raise(error, self._server)
        if raised is not None:
            raise raised
        message = server_message(error, self._server)
        why = f"{self.address} refused this request (HTTP {error.status}): {message}."
        return Completion.failed(why, latency=seconds)

    async def _no_such_model(self) -> str:
        try:
            models = await fetch_models(self._ready_client(), self._server)
        except BackendError:
            models = []
        there = f"it has {self._server.scrub(shown_names(models))}" if models else "ask it for its models"
        return f"{self.address} has no model {self.name}; {there}."

    def _only_model(self) -> str:
        models = self._run(lambda client: fetch_models(client, self._server))
        if len(models) == 1:
            return str(models[0]["id"])
        there = f"{self.address} has {len(models)} models"
        names = self._server.scrub(shown_names(models))
        raise BackendError(f"{there}; name one of them: {names}." if models else f"{there} to choose from.")

    def _known(self) -> ServerFacts:
        with self._lock:
            if time.monotonic() >= self._facts_until:
                try:
                    self._facts = self._run(lambda client: server_facts(client, self._server, self.name))
                    self._facts_until = float("inf")
                except BackendError:
                    # If it stays so, the calls themselves will say what is wrong.
                    self._facts_until = time.monotonic() + _FORGET_SECONDS
                self._remote.limit.most = min(self._parallel, self._facts.slots or self._parallel)
                self._remote.one_by_one = self._facts.slots is not None
            return self._facts

    def _run(self, question: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        return run_on_loop(question(self._ready_client()))

    def _ready_client(self) -> Any:
        # Kept to reuse connections. First called outside the event loop: importing the package takes a
        # second, in which no other call would proceed.
        with self._client_lock:
            if self._client is None:
                self._client = self._server.client(self._remote.timeout)
                weakref.finalize(self, _close, self._client).atexit = False
            return self._client


def list_models(base_url: str | None = None, api_key: str | None = None) -> list[str]:
    """Return the names of the server's models, in its own order.

    The parameters are those of `OpenAICompatibleLLM`; pages pass those that the signature names, so without
    ``api_key`` the environment's own key would go to any address. `BackendError` where it does not answer.
    """
    server = find_endpoint(base_url, api_key)
    opened = server.client(_FORGET_SECONDS)

    async def ask() -> list[str]:
        async with opened as client:
            return [str(entry["id"]) for entry in await fetch_models(client, server)]

    return run_on_loop(ask())


def _close(client: Any) -> None:
    asyncio.run_coroutine_threadsafe(client.close(), background_loop())
