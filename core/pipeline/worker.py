"""A worker of a cluster: it has a model, works on the questions it is given and reports what is finished.

Nothing here knows Ray. The driver takes turns with each worker: a `Letter` goes there, a `Report` comes back
as soon as anything is finished. While the driver is busy more of it gathers in the next report.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.errors import BackendError, Cancelled, LeadlineError
from core.llm.cache import Row, row_of
from core.llm.types import LLM, Completion
from core.pipeline.asking import Asker, RetryPolicy
from core.pipeline.executing import Part, batches, worked
from core.pipeline.steps import Answered, Step, StepWork, model_facts
from core.run import Run


@dataclass(frozen=True, slots=True)
class Share:
    """Questions for a worker, and how it gets the run to open the step on; equal ones give the same run."""

    ids: tuple[str, ...]
    run: Callable[[], Run]


@dataclass(frozen=True, slots=True)
class Letter:
    """What a worker gets: more questions, what the cache has of the keys it asked for, by ticket.

    ``answered``: whether the model has ever answered anybody.
    """

    answered: bool
    share: Share | None = None
    found: Mapping[int, Mapping[str, Completion]] = field(default_factory=dict)


@dataclass(slots=True)
class Report:
    """What a worker has done since the last one; ``idle``: it has no question left.

    ``made`` are rows of the cache, ``wanted`` the keys to look up, by ticket. An
    ``error`` ends the run; so does one of ``returned`` questions, unless the model has answered elsewhere.
    """

    made: list[Row] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    calls: list[Answered] = field(default_factory=list)
    wanted: dict[int, list[str]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    returned: list[tuple[tuple[str, ...], LeadlineError]] = field(default_factory=list)
    error: LeadlineError | None = None
    idle: bool = False

    def __bool__(self) -> bool:
        return bool(self.made or self.parts or self.calls or self.wanted or self.returned or self.error)


_AHEAD = 3  # questions whose keys are looked up while another one is asked
_CALLS = ("generate", "score", "screen")


class _InTurn:
    """A model that is asked by no more threads at once than it is worth."""

    def __init__(self, llm: LLM, threads: int) -> None:
        self._llm, self._turns = llm, threading.Semaphore(threads)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._llm, name)
        if name not in _CALLS:
            return found

        def in_turn(*given: Any, **named: Any) -> Any:
            with self._turns:
                return found(*given, **named)

        return in_turn


class Worker:
    """A model, and threads that work on questions with it.

    ``listened``: whether each answered call is to be reported. Without ``ahead`` the step cannot work on
    several questions at once, so that it waits whenever keys are looked up.
    """

    def __init__(
        self,
        step: Step,
        open_model: Callable[[], LLM | None],
        threads: int,
        ahead: bool,
        listened: bool,
        retry: RetryPolicy,
    ) -> None:
        self._step, self._open_model = step, open_model
        self._changed = threading.Condition()
        self._waiting: deque[tuple[StepWork, tuple[str, ...]]] = deque()
        self._running = 0
        self._report = Report()
        self._store = _Store(self)
        self._stopped = self._answered = False
        self._opened: tuple[Callable[[], Run] | None, StepWork | None] = (None, None)
        self._counted: Mapping[str, int] = {}
        self._threads, self._ahead, self._listened, self._retry = threads, ahead, listened, retry
        self._asker: Asker | None = None
        self._facts: Mapping[str, Any] | None = None

    def ready(self) -> Mapping[str, Any] | LeadlineError | None:
        """Open the model; return its facts that answers depend on, None without one, or what went wrong."""
        if self._asker is not None:
            return self._facts
        try:
            llm = self._open_model()
        except LeadlineError as error:
            return error
        heard = self._heard if self._listened else None
        asked: Any = None if llm is None else _InTurn(llm, self._threads)
        self._asker = Asker(asked, self._store, self._retry, self._is_stopped, on_call=heard)
        self._facts = None if llm is None else model_facts(llm)
        for _ in range(self._threads * (1 + _AHEAD * self._ahead)):
            threading.Thread(target=self._work, daemon=True).start()
        return self._facts

    def turn(self, letter: Letter) -> Report:
        """Take a letter, wait until there is something to report, and report it."""
        assert self._asker is not None
        if letter.share is not None:
            self._take(letter.share)
        with self._changed:
            self._answered |= letter.answered
            self._store.settle(letter.found)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._report or self._is_idle)
            report, self._report = self._report, Report()
            self._store.sent(report.made)
            counts = self._asker.counts
            report.counts = {name: n - self._counted.get(name, 0) for name, n in counts.items()}
            report.notes, report.idle, self._counted = self._asker.notes, self._is_idle, counts
            return report

    def stop(self) -> None:
        """Begin nothing more, and abandon what waits."""
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()

    @property
    def _is_idle(self) -> bool:
        return not self._waiting and not self._running

    def _is_stopped(self) -> bool:
        return self._stopped

    def _take(self, share: Share) -> None:
        assert self._asker is not None
        try:
            run, work = self._opened
            if work is None or run != share.run:
                work = self._step.open(share.run(), self._asker)
                self._opened = share.run, work
        except LeadlineError as error:
            with self._changed:
                self._report.error = error
            return
        with self._changed:
            self._waiting.extend((work, ids) for ids in batches(share.ids, work.batch))

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                work, ids = self._waiting.popleft()
                self._running += 1
            done = self._done(work, ids)
            with self._changed:
                self._running -= 1
                self._report.parts += done.parts
                self._report.returned += done.returned
                self._report.error = self._report.error or done.error
                self._changed.notify_all()

    def _done(self, work: StepWork, ids: tuple[str, ...]) -> Report:
        try:
            parts = worked(work, self._asker_of, ids, self._has_answered, self._is_stopped)
            return Report(parts=[replace(part, told=work.tell(part.ids)) for part in parts])
        except Cancelled:
            return Report()
        except LeadlineError as error:
            return Report(returned=[(ids, error)])
        except Exception as error:  # a mistake of the program: the driver must not wait for ever
            return Report(error=BackendError(f"A worker failed ({type(error).__name__}: {error})."))

    @property
    def _asker_of(self) -> Asker:
        assert self._asker is not None
        return self._asker

    def _has_answered(self) -> bool:
        return self._answered or self._asker_of.n_answers > 0

    def _heard(self, call: Answered) -> None:
        with self._changed:
            self._report.calls.append(call)
            self._changed.notify_all()


class _Store:
    """The way of a worker to the cache, which the driver alone reads and writes."""

    notes = ()

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._made: dict[str, Completion] = {}  # not in the cache for certain yet
        self._sent: list[str] = []
        self._absent: set[str] = set()  # looked up, and not made yet
        self._found: dict[int, Mapping[str, Completion]] = {}
        self._ticket = 0

    def get_many(self, keys: Iterable[str]) -> dict[str, Completion]:
        """Return what is known of the keys: one question to the driver for all of them."""
        changed, listed = self._worker._changed, list(keys)
        with changed:
            known = {key: self._made[key] for key in listed if key in self._made}
            wanted = [key for key in listed if key not in known and key not in self._absent]
            if not wanted:
                return known
            self._ticket += 1
            ticket = self._ticket
            self._worker._report.wanted[ticket] = wanted
            changed.notify_all()
            changed.wait_for(lambda: ticket in self._found or self._worker._stopped)
            if ticket not in self._found:
                raise Cancelled("Stopped on request; everything finished so far is kept.")
            found = self._found.pop(ticket)
            self._absent.update(key for key in wanted if key not in found)
            return {**known, **found}

    def put(self, key: str, completion: Completion, model: str = "") -> None:
        """Report a completion; one with an error is not kept."""
        if completion.error is None:
            with self._worker._changed:
                self._absent.discard(key)
                self._made[key] = completion
            self.put_rows([row_of(key, completion, model)])

    def put_rows(self, rows: Sequence[Row]) -> None:
        """Report completions."""
        with self._worker._changed:
            self._worker._report.made += rows
            self._worker._changed.notify_all()

    def settle(self, found: Mapping[int, Mapping[str, Completion]]) -> None:
        """Take what the driver has looked up; it has written the last report's completions, too."""
        self._found.update(found)
        for key in self._sent:
            self._made.pop(key, None)
        self._sent = []

    def sent(self, made: Sequence[Row]) -> None:
        """Note what a report carries."""
        self._sent = [row[0] for row in made]
