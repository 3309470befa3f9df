"""The one driver of everything that is asked of a model: a step fills the missing cells of a run.

Command line, dashboard and `core.analyze` call `fill` and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

from core.errors import BackendError, Cancelled, InputError, LeadlineError
from core.llm.cache import CacheError, CompletionCache
from core.llm.redact import error_text
from core.llm.types import LLM, Request
from core.pipeline.asking import Asker, RetryPolicy
from core.pipeline.rows import OF_ANSWERS, Rows, cleared, merged
from core.run import Run

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
ProgressCallback = Callable[[int, int, str], None]
# Building and saving the partial run may take this share of the time, no more.
_PARTIAL_SHARE = 0.05
_COUNTED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of a step is named on the command line and on screen, and what it means.

    Put it into the field's type: ``repeats: Annotated[int, Option("--repeats", "Repeats.")] = 0``. On screen
    it has its ``title``, and is left out without one; ``choices`` are values with their titles.
    """

    name: str
    help: str
    shows_default: bool = True
    title: str = ""
    choices: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model before it is opened: kind of back end, name or path, address of its server."""

    backend: str
    model: str | None = None
    base_url: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a question: its kind, its number within the kind (from 1), its request."""

    kind: str
    number: int
    request: Request


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What a step will ask about some questions.

    Attributes
    ----------
    calls : tuple of Call
        The calls, where they are known beforehand.
    about : int or None
        An estimate of their number, where they are not.
    about_tokens : int
        An estimate of the prompt tokens of those.
    kinds : Mapping
        What each kind of call is for.
    notes : tuple of str
        What else must be said: what the estimate assumes.
    """

    calls: tuple[Call, ...] = ()
    about: int | None = None
    about_tokens: int = 0
    kinds: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class StepWork(Protocol):
    """A step at work on one run; subclass it for the defaults.

    Attributes
    ----------
    settings : Mapping
        Plain JSON. Rows that were made under other settings, or by another model, are cleared and made again.
    batch : int
        Questions that `work` is given at once.
    parallel : bool
        Whether `work` may be called by several threads at once.
    """

    settings: Mapping[str, Any]
    batch: int = 1
    parallel: bool = False

    def todo(self, run: Run) -> Sequence[str]:
        """Return the ids of the questions whose cells are missing; ``run`` is the run as it is by now."""
        ...

    def work(self, ids: Sequence[str]) -> Rows:
        """Return the rows of some questions; what it raises costs these questions only."""
        ...

    def failed(self, query_id: str, reason: str) -> Rows:
        """Return rows that say why a question has none."""
        return {}

    def plan(self, ids: Sequence[str]) -> StepPlan:
        """Return what will be asked about some questions; nothing is spent."""
        return StepPlan()

    def facts(self, run: Run) -> Mapping[str, Any]:
        """Return more plain JSON for ``manifest["steps"][name]``; ``notes`` also go into the run's notes."""
        return {}


class Step(Protocol):
    """What must be asked of a model for a diagnostic: a frozen dataclass whose fields are its options.

    Attributes
    ----------
    name : str
        That of the diagnostic, and of its facts, ``manifest["steps"][name]``.
    title : str
        For people: "Extract and verify claims".
    noun : str
        What progress counts, in the singular: "call" where `StepWork.plan` knows them, else "answer" …
    fills : Mapping
        The cells that it fills, by table: names of columns, or nothing for whole rows.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    noun: ClassVar[str]
    fills: ClassVar[Mapping[str, tuple[str, ...]]]

    @property
    def needs_llm(self) -> bool:
        """Whether a language model is asked."""
        ...

    def model(self, live: ModelChoice) -> ModelChoice | None:
        """Return the model that it asks, given the one that answers questions; None where it asks none."""
        ...

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the state of one drive; loads and asks nothing yet.

        What an earlier drive left stands in ``run.manifest["steps"][name]``, as long as its settings are the
        same ones.
        """
        ...


