"""How the answer and its samples are related: what must be asked, and what the replies say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from core.arrays import Floats
from core.text.abstention import answer_status
from core.text.sentences import sentences
from core.uncertainty.conditions import GREEDY

Key = tuple[str, str]  # premise and hypothesis, as in the table sample_checks
P_TRUE: Key = ("passages", GREEDY)


class Relations(NamedTuple):
    """What `core.uncertainty.samples.Samples` take of the table sample_checks.

    ``entailment``, (n, n): probability that text i entails text j, the baseline first; NaN where unknown, 1
    between equal texts, 0 where one of two is no answer: what these share is decided by their status.
    ``contradiction``, (n_sentences, n_samples): probability that a sample contradicts a sentence of the
    baseline; NaN where unknown. ``p_true``: probability that the model calls the baseline true.
    """

    entailment: Floats
    contradiction: Floats
    p_true: float | None


def wanted(baseline: str, samples: Mapping[str, str]) -> dict[Key, tuple[str, str]]:
    """Return the texts of every pair that must be known, by key.

    All different answers are compared both ways, and every sample with every sentence of the baseline (""
    where there is none); equal texts once, refusals and empty texts never.

    >>> list(wanted("Paris", {"s1": "Paris", "s2": "Rome", "s3": "I do not know."}))
    [('baseline', 's2'), ('s2', 'baseline')]
    """
    ids = _ids([baseline, *samples.values()], [GREEDY, *samples])
    pairs = {(a, b): (x, y) for x, a in ids.items() for y, b in ids.items() if x != y}
    said = _sentences(baseline)
    if len(said) > 1:
        pairs |= {
            (of, name): (text, sentence)
            for text, of in ids.items()
            if of != GREEDY
            for name, sentence in said.items()
        }
    return pairs


def relations(
    texts: Sequence[str], ids: Sequence[str], known: Mapping[Key, tuple[float, float]]
) -> Relations:
    """Return what is known of an answer and its samples.

    ``texts`` and ``ids``: the baseline, "" where there is none, then the samples; `GREEDY` first. ``known``:
    probability of entailment and of contradiction by key.

    >>> known = {("baseline", "s2"): (0.1, 0.8), ("s2", "baseline"): (0.2, 0.7)}
    >>> found = relations(["Paris", "Paris", "Rome"], ["baseline", "s1", "s2"], known)
    >>> found.entailment.tolist()
    [[1.0, 1.0, 0.1], [1.0, 1.0, 0.1], [0.2, 0.2, 1.0]]
    >>> found.contradiction.tolist()
    [[0.0, 0.7]]
    """
    first, unknown = _ids(texts, ids), (math.nan, math.nan)
    names = [first.get(text) for text in texts]

    def entails(premise: str | None, hypothesis: str | None) -> float:
        if premise is None or hypothesis is None:
            return 0.0
        return 1.0 if premise == hypothesis else known.get((premise, hypothesis), unknown)[0]

    def contradicts(premise: str | None, sentence: str) -> float:
        if premise is None:
            return math.nan
        return 0.0 if premise == GREEDY else known.get((premise, sentence), unknown)[1]

    return Relations(
        np.array([[entails(a, b) for b in names] for a in names]),
        np.array([[contradicts(a, name) for a in names[1:]] for name in _sentences(texts[0])]),
        known[P_TRUE][0] if P_TRUE in known else None,
    )


def _ids(texts: Sequence[str], ids: Sequence[str]) -> dict[str, str]:
    """Return the first id of each different text that is an answer."""
    found: dict[str, str] = {}
    for text, one in zip(texts, ids, strict=True):
        if answer_status(text) == "answered":
            found.setdefault(text, one)
    return found


def _sentences(baseline: str) -> dict[str, str]:
    """Return the sentences of an answer by name; an answer of one sentence by its own."""
    if answer_status(baseline) != "answered":
        return {}
    said = sentences(baseline)
    if len(said) == 1:
        return {GREEDY: baseline}
    return {f"sentence {n}": text for n, text in enumerate(said, start=1)}
