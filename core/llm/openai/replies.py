"""What an OpenAI-compatible server sends: facts, answers and errors; nothing it sends breaks a run."""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import re
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from core.errors import BackendError, LeadlineError, TransientError
from core.llm.openai.endpoint import Endpoint
from core.llm.remote import Overloaded, Received, estimate_tokens
from core.llm.types import Completion, Message, Request, prompt_too_long
from core.text.strict import clean, finite

T = TypeVar("T")
_OVERLOADED = frozenset({429, 503, 529})
_PASSING = frozenset({408, 409, 425})
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed\w*_context|(maximum|available) context|context (length|size|window)"
    r"|prompt is too long|too many (input |prompt )?tokens|input (is )?too long",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content[ _-]?(filter|policy|management|moderation)|responsible ?ai|safety (system|filter)"
    r"|moderation (flagged|blocked)|was flagged|data_inspection_failed",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient[ _](quota|balance|credits?|funds)|billing_(hard_)?limit", re.IGNORECASE
)
_LENGTH = ("length", "max_tokens", "max_output_tokens")
_NO_MODEL = re.compile(
    r"model_not_found|model\b.{0,120}(not found|does not exist|not exist|no longer available)"
    r"|not a valid model|unknown model|invalid model|no such model",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"(?:context (?:length|size|window)|maximum)\D{0,40}(\d[\d,]*)", re.IGNORECASE)
_READ = re.compile(
    r"(\d[\d,]*) in the (?:messages|prompt)|resulted in (\d[\d,]*) tokens|request \((\d[\d,]*) tokens"
    r"|passed (\d[\d,]*) (?:input )?tokens|(?:prompt|input)\D{0,30}?(\d[\d,]*) (?:input )?tokens"
    r"|prompt is too long: (\d[\d,]*)",
    re.IGNORECASE,
)
# Statuses and words of an error: the prompt does not fit, a filter stopped it, there is no such model.
_KINDS = {
    "too_long": ((400, 413, 422, 500), _TOO_LONG),
    "filtered": ((400, 403, 422, 451), _FILTERED),
    "no_model": ((400, 404), _NO_MODEL),
}


@dataclass(frozen=True, slots=True)
class ServerError:
    """A parsed error reply."""

    status: int  # HTTP status, or the error's own number in a reply with status 200
    message: str  # the server's own: it may repeat secrets
    code: str = ""  # ``code`` and ``type`` together
    param: str = ""  # the parameter it is about
    facts: Mapping[str, Any] = field(default_factory=dict)  # the whole error object
    pause: float | None = None  # seconds the server asks to wait

    @property
    def text(self) -> str:
        """Code and message, to search for words."""
        return f"{self.code} {self.message}"

    def is_a(self, kind: str) -> bool:
        """Whether it is of a kind of `_KINDS`: ``too_long``, ``filtered`` or ``no_model``."""
        statuses, words = _KINDS[kind]
        return self.status in statuses and bool(words.search(self.text))


async def reply_or_error(call: Awaitable[T], server: Endpoint) -> T | ServerError:
    """Await a call of the client; its exceptions, which hold secrets, become our own."""
    import openai

    try:
        return await call
    except openai.APIStatusError as error:
        reply = error.response
        return read_error(reply.status_code, reply.headers, reply.content)
    except openai.APITimeoutError:
        failure: LeadlineError = Overloaded(f"{server.url} did not answer in time.")
    except openai.APIConnectionError as error:
        failure = _unconnected(error, server)
    except openai.OpenAIError as error:
        failure = TransientError(server.scrub(f"The call to {server.url} failed: {error}."))
    raise failure


