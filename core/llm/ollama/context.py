"""How much context to request from Ollama, and how to notice a truncated prompt.

Ollama reads ``num_ctx`` tokens of prompt and answer together. Of a longer prompt it silently drops whole
earlier turns, then all but the first few tokens and the *end*: as many as ``num_ctx`` holds, in versions of
2026 about half of that; and half of everything when the answer no longer fits. ``prompt_eval_count`` counts
what was kept. With ``truncate: false`` too long a prompt is refused; older servers and proxies drop that
field, so every reply is checked as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.llm.remote import estimate_tokens
from core.llm.types import Message

SMALLEST = 4096  # less saves little memory and makes Ollama load the model again sooner
_LARGEST_UNKNOWN = 131_072  # where the server does not report the model's limit
_BEFORE_LEARNING = 1.5  # `estimate_tokens` is within a third of the truth
_AFTER_LEARNING = 1.25
_DOUBTFUL = 0.75  # a whole prompt has at least this share of the estimate
_TEMPLATE = 64  # tokens that the model's own chat format adds
_LEARN_FROM = 100  # the chat format dominates shorter prompts
_HALF_SLACK = 8  # num_keep is 4 unless a model says otherwise, and one more for the beginning of the text
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class PromptSize:
    """A prompt's length, measured without the model's tokenizer."""

    estimate: int  # tokens, see `estimate_tokens`
    words: int  # between white space: no vocabulary needs fewer tokens
    digits: int = 0  # many vocabularies make one token of each


def prompt_size(messages: Sequence[Message]) -> PromptSize:
    """Measure the prompt these messages make."""
    # A run of spaces is one token or two, not one for every four.
    plain = [Message(m.role, _SPACES.sub(" ", m.content)) for m in messages]
    text = "\n".join(message.content for message in plain)
    return PromptSize(estimate_tokens(plain), len(text.split()), sum(map(str.isdecimal, text)))


class ContextWindow:
    """Chooses ``num_ctx``, checks replies by their counts, and learns the model's token rate from them.

    ``num_ctx`` only grows, in powers of two, because Ollama reloads the model for every change; it counts as
    grown once a call with it has succeeded. ``limit`` is the max tokens of prompt and answer, None when
    unknown.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._most = limit if limit is not None else _LARGEST_UNKNOWN
        self._proven = 0
        self._tokens = 0
        self._estimates = 0
        self._lowest = 1.0

    @property
    def ratio(self) -> float:
        """Tokens of this model per estimated token, 1 until something is learned."""
        return self._tokens / self._estimates if self._estimates else 1.0

    def upper_bound(self, size: PromptSize) -> int:
        """Return a number of tokens that a prompt hardly exceeds."""
        spare = _AFTER_LEARNING if self._estimates else _BEFORE_LEARNING
        return max(size.words, round(size.estimate * self.ratio * spare) + size.digits) + _TEMPLATE

    def choose(self, size: PromptSize, max_tokens: int) -> int:
        """Return the ``num_ctx`` for a prompt and its answer, never more than the limit."""
        return self.size_for(self.upper_bound(size) + max_tokens)

    def common_size(self, sizes: Iterable[tuple[PromptSize, int]]) -> int:
        """Return one ``num_ctx`` for prompts asked together, but for those that hardly fit at all."""
        needed = (self.upper_bound(size) + max_tokens for size, max_tokens in sizes)
        return self.size_for(max((n for n in needed if n <= self._most), default=0))

    def size_for(self, tokens: int) -> int:
        """Return the smallest allowed ``num_ctx`` that holds so many tokens, or the limit."""
        power = 1 << (tokens - 1).bit_length()
        return min(max(power, SMALLEST, self._proven), self._most)

    def larger(self, num_ctx: int) -> int | None:
        """Return the next ``num_ctx``, None where the limit is reached."""
        return min(2 * num_ctx, self._most) if num_ctx < self._most else None

    def was_cut(self, size: PromptSize, num_ctx: int, read: int, written: int) -> bool:
        """Tell whether the prompt was certainly truncated, at once or while the answer was written."""
        return read < size.words or read + max(1, written) > num_ctx

    def may_be_cut(self, size: PromptSize, num_ctx: int, read: int) -> bool:
        """Tell whether the prompt looks truncated; a whole one has the same count at any ``num_ctx``."""
        at_half = 0 <= read - num_ctx // 2 <= _HALF_SLACK
        return at_half or read < _DOUBTFUL * self._lowest * size.estimate

    def leaves_room(self, tokens: int) -> bool:
        """Tell whether a prompt of so many tokens leaves room for any answer."""
        return tokens < self._most

    def size_to_compare(self, num_ctx: int, tokens: int) -> int | None:
        """Return another ``num_ctx`` that holds so many tokens: larger, or smaller at the limit."""
        smaller = num_ctx - num_ctx // 8
        return self.larger(num_ctx) or (smaller if smaller >= tokens else None)

    def learn(self, size: PromptSize, read: int, num_ctx: int) -> None:
        """Learn from the true length of a prompt, and the ``num_ctx`` that worked for it."""
        self._proven = max(self._proven, num_ctx)
        if size.estimate >= _LEARN_FROM:
            self._tokens += read
            self._estimates += size.estimate
            self._lowest = min(self._lowest, read / size.estimate)


class Attempts:
    """The calls for one prompt until it was read whole or is too long; ``num_ctx`` is the next size."""

    def __init__(self, window: ContextWindow, size: PromptSize, max_tokens: int, least: int = 0) -> None:
        self.num_ctx = max(least, window.choose(size, max_tokens))
        self._window, self._size, self._max_tokens = window, size, max_tokens
        self._doubted: int | None = None
        self._at_limit = False

    def refused(self, tokens: int | None) -> bool:
        """Record that the server refused the prompt as too long; tell whether to ask again."""
        bigger = self._window.larger(self.num_ctx)
        if bigger is None or not self._window.leaves_room(tokens or 0):
            return False
        self.num_ctx = max(bigger, self._window.size_for((tokens or 0) + self._max_tokens))
        return True

    def answered(self, read: int, written: int) -> bool | None:
        """Record a reply's counts. True: it counts; None: ask again with ``num_ctx``; False: too long."""
        window = self._window
        if window.was_cut(self._size, self.num_ctx, read, written):
            bigger = window.larger(self.num_ctx)
            if bigger is None or self._at_limit:
                return False
            self.num_ctx = bigger
            return None
        if read == self._doubted or not window.may_be_cut(self._size, self.num_ctx, read):
            window.learn(self._size, read, self.num_ctx)
            return True
        if self._at_limit:
            return False
        self._at_limit = window.larger(self.num_ctx) is None
        another = window.size_to_compare(self.num_ctx, read + self._max_tokens)
        if another is None:
            return window.upper_bound(self._size) <= self.num_ctx
        self.num_ctx, self._doubted = another, read
        return None
