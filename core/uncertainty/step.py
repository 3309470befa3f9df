"""The step that asks every question again, several times.

Each sample has a temperature and a top-p of its own. Dropout is not available from outside a model: that its
answers vary as under dropout is simulated by how they are sampled.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from core.llm.prompts import DEFAULT_STYLE, STYLES, answer_messages, prompt_style
from core.llm.types import DEFAULT_MAX_TOKENS, Completion, Request
from core.pipeline.asking import Asker
from core.pipeline.per_question import Answers, PerQuestion
from core.pipeline.rows import AskedQuestion, Rows
from core.pipeline.steps import Call, Option, StepWork, check_ranges
from core.run import Run
from core.text.display import count

TEMPERATURES, TOP_PS = (0.5, 1.2), (0.8, 0.95)
PRESETS = ((5, "5, quick"), (10, "10, balanced"), (20, "20, high reliability"))
DEFAULT_SAMPLES = 10
SAMPLE = "sample"
_RANGES: Mapping[str, tuple[int, int]] = {"samples": (2, 100), "seed": (0, 2**31 - 101)}
_WITHHELD = ("reasoning", "content_filter")


def drawn(
    request: Request,
    number: int,
    seed: int = 0,
    temperatures: tuple[float, float] = TEMPERATURES,
    top_ps: tuple[float, float] = TOP_PS,
) -> Request:
    """Return the request of one sample, by number from 1: the same for every question.

    Questions can be compared only where their samples were drawn alike; and a tenth sample is the same
    whether ten are asked for or twenty.
    """
    rng = np.random.default_rng([seed, number])
    temperature, top_p = (round(float(rng.uniform(*limits)), 4) for limits in (temperatures, top_ps))
    return replace(request, temperature=temperature, top_p=top_p, seed=seed + number, logprobs=True)


@dataclass(frozen=True)
class UncertaintyStep(PerQuestion):
    """Several answers to each question, drawn at random.

    Attributes
    ----------
    samples : int
        Answers per question, 2 to 100.
    seed : int
        Of temperatures, top-p and calls; same seed, same requests.
    style, max_tokens
        As in the run's own answers, where the run says; these elsewhere.

    Raises
    ------
    InputError
        A value outside its range or an unknown style.
    """

    name: ClassVar[str] = "uncertainty"
    title: ClassVar[str] = "Ask each question again, several times"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"samples": ()}
    kinds: ClassVar[Mapping[str, str]] = {SAMPLE: "all passages again, drawn at random"}
    grows: ClassVar[tuple[str, ...]] = ("samples",)

    samples: Annotated[
        int, Option("--samples", "Samples per question.", title="Samples per question", choices=PRESETS)
    ] = DEFAULT_SAMPLES
    seed: Annotated[int, Option("--sample-seed", "Seed of the samples.")] = 0
    style: str = DEFAULT_STYLE
    max_tokens: int = DEFAULT_MAX_TOKENS

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        prompt_style(self.style)

    def open(self, run: Run, asker: Asker) -> StepWork:
        """Return the step at work, with the prompt that the run was answered with."""
        prompt = {"style": self.style, "max_tokens": self.max_tokens, **(run.manifest.get("prompt") or {})}
        style = str(prompt["style"]) if prompt["style"] in STYLES else self.style
        return PerQuestion.open(replace(self, style=style, max_tokens=prompt["max_tokens"]), run, asker)

    def calls(self, question: AskedQuestion) -> Sequence[Call]:
        """Return the samples that the question lacks; none for a question without passages."""
        if not question.passages:
            return []
        labelled = [(i, p["title"] or "", p["text"] or "") for i, p in enumerate(question.passages, start=1)]
        messages = answer_messages(str(question.query["question"]), labelled, self.style)
        request = Request(messages, max_tokens=self.max_tokens, stop=prompt_style(self.style).stop)
        there = {row["sample_id"] for row in question.filled["samples"]}
        return [
            Call(SAMPLE, number, drawn(request, number, self.seed))
            for number in range(1, self.samples + 1)
            if _id(number) not in there
        ]

    def rows(self, question: AskedQuestion, answers: Answers) -> Rows:
        """Return the samples; what failed or was withheld is no sample, and is asked again."""
        requests = {call.number: call.request for call in self.calls(question)}
        new = [
            {
                "query_id": question.query_id,
                "sample_id": _id(number),
                "answer": unicodedata.normalize("NFC", completion.text),
                "temperature": requests[number].temperature,
                "top_p": requests[number].top_p,
                "seed": requests[number].seed,
                "logprob_sum": min(0.0, sum(completion.logprobs)) if completion.logprobs else None,
                "n_tokens": completion.completion_tokens,
            }
            for (_, number), completion in answers.items()
            if _is_answer(completion)
        ]
        return {"samples": [*question.filled["samples"], *new]}

    def failed(self, question: AskedQuestion, reason: str) -> Rows:
        """Return the samples that were there before."""
        return {"samples": question.filled["samples"]}

    def missing(self, run: Run) -> Sequence[str]:
        """Return the questions with passages that have fewer samples than asked for."""
        ids = run.queries["query_id"]
        n = ids.map(run["samples"]["query_id"].value_counts()).fillna(0)
        return ids[ids.isin(run.passages["query_id"]) & (n < self.samples)].to_list()

    def facts(self, run: Run) -> Mapping[str, Any]:
        """Return how the samples were drawn, and a note on those that are missing."""
        n_short = len(self.missing(run))
        have = "has" if n_short == 1 else "have"
        notes = [f"{count(n_short, 'question')} {have} fewer than {self.samples} samples."] if n_short else []
        return {
            "samples": self.samples,
            "temperatures": list(TEMPERATURES),
            "top_ps": list(TOP_PS),
            "notes": notes,
        }


def _id(number: int) -> str:
    return f"s{number}"


def _is_answer(completion: Completion) -> bool:
    withheld = not completion.text and completion.finish_reason in _WITHHELD
    return completion.error is None and not withheld
