"""From the reply of an OpenAI-compatible server to a completion; nothing it sends breaks anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.errors import TransientError
from core.llm.openai.errors import ServerError, error_of, mapping
from core.llm.received import Received
from core.llm.remote import estimate_tokens
from core.llm.types import Completion, Message, Request
from core.text.strict import clean, finite

_LENGTH = ("length", "max_tokens", "max_output_tokens")


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
    """Turn a reply from `read_json`, without an error in it, into a completion.

    Stop sequences are applied here. ``prefix`` is the beginning of the answer in the prompt, which was not
    sent. `Malformed` where it contains no answer.
    """
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