def fill(
    run: Run,
    step: Step,
    *,
    llm: LLM | None = None,
    cache: CompletionCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: Callable[[], bool] | None = None,
    on_part: Callable[[Run], object] | None = None,
    retry: RetryPolicy | None = None,
    own_thread: bool = False,
) -> Run:
    """Fill the cells that a step's questions lack, and return the run with them.

    Parameters
    ----------
    run : Run
        Any run. What the step filled before, under the same settings and by the same model, is kept.
    step : Step
        What to do.
    llm : LLM, optional
        The model that is asked, where one is.
    cache : CompletionCache, optional
        Every completion is kept there at once, so that a killed run goes on where it stopped. None keeps them
        for this time only.
    progress : callable, optional
        ``progress(done, total, what)`` in units of ``step.noun``, duplicates and cached calls included;
        called from worker threads, one at a time.
    cancelled : callable, optional
        Looked at after every call and between questions; True ends the step early.
    on_part : callable, optional
        Gets the partial run, but not so often that it takes more than a twentieth of the time. Called from
        the calling thread.
    retry : RetryPolicy, optional
        What to do about transient failures.
    own_thread : bool
        Work in the thread that calls this, one question after the other: for a user's own functions, whose
        connections and contexts may belong to that thread.

    Returns
    -------
    Run
        The same run id and rows in the order of its questions, whatever the order of completion, with
        ``manifest["steps"][step.name]``: ``options``, ``model``, ``n_done`` and ``n_left`` questions,
        ``reasons`` of those that failed, ``n_calls``, ``seconds``, ``complete`` (false after a cancel). The
        run itself where there was nothing to do.

    Raises
    ------
    InputError
        The step needs a model and there is none.
    BackendError
        The model failed before it answered anything: it cannot be reached.
    CacheError
        Completions can no longer be kept; what was kept is not lost.

    Notes
    -----
    A question that fails costs nothing but its own cells and is tried again next time.
    """
    drive = _Drive(run, step, llm, cache, progress, cancelled, retry)
    return drive.go(on_part, own_thread)


def options_of(step: Step) -> dict[str, Any]:
    """Return the options of a step as plain JSON."""
    return plain({one.name: getattr(step, one.name) for one in fields(step)})  # type: ignore[arg-type]


def another_run(run: Run, steps: Sequence[Step], llms: Mapping[str, LLM | None]) -> Run:
    """Return a run with the same tables that names ``run`` as its parent, ready for some steps.

    Parameters
    ----------
    run : Run
        The run whose answers are to be looked at.
    steps : sequence of Step
        What will be done.
    llms : Mapping
        The model of each step, by the step's name.

    Returns
    -------
    Run
        The same run, options and models always give the same run id, so that a stopped job is found again.
    """
    identity: list[Any] = [run.run_id]
    for step in steps:
        llm = llms.get(step.name) if step.needs_llm else None
        identity += [options_of(step), None if llm is None else llm.name]
    run_id = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
    done = "".join(f", {step.name}" for step in steps)
    return run.derive({"run_id": run_id, "name": run.name.removesuffix(done) + done})


