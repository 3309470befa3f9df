"""From what a model wrote to its answer: without reasoning, echo and what follows a stop sequence."""

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
    """What a server sent for one request.

    Attributes
    ----------
    content : str
        The text, with whatever reasoning stands in it.
    finish : {"stop", "length", "content_filter"}
        Why the server ended it.
    reasoned : bool
        Whether the server kept reasoning apart from the text.
    tokens : sequence of (bytes, float) or None
        The tokens it wrote with their log-probabilities; None where it gives none.
    prompt_tokens, completion_tokens : int
        Tokens read and written.
    seconds : float
        How long the call took.
    """

    content: str
    finish: str
    reasoned: bool
    tokens: Sequence[tuple[bytes, float]] | None
    prompt_tokens: int
    completion_tokens: int
    seconds: float

    def completion(self, request: Request, prefix: str) -> Completion:
        """Return the answer to a request whose prompt ended with ``prefix``, which was not sent.

        ``logprobs`` are those of the tokens that make the text, where the tokens add up to the content; else
        of all tokens.
        """
        rest, never_ended = without_thoughts(self.content)
        rest = without_echo(rest, prefix)
        start = len(self.content) - len(rest)  # each step only takes something off the beginning
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
    """End a text before the first stop sequence.

    Returns
    -------
    tuple of str and bool
        The text without outer white space, and whether a stop sequence was found. White space in
        front of the text never ends it.
    """
    text = text.lstrip()
    end = first_stop(text, stop)
    return text[:end].strip(), end is not None


def first_stop(text: str, stop: Sequence[str]) -> int | None:
    """Return where the first stop sequence begins in a text; None where there is none."""
    return min((place for place in (text.find(s) for s in stop if s) if place >= 0), default=None)


def without_thoughts(text: str) -> tuple[str, bool]:
    """Take the reasoning off the beginning of a text; tell whether it never came to its end."""
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


def _offset(tokens: bytes, content: bytes) -> int:
    """Where the content begins in the tokens: reasoning may stand before it, an end mark behind it."""
    if tokens.endswith(content):
        return len(tokens) - len(content)
    return 0 if tokens.startswith(content) else tokens.rfind(content)
