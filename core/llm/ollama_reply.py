"""From the lines of a streamed answer to a completion."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from core.llm.decoding import cut
from core.llm.remote import without_echo
from core.llm.types import Completion, Request

_THOUGHT_BEGINS = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


@dataclass(slots=True)
class Reply:
    """What came so far.

    Attributes
    ----------
    content, thinking : str
        The answer, and the reasoning that the server kept apart from it.
    done : bool
        Whether the last line was there; without it the answer is not whole.
    read, written : int
        Tokens of the prompt, after any cut, and of the answer; 0 where the server does not say.
    seconds : float
        How long the server took.
    tokens : list of (str, float)
        The answer's tokens with their log-probabilities, where the server gives them.
    """

    content: str = ""
    thinking: str = ""
    done: bool = False
    done_reason: str = ""
    read: int = 0
    written: int = 0
    seconds: float = 0.0
    tokens: list[tuple[str, float]] = field(default_factory=list)

    def add(self, part: Any) -> None:
        """Take in one line of the stream."""
        self.content += part.message.content or ""
        self.thinking += part.message.thinking or ""
        if not part.message.thinking:
            self.tokens += [(token.token, token.logprob) for token in part.logprobs or ()]
        if part.done:
            self.done = True
            self.done_reason = part.done_reason or ""
            self.read, self.written = part.prompt_eval_count or 0, part.eval_count or 0
            self.seconds = (part.total_duration or 0) / 1e9

    def completion(self, request: Request, prefix: str) -> Completion:
        """Return the whole answer to a request whose prompt ended with ``prefix``, which was not sent.

        ``logprobs`` are those of the tokens that make the text, where the tokens add up to what came; else
        of all tokens.
        """
        rest, never_ended = _without_thoughts(self.content)
        rest = without_echo(rest, prefix)
        start = len(self.content) - len(rest)  # each step only takes something off the beginning
        text, stopped = cut(rest, request.stop)
        finish = "length" if self.done_reason == "length" and not stopped else "stop"
        reasoned = bool(self.thinking.strip()) or start > 0 or never_ended
        if never_ended or (reasoned and not text and finish == "length"):
            text, finish = "", "reasoning"
        logprobs = self._logprobs(start, text) if request.logprobs and text else None
        return Completion(text, finish, self.read, self.written, self.seconds, logprobs)

    def _logprobs(self, start: int, text: str) -> tuple[float, ...] | None:
        if not self.tokens:
            return None
        joined = "".join(token for token, _ in self.tokens)
        offset = joined.rfind(self.content)
        begin, end = offset + start, offset + start + len(text)
        kept, position = [], 0
        for token, logprob in self.tokens:
            if offset < 0 or (position < end and position + len(token) > begin):
                kept.append(logprob)
            position += len(token)
        return tuple(kept)


def _without_thoughts(text: str) -> tuple[str, bool]:
    """Take the reasoning off the beginning; tell whether it never came to its end."""
    begins = _THOUGHT_BEGINS.match(text)
    ends = _THOUGHT_ENDS.search(text)
    if ends is not None:
        # Some chat formats write the opening tag themselves, so that only the closing one is in the answer.
        return text[ends.end() :], False
    return ("", True) if begins else (text, False)
