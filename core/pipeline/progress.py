"""Long jobs: rate and time left, for terminal and browser, and turns at a model that they share."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Self

from core.errors import Cancelled
from core.llm.types import CANCEL_SECONDS
from core.text.display import count, duration, one_line

_WINDOW = 60
_REDRAW_SECONDS = 0.2
_LOG_SECONDS = 15.0


class Progress:
    """Rate and time left from counts of finished work, in ``unit``; the rate is that of the last 60."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, unit: str = "calls") -> None:
        self._clock = clock
        self.unit = unit
        self._points: deque[tuple[float, int]] = deque([(clock(), 0)], maxlen=_WINDOW)
        self._start = clock()
        self.done = 0
        self.total = 0
        self.what = ""

    def update(self, done: int, total: int, what: str = "") -> None:
        """Record the state of the job; a ``progress`` callback of `core.pipeline.fill`."""
        if not done:
            self._points.clear()
        if done != self.done or not done:
            self._points.append((self._clock(), done))
        self.done, self.total, self.what = done, total, what

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    @property
    def share(self) -> float:
        """Finished share, in [0, 1]."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def rate(self) -> float | None:
        """Recent units per second; None before the first progress."""
        (first, before), (last, after) = self._points[0], self._points[-1]
        if last <= first or after <= before:
            return None
        each = (last - first) / (after - before)
        # A unit that takes longer than the others slows the rate down while it is waited for.
        return (after - before) / max(last - first, self._clock() - each - first)

    @property
    def seconds_left(self) -> float | None:
        """Seconds left at this rate; None where the rate is."""
        rate = self.rate
        return None if rate is None else (self.total - self.done) / rate

    def line(self) -> str:
        """Return one line for a terminal."""
        text = f"{self.done:,} of {self.total:,} {self.unit}"
        if (rate := self.rate) is not None:
            speed = f"{rate:.1f} a second" if rate >= 1 else f"{1 / rate:.1f} s each"
            text += f", {speed}, {duration((self.total - self.done) / rate)} left"
        return f"{text} · {self.what}" if self.what else text


class ProgressLine:
    """A progress callback for standard error: one line redrawn on a terminal, a line every 15 s in a log."""

    def __init__(self, unit: str = "calls") -> None:
        self._progress = Progress(unit=unit)
        self._terminal = sys.stderr.isatty()
        self._shown = 0.0 if self._terminal else time.monotonic()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Show the state of the job."""
        self._progress.update(done, total, what)
        now = time.monotonic()
        if now - self._shown < (_REDRAW_SECONDS if self._terminal else _LOG_SECONDS):
            return
        self._shown = now
        line = one_line(self._progress.line())
        sys.stderr.write(f"\r\x1b[K{line[:160]}" if self._terminal else f"{line}\n")
        sys.stderr.flush()

    def clear(self) -> None:
        """Erase the line."""
        if self._terminal and self._progress.total:
            sys.stderr.write("\r\x1b[K")

    def end(self) -> None:
        """Replace the line by the total."""
        self.clear()
        if self._progress.done:
            progress = self._progress
            done = count(progress.done, progress.unit.removesuffix("s"), progress.unit)
            sys.stderr.write(f"{done} in {duration(progress.seconds)}.\n")
            sys.stderr.flush()


class ModelTurns:
    """The queues of a process: one per model, first come, first served."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.queues: dict[Hashable, deque[Turn]] = {}

    def turn(self, model: Hashable | None, cancelled: Callable[[], bool] = lambda: False) -> Turn:
        """Return a turn at a model, for ``with``; without a model (None) it never waits."""
        return Turn(self, model, cancelled)


@dataclass(eq=False, slots=True)
class Turn:
    """One job's turn at a model; entering it waits, and raises `Cancelled` after a cancel."""

    turns: ModelTurns
    model: Hashable | None
    cancelled: Callable[[], bool]

    @property
    def place(self) -> int:
        """Number of turns ahead in the queue; 0 at the head or outside it. Any thread may read it."""
        with self.turns.changed:
            queue = self.turns.queues.get(self.model, deque())
            return queue.index(self) if self in queue else 0

    def __enter__(self) -> Self:
        if self.model is None:
            return self
        with self.turns.changed:
            queue = self.turns.queues.setdefault(self.model, deque())
            queue.append(self)
            try:
                while queue[0] is not self:
                    if self.cancelled():
                        raise Cancelled("Cancelled before it began.")
                    self.turns.changed.wait(CANCEL_SECONDS)
            except BaseException:
                self._leave()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.model is not None:
            with self.turns.changed:
                self._leave()

    def _leave(self) -> None:
        queue = self.turns.queues[self.model]
        queue.remove(self)
        if not queue:
            del self.turns.queues[self.model]
        self.turns.changed.notify_all()
