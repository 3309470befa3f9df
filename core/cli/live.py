"""Live runs on the command line: steps and models from options, cost estimate, execution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from core import diagnostics
from core.cli.options import Given, LiveOptions
from core.cli.output import check_free, log, occupant, open_dataset, stoppable
from core.errors import Cancelled, InputError
from core.llm import LLM, CompletionCache, backend
from core.pipeline import (
    CallPlan,
    ProgressLine,
    RunOptions,
    Step,
    another_run,
    begin,
    measure_speed,
    plan_steps,
    run_id_of,
)
from core.pipeline.cluster import Place, executor
from core.pipeline.steps import asks_questions, drive, open_models
from core.run import Run, sole_writer
from core.socket import steps_of
from core.sources.dataset import Dataset, is_run


@dataclass(frozen=True, slots=True)
class Work:
    """What a command runs: the source (a data set or a saved run), options, steps, and a model per step."""

    source: str
    live: LiveOptions
    retrieval: dict[str, Any]
    steps: tuple[Step, ...]
    llms: dict[str, LLM | None]
    place: Place

    @property
    def answering(self) -> Step | None:
        """The step that answers the questions, if there is one."""
        return next(filter(asks_questions, self.steps), None)


def step_types() -> dict[str, Any]:
    """Return the steps of all diagnostics by name."""
    return steps_of(diagnostics.DIAGNOSTICS)


def opened_work(source: str, given: Given) -> Work:
    """Return the chosen steps with their models opened."""
    live = LiveOptions(**given["live"])
    known = step_types()
    wanted = [name.strip() for name in live.steps.split(",")]
    unknown = next((name for name in wanted if name not in known), None)
    if unknown is not None:
        raise InputError(f"--steps can name {', '.join(known)}, got {unknown!r}.")
    # In any order on the command line: the step that answers first, then who is read before who reads.
    order = [*known]
    wanted = sorted(set(wanted), key=lambda name: (not asks_questions(known[name]), order.index(name)))
    steps = tuple(_step(known[name], given.get(name, {}), live) for name in wanted)
    place = Place(**given.get("place", {}))
    return Work(source, live, dict(given["retrieval"]), steps, open_models(steps, live.choice), place)


def planned(work: Work, cache: CompletionCache, *, timed: bool) -> CallPlan:
    """Return the calls of all steps; timed: after a few calls of each step whose model is asked."""
    run = begun(work, lambda: False) if work.answering is not None else _saved(work)
    plan = plan_steps(run, work.steps, work.llms, cache)
    asked = [(work.llms[one.step], one) for one in plan.steps if one.first and timed]
    speeds = [measure_speed(llm, one, cache) for llm, one in asked if llm is not None]
    if not speeds:
        return plan
    # The timed calls are in the cache now.
    return plan_steps(run, work.steps, work.llms, cache).timed(*speeds)


def carried_out(work: Work, cache: CompletionCache, out: str, name: str | None, overwrite: bool) -> Run:
    """Run all steps, or resume the run in ``out``, and save it there.

    InputError where ``out`` holds another run or another process writes there; Cancelled, with everything
    finished saved, on a signal.
    """
    choices = {step.name: step.model(work.live.choice) for step in work.steps}
    with stoppable() as cancelled, sole_writer(out), executor(work.place, choices) as on:
        if work.answering is not None:
            run = begun(work, cancelled, out, name, overwrite)
        else:
            run = _found(work, out, overwrite)

        @contextmanager
        def around(step: Step, run: Run) -> Iterator[ProgressLine]:
            plan = plan_steps(run, [step], work.llms, cache)
            if plan.n_calls:
                log(
                    f"{plan.n_to_ask:,} calls to make, {plan.n_cached:,} answered before, "
                    f"{plan.n_duplicates:,} identical; about {plan.prompt_tokens:,} prompt tokens."
                )
            line = ProgressLine(f"{step.noun}s")
            yield line
            line.end()

        def keep(partial: Run) -> None:
            partial.save(out)

        driven = drive(
            run, work.steps, work.llms, around, cache=cache, cancelled=cancelled, on_part=keep, on=on
        )
        for step, before, run in driven:
            _kept(step, before, run, out, cancelled())
    return run


def _step(kind: Any, given: Any, live: LiveOptions) -> Step:
    """Return a step with the given options, and its back end's default of ``max_tokens``."""
    step: Step = kind(**given)
    choice = step.model(live.choice)
    if choice is not None and "max_tokens" in {one.name for one in fields(kind)} - set(given):
        step = kind(**given, max_tokens=backend(choice.backend).max_tokens)
    return step


def begun(
    work: Work,
    cancelled: Callable[[], bool],
    out: str | None = None,
    name: str | None = None,
    overwrite: bool = True,
) -> Run:
    """Return the run of a data set: the one in ``out``, or a new one with questions and passages only."""
    step = work.answering
    assert step is not None
    llm = work.llms[step.name]
    assert llm is not None
    data = open_dataset(work.source, work.live.limit, work.live.corpus)
    options = RunOptions(**{"k": _all_passages(work.source, data), **work.retrieval})
    if out is not None:
        run_id = run_id_of(data, options, llm, step)
        check_free(run_id, out, overwrite)
        if not overwrite and occupant(out) is not None:
            run = Run.load(out)
            return run.renamed(name) if name else run
    line = ProgressLine("questions")
    run = begin(data, options, llm, step, name=name, progress=line, cancelled=cancelled)
    line.clear()
    return run


def _all_passages(source: str, data: Dataset) -> int:
    """Return the default of k: all passages of a saved run, else that of `RunOptions`."""
    most = max((len(one.passages or ()) for one in data.questions), default=0) if is_run(source) else 0
    return min(most, 100) or RunOptions().k


def _saved(work: Work) -> Run:
    if not is_run(work.source):
        names = ",".join(step.name for step in work.steps)
        asking = (name for name, step in step_types().items() if asks_questions(step))
        raise InputError(
            f"--steps {names} works on the answers of a saved run, and {work.source} is not one; "
            f"use --steps {','.join([*asking, names])} for questions."
        )
    return Run.load(work.source)


def _found(work: Work, out: str, overwrite: bool) -> Run:
    """Return the run to fill: the saved run itself where ``out`` is its folder, else a child of it.

    The child may be in ``out`` already, from an earlier try.
    """
    run = _saved(work)
    if Path(work.source).resolve() == Path(out).resolve():
        return run
    derived = another_run(run, work.steps, work.llms)
    check_free(derived.run_id, out, overwrite)
    return derived if overwrite or occupant(out) is None else Run.load(out)


def _kept(step: Step, before: Run, filled: Run, out: str, cancelled: bool) -> None:
    """Save what a step has filled, and say what is to be said of it."""
    there = occupant(out)
    if filled is before and there is not None and there.get("run_id") == filled.run_id:
        log(f"{out} already holds this run; {step.name} is already there.")
        return
    filled.save(out)
    facts = filled.manifest["steps"][step.name]
    if cancelled and not facts["complete"]:
        raise Cancelled(
            f"Stopped on request; {facts['n_done']:,} of {len(filled.queries):,} questions are saved in "
            f"{out}: run the same command again to go on."
        )
    for note in facts["notes"]:
        log(note)
