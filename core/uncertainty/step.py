"""The step that asks every question again, several times."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from core.errors import InputError
from core.llm.prompts import DEFAULT_STYLE, answer_messages, prompt_style
from core.llm.types import DEFAULT_MAX_TOKENS, Request
from core.pipeline.per_question import Answers, PerQuestion
from core.pipeline.rows import AskedQuestion, Rows
from core.pipeline.steps import Call, Option

SAMPLE = "sample"


@dataclass(frozen=True)
class UncertaintyStep(PerQuestion):
    """Several answers to each question, drawn at random."""

    name: ClassVar[str] = "uncertainty"
    title: ClassVar[str] = "Ask each question again, several times"
    fills: ClassVar[Mapping[str, tuple[str, ...]]] = {"samples": ()}
    kinds: ClassVar[Mapping[str, str]] = {SAMPLE: "the baseline's prompt again, at random"}

    def calls(self, question: AskedQuestion) -> Sequence[Call]:
        return []

    def rows(self, question: AskedQuestion, answers: Answers) -> Rows:
        return {"samples": []}
