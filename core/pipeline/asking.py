"""Calls of a model: cached, without duplicates, counted, with retries."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from core.errors import BackendError, InputError, TransientError
from core.llm.cache import CompletionCache, Row, request_key
from core.llm.remote import Overloaded
from core.llm.types import CANCEL_SECONDS, LLM, Completion, Message, OnDone, Request, stop_if

_READ_AT_ONCE = 16  # readings between writes to the cache and looks at a cancel


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How to retry transient failures of a model; times in seconds.

    ``attempts``: tries of a batch without a new answer; while the server is overloaded, answers to other
    batches reset the count. Waits double from the first to the longest, with jitter, or last as long as the
    server asks. After ``budget`` without a new answer a batch is given up.
    """

    attempts: int = 6
    first_wait: float = 1.0
    longest_wait: float = 30.0
    budget: float = 900.0

    def pause(self, tries: int, asked_for: float | None) -> float:
        """Return the seconds to wait after this many failed tries."""
        doubled = min(self.first_wait * 2.0 ** min(max(tries - 1, 0), 30), self.longest_wait)
        # Jitter keeps several threads from coming back at the same moment.
        return max(doubled, asked_for or 0.0) + random.uniform(0, self.first_wait)


class Store(Protocol):
    """What keeps completions: a `core.llm.cache.CompletionCache`, or a worker's way to that of the driver."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a run should say about it."""
        ...

    def get_many(self, keys: Iterable[str]) -> dict[str, Completion]:
        """Return the completions found, by key."""
        ...

    def put(self, key: str, completion: Completion, model: str = "") -> None:
        """Keep a completion, unless it has an error."""
        ...

    def put_rows(self, rows: Sequence[Row]) -> None:
        """Keep completions that were made rows by `core.llm.cache.row_of`."""
        ...


@dataclass(slots=True)
class _Batch:
    """Requests sent together: ``found`` has all completions of the `Asker.ask`, some ``answered`` by it."""

    requests: dict[str, Request]
    found: dict[str, Completion]
    tell: Callable[[str], object]
    last_answer: float = field(default_factory=lambda: time.monotonic())
    answered: bool = False

    def missing(self) -> list[str]:
        return [key for key in self.requests if key not in self.found]

    def take(self, key: str, completion: Completion) -> None:
        self.found[key] = completion
        self.last_answer = time.monotonic()
        self.answered = True


