"""How tokens are chosen and where an answer ends, for models run in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.llm.types import Request


def cut(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """End a text before the first stop sequence.

    Returns
    -------
    tuple of str and bool
        The text without outer white space, and whether a stop sequence was found. White space in
        front of the text never ends it.
    """
    text = text.lstrip()
    ends = [position for position in (text.find(s) for s in stop if s) if position >= 0]
    return text[: min(ends, default=len(text))].strip(), bool(ends)


def generation_config(model: Any, max_tokens: int, pad: int) -> Any:
    """Return settings that add nothing of the model's own to the request."""
    from transformers import GenerationConfig

    return GenerationConfig(
        max_new_tokens=max_tokens,
        do_sample=False,
        eos_token_id=model.generation_config.eos_token_id,
        pad_token_id=pad,
    )


def stopping(tokenizer: Any, requests: Sequence[Request], width: int) -> Any:
    """Return the criteria that end each row at its stop sequences; prompts are ``width`` tokens wide."""
    import torch
    from transformers import StoppingCriteria, StoppingCriteriaList

    class AtStop(StoppingCriteria):  # type: ignore[misc]
        def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
            done = [
                bool(r.stop) and cut(tokenizer.decode(row, skip_special_tokens=True), r.stop)[1]
                for r, row in zip(requests, input_ids[:, width:].tolist(), strict=True)
            ]
            return torch.tensor(done, device=input_ids.device)

    return StoppingCriteriaList([AtStop()])


def processors(requests: Sequence[Request]) -> Any:
    """Return what turns the most likely token into a sampled one, for the rows that ask for it.

    Sampling by the Gumbel trick: the largest of (scaled log-probability + Gumbel noise) is a draw
    from the distribution. The noise of a row comes from its own seeded generator, so a sample does
    not depend on which other requests are in the batch, nor on their order.
    """
    from transformers import LogitsProcessorList

    if all(request.temperature <= 0 for request in requests):
        return LogitsProcessorList()
    import torch
    from transformers import LogitsProcessor

    generators = [np.random.default_rng(request.seed) for request in requests]

    class Sampled(LogitsProcessor):  # type: ignore[misc]
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            scores = scores.clone()
            for row, (request, generator) in enumerate(zip(requests, generators, strict=True)):
                if request.temperature > 0:
                    logits = scores[row].float().cpu().numpy().astype(np.float64)
                    noisy = gumbel_scores(logits, request.temperature, request.top_p, generator)
                    scores[row] = torch.from_numpy(noisy).to(scores)
            return scores

    return LogitsProcessorList([Sampled()])


def gumbel_scores(
    logits: NDArray[np.float64], temperature: float, top_p: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return scores whose largest is a draw from softmax(logits / temperature), cut to the nucleus.

    Parameters
    ----------
    logits : ndarray, shape (n,)
        Unnormalised log-probabilities.
    temperature : float
        Above 0.
    top_p : float
        The fewest tokens whose probability reaches it are kept, in (0, 1]; the others get -inf.
    generator : numpy Generator
        Advanced by n draws.
    """
    scaled = logits / temperature
    noise = generator.gumbel(size=scaled.size)
    if top_p < 1:
        order = np.argsort(-scaled, kind="stable")
        weights = np.exp(scaled[order] - scaled[order[0]])
        before = np.cumsum(weights) - weights
        scaled[order[before >= top_p * weights.sum()]] = -np.inf
    return scaled + noise
