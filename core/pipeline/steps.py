"""Steps, and the one driver that runs them: a step fills the missing cells of a run by asking models.

Command line, dashboard and `core.analyze` call `drive` and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, fields
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import pandas as pd

from core.errors import InputError
from core.llm import open_llm
from core.llm.cache import CompletionCache
from core.llm.types import LLM, Completion, Request
from core.pipeline.asking import Asker, RetryPolicy
from core.pipeline.executing import Executor, Job, Part, batches, in_threads
from core.pipeline.rows import OF_ANSWERS, Rows, cleared, merged
from core.run import Run
from core.text.display import count, duration

ProgressCallback = Callable[[int, int, str], None]
# Building and saving partial runs may take at most this share of the time.
_PARTIAL_SHARE = 0.05
_COUNTED_AT_ONCE = 100
_COUNTED = 2000  # questions; their prompts are made to be counted


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of a step is named on the command line and, with a ``title``, on screen, and what it means.

    Put it into the field's type: ``repeats: Annotated[int, Option("--repeats", "Repeats.")] = 0``. ``where``
    names another option and the value it must have for this one to mean anything. ``names`` says what a text
    names where it has no ``choices``: on screen it is chosen among ``stores``, ``metrics`` or ``models``.
    """

    name: str
    help: str
    shows_default: bool = True
    title: str = ""
    choices: tuple[tuple[Any, str], ...] = ()
    where: tuple[str, Any] | None = None
    names: str = ""


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
class Answered:
    """An answered call of a question, by kind and number as in its `Call`."""

    query_id: str
    kind: str
    number: int
    completion: Completion


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """What a step costs with one value of an option; ``expected`` says what its results are like."""

    name: str
    calls: int
    tokens: int
    expected: str
    chosen: bool
    seconds: float | None = None

    @property
    def note(self) -> str:
        """Everything but the calls, in words."""
        time = "" if self.seconds is None else f"about {duration(self.seconds)}"
        tokens = f"about {self.tokens:,} prompt tokens"
        return "; ".join(filter(None, ("chosen" if self.chosen else "", tokens, time, self.expected)))


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The calls of a step for some questions; where they are not known, ``about`` how many and their tokens.

    ``timed`` only measure what a token costs; ``choices`` trade cost for exactness.
    """

    calls: tuple[Call, ...] = ()
    about: int | None = None
    about_tokens: int = 0
    timed: tuple[Call, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    choices: tuple[PlanChoice, ...] = ()


class StepWork(Protocol):
    """A step at work on one run; subclass it for the defaults.

    Rows of other ``settings`` (plain JSON) or another model are made again. ``batch`` questions go to `work`
    at once. ``apart``: what another process must have to work on some questions: their ``rows``, the whole
    ``run``, or "" where that cannot be done. Such a process opens the step anew, and what its facts need goes
    from `tell` there to `hear` here.
    """

    settings: Mapping[str, Any]
    batch: int = 1
    parallel: bool = False
    apart: str = ""

    def todo(self, run: Run) -> Sequence[str]:
        """Return the ids of the questions with missing cells; ``run`` is the current run."""
        ...

    def kept(self, run: Run) -> Mapping[str, pd.DataFrame]:
        """Return rows of the tables it fills that others have made: they are not cleared."""
        return {}

    def work(self, ids: Sequence[str]) -> Rows:
        """Return the rows of some questions; an exception affects these questions only."""
        ...

    def failed(self, query_id: str, reason: str) -> Rows:
        """Return rows that record why a question failed."""
        return {}

    def tell(self, ids: Sequence[str]) -> Any:
        """Return what is known of questions just worked on, beside their rows; once."""
        return None

    def hear(self, ids: Sequence[str], told: Any) -> None:
        """Take what another process has told."""
        return

    def plan(self, ids: Sequence[str]) -> StepPlan:
        """Return the calls for some questions; makes none."""
        return StepPlan()

    def facts(self, run: Run) -> Mapping[str, Any]:
        """Return more plain JSON for ``manifest["steps"][name]``; ``notes`` are added to the run's notes."""
        return {}


