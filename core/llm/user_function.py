"""Calls, times and waits for a user's own function, plain or async."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
import time
from collections.abc import AsyncIterable, Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from core.errors import Cancelled
from core.llm.redact import error_text
from core.llm.remote import run_on_loop
from core.llm.types import IsCancelled, stop_if

T = TypeVar("T")
ASYNC_AT_ONCE = 8
_CANCEL_SECONDS = 0.2  # between checks for a cancel


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The result of one call: its value, or the error it raised; and its seconds."""

    value: T | None
    error: Exception | None
    seconds: float


class UserFunction(Generic[T]):
    """A foreign function, plain or async, whose exceptions are results too; ``read`` converts its value.

    Plain functions run in the caller's thread, async ones on one background loop, up to 8 at once;
    ``parallel`` sets the calls at once, for plain ones in other threads. ``role`` is the name in messages.
    """

    def __init__(
        self, function: Callable[..., Any], role: str, read: Callable[[Any], T], parallel: int | None = None
    ) -> None:
        inner: Any = function
        while isinstance(inner, functools.partial):
            inner = inner.func
        candidates = (inner, type(inner).__call__ if callable(inner) else None)
        is_async = any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in candidates)
        self.role = role
        self.name = str(getattr(inner, "__qualname__", type(inner).__qualname__))
        self.parallel = parallel or (ASYNC_AT_ONCE if is_async else 1)
        self._function, self._read = function, read
        self._pool: ThreadPoolExecutor | None = None
        if self.parallel > 1:
            self._pool = ThreadPoolExecutor(self.parallel, thread_name_prefix=f"leadline-{role}")

    def each(
        self,
        calls: Sequence[tuple[Any, ...]],
        done: Callable[[int, Outcome[T]], None],
        cancelled: IsCancelled | None = None,
    ) -> None:
        """Call the function with each of the arguments; ``done`` gets every outcome in this thread."""
        if self._pool is not None:
            return self._at_once(self._pool, calls, done, cancelled)
        for index, arguments in enumerate(calls):
            done(index, self._outcome(arguments, cancelled))

    def _at_once(
        self,
        pool: ThreadPoolExecutor,
        calls: Sequence[tuple[Any, ...]],
        done: Callable[[int, Outcome[T]], None],
        cancelled: IsCancelled | None,
    ) -> None:
        left = threading.Event()

        def given_up() -> bool:
            return left.is_set() or (cancelled is not None and cancelled())

        pending: dict[Future[Outcome[T]], int] = {}
        waiting = enumerate(calls)

        def begin() -> None:
            # No more than may run at once: an outcome that waits to be delivered would be lost in a kill.
            for index, arguments in islice(waiting, self.parallel - len(pending)):
                pending[pool.submit(self._outcome, arguments, given_up)] = index

        try:
            begin()
            while pending:
                finished, _ = wait(pending, _CANCEL_SECONDS, FIRST_COMPLETED)
                for future in sorted(finished, key=pending.__getitem__):
                    done(pending.pop(future), future.result())
                begin()
                if pending:
                    stop_if(cancelled)
        except Cancelled:
            # Outcomes that have arrived are still delivered: they are paid for.
            for future in [future for future in pending if future.done() and not future.exception()]:
                with contextlib.suppress(Cancelled):
                    done(pending.pop(future), future.result())
            raise
        finally:
            left.set()  # also after Ctrl-C: async calls under way end
            for future in pending:
                future.cancel()

    def reason(self, error: Exception) -> str:
        """Return an error message for people: the exception's type and message."""
        return f"{self.role} raised {error_text(error)}"

    def close(self) -> None:
        """Release the threads; calls under way end in the background."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _outcome(self, arguments: tuple[Any, ...], cancelled: IsCancelled | None) -> Outcome[T]:
        stop_if(cancelled)
        start = time.perf_counter()
        try:
            value = self._function(*arguments)
            if inspect.isawaitable(value) or isinstance(value, AsyncIterable):
                # One loop for all calls: a client made in one run still works in the next.
                value = run_on_loop(_awaited(value), cancelled)
            return Outcome(self._read(value), None, time.perf_counter() - start)
        except Exception as error:
            if isinstance(error, Cancelled) and cancelled is not None and cancelled():
                raise
            return Outcome(None, error, time.perf_counter() - start)


async def _awaited(value: Any) -> object:
    try:
        if inspect.isawaitable(value):
            value = await value
        # As an iterator, so that pieces of one answer are told from a list of several.
        return iter([item async for item in value]) if isinstance(value, AsyncIterable) else value
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # our own cancel
        raise RuntimeError("an asyncio.CancelledError without a cancel request") from error