class Asker:
    """Calls the model for a step, through `ask`, `score` and `screen`; its threads share it.

    ``cache`` keeps every completion as it arrives, by default for this asker only. ``cancelled`` is checked
    after every call and during waits. ``on_answer`` gets ``n_answers`` whenever it grows, one thread at a
    time; steps call ``on_call`` with each `Answered`, ``listened`` tells whether anybody gets it. ``usage``
    has the totals of `ask`, ``n_answers`` those of all, of which ``n_cached`` came from the cache.
    """

    def __init__(
        self,
        llm: LLM | None,
        cache: Store | None = None,
        retry: RetryPolicy | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        on_answer: Callable[[int], object] = lambda _: None,
        on_call: Callable[[Any], object] | None = None,
    ) -> None:
        self.llm = llm
        self.usage = dict.fromkeys(("calls", "cached", "prompt_tokens", "completion_tokens"), 0)
        self.n_answers = self.n_cached = 0
        self.listened = on_call is not None
        self.on_call = on_call or (lambda _: None)
        self.notes_elsewhere: dict[str, None] = {}  # of askers in other processes
        # An empty cache is falsy.
        self.cache: Store = cache if cache is not None else CompletionCache()
        self.retry = retry or RetryPolicy()
        self._cancelled, self._on_answer = cancelled, on_answer
        self._lock = threading.Condition()
        self._telling = threading.Lock()
        self._in_flight: set[str] = set()
        self._n_read = 0  # forward passes of `score`
        self._n_new = 0  # new answers, of all threads
        self._is_down = False  # a batch was given up without an answer, and none has come since

    @property
    def notes(self) -> tuple[str, ...]:
        """What the run should say about its calls: what a server refused, what was asked anew."""
        # A back end learns on the way which settings its server does not accept.
        own = (*getattr(self.llm, "notes", ()), *self.cache.notes)
        return tuple(dict.fromkeys((*own, *self.notes_elsewhere)))

    @property
    def n_made(self) -> int:
        """Calls made, without cached ones."""
        return self.usage["calls"] + self._n_read

    @property
    def counts(self) -> dict[str, int]:
        """Everything that is counted."""
        with self._telling, self._lock:
            own = {"answers": self.n_answers, "from_cache": self.n_cached, "read": self._n_read}
            return own | self.usage

    def count(self, more: Mapping[str, int]) -> None:
        """Add what an asker in another process has counted."""
        with self._telling, self._lock:
            self.n_answers += more["answers"]
            self.n_cached += more["from_cache"]
            self._n_read += more["read"]
            for name in self.usage:
                self.usage[name] += more[name]
        self._on_answer(self.n_answers)

    def ask(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Completion]:
        """Return a completion for every request, in order; ``on_done`` gets each at once, from any thread.

        Identical requests are sent once, also across threads. One that keeps failing gets an ``error``, which
        is not cached. After a whole batch has failed, the next ones are tried only once until an answer
        arrives. Raises `Cancelled` (finished calls are in the cache), `CacheError`, and the model's own error
        where nothing was answered.
        """
        stop_if(self._cancelled)
        llm = self._model
        by_key: dict[str, Request] = {}
        places: dict[str, list[int]] = {}
        keys = [request_key(llm, request) for request in requests]
        for place, (key, request) in enumerate(zip(keys, requests, strict=True)):
            by_key[key] = request
            places.setdefault(key, []).append(place)
        found: dict[str, Completion] = {}

        def tell(key: str, cached: bool = False) -> None:
            if on_done is not None:
                for place in places[key]:
                    on_done(place, found[key])
            self._answered(len(places[key]), cached=cached)

        self._take_cached(by_key, found, tell)
        while len(found) < len(by_key):
            missing = [key for key in by_key if key not in found]
            mine = self._claim(missing)
            try:
                # Another thread may have finished some of them before they were claimed.
                self._take_cached(mine, found, tell)
                mine_left = {key: by_key[key] for key in mine if key not in found}
                if mine_left:
                    self._ask_model(_Batch(mine_left, found, tell))
            finally:
                self._release(mine)
            if not mine:
                self._wait_for_others(missing)
                self._take_cached(missing, found, tell)
        return [found[key] for key in keys]

    def score(
        self, messages: Sequence[Sequence[Message]], answers: Sequence[str], *, at_once: bool = False
    ) -> list[tuple[float, ...] | None]:
        """Return the log-probabilities of each given answer's tokens; None, not cached, where that failed.

        ``at_once`` passes all that is not cached to the model in one call: what conversations share is read
        once.
        """
        llm: Any = self._model
        pairs = list(zip(messages, answers, strict=True))
        keys = [_reading_key(llm, turns, answer) for turns, answer in pairs]
        found = {key: kept.logprobs for key, kept in self.cache.get_many(keys).items()}
        self._answered(sum(key in found for key in keys), cached=True)
        todo = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in found}
        for part in [list(todo)] if at_once and todo else _parts(todo):
            stop_if(self._cancelled)
            read = llm.score([todo[key][0] for key in part], [todo[key][1] for key in part])
            for key, logprobs in zip(part, read, strict=True):
                found[key] = logprobs
                if logprobs is not None:
                    kept = Completion(todo[key][1], "stop", 0, 0, 0.0, logprobs=logprobs)
                    self.cache.put(key, kept, llm.name)
            self._n_read += len(part)
            self._answered(len(part))
        return [found[key] for key in keys]

    def screen(
        self, messages: Sequence[Message], without: Sequence[Sequence[Message]], answers: Sequence[str]
    ) -> list[list[tuple[float, ...] | None]]:
        """Estimate the log-probabilities of given answers; not cached: the cache keeps what is exact."""
        llm: Any = self._model
        stop_if(self._cancelled)
        found: list[list[tuple[float, ...] | None]] = llm.screen(messages, without, answers, self._cancelled)
        self._n_read += len(found) * len(answers)
        self._answered(len(found) * len(answers))
        return found

    @property
    def _model(self) -> LLM:
        if self.llm is None:
            raise InputError("This call needs a language model; none is given.")
        return self.llm

    def _answered(self, n: int, *, cached: bool = False) -> None:
        if n:
            with self._telling:
                self.n_answers += n
                self.n_cached += n if cached else 0
                self._on_answer(self.n_answers)

    def _take_cached(
        self, keys: Iterable[str], found: dict[str, Completion], tell: Callable[[str, bool], object]
    ) -> None:
        known = self.cache.get_many(key for key in keys if key not in found)
        found.update(known)
        with self._lock:
            self.usage["cached"] += len(known)
        for key in known:
            tell(key, True)

    def _ask_model(self, batch: _Batch) -> None:
        """Retry until everything is answered; else raise, or record the error for the missing requests."""
        trial = self._is_down
        tries, answered, of_all = 0, len(batch.found), self._n_new
        while True:
            try:
                self._ask_once(batch)
                return
            except TransientError as error:
                new = len(batch.found) > answered
                elsewhere = isinstance(error, Overloaded) and self._n_new > of_all
                tries = 0 if new or elsewhere else tries + 1
                answered, of_all = len(batch.found), self._n_new
                pause = self.retry.pause(tries, error.retry_after)
                # No wait that the server asks for may exceed the budget.
                over_budget = time.monotonic() - batch.last_answer + pause > self.retry.budget
                if tries >= self.retry.attempts or over_budget or (trial and self._is_down):
                    self._is_down = self._is_down or not batch.answered
                    return self._give_up(batch, error)
            except BackendError as error:
                return self._give_up(batch, error)
            self._sleep(pause)

    def _give_up(self, batch: _Batch, error: BackendError) -> None:
        # One call that keeps failing must not discard the question's other answers.
        if not batch.found:
            raise error
        for key in batch.missing():
            batch.found[key] = Completion("", "error", 0, 0, 0.0, error=str(error))

    def _ask_once(self, batch: _Batch) -> None:
        keys = batch.missing()

        def on_done(index: int, completion: Completion) -> None:
            key = keys[index]
            self.cache.put(key, completion, self._model.name)
            with self._lock:
                batch.take(key, completion)
                self._is_down = False
                self._n_new += 1
                self.usage["calls"] += 1
                self.usage["prompt_tokens"] += completion.prompt_tokens
                self.usage["completion_tokens"] += completion.completion_tokens
            batch.tell(key)
            if any(key not in batch.found for key in keys):  # a finished batch is kept
                stop_if(self._cancelled)

        completions = self._model.generate([batch.requests[key] for key in keys], on_done, self._cancelled)
        for index, completion in enumerate(completions):
            if keys[index] not in batch.found:  # the back end did not call on_done for it
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
                self._lock.wait(CANCEL_SECONDS)
                stop_if(self._cancelled)

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            stop_if(self._cancelled)
            time.sleep(min(left, CANCEL_SECONDS))


def _parts(todo: Mapping[str, tuple[Sequence[Message], str]]) -> Iterator[list[str]]:
    """Yield keys in parts of about `_READ_AT_ONCE`, never cut between answers to one conversation."""
    part: list[str] = []
    for key, (turns, _) in todo.items():
        if len(part) >= _READ_AT_ONCE and turns != todo[part[-1]][0]:
            yield part
            part = []
        part.append(key)
    if part:
        yield part


def _reading_key(llm: LLM, turns: Sequence[Message], answer: str) -> str:
    # No ordinary call has max_tokens 0, so the two never share a key.
    given = (*turns, Message("assistant", answer))
    return request_key(llm, Request(given, max_tokens=0, logprobs=True))