class Step(Protocol):
    """The model calls of a diagnostic: a frozen dataclass whose fields are its options.

    ``name`` is that of the diagnostic and of its facts in ``manifest["steps"]``, ``title`` stands on screen.
    ``noun`` is the unit of progress, singular: "call" where `StepWork.plan` knows the calls, else "answer" …
    ``fills`` are the cells it fills, by table: column names, or an empty tuple for whole rows.
    Subclass it for the defaults.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    noun: ClassVar[str]
    fills: ClassVar[Mapping[str, tuple[str, ...]]]

    @property
    def needs_llm(self) -> bool:
        """Whether it calls a language model."""
        return False

    def model(self, live: ModelChoice) -> ModelChoice | None:
        """Return the model to call, by default the one that answers questions; None where it calls none."""
        return live if self.needs_llm else None

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the step at work on a run, without a call yet; its facts there are of the same settings."""
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
    on_call: Callable[[Answered], object] | None = None,
    retry: RetryPolicy | None = None,
    on: Executor = in_threads,
) -> Run:
    """Fill the missing cells of a run by one step, and return the filled run.

    `BackendError` where the model failed before it answered anything, `CacheError` where completions can no
    longer be kept; those kept before are not lost.

    Parameters
    ----------
    run : Run
        Any run. Cells that the step filled before, with the same settings and model, are kept.
    llm : LLM, optional
        Where the step needs one; `InputError` without.
    cache : CompletionCache, optional
        Keeps every completion at once, so that a killed run resumes where it stopped.
    progress : callable, optional
        ``progress(done, total, what)`` in units of ``step.noun``, called from worker threads, one at a time.
        What the cache answered takes no time and counts in neither number.
    cancelled : callable, optional
        Checked after every call and between questions; True ends the step early.
    on_part : callable, optional
        Receives the partial run, in the calling thread, at intervals: at most a twentieth of the time.
    on_call : callable, optional
        Receives each answered call of a question at once, cached or not, in worker threads.
    on : callable
        Who works on the questions: the threads of this process, unless another executor is given.

    Returns
    -------
    Run
        Same run id, rows in the order of its questions, and ``manifest["steps"][step.name]``: ``options``,
        ``model``, ``n_done`` and ``n_left`` questions, ``reasons`` of failures, ``n_calls``, ``seconds``,
        ``complete`` (false after a cancel). The run itself where nothing was missing. A failed question loses
        only its own cells and is tried again by the next call.
    """
    asker = partial(Asker, llm, cache, retry, on_call=on_call)
    return _Drive(run, step, asker, progress, cancelled).go(on_part, on)


def drive(
    run: Run,
    steps: Sequence[Step],
    llms: Mapping[str, LLM | None],
    around: Callable[[Step, Run], AbstractContextManager[ProgressCallback | None]],
    **options: Any,
) -> Iterator[tuple[Step, Run, Run]]:
    """Fill a run by several steps in turn; yield each with the run before and after it.

    ``around`` is entered for each step and gives its ``progress``. `InputError`, before any call, as
    `check_models`.
    """
    check_models(run, steps, llms)
    for step in steps:
        with around(step, run) as progress:
            filled = fill(run, step, llm=llms[step.name], progress=progress, **options)
        yield step, run, filled
        run = filled


def open_models(
    steps: Sequence[Step],
    live: ModelChoice,
    known: Mapping[ModelChoice | None, LLM | None] = MappingProxyType({}),
) -> dict[str, LLM | None]:
    """Open the model of each step, by the step's name: each choice once, and none that is ``known``."""
    opened: dict[ModelChoice | None, LLM | None] = {None: None, **known}
    for choice in (step.model(live) for step in steps):
        if choice is not None and choice not in opened:
            address = {} if choice.base_url is None else {"base_url": choice.base_url}
            opened[choice] = open_llm(choice.backend, choice.model, **address)
    return {step.name: opened[step.model(live)] for step in steps}


def options_of(step: Step) -> dict[str, Any]:
    """Return the options of a step as plain JSON."""
    return as_saved({one.name: getattr(step, one.name) for one in fields(step)})  # type: ignore[arg-type]


def another_run(run: Run, steps: Sequence[Step], llms: Mapping[str, LLM | None]) -> Run:
    """Return a child of a run for steps to fill; same run, options and models give the same run id."""
    identity: list[Any] = [run.run_id]
    for step in steps:
        llm = llms.get(step.name) if step.needs_llm else None
        identity += [options_of(step), None if llm is None else llm.name]
    run_id = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
    done = "".join(f", {step.name}" for step in steps)
    return run.derive({"run_id": run_id, "name": run.name.removesuffix(done) + done})


def asks_questions(step: Step | type[Step]) -> bool:
    """Return whether a step answers the questions; the others work on the answers."""
    return "answer" in step.fills.get("queries", ())


def model_facts(llm: LLM) -> dict[str, Any]:
    """Return the facts about a model that a run records."""
    return {
        "backend": str(getattr(llm, "kind", "")),
        "name": llm.name,
        "options": as_saved(dict(llm.options)),
    }


def as_saved(value: Any) -> Any:
    """Return a value as it comes back from JSON, to compare it with a saved one."""
    return json.loads(json.dumps(value, default=str))


def opened(run: Run, step: Step, asker: Asker) -> tuple[Run, StepWork, Mapping[str, Any]]:
    """Return the run without cells made under other settings, the step at work, and its earlier facts."""
    if step.needs_llm and asker.llm is None:
        raise InputError(f"The step {step.name} needs llm, a language model; none is given.")
    work = step.open(run, asker)
    before = run.manifest.get("steps", {}).get(step.name)
    identity = {
        "options": as_saved(work.settings),
        "model": model_facts(asker.llm) if step.needs_llm and asker.llm is not None else None,
    }
    if before is not None and all(before.get(key) == value for key, value in identity.items()):
        return run, work, before
    if asks_questions(step):  # the cells that other steps derived from the answers go with them
        run = cleared(run, {**dict.fromkeys(OF_ANSWERS, ()), **step.fills}, run.manifest.get("steps", {}))
    else:
        run = cleared(run, step.fills, [step.name], work.kept(run), {step.name: identity})
    return run, step.open(run, asker), identity