def check_ranges(options: Any, ranges: Mapping[str, tuple[int, int]]) -> None:
    """Refuse options that are no whole numbers of their ranges, both ends included."""
    for name, (low, high) in ranges.items():
        value = getattr(options, name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InputError(f"{name} must be a whole number from {low:,} to {high:,}, got {value!r}.")


def asks_questions(step: Step | type[Step]) -> bool:
    """Tell whether a step answers the questions; the others work on the answers."""
    return "answer" in step.fills.get("queries", ())


def model_facts(llm: LLM) -> dict[str, Any]:
    """Return what a run writes down about a model."""
    return {"backend": str(getattr(llm, "kind", "")), "name": llm.name, "options": plain(dict(llm.options))}


def plain(value: Any) -> Any:
    """Return a value as it comes back from JSON, so that it can be compared with a saved one."""
    return json.loads(json.dumps(value, default=str))


def opened(run: Run, step: Step, asker: Asker) -> tuple[Run, StepWork, Mapping[str, Any]]:
    """Return the run without cells made under other settings, the work to do, and what was done before."""
    if step.needs_llm and asker.llm is None:
        raise InputError(f"The step {step.name} needs llm, a language model; there is none.")
    work = step.open(run, asker)
    before = run.manifest.get("steps", {}).get(step.name)
    identity = {
        "options": plain(work.settings),
        "model": model_facts(asker.llm) if step.needs_llm and asker.llm is not None else None,
    }
    if before is None and asks_questions(step) and _was_asked(run, identity):
        return run, work, {**identity, "complete": True}
    if before is not None and all(before.get(key) == value for key, value in identity.items()):
        return run, work, before
    if asks_questions(step):  # what others said of the answers goes with the answers
        run = cleared(run, {**dict.fromkeys(OF_ANSWERS, ()), **step.fills}, run.manifest.get("steps", {}))
    else:
        run = cleared(run, step.fills, [step.name])
    return run, step.open(run, asker), identity


def _was_asked(run: Run, identity: Mapping[str, Any]) -> bool:
    """Tell whether an older version, which wrote down no steps, has asked the same of the same model."""
    manifest = run.manifest
    same = identity["options"].items() <= manifest.get("options", {}).items()
    return same and "steps" not in manifest and manifest.get("model") == identity["model"]


def reason_of(error: Exception, who: str = "The model") -> str:
    """Return in one sentence why there is no result."""
    if isinstance(error, LeadlineError):
        return str(error)
    # Foreign code may put an address or a key into its message.
    return f"{who} failed on this question ({error_text(error)})."


class _AtOnce(Executor):
    """Does the work in the calling thread, while it is submitted."""

    def submit(self, work: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(work(*arguments, **named))
        except Exception as error:  # what ends the program goes on to the caller
            future.set_exception(error)
        return future


_Parts = list[tuple[Sequence[str], Rows]]


class _Drive:
    """The state of one `fill` call."""

    def __init__(
        self,
        run: Run,
        step: Step,
        llm: LLM | None,
        cache: CompletionCache | None,
        progress: ProgressCallback | None,
        cancelled: Callable[[], bool] | None,
        retry: RetryPolicy | None,
    ) -> None:
        self._given, self._step, self._llm = run, step, llm
        self._progress = progress
        self._user_cancelled = cancelled or (lambda: False)
        self._stop = threading.Event()
        self._started = time.perf_counter()
        self._asker = Asker(llm, cache, retry, self._is_cancelled, self._answered)
        self._run, self._work, self._before = opened(run, step, self._asker)
        self._todo = list(self._work.todo(self._run))
        self._parts: _Parts = []
        self._failed: dict[str, str] = {}
        self._lock = threading.Lock()
        self._n_finished = 0
        self._n_calls = 0  # in all, 0 where they are not known beforehand
        self._next_offer = 0.0

    def go(self, on_part: Callable[[Run], object] | None, own_thread: bool) -> Run:
        if not self._todo and self._before.get("complete"):
            return self._given
        self._n_calls = self._count_calls() if self._progress is not None else 0
        self._tell()
        workers = self._workers(own_thread)
        # A few questions ahead of the workers are enough; 100,000 futures would only take room.
        ahead = 1 if workers == 1 else 2 * workers
        at_once = own_thread or workers == 1
        with _AtOnce() if at_once else ThreadPoolExecutor(workers, thread_name_prefix="leadline") as pool:
            waiting = _batches(self._todo, self._work.batch)
            running: set[Future[_Parts]] = set()
            try:
                while self._submit(pool, waiting, running, ahead):
                    self._collect(running)
                    if on_part is not None:
                        self._offer(on_part)
            except BaseException:
                self._stop.set()
                raise
        return self._build(ended=not self._stop.is_set())

    def _workers(self, own_thread: bool) -> int:
        if own_thread or self._llm is None or not self._work.parallel:
            return 1
        return max(1, min(self._llm.capabilities.parallel, len(self._todo)))

    def _submit(
        self,
        pool: Executor,
        waiting: Iterator[tuple[str, ...]],
        running: set[Future[_Parts]],
        ahead: int,
    ) -> bool:
        """Hand out questions; tell whether anything is under way."""
        while len(running) < ahead and not self._stop.is_set():
            ids = next(waiting, None)
            if ids is None:
                break
            running.add(pool.submit(self._batch, ids))
        return bool(running)

    def _collect(self, running: set[Future[_Parts]]) -> None:
        """Take in what is finished."""
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in finished:
            running.discard(future)
            try:
                self._parts += future.result()
            except Cancelled:
                self._stop.set()

    def _batch(self, ids: Sequence[str]) -> _Parts:
        """Work on some questions; where that fails, on each of them alone."""
        if self._is_cancelled():
            raise Cancelled("Stopped on request; everything finished so far is kept.")
        try:
            rows = self._work.work(ids)
        except (Cancelled, CacheError):
            raise
        except Exception as error:
            # One question never sinks the run; a model that has not answered anything yet does.
            if isinstance(error, BackendError) and not (self._asker.n_answers or self._before.get("n_done")):
                raise
            _LOG.debug("The step %s failed on %s.", self._step.name, ids, exc_info=True)
            if len(ids) > 1:
                return [part for query_id in ids for part in self._batch([query_id])]
            reason = reason_of(error)
            self._failed[ids[0]] = reason
            rows = self._work.failed(ids[0], reason)
        if asks_questions(self._step):  # nobody has looked at the new answers yet
            rows = {**dict.fromkeys(OF_ANSWERS, ()), **rows}
        with self._lock:
            self._n_finished += len(ids)
        self._tell()
        return [(ids, rows)]

    def _count_calls(self) -> int:
        """Count the calls of all questions; 0 where they are not known beforehand."""
        total = 0
        for ids in _batches(self._todo, _COUNTED_AT_ONCE):
            plan = self._work.plan(ids)
            if plan.about is not None:
                return 0
            total += len(plan.calls)
        return total

    def _answered(self, n_answers: int) -> None:
        if not self._n_calls:
            self._tell(n_answers)
        elif self._progress is not None:
            self._progress(n_answers, max(n_answers, self._n_calls), self._what())

    def _tell(self, n_answers: int | None = None) -> None:
        """Tell how far it is, counted in questions."""
        if self._progress is not None and not self._n_calls:
            n = self._asker.n_answers if n_answers is None else n_answers
            with self._lock:
                what = f"{self._what()}, {n:,} calls answered" if n else self._what()
                self._progress(self._n_finished, len(self._todo), what)

    def _what(self) -> str:
        return f"question {min(self._n_finished + 1, len(self._todo))} of {len(self._todo)}"

    def _is_cancelled(self) -> bool:
        return self._stop.is_set() or self._user_cancelled()

    def _offer(self, on_part: Callable[[Run], object]) -> None:
        start = time.perf_counter()
        if self._stop.is_set() or start < self._next_offer or self._n_finished >= len(self._todo):
            return
        on_part(self._build(ended=False))
        took = time.perf_counter() - start
        self._next_offer = start + took + took / _PARTIAL_SHARE

    def _build(self, *, ended: bool) -> Run:
        self._run, self._parts = merged(self._run, self._parts, self._step.fills), []
        n_left = len(self._work.todo(self._run))
        before, usage = self._before, self._asker.usage
        seconds = time.perf_counter() - self._started
        facts = {
            "options": before["options"],
            "model": before["model"],
            "n_done": len(self._run.queries) - n_left,
            "n_left": n_left,
            "reasons": dict(Counter(self._failed.values())),
            "n_calls": int(before.get("n_calls", 0)) + self._asker.n_made,
            "seconds": round(float(before.get("seconds", 0.0)) + seconds, 1),
            "complete": ended,
            "notes": [],
            **plain(dict(self._work.facts(self._run))),
        }
        # What a back end found out on the way: settings that its server did not take.
        facts["notes"] += getattr(self._llm, "notes", ()) if before["model"] is not None else ()
        others = self._run.manifest.get("steps", {})
        if asks_questions(self._step):
            others = {name: {**said, "complete": False} for name, said in others.items()}
        manifest = {**self._run.manifest, "steps": {**others, self._step.name: facts}}
        if facts["notes"] or before.get("notes"):
            earlier = [note for note in manifest.get("notes", ()) if note not in before.get("notes", ())]
            manifest["notes"] = list(dict.fromkeys([*earlier, *facts["notes"]]))
        if asks_questions(self._step):
            spent = self._given.manifest.get("cost", {}) if "complete" in before else {}
            added = {
                "calls": usage.asked,
                "cached": usage.cached,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "seconds": round(seconds, 1),
            }
            cost = {name: round((spent.get(name) or 0) + value, 1) for name, value in added.items()}
            manifest |= {"complete": ended, "model": facts["model"], "cost": cost}
        return Run.create(manifest, **self._run.tables)


def _batches(ids: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    rest = iter(ids)
    while batch := tuple(islice(rest, size)):
        yield batch
