"""A verifier that is a cross-encoder for natural-language inference."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from core.claims.types import ClaimGroup, Floats
from core.errors import BackendError
from core.llm.quiet import quiet
from core.text.words import has_words

_BATCH = 32


class NLIVerifier:
    """Probability that a passage entails a claim, by a sentence-transformers ``CrossEncoder``.

    ``model`` is a Hugging Face name or a folder. Which of its labels is entailment is read from its
    configuration; a model with one output is assumed to give the log-odds of support. ``device``: None uses a
    GPU if available.

    Cost: no LLM calls; one forward pass for each claim and passage. The model reads claim and passage
    together and truncates the passage where they exceed its limit, 512 word pieces for most.
    """

    def __init__(self, model: str, device: str | None = None) -> None:
        self.name = f"nli:{model}"
        self._model = model
        self._device = device
        self._loaded: Any = None
        self._entailment: int | None = None
        self._lock = threading.Lock()

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> Floats:
        """Return the probability that each passage supports each claim; NaN where one has no word.

        Raises `BackendError` where the model cannot be loaded, or is not one for inference.
        """
        return self.support_many([(claims, passages)])[0]

    def support_many(self, groups: Sequence[ClaimGroup]) -> list[Floats]:
        """Return `support` for many (claims, passages); each distinct pair is read once, in batches."""
        results = [np.full((len(claims), len(passages)), np.nan) for claims, passages in groups]
        cells = [
            (g, i, j, (passage, claim))
            for g, (claims, passages) in enumerate(groups)
            for i, claim in enumerate(claims)
            for j, passage in enumerate(passages)
            if has_words(claim) and has_words(passage)
        ]
        pairs = list(dict.fromkeys(pair for _, _, _, pair in cells))
        known = dict(zip(pairs, self._probabilities(pairs), strict=True)) if pairs else {}
        for g, i, j, pair in cells:
            results[g][i, j] = known[pair]
        return results

    def _probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        import torch

        with self._lock, quiet():
            if self._loaded is None:
                self._loaded, self._entailment = self._load()
            logits = self._loaded.predict(
                list(pairs),
                batch_size=_BATCH,
                show_progress_bar=False,
                activation_fn=torch.nn.Identity(),
                convert_to_numpy=True,
            )
        scores = np.asarray(logits, dtype=np.float64).reshape(len(pairs), -1)
        found = (
            expit(scores[:, 0]) if self._entailment is None else softmax(scores, axis=1)[:, self._entailment]
        )
        return [float(p) for p in found]

    def _load(self) -> tuple[Any, int | None]:
        from sentence_transformers import CrossEncoder

        try:
            loaded = CrossEncoder(self._model, device=self._device)
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            first = str(error).strip().split("\n")[0]
            raise BackendError(
                f"The NLI model {self._model} cannot be loaded, neither as a folder nor from the hub: {first}"
            ) from error
        labels = loaded.model.config.id2label
        return loaded, None if len(labels) == 1 else self._entailed(labels)

    def _entailed(self, labels: Mapping[Any, str]) -> int:
        """Return which output is entailment; "not entailment" and the like are not it."""
        names = {int(index): str(name).lower().replace("-", "_") for index, name in labels.items()}
        found = [i for i, name in names.items() if name.startswith(("entail", "support"))]
        if len(found) != 1:
            there = ", ".join(names.values())
            raise BackendError(f"The model {self._model} must have one label for entailment; it has {there}.")
        return found[0]
