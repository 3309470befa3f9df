"""Turns of jobs that share a model: run at once, they would only slow each other down."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Self

from core.errors import Cancelled

_SLICE = 0.2  # seconds between looks at a cancel


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
                    self.turns.changed.wait(_SLICE)
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
