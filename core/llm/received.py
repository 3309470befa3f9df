"""From a model's reply to its answer: without reasoning, echo and anything after a stop sequence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.llm.remote import without_echo
from core.llm.types import Completion, Request

_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Received:
    """A server's reply to one request."""

    content: str  # including any reasoning
    finish: str  # stop, length or content_filter
    reasoned: bool  # whether the server returned reasoning separately
    tokens: Sequence[tuple[bytes, float]] | None  # with their log-probabilities, where available
    prompt_tokens: int
    completion_tokens: int
    seconds: float

    def completion(self, request: Request, prefix: str) -> Completion:
        """Return the answer to a request whose prompt ended with ``prefix``, which was not sent."""
        rest, never_ended = without_thoughts(self.content)
        rest = without_echo(rest, prefix)
        start = len(self.content) - len(rest)  # each step only removes something from the beginning
        text, stopped = cut_at_stop(rest, request.stop)
        finish = "stop" if stopped else self.finish
        if self.finish == "content_filter":
            text, finish = "", "content_filter"
        elif never_ended or (not text and finish == "length" and (self.reasoned or start > 0)):
            text, finish = "", "reasoning"
        return Completion(
            text,
            finish,
            self.prompt_tokens,
            self.completion_tokens,
            self.seconds,
            self._logprobs(start, text) if request.logprobs and text else None,
        )

    def _logprobs(self, start: int, text: str) -> tuple[float, ...] | None:
        if not self.tokens:
            return None
        offset = _offset(b"".join(piece for piece, _ in self.tokens), self.content.encode())
        if offset < 0:
            return tuple(logprob for _, logprob in self.tokens)
        begin = offset + len(self.content[:start].encode())
        end = begin + len(text.encode())
        kept, position = [], 0
        for piece, logprob in self.tokens:
            if position < end and position + len(piece) > begin:
                kept.append(logprob)
            position += len(piece)
        return tuple(kept)


def cut_at_stop(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """Cut a text, stripped, before the first stop sequence; also tell whether there was one."""
    text = text.lstrip()
    end = first_stop(text, stop)
    return text[:end].strip(), end is not None


def first_stop(text: str, stop: Sequence[str]) -> int | None:
    """Return where the first stop sequence begins in a text, or None."""
    return min((place for place in (text.find(s) for s in stop if s) if place >= 0), default=None)


def without_thoughts(text: str) -> tuple[str, bool]:
    """Remove reasoning from the beginning of a text; tell whether it never ended."""
    # Some chat formats write the opening tag themselves, so the answer has only the closing one.
    end = _THOUGHT_ENDS.search(text)
    if end is not None and not _THOUGHT_BEGINS.search(text, 0, end.start()):
        text = text[end.end() :]
    while _THOUGHT_BEGINS.match(text.lstrip()):
        end = _THOUGHT_ENDS.search(text)
        if end is None:
            return "", True
        text = text[end.end() :]
    return text, False


def _offset(tokens: bytes, content: bytes) -> int:
    """Where the content begins in the tokens: reasoning may precede it, an end mark may follow."""
    if tokens.endswith(content):
        return len(tokens) - len(content)
    return 0 if tokens.startswith(content) else tokens.rfind(content)
