"""From the lines of a streamed answer to a completion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from core.llm.received import Received
from core.llm.types import Completion, Request
from core.text.strict import clean


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
    tokens : list of (bytes, float)
        The answer's tokens with their log-probabilities, where the server gives them.
    """

    content: str = ""
    thinking: str = ""
    done: bool = False
    done_reason: str = ""
    read: int = 0
    written: int = 0
    seconds: float = 0.0
    tokens: list[tuple[bytes, float]] = field(default_factory=list)

    def add(self, part: Any) -> None:
        """Take in one line of the stream."""
        self.content += part.message.content or ""
        self.thinking += part.message.thinking or ""
        if not part.message.thinking:
            self.tokens += [(clean(t.token).encode(), t.logprob) for t in part.logprobs or ()]
        if part.done:
            self.done = True
            self.done_reason = part.done_reason or ""
            self.read, self.written = part.prompt_eval_count or 0, part.eval_count or 0
            self.seconds = (part.total_duration or 0) / 1e9

    def completion(self, request: Request, prefix: str) -> Completion:
        """Return the whole answer to a request whose prompt ended with ``prefix``, which was not sent."""
        received = Received(
            self.content,
            "length" if self.done_reason == "length" else "stop",
            bool(self.thinking.strip()),
            self.tokens or None,
            self.read,
            self.written,
            self.seconds,
        )
        return received.completion(request, prefix)
