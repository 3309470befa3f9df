"""Who works on the questions of a step: threads of this process; a cluster is in `core.pipeline.cluster`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from core.errors import BackendError, Cancelled, LeadlineError
from core.llm.cache import CacheError
from core.llm.redact import error_text
from core.llm.types import stop_if
from core.pipeline.asking import Asker
from core.pipeline.rows import Rows

if TYPE_CHECKING:  # steps import this module
    from core.pipeline.steps import Step, StepWork
    from core.run import Run

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    """What came of some questions: their rows, and why they failed if they did.

    ``asked``: whether the model was asked for them, not only the cache. ``told`` is for `StepWork.hear`.
    """

    ids: tuple[str, ...]
    rows: Rows
    reason: str | None
    asked: bool
    told: Any = None


@dataclass(frozen=True, slots=True)
class Job:
    """The questions of a step to work on, and how an executor tells the driver about them.

    ``run`` is the run that ``work`` was opened on. ``cancelled`` is true once the user has cancelled or
    ``stop`` is set, which begins no more questions. ``finished`` counts questions, from any thread;
    ``answered`` tells whether the model has ever answered.
    """

    step: Step
    run: Run
    work: StepWork
    asker: Asker
    todo: Sequence[str]
    cancelled: Callable[[], bool]
    stop: threading.Event
    answered: Callable[[], bool]
    finished: Callable[[Sequence[Part]], None]

    @property
    def threads(self) -> int:
        """Questions, or batches of them, that one model is worth asking about at once."""
        llm = self.asker.llm
        if llm is None or not self.work.parallel:
            return 1
        return max(1, min(llm.capabilities.parallel, len(self.todo)))


# Yields what is finished as it comes, in the calling thread; ends after a stop, too.
Parts = Generator[Sequence[Part], None, None]
Executor = Callable[[Job], Parts]


def in_threads(job: Job) -> Parts:
    """Work in threads of this process, as many as the model is worth."""
    n_threads = job.threads
    if n_threads == 1:
        yield from in_this_thread(job)
        return
    waiting = batches(job.todo, job.work.batch)
    # A few questions ahead of the threads are enough; 100,000 futures would only take memory.
    ahead = 2 * n_threads
    with ThreadPoolExecutor(n_threads, thread_name_prefix="leadline") as pool:
        try:
            running = {pool.submit(_finish, job, ids) for ids in islice(waiting, ahead)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                if not job.stop.is_set():
                    running |= {
                        pool.submit(_finish, job, ids) for ids in islice(waiting, ahead - len(running))
                    }
        except BaseException:
            job.stop.set()  # before the pool waits for its threads: Ctrl-C ends the calls under way, too
            raise


def in_this_thread(job: Job) -> Parts:
    """Work in the calling thread, one batch at a time: a function of the user's may allow no other."""
    for ids in batches(job.todo, job.work.batch):
        yield _finish(job, ids)
        if job.stop.is_set():
            return


def _finish(job: Job, ids: tuple[str, ...]) -> Sequence[Part]:
    try:
        parts = worked(job.work, job.asker, ids, job.answered, job.cancelled)
    except Cancelled:
        job.stop.set()
        return ()
    job.finished(parts)
    return parts


def worked(
    work: StepWork,
    asker: Asker,
    ids: tuple[str, ...],
    answered: Callable[[], bool],
    cancelled: Callable[[], bool],
) -> list[Part]:
    """Return what comes of some questions; where they fail together, of each one alone.

    A question that fails does not end the run: the reason is its result. A model that has never answered,
    a cache that cannot be written and a cancel do.
    """
    stop_if(cancelled)
    before = asker.n_answers - asker.n_cached
    reason = None
    try:
        rows = work.work(ids)
    except (Cancelled, CacheError):
        raise
    except Exception as error:
        if isinstance(error, BackendError) and not answered():
            raise
        _LOG.debug("The step failed on %s.", ids, exc_info=True)
        if len(ids) > 1:
            return [part for one in ids for part in worked(work, asker, (one,), answered, cancelled)]
        reason = reason_of(error)
        rows = work.failed(ids[0], reason)
    # With other threads at work this may be their call: only progress is counted by it.
    asked = asker.n_answers - asker.n_cached > before or not asker.n_answers
    return [Part(ids, rows, reason, asked)]


def reason_of(error: Exception, who: str = "The model") -> str:
    """Return the reason of a failure, one sentence."""
    if isinstance(error, LeadlineError):
        return str(error)
    # The messages of other libraries may contain an address or a key.
    return f"{who} failed on this question ({error_text(error)})."


def batches(ids: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    """Yield ids, ``size`` at a time."""
    rest = iter(ids)
    while batch := tuple(islice(rest, size)):
        yield batch
