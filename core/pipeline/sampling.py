"""Samples of an answer: its request again, at temperatures and top-p that are alike for every question."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from core.errors import InputError
from core.llm.types import LLM, Completion, Request
from core.presets import PRESETS as RELIABILITY

TEMPERATURES, TOP_PS = (0.5, 1.2), (0.8, 0.95)
PRESETS: Mapping[str, int] = MappingProxyType(
    {name: one.options["samples"] for name, one in RELIABILITY.items()}
)
DEFAULT_SAMPLES = PRESETS["balanced"]
_WITHHELD = ("reasoning", "content_filter")


def drawn(
    request: Request,
    number: int,
    seed: int = 0,
    temperatures: tuple[float, float] = TEMPERATURES,
    top_ps: tuple[float, float] = TOP_PS,
) -> Request:
    """Return the request of one sample, by number from 1: alike for all questions and sample sizes."""
    rng = np.random.default_rng([seed, number])
    temperature, top_p = (round(float(rng.uniform(*limits)), 4) for limits in (temperatures, top_ps))
    return replace(request, temperature=temperature, top_p=top_p, seed=seed + number, logprobs=True)


def sampled(completion: Completion) -> str | None:
    """Return the text of a sample in composed Unicode form; None where the call failed or was withheld."""
    withheld = not completion.text and completion.finish_reason in _WITHHELD
    if completion.error is not None or withheld:
        return None
    return unicodedata.normalize("NFC", completion.text)


def sampling_facts(samples: int) -> Mapping[str, Any]:
    """Return how samples are drawn, as a run records it."""
    return {"samples": samples, "temperatures": list(TEMPERATURES), "top_ps": list(TOP_PS)}


def check_model(llm: LLM, model: str | None) -> None:
    """Raise InputError where a named model is not the one that answers."""
    if model is not None and model != llm.name:
        raise InputError(
            f"llm_client answers with {llm.name}, not with {model}; leave out model, or open {model} with "
            "core.llm.open_llm and give that as llm_client."
        )