def check_models(run: Run, steps: Iterable[Step], llms: Mapping[str, LLM | None]) -> None:
    """Raise InputError where a step cannot work with its model, before another step has made any call."""
    for step in steps:
        opened(run, step, Asker(llms.get(step.name)))


class _Drive:
    """The state of one `fill` call."""

    def __init__(
        self,
        run: Run,
        step: Step,
        asker: Callable[..., Asker],
        progress: ProgressCallback | None,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self._given, self._step = run, step
        self._progress = progress
        self._user_cancelled = cancelled
        self._stop = threading.Event()
        self._started = time.perf_counter()
        self._asker = asker(self._is_cancelled, lambda _: self._tell())
        self._run, self._work, self._before = opened(run, step, self._asker)
        self._todo = list(self._work.todo(self._run))
        self._parts: list[tuple[Sequence[str], Rows]] = []
        self._failed: dict[str, str] = {}
        self._lock = threading.Lock()
        self._n_finished = 0
        self._n_cached = 0  # questions for which nothing was asked of the model, while others were
        self._n_calls = 0  # in all; 0 where they are not known in advance
        self._next_offer = 0.0

    def go(self, on_part: Callable[[Run], object] | None, on: Executor) -> Run:
        if not self._todo and self._before.get("complete"):
            return self._given
        if self._progress is not None:
            self._n_calls = self._count_calls()
        if not self._n_calls:
            self._tell()
        job = Job(
            self._step, self._run, self._work, self._asker, self._todo, self._is_cancelled, self._stop,
            self._has_answered, self._finished,
        )  # fmt: skip
        # Closed before an error goes on, so that no thread is left behind.
        with closing(on(job)) as parts:
            for some in parts:
                self._keep(some)
                if on_part is not None:
                    self._offer(on_part)
        return self._build(ended=not self._stop.is_set())

    def _has_answered(self) -> bool:
        return bool(self._asker.n_answers or self._before.get("n_done"))

    def _keep(self, parts: Sequence[Part]) -> None:
        for part in parts:
            rows = part.rows
            if asks_questions(self._step):  # rows derived from earlier answers go
                rows = {**dict.fromkeys(OF_ANSWERS, ()), **rows}
            self._parts.append((part.ids, rows))
            if part.reason is not None:
                self._failed[part.ids[0]] = part.reason

    def _finished(self, parts: Sequence[Part]) -> None:
        with self._lock:
            self._n_finished += sum(len(part.ids) for part in parts)
            self._n_cached += sum(len(part.ids) for part in parts if not part.asked)
        if not self._n_calls:
            self._tell()

    def _count_calls(self) -> int:
        """Return the number of calls of all questions, of many from a sample; 0 where it is not known."""
        counted = self._todo[:: 1 + len(self._todo) // _COUNTED]
        total = 0
        for ids in batches(counted, _COUNTED_AT_ONCE):
            plan = self._work.plan(ids)
            if plan.about is not None:
                return 0
            total += len(plan.calls)
        return round(total * len(self._todo) / max(1, len(counted)))

    def _tell(self) -> None:
        """Report progress: in calls where their number is known, else in questions."""
        if self._progress is None:
            return
        with self._lock:
            n_answers, n_cached = self._asker.n_answers, self._asker.n_cached
            n_questions = len(self._todo)
            what = f"question {min(self._n_finished + 1, n_questions)} of {n_questions}"
            if self._n_calls:
                done, total = n_answers - n_cached, max(n_answers, self._n_calls) - n_cached
            else:
                done, total = self._n_finished - self._n_cached, n_questions - self._n_cached
                what += f", {count(n_answers, 'call')} answered" if n_answers else ""
            what += f", {n_cached:,} from the cache" if n_cached else ""
            self._progress(done, total, what)

    def _is_cancelled(self) -> bool:
        return self._stop.is_set() or (self._user_cancelled is not None and self._user_cancelled())

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
        before = self._before
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
            **as_saved(dict(self._work.facts(self._run))),
        }
        facts["notes"] += self._asker.notes if before["model"] is not None else ()
        others = self._run.manifest.get("steps", {})
        if asks_questions(self._step):
            others = {name: {**said, "complete": False} for name, said in others.items()}
        manifest = {**self._run.manifest, "steps": {**others, self._step.name: facts}}
        if facts["notes"] or before.get("notes"):
            earlier = [note for note in manifest.get("notes", ()) if note not in before.get("notes", ())]
            manifest["notes"] = list(dict.fromkeys([*earlier, *facts["notes"]]))
        if asks_questions(self._step):
            spent = self._given.manifest.get("cost", {}) if "complete" in before else {}
            added = {**self._asker.usage, "seconds": round(seconds, 1)}
            cost = {name: round((spent.get(name) or 0) + value, 1) for name, value in added.items()}
            manifest |= {"complete": ended, "model": facts["model"], "cost": cost}
        return Run.create(manifest, **self._run.tables)
