"""Ask a model a batch of calls: from the cache where they are known, each only once, with retries."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tenacity import RetryCallState, Retrying, retry_if_exception_type

from core.errors import Cancelled, TransientError
from core.llm.cache import CompletionCache, request_key
from core.llm.types import LLM, Completion, Request

_SLICE = 0.2  # waits are cut into slices, so that a cancel does not wait


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to go on when the model fails in a way that may pass.

    Attributes
    ----------
    attempts : int
        Tries of one batch in all.
    first_wait, longest_wait : float
        Seconds; waits double from the first to the longest, with jitter. A pause that the server
        asks for is kept even when it is longer.
    budget : float
        Seconds after which a batch is given up.
    """

    attempts: int = 6
    first_wait: float = 1.0
    longest_wait: float = 30.0
    budget: float = 300.0


@dataclass(slots=True)
class Usage:
    """What was asked, counted over all threads."""

    asked: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Asker:
    """Answers requests for one run; shared by its threads.

    Parameters
    ----------
    llm : LLM
        The model.
    cache : CompletionCache
        Every completion is kept there as soon as it is there.
    retry : RetryPolicy
        What to do about transient failures.
    cancelled : callable
        Looked at after every call and during waits.
    on_answer : callable
        Called with the number of requests that have just got their answer.
    """

    def __init__(
        self,
        llm: LLM,
        cache: CompletionCache,
        retry: RetryPolicy,
        cancelled: Callable[[], bool],
        on_answer: Callable[[int], None],
    ) -> None:
        self.usage = Usage()
        self._llm, self._cache, self._retry = llm, cache, retry
        self._cancelled, self._on_answer = cancelled, on_answer
        self._lock = threading.Condition()
        self._in_flight: set[str] = set()

    def ask(self, requests: Sequence[Request]) -> list[Completion]:
        """Return a completion for every request, in order.

        Identical requests are asked once, also when another thread is asking them now.

        Raises
        ------
        Cancelled
            ``cancelled`` said so; what is finished is in the cache.
        CacheError
            A completion could not be kept.
        LeadlineError
            Whatever the model raised once retries were used up.
        """
        self._stop_if_cancelled()
        by_key: dict[str, Request] = {}
        copies: dict[str, int] = {}
        keys = [request_key(self._llm, request) for request in requests]
        for key, request in zip(keys, requests, strict=True):
            by_key.setdefault(key, request)
            copies[key] = copies.get(key, 0) + 1
        found: dict[str, Completion] = {}
        self._take_cached(by_key, found, copies)
        while len(found) < len(by_key):
            missing = [key for key in by_key if key not in found]
            mine = self._claim(missing)
            try:
                # Between looking and claiming another thread may have finished some of them.
                self._take_cached(mine, found, copies)
                mine_left = {key: by_key[key] for key in mine if key not in found}
                if mine_left:
                    self._ask_model(mine_left, found, copies)
            finally:
                self._release(mine)
            if not mine:
                self._wait_for_others(missing)
                self._take_cached(missing, found, copies)
        return [found[key] for key in keys]

    def _take_cached(self, keys: Iterable[str], found: dict[str, Completion], copies: dict[str, int]) -> None:
        known = self._cache.get_many(key for key in keys if key not in found)
        found.update(known)
        if known:
            with self._lock:
                self.usage.cached += len(known)
            self._on_answer(sum(copies[key] for key in known))

    def _ask_model(
        self, requests: dict[str, Request], found: dict[str, Completion], copies: dict[str, int]
    ) -> None:
        policy = self._retry

        def pause(state: RetryCallState) -> float:
            failure = state.outcome.exception() if state.outcome is not None else None
            asked_for = failure.retry_after if isinstance(failure, TransientError) else None
            doubled = policy.first_wait * 2.0 ** min(state.attempt_number - 1, 30)
            # Jitter keeps several threads from coming back at the same moment.
            own = min(doubled, policy.longest_wait) + random.uniform(0, policy.first_wait)
            return max(own, asked_for or 0.0)

        def given_up(state: RetryCallState) -> bool:
            # A server that asks for more than what is left of the budget is not waited for.
            over_budget = (state.seconds_since_start or 0.0) + pause(state) > policy.budget
            return state.attempt_number >= policy.attempts or over_budget

        retrying = Retrying(
            stop=given_up,
            wait=pause,
            retry=retry_if_exception_type(TransientError),
            sleep=self._sleep,
            reraise=True,
        )
        retrying(lambda: self._ask_once(requests, found, copies))

    def _ask_once(
        self, requests: dict[str, Request], found: dict[str, Completion], copies: dict[str, int]
    ) -> None:
        keys = [key for key in requests if key not in found]

        def on_done(index: int, completion: Completion) -> None:
            key = keys[index]
            self._cache.put(key, completion, self._llm.name)
            found[key] = completion
            with self._lock:
                self.usage.asked += 1
                self.usage.prompt_tokens += completion.prompt_tokens
                self.usage.completion_tokens += completion.completion_tokens
            self._on_answer(copies[key])
            if any(key not in found for key in keys):  # a finished batch is not thrown away
                self._stop_if_cancelled()

        completions = self._llm.generate([requests[key] for key in keys], on_done)
        for index, completion in enumerate(completions):
            if keys[index] not in found:  # a back end that does not call on_done for each
                on_done(index, completion)

    def _claim(self, keys: Sequence[str]) -> list[str]:
        with self._lock:
            mine = [key for key in keys if key not in self._in_flight]
            self._in_flight.update(mine)
            return mine

    def _release(self, keys: Sequence[str]) -> None:
        with self._lock:
            self._in_flight.difference_update(keys)
            self._lock.notify_all()

    def _wait_for_others(self, keys: Sequence[str]) -> None:
        with self._lock:
            while all(key in self._in_flight for key in keys):
                self._lock.wait(_SLICE)
                self._stop_if_cancelled()

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._stop_if_cancelled()
            time.sleep(min(left, _SLICE))

    def _stop_if_cancelled(self) -> None:
        if self._cancelled():
            raise Cancelled("Stopped on request; everything finished so far is kept.")
