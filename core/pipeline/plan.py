"""What a run will ask of the model, before anything is spent."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from core.errors import InputError
from core.llm.cache import CompletionCache, request_key
from core.llm.prompts import PromptStyle, prompt_style
from core.llm.types import LLM
from core.pipeline.options import RunOptions
from core.pipeline.requests import KINDS, Call, question_calls
from core.pipeline.retrieve import PassageFinder
from core.sources.dataset import Dataset

_COUNTED_QUESTIONS = 500  # beyond this, calls are counted on a sample
_TOKEN_QUESTIONS = 20  # beyond this, tokens are


@dataclass(frozen=True, slots=True)
class Calibration:
    """How fast the model is here.

    Attributes
    ----------
    seconds_per_token : float
        Seconds of one call per token of its prompt, with the answer's tokens spread over them.
    n_calls : int
        How many calls it rests on.
    from_cache : bool
        Whether they had been made before.
    """

    seconds_per_token: float
    n_calls: int
    from_cache: bool = False


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The calls of a run.

    Attributes
    ----------
    dataset, options
        What will be run.
    backend, model, model_options
        Kind of back end, and what is to answer.
    run_id : str
        Depends on data, options, prompt and model only: the same plan always gives the same run id.
    calls : Mapping[str, int]
        Calls by kind, identical ones counted each time.
    n_duplicates : int
        Calls saved because an identical one is in the plan.
    n_cached : int
        Calls that were answered before.
    prompt_tokens : int
        Tokens of all prompts still to be sent.
    n_without_passages : int
        Questions that cannot be asked.
    estimated : bool
        Whether counts were scaled up from a sample of questions.
    seconds : float or None
        Expected duration; None before calibration.
    """

    dataset: Dataset = field(repr=False)
    options: RunOptions
    model: str
    model_options: Mapping[str, Any]
    run_id: str
    calls: Mapping[str, int]
    n_duplicates: int
    n_cached: int
    prompt_tokens: int
    n_without_passages: int
    estimated: bool
    parallel: int = 1
    seconds: float | None = None
    backend: str = ""
    prefill: bool = True

    @property
    def n_calls(self) -> int:
        """All calls, identical and cached ones included."""
        return sum(self.calls.values())

    @property
    def n_to_ask(self) -> int:
        """Calls that will really be made."""
        return max(0, self.n_calls - self.n_duplicates - self.n_cached)

    @property
    def completion_tokens(self) -> int:
        """Most tokens that the answers may take."""
        return self.n_to_ask * self.options.max_tokens

    @property
    def prompt_sent(self) -> str:
        """The prompt as this back end is sent it, with the places to be filled in braces."""
        return self.prompt.sent(self.prefill)

    @property
    def prompt(self) -> PromptStyle:
        """The text of the prompt."""
        return prompt_style(self.options.style)

    def estimate(self, calibration: Calibration) -> float:
        """Return the expected duration in seconds."""
        return self.prompt_tokens * calibration.seconds_per_token / self.parallel

    def calibrated(self, calibration: Calibration) -> CallPlan:
        """Return the same plan with its ``seconds``."""
        return replace(self, seconds=self.estimate(calibration))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return {
            "run_id": self.run_id,
            "dataset": self.dataset.name,
            "n_questions": len(self.dataset.questions),
            "n_without_passages": self.n_without_passages,
            "backend": self.backend,
            "model": self.model,
            "model_options": dict(self.model_options),
            "options": self.options.to_dict(),
            "calls": dict(self.calls),
            "n_calls": self.n_calls,
            "n_duplicates": self.n_duplicates,
            "n_cached": self.n_cached,
            "n_to_ask": self.n_to_ask,
            "prompt_tokens": self.prompt_tokens,
            "max_completion_tokens": self.completion_tokens,
            "estimated": self.estimated,
            "seconds": self.seconds,
            "prompt": {
                "style": self.prompt.name,
                "instruction": self.prompt.instruction,
                "closed_book": self.prompt.closed_book,
                "template": self.prompt_sent,
                "max_tokens": self.options.max_tokens,
            },
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per item: ``item, count, note``."""
        about = "estimated from a sample of questions" if self.estimated else ""
        notes = {
            "baseline": "all passages, temperature 0",
            "ablation": "one passage left out, once for each",
            "repeat": "the baseline again: the noise floor",
            "closed book": "no passages at all",
        }
        rows = [(kind, count, notes[kind]) for kind, count in self.calls.items()]
        rows += [
            ("identical, asked once", -self.n_duplicates, ""),
            ("answered before", -self.n_cached, "found in the cache"),
            ("to be asked", self.n_to_ask, about),
            ("prompt tokens", self.prompt_tokens, about),
            ("answer tokens at most", self.completion_tokens, f"{self.options.max_tokens} a call"),
        ]
        return pd.DataFrame(rows, columns=["item", "count", "note"])


def make_plan(
    dataset: Dataset, options: RunOptions, llm: LLM, cache: CompletionCache | None = None
) -> CallPlan:
    """Count what a run will ask.

    Parameters
    ----------
    dataset : Dataset
        The questions.
    options : RunOptions
        Settings of the run.
    llm : LLM
        Used to name the model and to count tokens; no call is spent.
    cache : CompletionCache, optional
        Where finished calls are; None counts none as answered before.

    Returns
    -------
    CallPlan
        Exact up to 500 questions, tokens up to 20; beyond, scaled up from an even sample.

    Raises
    ------
    InputError
        The data set is empty, or two of its questions have one id.
    """
    _check(dataset)
    finder = PassageFinder(options)
    counted = _sample(len(dataset.questions), _COUNTED_QUESTIONS)
    per_question = []
    for index in counted:
        question = dataset.questions[index]
        per_question.append(question_calls(question.question, finder.find(question), options))
    scale = len(dataset.questions) / len(counted)
    counts = dict.fromkeys(KINDS, 0)
    distinct: dict[str, Call] = {}
    for calls in per_question:
        for call in calls:
            counts[call.kind] += 1
            distinct.setdefault(request_key(llm, call.request), call)
    askable = [calls for calls in per_question if calls]
    cached = cache.get_many(distinct) if cache is not None else {}
    to_ask = [call for key, call in distinct.items() if key not in cached]
    return CallPlan(
        dataset=dataset,
        options=options,
        model=llm.name,
        model_options=dict(llm.options),
        run_id=_run_id(dataset, options, llm),
        calls={kind: round(n * scale) for kind, n in counts.items() if n},
        n_duplicates=round((sum(counts.values()) - len(distinct)) * scale),
        n_cached=round(len(cached) * scale),
        prompt_tokens=round(_prompt_tokens(askable, to_ask, llm) * scale),
        n_without_passages=round(sum(not calls for calls in per_question) * scale),
        estimated=len(dataset.questions) > _TOKEN_QUESTIONS,
        parallel=max(1, llm.capabilities.parallel),
        backend=str(getattr(llm, "kind", "")),
        prefill=llm.capabilities.prefill,
    )


def _check(dataset: Dataset) -> None:
    if not dataset.questions:
        raise InputError(f"The data set {dataset.name} holds no question; give at least one.")
    ids = pd.Series([question.query_id for question in dataset.questions])
    repeated = ids[ids.duplicated()]
    if len(repeated):
        raise InputError(
            f"The data set {dataset.name} holds the question id {repeated.iloc[0]!r} twice; ids must differ."
        )


def _sample(n: int, most: int) -> list[int]:
    """Return up to ``most`` of n indices, evenly spread."""
    return sorted({int(i) for i in np.linspace(0, n - 1, min(n, most)).round()})


def _prompt_tokens(per_question: Sequence[list[Call]], to_ask: Sequence[Call], llm: LLM) -> int:
    """Tokens of the prompts still to be sent, from the mean of each kind on a few questions."""
    asked = Counter(call.kind for call in to_ask)
    if not asked:
        return 0
    tokens: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for index in _sample(len(per_question), _TOKEN_QUESTIONS):
        for call in per_question[index]:
            tokens[call.kind].append(llm.count_tokens(call.request.messages))
    known = [n for counts in tokens.values() for n in counts]
    overall = sum(known) / len(known) if known else 0.0
    return round(
        sum(n * (sum(tokens[k]) / len(tokens[k]) if tokens[k] else overall) for k, n in asked.items())
    )


def _run_id(dataset: Dataset, options: RunOptions, llm: LLM) -> str:
    style = prompt_style(options.style)
    identity = [
        dataset.digest,
        options.to_dict(),
        [style.instruction, style.closed_book, style.template, list(style.stop)],
        llm.name,
        dict(llm.options),
    ]
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
