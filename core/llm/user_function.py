"""A user's own function: called, timed and waited for, plain or async."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from core.errors import Cancelled
from core.llm.redact import error_text
from core.llm.remote import run_on_loop
from core.llm.types import IsCancelled, stop_if

T = TypeVar("T")
ASYNC_AT_ONCE = 8
_LOOK_SECONDS = 0.2  # how often a cancel is looked for


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What one call came to: a value, or the error it raised; and the seconds it took."""

    value: T | None
    error: Exception | None
    seconds: float


class UserFunction(Generic[T]):
    """A function that is not ours: plain or async, and what it raises is a result like any other.

    Parameters
    ----------
    function : callable
        Plain functions are called in the caller's own thread, one call after another; async ones run on one
        background event loop, so it does not matter whether the caller's thread runs a loop already.
    role : str
        What the user knows it as, for messages.
    read : callable
        Makes the value of what the function returned; raises what is wrong with it.
    parallel : int, optional
        Calls at once; by default 1, and 8 for an async function. More than one plain call at a time means
        other threads.
    """

    def __init__(
        self, function: Callable[..., Any], role: str, read: Callable[[Any], T], parallel: int | None = None
    ) -> None:
        self.role = role
        self.name = _name_of(function)
        self.parallel = parallel or (ASYNC_AT_ONCE if _is_async(function) else 1)
        self._function, self._read = function, read
        self._pool = (
            ThreadPoolExecutor(self.parallel, thread_name_prefix=f"leadline-{role}")
            if self.parallel > 1
            else None
        )

    def each(
        self,
        calls: Sequence[tuple[Any, ...]],
        done: Callable[[int, Outcome[T]], None],
        cancelled: IsCancelled | None = None,
    ) -> None:
        """Call the function with each of the arguments; ``done`` gets every outcome, in the caller's thread.

        Raises
        ------
        Cancelled
            ``cancelled`` said so; a plain call that is under way is not waited for.
        """
        if self._pool is None:
            for index, arguments in enumerate(calls):
                done(index, self._outcome(arguments, cancelled))
            return
        left = threading.Event()

        def given_up() -> bool:
            return left.is_set() or (cancelled is not None and cancelled())

        pending = {
            self._pool.submit(self._outcome, arguments, given_up): i for i, arguments in enumerate(calls)
        }
        try:
            while pending:
                finished, _ = wait(pending, _LOOK_SECONDS, FIRST_COMPLETED)
                for future in sorted(finished, key=pending.__getitem__):
                    done(pending.pop(future), future.result())
                if pending:
                    stop_if(cancelled)
        except Cancelled:
            # What has arrived is delivered all the same: it is paid for.
            for future in [future for future in pending if future.done() and not future.exception()]:
                with contextlib.suppress(Cancelled):
                    done(pending.pop(future), future.result())
            raise
        finally:
            left.set()  # also after Ctrl-C: async calls under way end
            for future in pending:
                future.cancel()

    def reason(self, error: Exception) -> str:
        """Return what went wrong, for people: the exception's type and message."""
        return f"{self.role} raised {error_text(error)}"

    def close(self) -> None:
        """Let the threads go; calls under way end in the background."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _outcome(self, arguments: tuple[Any, ...], cancelled: IsCancelled | None) -> Outcome[T]:
        stop_if(cancelled)
        start = time.perf_counter()
        try:
            value = self._function(*arguments)
            if inspect.isawaitable(value) or inspect.isasyncgen(value):
                # The one loop of all calls: a client that was made in one run still works in the next.
                value = run_on_loop(_awaited(value), cancelled)
            return Outcome(self._read(value), None, time.perf_counter() - start)
        except Exception as error:
            if isinstance(error, Cancelled) and cancelled is not None and cancelled():
                raise
            return Outcome(None, error, time.perf_counter() - start)


async def _awaited(value: Any) -> object:
    try:
        return [item async for item in value] if inspect.isasyncgen(value) else await value
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # given up by us
        raise RuntimeError("an asyncio.CancelledError, which nobody asked for") from error


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _name_of(function: object) -> str:
    inner = _innermost(function)
    return str(getattr(inner, "__qualname__", type(inner).__qualname__))


def _is_async(function: object) -> bool:
    inner = _innermost(function)
    candidates = (inner, type(inner).__call__ if callable(inner) else None)
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in candidates)
