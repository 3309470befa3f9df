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
from core.llm import LLM, open_llm
from core.pipeline import Progress

_LOG = logging.getLogger("leadline")
_KEEP = 50  # finished jobs remembered
_MODELS = 16  # opened models remembered; anyone may type addresses and names


@dataclass
class Job:
    """One piece of background work, written by its thread and read by pages.

    ``state`` is waiting, running, finished, cancelled or failed. ``partial`` is the newest
    unfinished result, ``result`` the final one, ``error`` one sentence for the user. ``settings`` say
    what the job is about; no key is ever among them. A job that ``takes_turns`` waits for the others,
    because it works this machine's processor.
    """

    kind: str
    title: str
    id: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    state: str = "waiting"
    started: float = 0.0
    ended: float = 0.0
    partial: Any = None
    n_results: int = 0
    result: Any = None
    error: str = ""
    settings: Any = None
    takes_turns: bool = True
    _cancel: threading.Event = field(default_factory=threading.Event)
    meter: Progress = field(default_factory=Progress)

    @property
    def active(self) -> bool:
        """Whether the job still waits or runs."""
        return self.state in ("waiting", "running")

    def cancel(self) -> None:
        """Ask the job to stop; what is done stays."""
        self._cancel.set()

    def cancelled(self) -> bool:
        """Whether the job was asked to stop."""
        return self._cancel.is_set()


class Registry:
    """All jobs of this server, and the models they share."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._models: dict[tuple[Any, ...], LLM] = {}
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        # One model, few cores: jobs take turns instead of slowing each other down.
        self._turn = threading.Lock()

    def start(self, job: Job, work: Callable[[Job], Any]) -> Job:
        """Run ``work(job)`` in a thread; what it returns becomes ``job.result``."""
        with self._lock:
            ended = [key for key, old in self._jobs.items() if not old.active]
            for key in ended[: max(0, len(self._jobs) - _KEEP)]:
                del self._jobs[key]
            self._jobs[job.id] = job
        threading.Thread(target=self._run, args=(job, work), name=f"job-{job.kind}", daemon=True).start()
        return job

    def get(self, job_id: str | None) -> Job | None:
        """Return a job by its id."""
        with self._lock:
            return self._jobs.get(job_id) if job_id else None

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
        with self._opening:
            if key not in self._models:
                self._models[key] = open_llm(kind, name or None, **options, **private)
                while len(self._models) > _MODELS:
                    del self._models[next(iter(self._models))]
            return self._models[key]

    @contextmanager
    def _turn_of(self, job: Job) -> Iterator[None]:
        if not job.takes_turns:
            yield
            return
        while not self._turn.acquire(timeout=0.2):
            if job.cancelled():
                raise Cancelled("Cancelled before it began.")
        try:
            yield
        finally:
            self._turn.release()

    def _run(self, job: Job, work: Callable[[Job], Any]) -> None:
        try:
            with self._turn_of(job):
                job.started, job.state = time.monotonic(), "running"
                job.result = work(job)
                end = "cancelled" if job.cancelled() else "finished"
        except Cancelled as error:
            end, job.error = "cancelled", str(error)
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
