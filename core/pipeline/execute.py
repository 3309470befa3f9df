"""Carry out a plan: questions in parallel, results in order, nothing lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from core.errors import BackendError, Cancelled, LeadlineError
from core.llm.cache import CacheError, CompletionCache
from core.llm.redact import error_text
from core.llm.types import LLM
from core.pipeline.asking import Asker, RetryPolicy
from core.pipeline.manifest import live_manifest
from core.pipeline.plan import CallPlan
from core.pipeline.requests import question_calls
from core.pipeline.retrieve import PassageFinder, Retrieved
from core.pipeline.tables import QuestionResult, build_tables
from core.run import Run
from core.sources.question import Question

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
ProgressCallback = Callable[[int, int, str], None]
# Building and saving the partial run may take this share of the time, no more.
_PARTIAL_SHARE = 0.05


def execute(
    plan: CallPlan,
    llm: LLM,
    cache: CompletionCache | None = None,
    *,
    progress: ProgressCallback | None = None,
    cancelled: Callable[[], bool] | None = None,
    on_question: Callable[[Run], None] | None = None,
    retry: RetryPolicy | None = None,
    name: str | None = None,
    own_thread: bool = False,
) -> Run:
    """Ask every call of a plan that is not in the cache, and build the run.

    Parameters
    ----------
    plan : CallPlan
        From `make_plan`.
    llm : LLM
        The model the plan was made with.
    cache : CompletionCache, optional
        Every completion is kept there at once, so a killed run goes on where it stopped. None
        keeps them for this run only.
    progress : callable, optional
        ``progress(done, total, what)``, counted in calls, duplicates and cached ones included;
        called from worker threads, one at a time.
    cancelled : callable, optional
        Looked at after every call; True ends the run early.
    on_question : callable, optional
        Gets the partial run (``complete`` false) after each question; less often where building it
        would take more than a twentieth of the time. Called from the calling thread.
    retry : RetryPolicy, optional
        What to do about transient failures.
    name : str, optional
        Name of the run; by default the data set and the model.
    own_thread : bool
        Ask one question after the other, in the thread that calls this: for a user's own functions, whose
        connections and contexts may belong to that thread.

    Returns
    -------
    Run
        Questions in the order of the data set, whatever the order of completion. A question that
        failed has ``answer_status`` "error" and a reason. After a cancel: the questions that were
        finished, with ``complete`` false.

    Raises
    ------
    BackendError
        The model failed before it answered anything: it cannot be reached.
    CacheError
        Completions can no longer be kept; what was kept is not lost.

    Notes
    -----
    Cost: ``plan.n_to_ask`` LLM calls. As many questions at once as the back end gains from.
    """
    return _Execution(plan, llm, cache, progress, cancelled, retry, name).run(on_question, own_thread)


class _AtOnce(Executor):
    """Does the work in the calling thread, while it is submitted."""

    def submit(self, work: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(work(*arguments, **named))
        except Exception as error:  # what ends the program goes on to the caller
            future.set_exception(error)
        return future


class _Execution:
    """The state of one `execute` call."""

    def __init__(
        self,
        plan: CallPlan,
        llm: LLM,
        cache: CompletionCache | None,
        progress: ProgressCallback | None,
        cancelled: Callable[[], bool] | None,
        retry: RetryPolicy | None,
        name: str | None,
    ) -> None:
        self._plan, self._llm, self._name = plan, llm, name
        self._progress = progress
        self._user_cancelled = cancelled or (lambda: False)
        self._stop = threading.Event()
        self._finder = PassageFinder(plan.options)
        # An empty cache is false, so None is asked for by name.
        store = cache if cache is not None else CompletionCache()
        self._asker = Asker(llm, store, retry or RetryPolicy(), self._is_cancelled, self._answered)
        self._results: dict[int, QuestionResult] = {}
        self._lock = threading.Lock()
        self._done = 0
        self._n_finished = 0
        self._next_offer = 0.0
        self._started = time.perf_counter()

    def run(self, on_question: Callable[[Run], None] | None, own_thread: bool) -> Run:
        questions = self._plan.dataset.questions
        workers = 1 if own_thread else max(1, min(self._plan.parallel, len(questions)))
        # A few questions ahead of the workers are enough; 100,000 futures would only take room.
        ahead = 1 if own_thread else 2 * workers
        was_cancelled = False
        with _AtOnce() if own_thread else ThreadPoolExecutor(workers, thread_name_prefix="leadline") as pool:
            waiting = iter(enumerate(questions))
            running: dict[Future[QuestionResult], int] = {}
            try:
                while True:
                    while len(running) < ahead and not self._stop.is_set():
                        index, question = next(waiting, (-1, None))
                        if question is None:
                            break
                        running[pool.submit(self._question, question)] = index
                    if not running:
                        break
                    was_cancelled |= self._collect(running, on_question)
            except BaseException:
                self._stop.set()
                raise
        complete = not was_cancelled and len(self._results) == len(questions)
        return self._build(complete)

    def _collect(
        self, running: dict[Future[QuestionResult], int], on_question: Callable[[Run], None] | None
    ) -> bool:
        """Take in what is finished; tell whether the run was cancelled."""
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        was_cancelled = False
        for future in finished:
            index = running.pop(future)
            try:
                self._results[index] = future.result()
            except Cancelled:
                was_cancelled = True
                self._stop.set()
        if on_question is not None and not was_cancelled:
            self._offer(on_question)
        return was_cancelled

    def _offer(self, on_question: Callable[[Run], None]) -> None:
        start = time.perf_counter()
        if start < self._next_offer:
            return
        on_question(self._build(complete=False))
        took = time.perf_counter() - start
        self._next_offer = start + took + took / _PARTIAL_SHARE

    def _question(self, question: Question) -> QuestionResult:
        retrieved = Retrieved()
        try:
            retrieved = self._finder.find(question)
            calls = question_calls(question.question, retrieved, self._plan.options)
            if not calls:
                return QuestionResult(question, retrieved, problem=retrieved.problem)
            completions = self._asker.ask([call.request for call in calls])
            keyed = {(c.kind, c.number): done for c, done in zip(calls, completions, strict=True)}
            return QuestionResult(question, retrieved, keyed)
        except (Cancelled, CacheError):
            raise
        except Exception as error:
            # One question never sinks the run; a model that has not answered anything yet does.
            if isinstance(error, BackendError) and not self._done:
                raise
            _LOG.debug("Question %s failed.", question.query_id, exc_info=True)
            return QuestionResult(question, retrieved, problem=_reason(error))
        finally:
            with self._lock:
                self._n_finished += 1

    def _answered(self, n: int) -> None:
        with self._lock:
            self._done += n
            if self._progress is not None:
                total = max(self._done, self._plan.n_calls)
                n_questions = len(self._plan.dataset.questions)
                self._progress(
                    self._done, total, f"question {min(self._n_finished + 1, n_questions)} of {n_questions}"
                )

    def _is_cancelled(self) -> bool:
        return self._stop.is_set() or self._user_cancelled()

    def _build(self, complete: bool) -> Run:
        results = [self._results[index] for index in sorted(self._results)]
        seconds = time.perf_counter() - self._started
        manifest = live_manifest(self._plan, self._asker.usage, results, seconds, complete, self._name)
        # What a back end found out on the way: settings that its server did not take.
        manifest["notes"] += getattr(self._llm, "notes", ())
        return Run.create(manifest, **build_tables(results))


def _reason(error: Exception) -> str:
    if isinstance(error, LeadlineError):
        return str(error)
    # Foreign code may put an address or a key into its message.
    return f"The model failed on this question ({error_text(error)})."
