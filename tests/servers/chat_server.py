"""A small server of the OpenAI chat API that answers whatever a test wants, and what tests ask it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator

import pytest

from core.errors import LeadlineError
from core.llm.openai.llm import OpenAICompatibleLLM
from core.llm.types import Completion, Message, Request
from tests.servers.fault_proxy import Exchange, Fault, FaultProxy, fault_proxy, reply

QUESTION = (
    Message("user", "What is the capital of France? Answer in one word."),
    Message("assistant", "Answer:"),
)
SCHEMA = '{"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}'
Answer = Fault | Callable[[dict], Fault]


def chat(content: object = "Paris", finish: str = "stop", usage: object = None, **message: object) -> Fault:
    """A whole reply with this content; further fields of the message by name."""
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": content} | message,
    }
    return reply(200, {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage or {}})


def refusal(message: str, status: int = 400, **more: object) -> Fault:
    """An error as OpenAI writes it."""
    return reply(status, {"error": {"message": message, "type": "invalid_request_error", **more}})


@contextlib.contextmanager
def chat_server(
    *answers: Answer, models: tuple[str, ...] = ("m",), then: Answer | None = None
) -> Iterator[FaultProxy]:
    """Serve these answers in order, the last one (or ``then``) from then on; a function gets the request's JSON."""
    waiting = itertools.chain(answers, itertools.repeat(then or (answers[-1] if answers else chat())))

    def choose(exchange: Exchange) -> Fault:
        path = exchange.path.split("?")[0]
        if path.endswith("/models"):
            return reply(200, {"object": "list", "data": [{"id": name} for name in models]})
        if not path.endswith("/chat/completions"):
            return reply(404, {"error": {"message": "File Not Found"}})
        answer = next(waiting)
        return answer(exchange.json()) if callable(answer) else answer

    with fault_proxy(None, choose) as server:
        yield server


def ask(question: tuple[Message, ...] = QUESTION, **more: object) -> Request:
    return Request(question, **({"max_tokens": 12, "stop": ("\n",)} | more))


def opened(server: FaultProxy, model: str | None = "m", **options: object) -> OpenAICompatibleLLM:
    return OpenAICompatibleLLM(model, base_url=f"{server.address}/v1", **({"timeout": 20.0} | options))


def one(server: FaultProxy, request: Request | None = None, **options: object) -> Completion:
    return opened(server, **options).generate([request or ask()])[0]


def sent(server: FaultProxy) -> list[dict]:
    """The bodies of the chat requests, in order of arrival."""
    return [exchange.json() for exchange in server.requests("/chat/completions")]


def raised(answer: Answer, *, key: str | None = None, models: tuple[str, ...] = ("m",)) -> LeadlineError:
    """What asking a server raises that answers so."""
    with chat_server(answer, models=models) as server, pytest.raises(LeadlineError) as failed:
        one(server, api_key=key)
    return failed.value
