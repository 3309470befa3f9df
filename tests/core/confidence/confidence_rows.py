"""Labelled answers with planted weights."""

import numpy as np

from core.confidence import Labelled


def planted(seed, n, weights=(1 / 3, 1 / 3, 1 / 3), slope=8.0, per_question=1):
    """Answers that are correct with probability 1 / (1 + exp(−slope · (weights · signals − ½)))."""
    rng = np.random.default_rng(seed)
    signals = rng.random((n, 3))
    correct = rng.random(n) < 1 / (1 + np.exp(-slope * (signals @ np.array(weights) - 0.5)))
    return made(signals, correct, [f"q{i // per_question}" for i in range(n)])


def made(signals, correct, questions=None):
    """Answers by their signals, (n, 3) in [0, 1], and labels."""
    signals = np.asarray(signals, dtype=float)
    named = {"similarity": signals[:, 0], "lexical": 100 * signals[:, 1], "llm": signals[:, 2]}
    questions = questions or [f"q{i}" for i in range(len(signals))]
    return Labelled(tuple(questions), named, np.asarray(correct, dtype=float))


def reordered(rows, order):
    """The same answers in another order."""
    return Labelled(
        tuple(rows.questions[i] for i in order),
        {name: values[order] for name, values in rows.signals.items()},
        rows.correct[order],
    )
