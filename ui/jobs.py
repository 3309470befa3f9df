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
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from core.errors import Cancelled, LeadlineError
from core.llm import LLM, open_llm
from core.pipeline import Progress

_LOG = logging.getLogger("leadline")
_KEEP = 50  # finished jobs remembered


@dataclass
class Job:
    """One piece of background work, written by its thread and read by pages.

    ``state`` is waiting, running, finished, cancelled or failed. ``partial`` is the newest
    unfinished result, ``result`` the final one, ``error`` one sentence for the user.
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
        self._models: dict[tuple[str, str | None], LLM] = {}
        self._lock = threading.Lock()
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

    def model(self, kind: str, name: str | None) -> LLM:
        """Return the model, opened once for the whole server; call it from within a job."""
        key = (kind, name or None)
        if key not in self._models:
            self._models[key] = open_llm(kind, name or None)
        return self._models[key]

    def _run(self, job: Job, work: Callable[[Job], Any]) -> None:
        try:
            while not self._turn.acquire(timeout=0.2):
                if job.cancelled():
                    raise Cancelled("Cancelled before it began.")
            try:
                job.started, job.state = time.monotonic(), "running"
                job.result = work(job)
                end = "cancelled" if job.cancelled() else "finished"
            finally:
                self._turn.release()
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
