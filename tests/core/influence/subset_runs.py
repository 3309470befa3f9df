"""Runs whose answers were measured under every subset of four passages."""

import itertools

import numpy as np
import pandas as pd

from core.run import Run

K = 4
SUBSETS = tuple(itertools.product((0, 1), repeat=K))


def additive(*weights):
    return [float(np.dot(weights, kept)) for kept in SUBSETS]


def any_of_three(evidence=3.0, fourth=2.0):
    """Any one of the first three passages is enough for some nats, the fourth adds others."""
    return [evidence * any(kept[:3]) + fourth * kept[3] for kept in SUBSETS]


def noise(seed=1):
    """Scores that no passage explains."""
    return np.random.default_rng(seed).normal(0, 1, len(SUBSETS)).tolist()


def subsets_run(*games, shapley=True, answers=False, title="", **queries):
    """One question per game, its values by `SUBSETS`: nats beyond the least, or of ``answers`` whether they stay."""
    ids = [f"q{i}" for i in range(1, len(games) + 1)]
    kept = ["".join(map(str, one)) for one in SUBSETS]
    rows = [
        {
            "query_id": query_id, "ablation_id": one, "kept": one, "answer_status": "answered",
            "answer": ("Ada" if value else "Bea") if answers else None,
            "logprob": None if answers else value - 50, "n_tokens": None if answers else 4,
        }
        for query_id, game in zip(ids, games, strict=True)
        for one, value in zip(kept, game or [], strict=game is not None)
    ]  # fmt: skip
    passages = [
        {
            "query_id": one,
            "passage_id": f"p{i}",
            "retrieval_rank": i,
            "text": f"Text {i}",
            "title": title or f"T{i}",
        }
        for one in ids
        for i in range(1, K + 1)
    ]
    steps = {"attribution": {"options": {"masks": 64, "shapley": shapley, "place": False, "seed": 0}}}
    asked = {"query_id": ids, "question": "Who?", "answer": "Ada", "answer_status": "answered"}
    return Run.create(
        {"source": "live", "name": "Subsets", "steps": steps if any(games) else {}},
        queries=pd.DataFrame(asked | queries),
        passages=pd.DataFrame(passages),
        ablations=pd.DataFrame(rows, columns=[
            "query_id", "ablation_id", "kept", "answer_status", "answer", "logprob", "n_tokens",
        ]),
    )  # fmt: skip
