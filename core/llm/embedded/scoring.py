"""Log-probabilities of generated tokens, and of the tokens of a given answer."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from core.llm.embedded.batching import left_padded

Scored = tuple[list[int], list[int]]


class Recorder:
    """Logits processor, the first one: records the model's own log-probability of each chosen token.

    Later processors (a schema's mask, temperature) do not affect it.
    """

    def __init__(self) -> None:
        self._steps: list[Any] = []
        self._scores: Any = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores unchanged."""
        self._note(input_ids[:, -1])
        self._scores = scores  # never changed in place: later processors copy
        return scores

    def rows(self, output: Any) -> list[list[float]]:
        """Return the log-probabilities of each row's tokens, of shape (n, m) without the prompt."""
        import torch

        if len(self._steps) < output.shape[1]:
            self._note(output[:, -1])
        return torch.stack(self._steps, dim=1).tolist() if self._steps else [[] for _ in output]

    def _note(self, tokens: Any) -> None:
        if self._scores is not None:
            self._steps.append(token_logprobs(self._scores, tokens))


def token_logprobs(logits: Any, tokens: Any) -> Any:
    """Return log softmax(logits) at the tokens; logits have one more axis, the last."""
    logits = logits.float()
    return logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)


def answer_logprobs(model: Any, pairs: Sequence[Scored], pad: int, device: str) -> list[tuple[float, ...]]:
    """Return the log-probability of each token of given answers, from one forward pass.

    ``pairs`` are (prompt tokens, answer tokens), no answer empty; shorter pairs are padded on the left with
    ``pad``. Each result is 0 or below: given the prompt and the answer's tokens before it.
    """
    ids, mask = left_padded([prompt + answer for prompt, answer in pairs], pad, device)
    longest = max(len(answer) for _, answer in pairs)
    # The last position predicts what comes after the answer, so it is not read.
    inputs = {"input_ids": ids[:, :-1], "attention_mask": mask[:, :-1], "use_cache": False}
    inputs["position_ids"] = (inputs["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    accepted = inspect.signature(model.forward).parameters
    if "logits_to_keep" in accepted:  # a table of all positions by all tokens would be large
        inputs["logits_to_keep"] = longest
    logits = model(**{name: value for name, value in inputs.items() if name in accepted}).logits
    found = token_logprobs(logits[:, -longest:], ids[:, -longest:]).tolist()
    return [tuple(row[longest - len(answer) :]) for row, (_, answer) in zip(found, pairs, strict=True)]
