"""What jobs do: estimate what steps will cost, and carry them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from core.llm import LLM, CompletionCache, default_cache_path
from core.pipeline import (
    CallPlan,
    ModelChoice,
    Progress,
    RunOptions,
    Step,
    another_run,
    begin,
    measure_speed,
    plan_steps,
)
from core.pipeline.cluster import Place, executor
from core.pipeline.steps import ProgressCallback, asks_questions, drive
from core.run import Run, sole_writer
from core.sources.dataset import Dataset
from ui import library, servers
from ui.jobs import Job, registry


@dataclass(frozen=True, slots=True)
class Work:
    """What a job is to do.

    Attributes
    ----------
    steps : tuple of Step
        What to do, in order.
    choice : ModelChoice or None
        The model that is asked; a step may bring another one.
    run : Run or None
        The run to fill; None begins one from the data set.
    in_place : bool
        Fill this very run instead of one derived from it.
    dataset : Dataset or None
        Questions of a new run, with the ``retrieval`` of their passages.
    retrieval : RunOptions or None
        How passages are found.
    place : Place
        Where the questions are worked on.
    """

    steps: tuple[Step, ...]
    choice: ModelChoice | None = None
    run: Run | None = None
    in_place: bool = False
    dataset: Dataset | None = None
    retrieval: RunOptions | None = None
    place: Place = field(default_factory=Place)

    @property
    def name(self) -> str:
        """Name of what is worked on."""
        source = self.run if self.dataset is None else self.dataset
        return "" if source is None else source.name


def plan(page: str, work: Work) -> Job:
    """Start the estimate of what work will cost; its result is a `CallPlan`, timed where a model is asked."""
    models = _Models(work)

    def estimate(job: Job) -> CallPlan:
        job.meter.what = "loading the model, counting calls, measuring its speed"
        llms = models.opened()
        with CompletionCache(default_cache_path()) as cache:
            run = _begun(work, llms, job)
            found = plan_steps(run, work.steps, llms, cache)
            speeds = []
            for step, calls in zip(work.steps, found.steps, strict=True):
                llm = llms[step.name]
                if llm is not None and calls.first and (calls.n_to_ask or calls.about):
                    with models.turn(job, step):
                        speeds.append(measure_speed(llm, calls, cache))
            # The calls that were timed are real ones and need not be made again.
            return plan_steps(run, work.steps, llms, cache).timed(*speeds) if speeds else found

    return registry().start(Job(page, "plan", f"Cost of {work.name}", work, expires=True), estimate)


def carry_out(page: str, work: Work) -> Job:
    """Start the steps, or go on with them; finished calls come from the cache."""
    models = _Models(work)

    def fill_all(job: Job) -> Run | None:
        job.meter.what = "loading the model"
        llms = models.opened()
        run, done = _source(work, llms, job), False

        @contextmanager
        def around(step: Step, run: Run) -> Iterator[ProgressCallback]:
            with models.turn(job, step):
                job.meter = Progress(unit=f"{step.noun}s")
                job.begun, job.step = run, step
                yield job.meter.update

        def keep(part: Run) -> None:
            if job.step is not None and n_done(part, job.step):
                job.partial = part

        # Two jobs, or two dashboards on one folder, do not pay for the same run.
        with (
            sole_writer(library.folder_of(run)),
            CompletionCache(default_cache_path()) as cache,
            executor(work.place, models.chosen) as on,
        ):
            told = {"cancelled": job.cancelled, "on_part": keep, "on_call": job.take, "on": on}
            for step, _, filled in drive(run, work.steps, llms, around, cache=cache, **told):
                run = filled
                # A run that has no answer yet is nothing to look at, and takes nobody's place.
                done |= n_done(run, step) > 0 or not job.cancelled()
                if done:
                    job.partial = run
                    library.save(run)
                if job.cancelled():
                    break
        return run if done else None

    return registry().start(Job(page, "run", f"Run of {work.name}", work), fill_all)


def n_done(run: Run, step: Step) -> int:
    """Return the number of questions that a step has done."""
    return int(run.manifest.get("steps", {}).get(step.name, {}).get("n_done", 0))


def again(job: Job) -> Work:
    """Return what is left of a job's work; what was done is kept."""
    work: Work = job.settings
    done = job.result or job.partial
    return work if done is None else replace(work, run=done, in_place=True)


class _Models:
    """The models of the steps: chosen in the page, opened in the job's thread."""

    def __init__(self, work: Work) -> None:
        self._steps = [step.name for step in work.steps]
        self._models: dict[str, ModelChoice] = {}
        self._open: dict[str, Callable[[], LLM]] = {}
        for step in work.steps:
            choice = None if work.choice is None else step.model(work.choice)
            if choice is not None:
                # Secrets are read now, because a job's thread belongs to no session.
                self._models[step.name] = servers.resolved(choice)
                self._open[step.name] = servers.opener(choice)

    @property
    def chosen(self) -> dict[str, ModelChoice | None]:
        """The model of each step, for others to open: without a key."""
        return {name: self._models.get(name) for name in self._steps}

    def opened(self) -> dict[str, LLM | None]:
        return {name: self._open[name]() if name in self._open else None for name in self._steps}

    def turn(self, job: Job, step: Step) -> AbstractContextManager[None]:
        return job.turn(registry().turns, self._models.get(step.name))


def _begun(work: Work, llms: Mapping[str, LLM | None], job: Job) -> Run:
    """Return the run to fill: a given one, or the questions of a data set with their passages."""
    if work.dataset is None:
        assert work.run is not None
        return work.run
    step: Any = next(filter(asks_questions, work.steps))
    llm = llms[step.name]
    assert llm is not None and work.retrieval is not None
    job.meter = Progress(unit="questions")
    run = begin(work.dataset, work.retrieval, llm, step, progress=job.meter.update, cancelled=job.cancelled)
    return _saved(library.owned(run))


def _source(work: Work, llms: Mapping[str, LLM | None], job: Job) -> Run:
    """Return the run to fill: the one given, one derived from it, or what an earlier try left of that."""
    if work.run is None:
        return _begun(work, llms, job)
    return work.run if work.in_place else _saved(library.owned(another_run(work.run, work.steps, llms)))


def _saved(run: Run) -> Run:
    saved = library.find(run.run_id)
    return run if saved is None else Run.load(saved.folder)


def has_labels(step: Any, n_labelled: int) -> bool:
    """Tell whether a step can find anything out of so many labelled questions."""
    return n_labelled >= getattr(step, "n_labelled", 0)
