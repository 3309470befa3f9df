"""What a measurement of speed returns, and how its two sides take turns.

A module ``bench/NAME.py`` measures speed if it has a function ``lines(size) -> Iterator[Line]``, and needs
nothing else: ``python -m bench NAME`` finds it, runs it in a process of its own and keeps its lines in
docs/benchmarks.md. It raises an exception where two things differ that must be equal; a floor that is not
reached is a line like any other. A quick run has at most 20 seconds on two cores, a smoke test a few.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

A, B, T = TypeVar("A"), TypeVar("B"), TypeVar("T")


class Size(IntEnum):
    """How much is measured: only whether it runs, a taste of everything, or all of it."""

    SMOKE, QUICK, FULL = range(3)

    def pick(self, smoke: T, quick: T, full: T) -> T:
        """Return the value for this size."""
        return (smoke, quick, full)[self]


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement: by default how many times as long the other side took.

    ``name`` says what was measured and ``against`` what it was compared with; ``value`` is the median of
    ``n`` values from ``low`` to ``high``. ``checked`` says what the results had in common, ``floor`` and
    ``goal`` what was asked for: at least so much, or where ``less`` at most.
    """

    name: str
    against: str
    value: float
    low: float
    high: float
    n: int
    checked: str
    unit: str
    floor: float | None
    goal: float | None
    less: bool
    note: str

    @classmethod
    def of(
        cls,
        name: str,
        against: str,
        values: Sequence[float],
        checked: str,
        *,
        unit: str = "×",
        floor: float | None = None,
        goal: float | None = None,
        less: bool = False,
        note: str = "",
    ) -> Line:
        """Return the line of these values, one for each round."""
        middle, ends = statistics.median(values), (min(values), max(values))
        return cls(name, against, middle, *ends, len(values), checked, unit, floor, goal, less, note)

    @property
    def missed(self) -> str:
        """Return what the median does not reach: floor, goal or nothing."""
        for what, asked in (("floor", self.floor), ("goal", self.goal)):
            if asked is not None and (self.value > asked if self.less else self.value < asked):
                return what
        return ""

    @property
    def text(self) -> str:
        """Return the median with its range."""
        return f"{short(self.value)} {self.unit}".strip() + f" ({short(self.low)} to {short(self.high)})"


def short(value: float) -> str:
    """Return a number with two or three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def in_turn(
    theirs: Callable[[int], A],
    ours: Callable[[int], B],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[tuple[A, B, float]]:
    """Yield both results of every round, and how many times as long theirs took.

    Both are called with the number of the round; who begins changes, so that neither always finds the
    machine as the other left it.
    """
    for turn in range(rounds):
        results: list[Any] = [None, None]
        seconds = [0.0, 0.0]
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            start = clock()
            results[side] = (theirs, ours)[side](turn)
            seconds[side] = clock() - start
        yield results[0], results[1], seconds[0] / seconds[1]


def measured(name: str, size: Size) -> list[Line]:
    """Run a module, printing each line as it comes."""
    found = []
    for line in importlib.import_module(f"bench.{name}").lines(size):
        missed = f"; {line.missed} missed" if line.missed else ""
        print(f"{line.name}, against {line.against}: {line.text}, n = {line.n}{missed}", flush=True)
        print(f"   {'. '.join(filter(None, (line.checked, line.note)))}", flush=True)
        found.append(line)
    return found
