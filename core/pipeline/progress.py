"""Rate and time left of a long job, for terminal and browser."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable

from core.text.display import one_line

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
        return (self.total - self.done) / rate if rate else None

    def line(self) -> str:
        """Return one line for a terminal."""
        text = f"{self.done:,} of {self.total:,} {self.unit}"
        rate, left = self.rate, self.seconds_left
        if rate is not None and left is not None:
            speed = f"{rate:.1f} a second" if rate >= 1 else f"{1 / rate:.1f} s each"
            text += f", {speed}, {duration(left)} left"
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
            sys.stderr.write(f"{progress.done:,} {progress.unit} in {duration(progress.seconds)}.\n")
            sys.stderr.flush()


def duration(seconds: float) -> str:
    """Format a duration: ``8 s``, ``3 min 20 s``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
