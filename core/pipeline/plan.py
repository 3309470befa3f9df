"""Cost estimate of steps before they run: calls, tokens, time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from core.errors import BackendError
from core.llm.cache import CompletionCache, request_key
from core.llm.types import LLM
from core.pipeline.asking import Asker
from core.pipeline.steps import Call, PlanChoice, Step, StepPlan, model_facts, opened
from core.run import Run

_COUNTED_QUESTIONS = 500  # beyond this, calls are counted on a sample
_TOKEN_QUESTIONS = 20  # beyond this, tokens are
_TIMED = 0.1  # of the calls of a step may be made to time them
_FROM_SAMPLE = "estimated from a sample of questions"


@dataclass(frozen=True, slots=True)
class Speed:
    """Measured speed of a model in a step: seconds of a call per prompt token, generation included."""

    step: str
    model: str
    seconds_per_token: float
    n_calls: int


@dataclass(frozen=True, slots=True)
class StepCalls:
    """The calls of one step; empty where only ``about`` how many is known.

    ``first`` are the calls of the first question, or others, for timing.
    """

    step: str
    model: Mapping[str, Any] | None
    parallel: int
    calls: Mapping[str, int]
    kinds: Mapping[str, str]
    about: int | None
    n_duplicates: int
    n_cached: int
    prompt_tokens: int
    completion_tokens: int
    notes: tuple[str, ...]
    first: tuple[Call, ...] = field(repr=False)
    choices: tuple[PlanChoice, ...] = ()

    @property
    def n_to_ask(self) -> int:
        """Calls known in advance that are neither duplicate nor cached."""
        return max(0, sum(self.calls.values()) - self.n_duplicates - self.n_cached)


def _total(name: str, about: str) -> property:
    return property(lambda plan: sum(getattr(step, name) for step in plan.steps), doc=about)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The calls left to make in a run; ``estimated`` from a sample, ``seconds`` once a model is timed."""

    run: Run = field(repr=False)
    steps: tuple[StepCalls, ...]
    estimated: bool
    seconds: float | None = None

    @property
    def calls(self) -> Mapping[str, int]:
        """Calls by kind, duplicates included."""
        found: Counter[str] = Counter()
        for step in self.steps:
            found.update(step.calls)
        return found

    @property
    def n_calls(self) -> int:
        """All calls known in advance, duplicates and cached ones included."""
        return sum(self.calls.values())

    n_duplicates = _total("n_duplicates", "Calls saved because an identical one is in the plan.")
    n_cached = _total("n_cached", "Calls answered from the cache.")
    n_to_ask = _total("n_to_ask", "Calls known in advance that are neither duplicate nor cached.")
    prompt_tokens = _total("prompt_tokens", "Tokens of all prompts left to send.")
    completion_tokens = _total("completion_tokens", "Maximum tokens of the answers to these prompts.")

    @property
    def n_without_passages(self) -> int:
        """Questions without passages, which cannot be asked."""
        return int((~self.run.queries["query_id"].isin(self.run.passages["query_id"])).sum())

    def timed(self, *speeds: Speed) -> CallPlan:
        """Return the plan with ``seconds`` of the steps whose model was timed, in this step or another."""
        in_step = {speed.step: speed.seconds_per_token for speed in speeds}
        of_model = {speed.model: speed.seconds_per_token for speed in speeds}
        seconds, steps = 0.0, []
        for step in self.steps:
            rate = in_step.get(step.step, of_model.get(step.model["name"]) if step.model else None)
            if rate is not None:
                rate /= step.parallel
                seconds += rate * step.prompt_tokens
                step = replace(
                    step, choices=tuple(replace(one, seconds=rate * one.tokens) for one in step.choices)
                )
            steps.append(step)
        return replace(self, seconds=seconds, steps=tuple(steps))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        manifest = self.run.manifest
        model = manifest.get("model") or {}
        facts = {
            "run_id": self.run.run_id,
            "dataset": (manifest.get("dataset") or {}).get("name", self.run.name),
            "n_questions": len(self.run.queries),
            "n_without_passages": self.n_without_passages,
            "backend": model.get("backend"),
            "model": model.get("name"),
            "model_options": model.get("options"),
            "options": manifest.get("options"),
            "calls": dict(self.calls),
            "n_calls": self.n_calls,
            "n_duplicates": self.n_duplicates,
            "n_cached": self.n_cached,
            "n_to_ask": self.n_to_ask,
            "prompt_tokens": self.prompt_tokens,
            "max_completion_tokens": self.completion_tokens,
            "estimated": self.estimated,
            "seconds": self.seconds,
            "prompt": manifest.get("prompt"),
        }
        facts |= {f"{s.step}_calls_about": s.about for s in self.steps if s.about is not None}
        return facts | {f"{s.step}_choices": [asdict(c) for c in s.choices] for s in self.steps if s.choices}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per item: ``item, count, note``."""
        about = _FROM_SAMPLE if self.estimated else ""
        limits = {call.request.max_tokens for step in self.steps if step.calls for call in step.first}
        each = f"{limits.pop()} a call" if len(limits) == 1 else ""
        rows = [(kind, n, step.kinds.get(kind, "")) for step in self.steps for kind, n in step.calls.items()]
        if rows:
            rows += [
                ("identical, asked once", -self.n_duplicates, ""),
                ("answered before", -self.n_cached, "found in the cache"),
                ("to be asked", self.n_to_ask, about),
            ]
        for step in self.steps:
            if step.about is not None:
                note = "; ".join(step.notes) if step.about else "no language model is asked"
                rows.append((f"calls for {step.step}, about", step.about, note))
            rows += [(f"{step.step}, {one.name}", one.calls, one.note) for one in step.choices]
        rows += [
            ("prompt tokens", self.prompt_tokens, about),
            ("max answer tokens", self.completion_tokens, each),
        ]
        return pd.DataFrame(rows, columns=["item", "count", "note"])


def plan_steps(
    run: Run,
    steps: Sequence[Step],
    llms: Mapping[str, LLM | None],
    cache: CompletionCache | None = None,
) -> CallPlan:
    """Count the calls of steps for the questions with missing cells; ``llms``, by step, are not called.

    Calls are exact up to 500 questions, tokens up to 20; beyond, scaled up from an even sample.
    """
    planned, seen = [], set[str]()
    estimated = False
    for step in steps:
        llm = llms.get(step.name)
        now, work, _ = opened(run, step, Asker(llm))
        todo = work.todo(now)
        asked = [work.plan([todo[i]]) for i in _sample(len(todo), _COUNTED_QUESTIONS)]
        estimated |= len(todo) > _TOKEN_QUESTIONS or any(plan.about for plan in asked)
        scale = len(todo) / len(asked) if asked else 1.0
        planned.append(_counted(step, llm, asked, scale, cache, seen))
    return CallPlan(run, tuple(planned), estimated)


def _counted(
    step: Step,
    llm: LLM | None,
    asked: Sequence[StepPlan],
    scale: float,
    cache: CompletionCache | None,
    seen: set[str],
) -> StepCalls:
    """Count the calls of one step; ``seen`` are the keys of all calls so far."""
    counts: Counter[str] = Counter()
    new: dict[str, Call] = {}
    for call in (call for plan in asked for call in plan.calls):
        assert llm is not None
        counts[call.kind] += 1
        key = request_key(llm, call.request)
        if key not in seen:
            new[key] = call
            seen.add(key)
    cached = cache.get_many(new) if cache is not None else {}
    to_ask = [call for key, call in new.items() if key not in cached]
    known_about = [plan.about for plan in asked if plan.about is not None]
    tokens = _prompt_tokens([plan.calls for plan in asked if plan.calls], to_ask, llm)
    tokens += sum(plan.about_tokens for plan in asked)
    used = llm if step.needs_llm else None
    return StepCalls(
        step.name,
        model_facts(used) if used is not None else None,
        max(1, used.capabilities.parallel) if used is not None else 1,
        {kind: round(n * scale) for kind, n in counts.items()},
        next((plan.kinds for plan in asked), {}),
        round(sum(known_about) * scale) if known_about else None,
        round((counts.total() - len(new)) * scale),
        round(len(cached) * scale),
        round(tokens * scale),
        round(sum(call.request.max_tokens for call in to_ask) * scale),
        tuple(dict.fromkeys(note for plan in asked for note in plan.notes)),
        next(filter(None, (plan.calls or plan.timed for plan in asked)), ()),
        _choices(asked, scale),
    )


def _choices(asked: Sequence[StepPlan], scale: float) -> tuple[PlanChoice, ...]:
    """Add up the choices of several plans."""
    return tuple(
        replace(
            same[0],
            calls=round(sum(one.calls for one in same) * scale),
            tokens=round(sum(one.tokens for one in same) * scale),
        )
        for same in zip(*(plan.choices for plan in asked), strict=True)
    )


def _sample(n: int, most: int) -> list[int]:
    """Return up to ``most`` of n indices, evenly spread."""
    return sorted({int(i) for i in np.linspace(0, n - 1, min(n, most)).round()})


def _prompt_tokens(per_question: Sequence[Sequence[Call]], to_ask: Sequence[Call], llm: LLM | None) -> float:
    """Return the tokens of the prompts to send, from the mean of each kind on a few questions."""
    asked = Counter(call.kind for call in to_ask)
    if not asked or llm is None:
        return 0
    tokens: dict[str, list[int]] = {kind: [] for kind in asked}
    for index in _sample(len(per_question), _TOKEN_QUESTIONS):
        for call in per_question[index]:
            tokens.setdefault(call.kind, []).append(llm.count_tokens(call.request.messages))
    known = [n for counts in tokens.values() for n in counts]
    overall = sum(known) / len(known) if known else 0.0
    return round(
        sum(n * (sum(tokens[k]) / len(tokens[k]) if tokens[k] else overall) for k, n in asked.items())
    )


def measure_speed(llm: LLM, step: StepCalls, cache: CompletionCache | None = None) -> Speed:
    """Time the first calls of a step; `BackendError` where the model fails or has no call.

    Cost: two calls, none where ``cache`` has them; the first warms the model up. A model that takes one at a
    time may read once what prompts share: it is timed on all of the first question where that is under a
    tenth.
    """
    whole = llm.capabilities.parallel == 1 and len(step.first) < _TIMED * step.n_to_ask
    calls = step.first if whole else step.first[:2]
    if not calls:
        raise BackendError(f"There is no question to ask {llm.name}, so nothing can be timed.")
    keys = [request_key(llm, call.request) for call in calls]
    requests = {key: call.request for key, call in zip(keys, calls, strict=True)}
    found = cache.get_many(keys) if cache is not None else {}
    for some in (keys[:1], keys):
        new = [key for key in dict.fromkeys(some) if key not in found]
        for key, completion in zip(new, llm.generate([requests[key] for key in new]), strict=True):
            if completion.error:
                raise BackendError(f"The model could not answer a first question: {completion.error}")
            found[key] = completion
            if cache is not None:
                cache.put(key, completion, llm.name)
    timed = [found[key] for key in dict.fromkeys(keys[1:] or keys)]
    seconds, tokens = sum(one.latency for one in timed), sum(one.prompt_tokens for one in timed)
    return Speed(step.step, llm.name, seconds / max(1, tokens), len(timed))
