"""How fast is this model on this machine? One or two real calls tell; they are not wasted."""

from __future__ import annotations

import time

from core.errors import BackendError
from core.llm.cache import CompletionCache, request_key
from core.llm.types import LLM, Completion
from core.pipeline.plan import Calibration, CallPlan
from core.pipeline.requests import Call, question_calls
from core.pipeline.retrieve import PassageFinder

_QUESTIONS_TRIED = 20


def calibrate(llm: LLM, plan: CallPlan, cache: CompletionCache | None = None) -> Calibration:
    """Time a little of the plan's own work.

    Parameters
    ----------
    llm : LLM
        The model.
    plan : CallPlan
        Its first question that has passages is used.
    cache : CompletionCache, optional
        The calls go into it, so the run does not repeat them. When it already holds them, their
        recorded times are used and nothing is asked.

    Returns
    -------
    Calibration
        Use it with `CallPlan.calibrated`.

    Raises
    ------
    BackendError
        The model cannot be used, or none of the data set's questions can be asked.

    Notes
    -----
    Cost: two calls (one full batch where the model works in batches), a few seconds; no calls when
    they were made before. The first warms the model up, the second counts.
    """
    calls = _first_calls(plan, max(2, llm.capabilities.batch))
    keys = [request_key(llm, call.request) for call in calls]
    known = cache.get_many(keys) if cache is not None else {}
    if len(known) == len(set(keys)):
        seconds = sum(c.latency for c in known.values())
        return Calibration(_rate(seconds, list(known.values())), len(known), from_cache=True)
    done: dict[int, Completion] = {}
    ends: list[float] = [time.perf_counter()]

    def on_done(index: int, completion: Completion) -> None:
        done[index] = completion
        ends.append(time.perf_counter())
        if cache is not None:
            cache.put(keys[index], completion, llm.name)

    llm.generate([call.request for call in calls], on_done)
    errors = [c.error for c in done.values() if c.error]
    if errors:
        raise BackendError(f"The model could not answer a first question: {errors[0]}")
    timed = list(done.values())
    one_by_one = llm.capabilities.batch == 1 and llm.capabilities.parallel == 1
    if one_by_one and len(timed) > 1:
        return Calibration(_rate(ends[-1] - ends[-2], timed[-1:]), 1)
    return Calibration(_rate(sum(c.latency for c in timed), timed), len(timed))


def _rate(seconds: float, completions: list[Completion]) -> float:
    return seconds / max(1, sum(c.prompt_tokens for c in completions))


def _first_calls(plan: CallPlan, most: int) -> list[Call]:
    finder = PassageFinder(plan.options)
    for question in plan.dataset.questions[:_QUESTIONS_TRIED]:
        calls = question_calls(question.question, finder.find(question), plan.options)
        if calls:
            return calls[:most]
    raise BackendError("None of the first questions has a passage to be asked with, so nothing can be timed.")
