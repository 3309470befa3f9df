"""Models behind the OpenAI chat API: OpenAI itself, vLLM, llama.cpp, LM Studio, OpenRouter and many more."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from core.errors import BackendError
from core.llm.openai.endpoint import find_endpoint
from core.llm.openai.replies import (
    ServerError,
    ServerFacts,
    completion,
    count_prompt,
    error_to_raise,
    fetch_models,
    inner_error,
    read_json,
    reply_or_error,
    server_facts,
    server_message,
    shown_names,
    too_long,
)
from core.llm.remote import Remote, background_loop, estimate_tokens, run_on_loop, without_prefill
from core.llm.types import Capabilities, Completion, IsCancelled, Message, OnDone, Request

_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_OPTIONAL = ("temperature", "top_p", "seed", "top_logprobs", "logprobs", "response_format", *_OTHER_NAME)
_NOT_TAKEN = re.compile(
    r"unsupported|not[ _]support|n't support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed"
    r"|extra[ _](input|field|forbidden)|not implemented|unavailable|not available|incompatible|deprecated",
    re.IGNORECASE,
)
_FORMAT_WORDS = re.compile(r"response_format|json_?\W?schema|json_object|grammar|\bschema\b", re.IGNORECASE)
_OF_THIS_SCHEMA = re.compile(
    r"invalid_?\W?(json_?\W?)?schema|grammar|parser|must contain the word|at #", re.I
)
_OUT_OF_RANGE = re.compile(
    r"too (large|small|high|low)|at (most|least)|must be|between|out of range|(above|below) m|[<>]=?\s*\d",
    re.I,
)
_SCHEMA, _OBJECT, _FREE = range(3)  # how an answer is constrained: by its schema, to any object, not at all


class Parameters:
    """Which parameters one server and model accept, learned from refusals; used on one event loop."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self._limit = "max_tokens"
        self._format = _SCHEMA
        self._formats: dict[str, int] = {}

    @property
    def json_schema(self) -> bool:
        """Whether the server follows a schema, as far as known."""
        return self._format == _SCHEMA

    def body(self, request: Request) -> dict[str, Any]:
        """Return the parameters of a call, without model and messages."""
        wanted: dict[str, Any] = {"temperature": request.temperature, "seed": request.seed}
        if request.temperature > 0:
            # Also when it is 1: some servers have another default.
            wanted["top_p"] = request.top_p
        if request.logprobs:
            # One alternative is the minimum that all servers accept; without it some send twenty.
            wanted |= {"logprobs": True, "top_logprobs": 1}
        if request.schema is not None and (response_format := self._response_format(request.schema)):
            wanted["response_format"] = response_format
        body = {name: value for name, value in wanted.items() if name not in self.refused}
        return body | {self._limit: request.max_tokens}

    def learn(self, error: ServerError, sent: Mapping[str, Any], request: Request) -> bool:
        """Note the parameter, of those ``sent``, that an error names; tell whether to ask again."""
        name = _named(error, sent)
        if name is None:
            return False
        if name == "response_format":
            self._lower_format(error, sent[name]["type"], request)
        elif name in _OTHER_NAME:
            if _OTHER_NAME[name] in self.refused:
                return False
            self._limit = _OTHER_NAME[name]
            self.refused.add(name)
        else:
            self.refused |= {name} | ({"top_logprobs"} if name == "logprobs" else set())
        return True

    def notes(self) -> tuple[str, ...]:
        """Say which refusals affect answers."""
        sampling = sorted(self.refused & {"temperature", "top_p", "seed"})
        if not sampling:
            return ()
        return (f"The server does not accept {', '.join(sampling)}: its own setting was used instead.",)

    def _response_format(self, schema: str) -> dict[str, Any] | None:
        level = max(self._format, self._formats.get(schema, _SCHEMA))
        if level == _SCHEMA:
            named = {"name": "answer", "strict": True, "schema": json.loads(schema)}
            return {"type": "json_schema", "json_schema": named}
        return {"type": "json_object"} if level == _OBJECT else None

    def _lower_format(self, error: ServerError, refused: str, request: Request) -> None:
        level = _OBJECT if refused == "json_schema" else _FREE
        if _OF_THIS_SCHEMA.search(error.text) and request.schema is not None:
            self._formats[request.schema] = max(level, self._formats.get(request.schema, _SCHEMA))
        else:
            self._format = max(level, self._format)


def _named(error: ServerError, sent: Mapping[str, Any]) -> str | None:
    """Return the sent optional parameter that the server does not accept."""
    if error.status not in (400, 422, 501):
        return None
    about_format = error.param.startswith("response_format") or _FORMAT_WORDS.search(error.message)
    if "response_format" in sent and about_format:
        return "response_format"
    if not _NOT_TAKEN.search(error.text):
        return None
    if _OUT_OF_RANGE.search(error.message) and "unsupported" not in error.code:
        return None  # the value is wrong, not the parameter
    root = re.split(r"[.\[]", error.param)[0]
    if root in sent:
        return root
    named = {name: re.search(rf"(?<!\w){name}(?!\w)", error.message) for name in _OPTIONAL if name in sent}
    places = {name: match.start() for name, match in named.items() if match}
    return min(places, key=places.__getitem__, default=None)


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
            final = error.is_a("too_long") or error.is_a("filtered")
            if final or not self._parameters.learn(error, sent, request):
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
        if error.is_a("too_long"):
            why = too_long(error, estimated, request.max_tokens, self._facts.context_length)
            return Completion.failed(why, latency=seconds)
        if error.is_a("filtered"):
            return Completion("", "content_filter", estimated, 0, seconds)
        if error.is_a("no_model"):
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
