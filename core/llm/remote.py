"""Calls to a server: many at once, each with a deadline, and from its replies to answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from core.errors import InputError, TransientError
from core.llm.types import CANCEL_SECONDS, Completion, IsCancelled, Message, OnDone, Request, stop_if
from core.text.strict import clean

T = TypeVar("T")
Call = Callable[[Request], Awaitable[Completion]]
_LAST_SECONDS = 10.0  # time to store answers that have arrived, after a cancel


class Overloaded(TransientError):
    """The server is overloaded (429, 503, a timeout): fewer calls at once will help."""


class Paused(Overloaded):
    """The server asked for a pause that is not over, so the call was not made."""


class AdaptiveLimit:
    """How many calls may run at once: halved on an overload, then one more per round (Chiu and Jain 1989)."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._limit = float(most)
        self._running = 0
        self._cuts = 0
        self._changed = asyncio.Event()

    @property
    def limit(self) -> int:
        """Calls allowed at once now, from 1 to ``most``."""
        return max(1, min(self.most, int(self._limit)))

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until one more call may run; an error inside lowers the limit, a success raises it."""
        while self._running >= self.limit:
            self._changed.clear()
            await self._changed.wait()
        self._running += 1
        cuts = self._cuts
        try:
            yield
        except Paused:
            raise
        except Overloaded:
            # Calls that ran together fail together: that is one overload, not many.
            if cuts == self._cuts:
                self._limit = max(1.0, self.limit / 2)
                self._cuts += 1
            raise
        else:
            self._limit = min(float(self.most), self._limit + 1 / self._limit)
        finally:
            self._running -= 1
            self._changed.set()


class Remote:
    """Calls to one server, on the event loop that all servers share; safe to share between threads.

    ``most`` limits the calls at once; a call is abandoned after ``timeout`` seconds, however slowly its bytes
    still arrive. A pause that the server asks of one call fails all that wait for their turn. ``one_by_one``:
    the server's slots share nothing, so the calls of one `generate` follow each other in one. `InputError`
    unless both are above 0.
    """

    def __init__(self, most: int, timeout: float) -> None:
        for name, value in (("timeout", timeout), ("parallel", most)):
            if value <= 0:
                raise InputError(f"{name} must be above 0, got {value}.")
        self.timeout = timeout
        self.limit = AdaptiveLimit(most)
        self.one_by_one = False
        self._pause_ends = 0.0
        self._pause_reason = ""

    def generate(
        self,
        requests: Sequence[Request],
        call: Call,
        on_done: OnDone | None = None,
        cancelled: IsCancelled | None = None,
    ) -> list[Completion]:
        """Make one ``call`` per request; see `LLM.generate`.

        Calls start in `prefix_order`, the others only after the first, which the server then remembers. One
        that fails transiently does not end the others; the error with the longest requested pause is raised
        after them. A call keeps its place until ``on_done`` has returned: a kill loses no more answers than
        run at once.
        """
        results: list[Completion | None] = [None] * len(requests)
        turn = asyncio.Semaphore(1)  # first come, first served
        others = 0 if self.one_by_one else len(requests)

        async def one(index: int) -> None:
            async with turn, self.limit.slot():
                completion = await self._timed(call, requests[index])
                results[index] = completion
                if on_done is not None:
                    # Callbacks write to disk and take locks: not on the loop that serves all threads.
                    await _to_the_end(asyncio.to_thread(on_done, index, completion))

        async def first(index: int) -> None:
            try:
                await one(index)
            finally:
                for _ in range(others):
                    turn.release()

        async def everything() -> None:
            tasks = [
                asyncio.ensure_future(first(index) if place == 0 else one(index))
                for place, index in enumerate(prefix_order(requests))
            ]
            try:
                await _all_or_first_fatal(tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        run_on_loop(everything(), cancelled)
        return [result for result in results if result is not None]

    async def _timed(self, call: Call, request: Request) -> Completion:
        left = self._pause_ends - time.monotonic()
        if left > 0:
            raise Paused(self._pause_reason, left)
        try:
            async with asyncio.timeout(self.timeout):
                return await call(request)
        except TimeoutError as error:
            raise Overloaded(f"The server did not finish an answer in {self.timeout:g} s.") from error
        except Overloaded as error:
            ends = time.monotonic() + (error.retry_after or 0.0)
            if ends > self._pause_ends:
                self._pause_ends, self._pause_reason = ends, str(error)
            raise


_loop: asyncio.AbstractEventLoop | None = None
_loop_lock = threading.Lock()


def background_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of all calls to servers: one thread, started with the first call."""
    global _loop
    with _loop_lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="leadline-remote", daemon=True).start()
        return _loop


