"""What an OpenAI-compatible server reports about itself: models, context, slots, its tokenizer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import BackendError, TransientError
from core.llm.openai.endpoint import Endpoint
from core.llm.openai.replies import ServerError, error_to_raise, mapping, positive_int, reply_or_error
from core.text.strict import clean

_LIST_SECONDS = 10.0
_FACT_SECONDS = 5.0
_LONGEST_NAME = 200
# In this order: the server's setting comes before the model's limit.
_CONTEXT_NAMES = ("n_ctx", "max_model_len", "context_length", "context_window", "n_ctx_train")


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server reports; ``tokenizer``: one call ("chat", vLLM) or two ("template", llama.cpp)."""

    context_length: int | None = None
    slots: int | None = None  # calls that the server processes at once
    tokenizer: str | None = None


async def fetch_models(client: Any, server: Endpoint) -> list[Mapping[str, Any]]:
    """Return the server's models, each with an ``id``; `BackendError` where it does not list them."""
    server.check_key()
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            reply = await reply_or_error(_parsed(client.get(f"{server.url}/models", cast_to=object)), server)
    except TimeoutError:
        raise TransientError(f"{server.url} did not list its models in {_LIST_SECONDS:g} s.") from None
    if isinstance(reply, ServerError):
        raise error_to_raise(reply, server) or BackendError(
            f"{server.url} does not list its models (HTTP {reply.status})."
        )
    if isinstance(reply, Mapping):
        reply = reply.get("data", reply.get("models"))
    if not isinstance(reply, list):
        raise BackendError(f"{server.url} does not list its models; check the address: most end in /v1.")
    named = [{**entry, "id": _name(entry)} for entry in reply if isinstance(entry, Mapping)]
    return [entry for entry in named if entry["id"]]


def shown_names(models: Sequence[Mapping[str, Any]], most: int = 10) -> str:
    """Return the names of the first models as one text."""
    names = ", ".join(entry["id"] for entry in models[:most])
    return f"{names} …" if len(models) > most else names


async def server_facts(client: Any, server: Endpoint, model: str) -> ServerFacts:
    """Ask what can be known without a call to the model, outside the API of local servers only."""
    slots, tokenizer = None, None
    try:
        models = await fetch_models(client, server)
    except TransientError:
        raise
    except BackendError:
        models = []  # some have no list, or do not show it
    entry = next((m for m in models if m["id"] == model), models[0] if len(models) == 1 else {})
    context = _context(entry)
    if server.local:
        props = await _optional(client.get(f"{server.root}/props", cast_to=object))
        slots = positive_int(props.get("total_slots"))
        context = context or _context(mapping(props.get("default_generation_settings")))
        tokenizer = await _tokenizer(client, server, model)
    return ServerFacts(context, slots, tokenizer)


async def count_prompt(
    client: Any, server: Endpoint, model: str, turns: Sequence[Mapping[str, str]], tokenizer: str
) -> int | None:
    """Return the number of tokens of a prompt; None where the server does not report it."""
    if tokenizer == "chat":
        body = {"model": model, "messages": turns, "add_generation_prompt": True}
        return positive_int((await _post(client, f"{server.root}/tokenize", body)).get("count"))
    shaped = await _post(client, f"{server.root}/apply-template", {"messages": turns})
    if not isinstance(shaped.get("prompt"), str):
        return None
    body = {"content": shaped["prompt"], "add_special": True, "parse_special": True}
    tokens = (await _post(client, f"{server.root}/tokenize", body)).get("tokens")
    return len(tokens) if isinstance(tokens, list) else None


async def _tokenizer(client: Any, server: Endpoint, model: str) -> str | None:
    # One call that both kinds of server understand, each in its own way.
    turns = [{"role": "user", "content": "a"}]
    body = {"model": model, "messages": turns, "content": "a"}
    reply = await _post(client, f"{server.root}/tokenize", body)
    if positive_int(reply.get("count")):
        return "chat"
    if not isinstance(reply.get("tokens"), list):
        return None
    return "template" if await count_prompt(client, server, model, turns, "template") else None


async def _parsed(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except (ValueError, RecursionError):  # not JSON
        return None


async def _post(client: Any, url: str, body: object) -> Mapping[str, Any]:
    return await _optional(client.post(url, cast_to=object, body=body))


async def _optional(call: Awaitable[Any]) -> Mapping[str, Any]:
    """Return the reply to a call that a server need not support; empty where there is none."""
    import openai

    try:
        async with asyncio.timeout(_FACT_SECONDS):
            return mapping(await _parsed(call))
    except (openai.OpenAIError, TimeoutError):
        return {}


def _name(entry: Mapping[str, Any]) -> str:
    name = entry.get("id") or entry.get("name") or entry.get("model")
    return clean(name)[:_LONGEST_NAME] if isinstance(name, str) else ""


def _context(entry: Mapping[str, Any]) -> int | None:
    places = (mapping(entry.get("meta")), entry, mapping(entry.get("top_provider")))
    found = (positive_int(place.get(name)) for name in _CONTEXT_NAMES for place in places)
    return next((value for value in found if value), None)
