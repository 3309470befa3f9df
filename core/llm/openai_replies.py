"""From the reply of an OpenAI-compatible server to a completion; whatever it sends, nothing breaks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import TransientError
from core.llm.decoding import cut
from core.llm.openai_errors import ServerError, error_of
from core.llm.remote import estimate_tokens, without_echo
from core.llm.types import Completion, Message, Request

_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_LENGTH = ("length", "max_tokens", "max_output_tokens")


class Malformed(TransientError):
    """The reply is no answer that the API knows; asked again, the server may do better."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The parts of a reply that matter, with their types made sure of."""

    text: str
    reasoned: bool
    finish: str
    tokens: Sequence[Any] | None
    prompt_tokens: int | None
    completion_tokens: int | None


def read_json(content: bytes, address: str) -> Mapping[str, Any]:
    """Return a reply as a JSON object; `Malformed`, naming the address, where it is none."""
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError):
        shown = "an HTML page" if content.lstrip()[:1] == b"<" else "something that is no JSON"
        raise Malformed(f"{address} answered with {shown}; is this the address of its API?") from None
    if not isinstance(reply, dict):
        raise Malformed(f"{address} answered with JSON that is no object.")
    return reply


def inner_error(reply: Mapping[str, Any]) -> ServerError | None:
    """Return the error that a reply with status 200 holds, as gateways send it."""
    if reply.get("error") and not reply.get("choices"):
        return error_of(reply, 200)
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, dict) and first.get("error"):
        return error_of(first, 200)
    if isinstance(first, dict) and first.get("finish_reason") == "error":
        return ServerError(500, "the answer ended with an error")
    return None


def completion(reply: Mapping[str, Any], request: Request, prefix: str, seconds: float) -> Completion:
    """Turn a reply into a completion.

    Parameters
    ----------
    reply : Mapping
        From `read_json`, without an error in it.
    request : Request
        What was asked; its stop sequences are applied here.
    prefix : str
        The beginning of the answer that the prompt gave and the server was not sent.
    seconds : float
        How long the call took.

    Raises
    ------
    Malformed
        There is no answer in it.

    Notes
    -----
    ``logprobs`` are those of the tokens that make the text, where the reply's tokens add up to its content;
    else of all tokens.
    """
    answer = _answer(reply)
    rest, cut_off = _without_thoughts(answer.text)
    rest = without_echo(rest, prefix)
    start = len(answer.text) - len(rest)  # each step only takes something off the beginning
    text, stopped = cut(rest, request.stop)
    finish = "stop" if stopped else answer.finish
    if answer.finish == "content_filter":
        text, finish = "", "content_filter"
    elif cut_off or (not text and finish == "length" and answer.reasoned):
        text, finish = "", "reasoning"
    return Completion(
        text,
        finish,
        estimate_tokens(request.messages) if answer.prompt_tokens is None else answer.prompt_tokens,
        _guess(answer.text) if answer.completion_tokens is None else answer.completion_tokens,
        seconds,
        _logprobs(answer, start, text) if request.logprobs and text else None,
    )


def _answer(reply: Mapping[str, Any]) -> _Answer:
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise Malformed("The server's reply has no answer in it.")
    text, thought = _text_of(message.get("content"))
    refusal = message.get("refusal")
    if not text and isinstance(refusal, str):
        text = refusal
    usage = _mapping(reply.get("usage"))
    details = _mapping(usage.get("completion_tokens_details"))
    reasoned = (
        thought
        or any(
            isinstance(message.get(name), str) and message[name]
            for name in ("reasoning_content", "reasoning")
        )
        or bool(_count(details.get("reasoning_tokens")))
    )
    tokens = _mapping(choice.get("logprobs")).get("content")
    return _Answer(
        text,
        reasoned,
        _finish(choice.get("finish_reason")),
        tokens if isinstance(tokens, list) else None,
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
    )


def _text_of(content: object) -> tuple[str, bool]:
    """Return the text of a content, and whether thoughts stand beside it."""
    if content is None:
        return "", False
    if isinstance(content, str):
        return _encodable(content), False
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise Malformed("The content of the server's reply is no text.")
    texts = [part["text"] for part in content if isinstance(part.get("text"), str)]
    return _encodable("".join(texts)), any("thinking" in part for part in content)


def _finish(reason: object) -> str:
    if reason in _LENGTH:
        return "length"
    return "content_filter" if reason == "content_filter" else "stop"


def _without_thoughts(text: str) -> tuple[str, bool]:
    """Take the reasoning off the beginning; tell whether it never came to its end."""
    # Some chat formats write the opening tag themselves, so that only the closing one is in the answer.
    end = _THOUGHT_ENDS.search(text)
    if end is not None and not _THOUGHT_BEGINS.search(text, 0, end.start()):
        text = text[end.end() :]
    while _THOUGHT_BEGINS.match(text.lstrip()):
        end = _THOUGHT_ENDS.search(text)
        if end is None:
            return "", True
        text = text[end.end() :]
    return text, False


def _logprobs(answer: _Answer, start: int, text: str) -> tuple[float, ...] | None:
    """Return the log-probabilities of the tokens that make ``text``, at ``start`` of the content."""
    if not answer.tokens:
        return None
    values = [_finite(t.get("logprob")) if isinstance(t, dict) else None for t in answer.tokens]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    pieces = [_bytes_of(token) for token in answer.tokens]
    offset = _offset(b"".join(pieces), answer.text.encode())
    if offset < 0:
        return tuple(known)
    begin = offset + len(answer.text[:start].encode())
    end = begin + len(text.encode())
    kept, position = [], 0
    for value, piece in zip(known, pieces, strict=True):
        if position < end and position + len(piece) > begin:
            kept.append(value)
        position += len(piece)
    return tuple(kept)


def _offset(tokens: bytes, content: bytes) -> int:
    """Where the content begins in the tokens: reasoning may stand before it, an end mark behind it."""
    if tokens.endswith(content):
        return len(tokens) - len(content)
    return 0 if tokens.startswith(content) else tokens.rfind(content)


def _bytes_of(token: Mapping[str, Any]) -> bytes:
    raw = token.get("bytes")
    if isinstance(raw, list) and all(isinstance(b, int) and 0 <= b < 256 for b in raw):
        return bytes(raw)
    text = token.get("token")
    return _encodable(text).encode() if isinstance(text, str) else b""


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _count(value: object) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if fits and isinstance(value, int) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _guess(text: str) -> int:
    return estimate_tokens((Message("assistant", text),)) if text else 0


def _encodable(text: str) -> str:
    # Half of a surrogate pair cannot be saved.
    return text.encode("utf-8", "replace").decode()
