"""Background jobs that outlive a browser reload.

A job runs in a thread of the server. The registry is shared by the process and keyed by ids that
cannot be guessed; a session keeps only the id, so nobody sees another's job without its link.
Threads never touch streamlit: they fill the job's fields, and a page that polls reads them.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from core.errors import Cancelled, LeadlineError
from core.llm import LLM, Completion, open_llm
from core.pipeline import Answered, ModelChoice, ModelTurns, Progress, Turn
from ui import people

_LOG = logging.getLogger("leadline")
_KEEP = 50  # finished jobs remembered
_MODELS = 16  # opened models remembered; anyone may type addresses and names
_DRAFTS = 50  # inputs of pages remembered
_IN_PROGRESS = 8  # questions whose answered calls a job remembers
EXPIRES = 60.0  # seconds after which an estimate that no page looks at is given up


Answers = Mapping[tuple[str, int], Completion]


@dataclass(frozen=True)
class Draft:
    """Inputs of a page: values of its widgets by their keys, and what the session keeps beside them."""

    inputs: Mapping[str, Any]
    kept: Mapping[str, Any]


@dataclass
class Job:
    """One piece of background work, written by its thread and read by pages.

    ``page`` says whose panel shows it; ``kind`` is ``plan``, ``run`` or ``fetch``. ``state`` is
    running, finished, cancelled or failed. ``begun`` is the run that ``step`` fills now, ``partial`` the
    newest unfinished result, ``result`` the final one, ``error`` one sentence for the user. ``settings`` say
    what the job is about; no key is ever among them. A job that ``expires`` is cancelled when no page has
    looked at it for a while.
    """

    page: str
    kind: str
    title: str
    settings: Any = None
    expires: bool = False
    person: str = field(default_factory=lambda: people.name())
    id: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    state: str = "running"
    started: float = 0.0
    ended: float = 0.0
    looked: float = field(default_factory=time.monotonic)
    begun: Any = None
    step: Any = None
    partial: Any = None
    result: Any = None
    error: str = ""
    n_answers: int = 0
    meter: Progress = field(default_factory=Progress)
    waits_for: str = ""
    _turn: Turn | None = None
    _cancel: threading.Event = field(default_factory=threading.Event)
    _answers: dict[str, dict[tuple[str, int], Completion]] = field(default_factory=dict)
    _taking: threading.Lock = field(default_factory=threading.Lock)

    @property
    def active(self) -> bool:
        """Whether the job still waits or runs."""
        return self.state == "running"

    @property
    def place(self) -> int:
        """Its place among the jobs that wait for a model, from 1; 0 where it does not wait."""
        turn = self._turn
        return 0 if turn is None else turn.place

    def take(self, one: Answered) -> None:
        """Note an answered call, so that a page can show it before its question is done."""
        with self._taking:
            self.n_answers += 1
            self._answers.setdefault(one.query_id, {})[one.kind, one.number] = one.completion
            while len(self._answers) > _IN_PROGRESS:
                del self._answers[next(iter(self._answers))]

    def in_progress(self) -> tuple[str, Answers] | None:
        """Return the question begun last, and its calls answered so far."""
        with self._taking:
            found = list(self._answers.items())[-1:]
            return (found[0][0], dict(found[0][1])) if found else None

    def seen(self) -> None:
        """Note that a page has looked at the job."""
        self.looked = time.monotonic()

    def cancel(self) -> None:
        """Ask the job to stop; what is done stays."""
        self._cancel.set()

    def cancelled(self) -> bool:
        """Whether the job was asked to stop, or nobody has looked at it for too long."""
        if self.expires and time.monotonic() - self.looked > EXPIRES:
            self.error = "This estimate was given up, because nobody looked at it for a while."
            self.cancel()
        return self._cancel.is_set()

    @contextmanager
    def turn(self, turns: ModelTurns, model: ModelChoice | None) -> Iterator[None]:
        """Wait until it is this job's turn at a model; without one there is nothing to wait for."""
        self.waits_for = "" if model is None else model.model or model.backend
        self._turn, since = turns.turn(model, self.cancelled), time.monotonic()
        with self._turn:
            self._turn = None
            self.started += time.monotonic() - since
            yield


class Registry:
    """All jobs of this server, and the models they share."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._models: dict[tuple[Any, ...], LLM] = {}
        self._drafts: dict[tuple[str, str], Draft] = {}
        self._lock = threading.Lock()
        self._opening = ModelTurns()
        self.turns = ModelTurns()

    def start(self, job: Job, work: Callable[[Job], Any]) -> Job:
        """Run ``work(job)`` in a thread; what it returns becomes ``job.result``. InputError: not a runner."""
        people.require("run")
        with self._lock:
            ended = [key for key, old in self._jobs.items() if not old.active]
            for key in ended[: max(0, len(self._jobs) - _KEEP)]:
                del self._jobs[key]
            self._jobs[job.id] = job
        threading.Thread(target=self._run, args=(job, work), name=f"job-{job.kind}", daemon=True).start()
        return job

    def get(self, job_id: str | None) -> Job | None:
        """Return a job of the person by its id."""
        with self._lock:
            found = self._jobs.get(job_id) if job_id else None
        return found if found is not None and found.person == people.name() else None

    def draft(self, asked: str) -> Draft | None:
        """Return inputs by their id."""
        with self._lock:
            return self._drafts.get((people.name(), asked))

    def keep(self, asked: str, draft: Draft) -> None:
        """Keep inputs under an id, the newest ones only."""
        key = (people.name(), asked)
        with self._lock:
            self._drafts.pop(key, None)
            self._drafts[key] = draft
            while len(self._drafts) > _DRAFTS:
                del self._drafts[next(iter(self._drafts))]

    def model(
        self,
        kind: str,
        name: str | None,
        options: Mapping[str, Any] | None = None,
        private: Mapping[str, str] | None = None,
    ) -> LLM:
        """Return the model, opened once for the whole server; call it from within a job.

        ``options`` tell models apart. ``private`` ones (a key) are handed to the back end and not kept
        here: only a number made from them, so that another key opens the model anew.
        """
        options, private = options or {}, private or {}
        key = (kind, name or None, *sorted(options.items()), hash(tuple(sorted(private.items()))))
        # Who opens another model does not wait.
        with self._opening.turn(key):
            with self._lock:
                found = self._models.get(key)
            if found is None:
                found = open_llm(kind, name or None, **options, **private)
                with self._lock:
                    self._models[key] = found
                    while len(self._models) > _MODELS:
                        del self._models[next(iter(self._models))]
            return found

    def _run(self, job: Job, work: Callable[[Job], Any]) -> None:
        job.started = time.monotonic()
        try:
            with people.acting_as(job.person):
                job.result = work(job)
            end = "cancelled" if job.cancelled() else "finished"
        except Cancelled as error:
            end, job.error, job.result = "cancelled", job.error or str(error), job.partial
        except LeadlineError as error:
            end, job.error = "failed", str(error)
        except Exception:
            number = secrets.token_hex(4)
            _LOG.exception("Job %s failed (error id %s)", job.kind, number)
            end = "failed"
            job.error = f"Something went wrong; the details are in the server's log under error id {number}."
        job.ended = time.monotonic()
        job.state = end


@st.cache_resource(show_spinner=False)
def registry() -> Registry:
    """Return the one registry of this server."""
    return Registry()
