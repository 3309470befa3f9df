"""What a step asks of a model: counted, and kept in the completion cache."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from core.errors import Cancelled
from core.llm.cache import CompletionCache, request_key
from core.llm.structured import Ask
from core.llm.types import LLM, Completion, Message, Request, Score
from core.pipeline.asking import Asker, RetryPolicy, Usage

_AT_ONCE = 16  # kept after so many, and cancelled before the next; several times a usual batch


class StepAsker:
    """What a step asks of a language model, if it has one.

    Parameters
    ----------
    llm : LLM or None
        The model; without one there is nothing to ask, and nothing is counted.
    cache : CompletionCache or None
        None keeps calls for this time only.
    retry : RetryPolicy or None
        What to do about transient failures.
    cancelled : callable
        Looked at after every call.
    on_answer : callable
        Called, one thread at a time, with the number of answers by now.

    Attributes
    ----------
    llm : LLM or None
        The model; to be asked through ``ask`` and ``score`` only.
    ask, score : callable or None
        Generate answers; read how likely given ones are. None without a model.
    n_answers : int
        What is known by now, calls from the cache included.
    usage : Usage
        What ``ask`` was spent on.
    """

    def __init__(
        self,
        llm: LLM | None,
        cache: CompletionCache | None,
        retry: RetryPolicy | None,
        cancelled: Callable[[], bool],
        on_answer: Callable[[int], None],
    ) -> None:
        self.llm = llm
        self.usage = Usage()
        self.ask: Ask | None = None
        self.score: Score | None = None
        self.n_answers = 0
        self._on_answer = on_answer
        self._lock = threading.Lock()
        self._scores: KeptScores | None = None
        if llm is not None:
            # An empty cache is false, so None is asked for by name.
            store = cache if cache is not None else CompletionCache()
            asker = Asker(llm, store, retry or RetryPolicy(), cancelled, self._answered)
            self._scores = KeptScores(llm, store, cancelled, self._answered)
            self.ask, self.score, self.usage = asker.ask, self._scores.score, asker.usage

    @property
    def n_made(self) -> int:
        """Calls that were made; those from the cache are not."""
        return self.usage.asked + (self._scores.n_read if self._scores is not None else 0)

    def _answered(self, n: int) -> None:
        with self._lock:
            self.n_answers += n
            self._on_answer(self.n_answers)


class KeptScores:
    """Reads how likely a model holds given answers, through the completion cache.

    Parameters
    ----------
    llm : LLM
        With ``capabilities.answer_logprob``.
    cache : CompletionCache
        Every reading is kept there soon after it is there.
    cancelled : callable
        Looked at between readings.
    on_answer : callable
        Called with the number of readings that are known by now, in addition.
    """

    def __init__(
        self,
        llm: LLM,
        cache: CompletionCache,
        cancelled: Callable[[], bool],
        on_answer: Callable[[int], None],
    ) -> None:
        self.n_read = 0
        self._llm, self._cache = llm, cache
        self._cancelled, self._on_answer = cancelled, on_answer

    def score(
        self, messages: Sequence[Sequence[Message]], answers: Sequence[str]
    ) -> list[tuple[float, ...] | None]:
        """Return the log-probabilities of each answer's tokens, as the model's own ``score``.

        Raises
        ------
        Cancelled
            ``cancelled`` said so; what is read is in the cache.
        """
        pairs = list(zip(messages, answers, strict=True))
        keys = [self._key(turns, answer) for turns, answer in pairs]
        found = {key: kept.logprobs for key, kept in self._cache.get_many(keys).items()}
        if found:
            self._on_answer(sum(key in found for key in keys))
        todo = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in found}
        waiting = list(todo)
        for first in range(0, len(waiting), _AT_ONCE):
            if self._cancelled():
                raise Cancelled("Stopped on request; everything finished so far is kept.")
            part = waiting[first : first + _AT_ONCE]
            read = self._llm.score(  # type: ignore[attr-defined]
                [todo[key][0] for key in part], [todo[key][1] for key in part]
            )
            for key, logprobs in zip(part, read, strict=True):
                found[key] = logprobs
                self._keep(key, todo[key][1], logprobs)
            self.n_read += len(part)
            self._on_answer(len(part))
        return [found[key] for key in keys]

    def _keep(self, key: str, answer: str, logprobs: tuple[float, ...] | None) -> None:
        if logprobs is not None:
            self._cache.put(key, Completion(answer, "stop", 0, 0, 0.0, logprobs=logprobs), self._llm.name)

    def _key(self, turns: Sequence[Message], answer: str) -> str:
        # No call asks for no tokens, so a reading is never taken for one.
        given = (*turns, Message("assistant", answer))
        return request_key(self._llm, Request(given, max_tokens=0, logprobs=True))
