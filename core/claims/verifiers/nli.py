"""A verifier that is a cross-encoder for natural-language inference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.claims.types import ClaimGroup, Floats
from core.llm.nli import CrossEncoderNLI, TextPair
from core.text.words import has_words


class NLIVerifier:
    """Probability that a passage entails a claim, by a sentence-transformers ``CrossEncoder``.

    ``model`` is a Hugging Face name or a folder; a model with one output is assumed to give the log-odds of
    support. ``device``: None uses a GPU if available. Cost: no LLM calls; one forward pass for each claim and
    passage, which is truncated at the model's limit, 512 word pieces for most.
    """

    def __init__(self, model: str, device: str | None = None) -> None:
        self._model = CrossEncoderNLI(model, device)
        self.name = self._model.name

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> Floats:
        """Return the probability of each support; NaN without a word; BackendError without a model."""
        return self.support_many([(claims, passages)])[0]

    def support_many(self, groups: Sequence[ClaimGroup]) -> list[Floats]:
        """Return `support` for many (claims, passages); each distinct pair is read once, in batches."""
        results = [np.full((len(claims), len(passages)), np.nan) for claims, passages in groups]
        cells = [
            (g, i, j, TextPair(passage, claim))
            for g, (claims, passages) in enumerate(groups)
            for i, claim in enumerate(claims)
            for j, passage in enumerate(passages)
            if has_words(claim) and has_words(passage)
        ]
        found = self._model.relations([pair for *_, pair in cells])
        for (g, i, j, _), relation in zip(cells, found, strict=True):
            results[g][i, j] = relation.entailment
        return results