def _unconnected(error: BaseException, server: Endpoint) -> LeadlineError:
    cause = error.__cause__ or error
    why = server.scrub(str(cause)).rstrip(".") or type(cause).__name__
    if "CERTIFICATE_VERIFY_FAILED" in why:
        return BackendError(f"The certificate of {server.url} cannot be verified: {why}.")
    if type(cause).__name__ == "ConnectError":
        return TransientError(
            f"No server answers at {server.url} ({why}); start it, or check the address (OPENAI_BASE_URL)."
        )
    return TransientError(f"The connection to {server.url} broke in the middle of a call ({why}).")


def read_error(status: int, headers: Mapping[str, str], content: bytes) -> ServerError:
    """Parse an error reply; servers write it in many forms."""
    pause = retry_after(headers)
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        text = content[:2000].decode("utf-8", "replace").strip()
        return ServerError(status, "an HTML page" if text.startswith("<") else text, pause=pause)
    return replace(error_of(body, status, pause), status=status)


def error_of(body: object, status: int, pause: float | None = None) -> ServerError:
    """Parse the JSON of an error; its own number counts where the status is a success."""
    fine = status < 400
    status = 500 if fine else status
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        return ServerError(status, body if isinstance(body, str) else "", pause=pause)
    inner = body.get("error", body)
    facts: Mapping[str, Any] = inner if isinstance(inner, Mapping) else body
    message = inner if isinstance(inner, str) else _first_text(facts, "message", "detail", "error", "msg")
    code = " ".join(str(facts[name]) for name in ("code", "type", "status") if facts.get(name))
    number = facts.get("code")
    if fine and isinstance(number, int) and 400 <= number < 600:
        status = number
    param = facts.get("param")
    return ServerError(status, message, code, param if isinstance(param, str) else "", facts, pause)


def _first_text(facts: Mapping[str, Any], *names: str) -> str:
    value = next((facts[name] for name in names if facts.get(name)), "")
    return value if isinstance(value, str) else json.dumps(value, default=str)[:2000]


def server_message(error: ServerError, server: Endpoint) -> str:
    """Return the server's message, safe to store, without the full stop."""
    return server.scrub(error.message).rstrip(".") or "no message"


def error_to_raise(error: ServerError, server: Endpoint) -> LeadlineError | None:
    """Return the error to raise; None where only this request cannot be answered."""
    said = f"{server.url} answered HTTP {error.status}: {server_message(error, server)}"
    if error.status == 402 or _NO_CREDIT.search(error.text):
        return BackendError(f"The account has no credit left: {said}.")
    if error.status in (401, 403):
        return BackendError(_refused_key(error.status, server))
    if error.status in _OVERLOADED:
        return Overloaded(f"The server is overloaded or limits the rate of calls: {said}.", error.pause)
    if error.status in _PASSING or error.status >= 500:
        return TransientError(f"{said}.", error.pause)
    if error.status in (404, 405):
        return BackendError(f"{said}; check the address: with most servers it ends in /v1.")
    return BackendError(f"{said}.") if error.status < 400 else None


def _refused_key(status: int, server: Endpoint) -> str:
    # The server's message may repeat the key, in part or in whole: leave it out.
    if server.key is None and server.login is None:
        return f"{server.url} asks for an API key (HTTP {status}) and none was given; set OPENAI_API_KEY."
    return f"{server.url} refused the API key (HTTP {status}); set OPENAI_API_KEY to a key that it accepts."


def too_long(error: ServerError, estimated: int, max_tokens: int, limit: int | None) -> str:
    """Say how long the prompt is and the model's limit, as far as the server reports them."""
    tokens = positive_int(error.facts.get("n_prompt_tokens")) or _found(_READ, error.message)
    limit = positive_int(error.facts.get("n_ctx")) or _found(_LIMIT, error.message) or limit
    prompt = f"{tokens:,}" if tokens else f"about {estimated:,}"
    reads = f"the model reads {limit:,} in all" if limit else "that is more than the model reads"
    return prompt_too_long(prompt, max_tokens, reads)


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object of a server's JSON; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def positive_int(value: object) -> int | None:
    """Return a whole number above 0 from a server's JSON, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _found(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    digits = next((g for g in match.groups() if g), "") if match else ""
    return int(digits.replace(",", "")) if 0 < len(digits) <= 12 else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the pause in seconds that the header Retry-After asks for, as a number or a date, or None."""
    text = headers.get("retry-after") or ""
    try:
        pause = float(text)
    except ValueError:
        try:
            pause = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return max(0.0, pause) if math.isfinite(pause) else None


