"""Turns of jobs that share a model: run at once, they would only slow each other down."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Self

from core.errors import Cancelled

_SLICE = 0.2  # seconds between looks at a cancel


class ModelTurns:
    """The queues of a process: one per model, first come, first served."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queues: dict[Hashable, deque[Turn]] = {}

    def turn(self, model: Hashable | None, cancelled: Callable[[], bool] = lambda: False) -> Turn:
        """Return a turn at a model, for ``with``; without a model (None) it never waits."""
        return Turn(self._changed, self._queues, model, cancelled)


class Turn:
    """One job's turn at a model; entering it waits, and raises `Cancelled` after a cancel."""

    def __init__(
        self,
        changed: threading.Condition,
        queues: dict[Hashable, deque[Turn]],
        model: Hashable | None,
        cancelled: Callable[[], bool],
    ) -> None:
        self._changed, self._queues = changed, queues
        self._model, self._cancelled = model, cancelled

    @property
    def place(self) -> int:
        """Number of turns ahead in the queue; 0 at the head or outside it. Any thread may read it."""
        with self._changed:
            queue = self._queues.get(self._model, deque())
            return queue.index(self) if self in queue else 0

    def __enter__(self) -> Self:
        if self._model is None:
            return self
        with self._changed:
            queue = self._queues.setdefault(self._model, deque())
            queue.append(self)
            try:
                while queue[0] is not self:
                    if self._cancelled():
                        raise Cancelled("Cancelled before it began.")
                    self._changed.wait(_SLICE)
            except BaseException:
                self._leave()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._model is not None:
            with self._changed:
                self._leave()

    def _leave(self) -> None:
        queue = self._queues[self._model]
        queue.remove(self)
        if not queue:
            del self._queues[self._model]
        self._changed.notify_all()
