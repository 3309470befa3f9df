"""Calls to a server: many at once, each with a deadline, never more than the server bears."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillRunning
from typing import Any, TypeVar

from core.errors import Cancelled, TransientError
from core.llm.types import Completion, IsCancelled, Message, OnDone, Request

T = TypeVar("T")
Call = Callable[[Request], Awaitable[Completion]]
_LOOK_SECONDS = 0.2  # how often a cancel is looked for


class Overloaded(TransientError):
    """The server has too much to do (429, 503, a call out of time): fewer calls at once will help."""


class AdaptiveLimit:
    """How many calls may run at once: halved when the server is overloaded, regained one by one.

    Additive increase, multiplicative decrease, as in TCP (Chiu and Jain 1989): after an overload the
    limit grows by one for each full round of successes, up to ``most``. Used on one event loop.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._limit = float(most)
        self._running = 0
        self._changed = asyncio.Condition()

    @property
    def limit(self) -> int:
        """Calls allowed at once now, from 1 to ``most``."""
        return max(1, int(self._limit))

    async def __aenter__(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._running < self.limit)
            self._running += 1

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        async with self._changed:
            self._running -= 1
            if isinstance(error, Overloaded):
                self._limit = max(1.0, self._limit / 2)
            elif error is None:
                self._limit = min(float(self.most), self._limit + 1 / self._limit)
            self._changed.notify_all()


class Remote:
    """One background event loop for all calls to one server; safe to share between threads.

    Parameters
    ----------
    most : int
        Most calls at once.
    timeout : float
        Seconds after which a call is given up, however slowly its bytes still arrive.

    Notes
    -----
    Asynchronous, so that a deadline and a cancel end a call at any point: while connecting, between two
    bytes of a header, in the middle of an answer.
    """

    def __init__(self, most: int, timeout: float) -> None:
        self.timeout = timeout
        self._most = most
        self._loop: asyncio.AbstractEventLoop | None = None
        self._limit: AdaptiveLimit | None = None
        self._lock = threading.Lock()

    def generate(
        self,
        requests: Sequence[Request],
        call: Call,
        on_done: OnDone | None = None,
        cancelled: IsCancelled | None = None,
    ) -> list[Completion]:
        """Make one call per request; see `LLM.generate`.

        Parameters
        ----------
        call : callable
            Asks the server once, from a request to its completion.

        Raises
        ------
        TransientError
            At least one call failed in a way that may pass; the others were finished first, so that nothing
            that is paid for is thrown away. Carries the longest pause that the server asked for.
        Cancelled
            ``cancelled`` said so; calls under way were given up.
        """
        results: list[Completion | None] = [None] * len(requests)

        async def one(index: int, request: Request) -> None:
            completion = await self._limited(call, request)
            results[index] = completion
            if on_done is not None:
                # Callbacks write to disk and take locks: not on the loop that serves all threads.
                await asyncio.to_thread(on_done, index, completion)

        async def everything() -> None:
            tasks = [asyncio.ensure_future(one(i, request)) for i, request in enumerate(requests)]
            try:
                await _all_or_first_fatal(tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        self.run(everything(), cancelled)
        return [result for result in results if result is not None]

    def run(self, work: Coroutine[Any, Any, T], cancelled: IsCancelled | None = None) -> T:
        """Run a coroutine on the background loop and return what it returns."""
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._running_loop())
        while True:
            try:
                return future.result(_LOOK_SECONDS)
            except StillRunning:
                if future.done():
                    raise
                if cancelled is not None and cancelled():
                    future.cancel()
                    raise Cancelled("Stopped on request; everything finished so far is kept.") from None
            except BaseException:
                future.cancel()
                raise

    async def _limited(self, call: Call, request: Request) -> Completion:
        if self._limit is None:
            self._limit = AdaptiveLimit(self._most)
        async with self._limit:
            try:
                async with asyncio.timeout(self.timeout):
                    return await call(request)
            except TimeoutError as error:
                raise Overloaded(f"The server did not finish an answer in {self.timeout:g} s.") from error

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="leadline-remote", daemon=True).start()
            return self._loop


async def _all_or_first_fatal(tasks: Sequence[asyncio.Future[None]]) -> None:
    """Wait for all; a fatal failure ends the wait at once, a transient one only when all are done."""
    transient: list[TransientError] = []
    for finished in asyncio.as_completed(tasks):
        try:
            await finished
        except TransientError as error:
            transient.append(error)
    if transient:
        worst = max(transient, key=lambda error: error.retry_after or 0.0)
        raise worst


def without_prefill(messages: Sequence[Message]) -> tuple[list[dict[str, str]], str]:
    """Return the turns as a server takes them, and the beginning of the answer that was cut off them.

    A prompt may end with the beginning of the model's own turn. Few servers continue it, most would answer
    it as a turn of its own; so it is left out, and `without_echo` takes it off an answer that begins with it.
    """
    turns = [{"role": m.role, "content": m.content} for m in messages]
    prefix = turns.pop()["content"] if len(turns) > 1 and turns[-1]["role"] == "assistant" else ""
    return turns, prefix


def without_echo(text: str, prefix: str) -> str:
    """Take the beginning that the model was to continue off an answer that repeats it."""
    text = text.lstrip()
    begins = prefix and text.casefold().startswith(prefix.casefold())
    return text[len(prefix) :].lstrip() if begins else text


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of a prompt where no tokenizer is at hand.

    About one token for each CJK character and for every four other characters, plus four for each turn:
    within a third of the truth for the usual vocabularies.
    """
    return sum(4 + _estimate(message.content) for message in messages)


def _estimate(text: str) -> int:
    wide = sum(1 for character in text if ord(character) >= 0x2E80)
    return wide + (len(text) - wide + 3) // 4