class Malformed(TransientError):
    """The reply is not an answer of the API; the server may do better if asked again."""


def read_json(content: bytes, address: str) -> Mapping[str, Any]:
    """Return a reply as a JSON object; `Malformed`, naming the address, where it is not one."""
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError):
        shown = "an HTML page" if content.lstrip()[:1] == b"<" else "something that is not JSON"
        raise Malformed(f"{address} answered with {shown}; is this the address of its API?") from None
    if not isinstance(reply, dict):
        raise Malformed(f"{address} answered with JSON that is not an object.")
    return reply


def inner_error(reply: Mapping[str, Any]) -> ServerError | None:
    """Return the error inside a reply with status 200, as gateways send it."""
    if reply.get("error") and not reply.get("choices"):
        return error_of(reply, 200)
    first = _first_choice(reply)
    if first.get("error"):
        return error_of(first, 200)
    if first.get("finish_reason") == "error":
        return ServerError(500, "the answer ended with an error")
    return None


def completion(reply: Mapping[str, Any], request: Request, prefix: str, seconds: float) -> Completion:
    """Turn a reply without an error into a completion; `Malformed` where it has no answer."""
    choice = _first_choice(reply)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Malformed("The server's reply contains no answer.")
    text, thought = _text_of(message.get("content"))
    refusal = message.get("refusal")
    if not text and isinstance(refusal, str):
        text = refusal
    usage = mapping(reply.get("usage"))
    details = mapping(usage.get("completion_tokens_details"))
    apart = (message.get(name) for name in ("reasoning_content", "reasoning"))
    reasoned = thought or any(isinstance(t, str) and t for t in apart)
    read, written = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if written is None:
        written = estimate_tokens((Message("assistant", text),)) if text else 0
    received = Received(
        text,
        _finish(choice.get("finish_reason")),
        reasoned or bool(_count(details.get("reasoning_tokens"))),
        _tokens(mapping(choice.get("logprobs")).get("content")),
        estimate_tokens(request.messages) if read is None else read,
        written,
        seconds,
    )
    return received.completion(request, prefix)


def _text_of(content: object) -> tuple[str, bool]:
    """Return the text of a content, and whether it also contains reasoning."""
    if content is None:
        return "", False
    if isinstance(content, str):
        return clean(content), False
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise Malformed("The content of the server's reply is not text.")
    texts = [part["text"] for part in content if isinstance(part.get("text"), str)]
    return clean("".join(texts)), any("thinking" in part for part in content)


def _finish(reason: object) -> str:
    if reason in _LENGTH:
        return "length"
    return "content_filter" if reason == "content_filter" else "stop"


def _tokens(entries: object) -> list[tuple[bytes, float]] | None:
    """Return tokens and their log-probabilities; None where one of them has none."""
    if not isinstance(entries, list):
        return None
    tokens = []
    for entry in entries:
        value = finite(entry.get("logprob")) if isinstance(entry, dict) else None
        if value is None:
            return None
        tokens.append((_bytes_of(entry), value))
    return tokens


def _bytes_of(token: Mapping[str, Any]) -> bytes:
    raw = token.get("bytes")
    if isinstance(raw, list) and all(isinstance(b, int) and 0 <= b < 256 for b in raw):
        return bytes(raw)
    text = token.get("token")
    return clean(text).encode() if isinstance(text, str) else b""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _first_choice(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = reply.get("choices")
    return mapping(choices[0] if isinstance(choices, list) and choices else None)


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