def _forget_loop() -> None:
    global _loop, _loop_lock
    _loop, _loop_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_loop)  # a child has the loop but not its thread


def run_on_loop(work: Coroutine[Any, Any, T], cancelled: IsCancelled | None = None) -> T:
    """Run a coroutine on the background loop and return its result; a cancel ends it."""
    loop = background_loop()
    done = threading.Event()
    started: list[asyncio.Task[T]] = []

    def start() -> None:
        started.append(loop.create_task(work))
        started[0].add_done_callback(lambda _: done.set())

    loop.call_soon_threadsafe(start)
    try:
        while not done.wait(CANCEL_SECONDS):
            stop_if(cancelled)
    except BaseException:
        loop.call_soon_threadsafe(lambda: started[0].cancel())
        done.wait(_LAST_SECONDS)
        raise
    return started[0].result()


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for work that a cancel must not interrupt; the cancel takes effect afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


async def _all_or_first_fatal(tasks: Sequence[asyncio.Future[None]]) -> None:
    """Wait for all; a fatal failure ends the wait at once, a transient one only after all are done."""
    transient: list[TransientError] = []
    for finished in asyncio.as_completed(tasks):
        try:
            await finished
        except TransientError as error:
            transient.append(error)
    if transient:
        raise max(transient, key=lambda error: error.retry_after or 0.0)


def without_prefill(messages: Sequence[Message]) -> tuple[list[dict[str, str]], str]:
    """Return the turns for a server, without a begun answer, and that: few servers continue it."""
    turns = [{"role": m.role, "content": clean(m.content)} for m in messages]
    prefix = turns.pop()["content"] if len(turns) > 1 and turns[-1]["role"] == "assistant" else ""
    return turns, prefix


def without_echo(text: str, prefix: str) -> str:
    """Remove the begun answer from the start of an answer that repeats it."""
    text = text.lstrip()
    begins = prefix and text.casefold().startswith(prefix.casefold())
    return text[len(prefix) :].lstrip() if begins else text


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Estimate tokens within a third: one per CJK character, one per four others, four per turn."""
    total = 0
    for message in messages:
        wide = sum(1 for character in message.content if ord(character) >= 0x2E80)
        total += 4 + wide + (len(message.content) - wide + 3) // 4
    return total


def prefix_order(requests: Sequence[Request]) -> list[int]:
    """Return the places of requests, each followed by the one that shares the longest beginning with it.

    A server reads only what differs from the last prompt: no order that begins with the first shares more.
    Time grows with the square of the number of requests: 0.2 s for 200 long ones.

    >>> from core.llm.types import Message
    >>> prompts = ["one two three", "two three", "one three", "one two"]
    >>> prefix_order([Request((Message("user", prompt),)) for prompt in prompts])
    [0, 3, 2, 1]
    """
    prompts = ["\n".join(f"{turn.role}\n{turn.content}" for turn in one.messages) for one in requests]
    left = list(range(len(prompts)))
    order = left[:1]
    del left[:1]
    while left:
        last = prompts[order[-1]]
        order.append(max(left, key=lambda place: _shared(last, prompts[place])))
        left.remove(order[-1])
    return order


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


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
        reasoned = self.reasoned or rest != self.content
        rest = without_echo(rest, prefix)
        start = len(self.content) - len(rest)  # each step only removes something from the beginning
        text, stopped = cut_at_stop(rest, request.stop)
        finish = "stop" if stopped else self.finish
        if self.finish == "content_filter":
            text, finish = "", "content_filter"
        elif never_ended or (reasoned and not text and finish == "length"):
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
