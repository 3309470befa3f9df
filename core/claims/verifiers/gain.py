"""A verifier that measures how much likelier a passage makes a claim to a language model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from core.claims.self_contained import bare_value
from core.claims.types import ClaimGroup, Floats, Judgement
from core.claims.verifiers.features import FEATURES
from core.claims.verifiers.offline import LogisticWeights, default_verifier, packaged_weights
from core.errors import InputError
from core.llm.types import LLM, Message, Score
from core.text.words import has_words

_STATE = "State one fact from this text."
_WITHOUT = "State one fact."
GAIN_FEATURES = (
    "gain",  # nats
    "gain_per_token",  # nats for each token of the claim: a long claim gains more than a short one
    "passage_cosine",  # as in `core.claims.verifiers.features`
)
_NO_SCORE = "the passage and the claim do not fit into the model's context together"


class Gains(NamedTuple):
    """What passages tell a model about claims: ``nats`` of claims × passages, ``tokens`` of each claim."""

    nats: Floats
    tokens: Floats

    def values(self, features: Sequence[str], cosines: Floats | None) -> Floats:
        """Return features of each claim and passage, the last axis: of `GAIN_FEATURES`, in this order."""
        known = {
            "gain": self.nats,
            "gain_per_token": self.nats / self.tokens[:, None],
            "passage_cosine": cosines,
        }
        return np.stack([np.asarray(known[name], dtype=np.float64) for name in features], axis=-1)


class _Reading(NamedTuple):
    """A claim to be read behind a prompt; ``column`` is -1 without a passage."""

    group: int
    row: int
    column: int
    prompt: str
    text: str


class GainVerifier:
    """Σ log p(claim | passage) − Σ log p(claim | no passage), by a model that can score a given text.

    The model needs ``capabilities.answer_logprob`` (else InputError); ``score`` replaces its own function
    where readings are cached and counted. Probability = logistic(weights · features): the gain per token, and
    the cosine of claim and passage. ``bench/fit_gain.py`` fitted it as read by the packaged model: with
    another one the order of the probabilities means more than their size (`packaged_figures`). Of a bare
    value behind its question only the value is scored: else a passage that is merely about the question would
    raise it.

    Cost: each claim is read once with every passage and once without; the embedded back end reads each
    passage once for all claims of a group.
    """

    def __init__(self, llm: LLM, score: Score | None = None, weights: LogisticWeights | None = None) -> None:
        if not llm.capabilities.answer_logprob:
            raise InputError(
                f"The verifier gain needs a model that can score a given text; {llm.name} cannot: choose the "
                "back end embedded (--verifier-llm embedded)."
            )
        self.name = f"gain:{llm.name}"
        self._read: Score = score or llm.score  # type: ignore[attr-defined]
        self._weights = weights or packaged_weights(LogisticWeights, "gain")

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> Floats:
        """Return the probability, in (0, 1), of each support; NaN without a word or beyond the context."""
        return self.judge_many([(claims, passages)])[0].probability

    def judge_many(self, groups: Sequence[ClaimGroup]) -> list[Judgement]:
        """Return `support` for many groups, with the reasons of what failed; all are read together."""
        found = []
        measured = zip(groups, self.measure(groups), self._cosines(groups), strict=True)
        for (claims, passages), gains, cosines in measured:
            probability = self._weights.logistic(gains.values(self._weights.features, cosines))
            readable = np.outer([has_words(text) for text in claims], [has_words(text) for text in passages])
            failed = bool(np.isnan(probability[readable.astype(bool)]).any())
            unknown = np.full(probability.shape, np.nan)
            found.append(Judgement(probability, unknown, _NO_SCORE if failed else None))
        return found

    def measure(self, groups: Sequence[ClaimGroup]) -> list[Gains]:
        """Return the gains of many groups; each claim and prompt is read once."""
        readings = [reading for g, group in enumerate(groups) for reading in _readings(g, *group)]
        # Claims behind one prompt stand together, so that it is read once for all of them.
        readings.sort(key=lambda reading: reading.prompt)
        read = self._read([(Message("user", r.prompt),) for r in readings], [r.text for r in readings])
        # The last column is without a passage.
        sums = [np.full((len(claims), len(passages) + 1), np.nan) for claims, passages in groups]
        tokens = [np.full(len(claims), np.nan) for claims, _ in groups]
        for reading, found in zip(readings, read, strict=True):
            if found is not None:
                sums[reading.group][reading.row, reading.column] = math.fsum(found)
                tokens[reading.group][reading.row] = len(found)
        return [Gains(one[:, :-1] - one[:, -1:], n) for one, n in zip(sums, tokens, strict=True)]

    def _cosines(self, groups: Sequence[ClaimGroup]) -> list[Floats | None]:
        if "passage_cosine" not in self._weights.features:
            return [None] * len(groups)
        place = FEATURES.index("passage_cosine")
        return [measured.values[..., place] for measured in default_verifier().measure(groups)]


def _readings(g: int, claims: Sequence[str], passages: Sequence[str]) -> Iterator[_Reading]:
    for i, claim in enumerate(claims):
        if has_words(claim):
            question, text = bare_value(claim) or ("", claim)
            yield _Reading(g, i, -1, question or _WITHOUT, text)
            for j, passage in enumerate(passages):
                if has_words(passage):
                    yield _Reading(g, i, j, f"{passage.strip()}\n\n{question or _STATE}", text)
