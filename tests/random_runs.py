"""Runs in which nothing is related to anything: whatever is found in them beyond chance is a false alarm."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.run import Run

# Ten answers to choose from, each of words that no other one has.
MEANINGS = [f"{a} {b}" for a, b in zip(
    ("amber", "birch", "cedar", "delta", "ember", "fjord", "glade", "heath", "inlet", "jetty"),
    ("north", "south", "east", "west", "upper", "lower", "outer", "inner", "older", "newer"),
    strict=True,
)]  # fmt: skip
SHARES = (0.5, 0.4, 0.1)  # of the meanings of a question's answers
VALIDATORS = {
    "EvidenceOverlap": ("low_overlap", "warning"),
    "NumericUnits": ("unsupported_number", "warning"),
    "ConfidenceValidator": ("missing_uncertainty", "critical"),
}


def random_run(seed: int, queries: int = 40, passages: int = 6, samples: int = 5) -> Run:
    """Return a run that fills every diagnostic, with the answers drawn as their samples are, half of them correct.

    Influence, likelihood, claims, signals and verdicts are drawn without a look at rank, gold or correctness.
    """
    rng = np.random.default_rng(seed)
    n, k = queries, passages
    ids = [f"r{i:03d}" for i in range(n)]
    meaning = np.array([rng.permutation(len(MEANINGS))[: len(SHARES)] for _ in range(n)])
    drawn = rng.choice(len(SHARES), (n, samples + 1), p=SHARES)
    texts = np.array(MEANINGS)[np.take_along_axis(meaning, drawn, axis=1)]
    correct = rng.random(n) < 0.5
    answers = texts[:, 0]
    other = np.array(MEANINGS)[(meaning[:, 0] + 1 + rng.integers(0, 8, n)) % len(MEANINGS)]
    references = np.where(correct, answers, np.where(other == answers, "kelp marsh", other))
    gold = rng.integers(0, k, n)
    used = rng.random((n, k)) < 0.5
    per_passage = pd.DataFrame(
        {
            "query_id": np.repeat(ids, k),
            "passage_id": np.tile([f"p{j}" for j in range(k)], n),
            "text": [f"{MEANINGS[rng.integers(10)]} is passage {j} of {i}." for i in ids for j in range(k)],
            "retrieval_rank": np.tile(np.arange(1.0, k + 1), n),
            "retrieval_score": -np.sort(-rng.exponential(5.0, (n, k)), axis=1).ravel(),
            "slot": np.tile(np.arange(1, k + 1), n),
            "influence_score": np.where(used, rng.integers(1, 20, (n, k)) / 20, 0.0).ravel(),
            "logprob_drop": rng.normal(0, 1, n * k),
            "reference_logprob_drop": rng.normal(0, 1, n * k),
            "is_gold": (np.arange(k) == gold[:, None]).ravel(),
        }
    )
    n_claims = rng.integers(1, 4, n)
    claims = pd.DataFrame(
        [
            {"query_id": id_, "claim_id": f"a{c}", "text": f"Claim {c} of {id_}.", "side": "answer",
             "relevance": "RELEVANT", "scored": True}
            for id_, count in zip(ids, n_claims, strict=True) for c in range(count)
        ]
    )  # fmt: skip
    cells = claims[["query_id", "claim_id"]].merge(per_passage[["query_id", "passage_id"]], on="query_id")
    support = cells.assign(probability=rng.random(len(cells)) ** 8, judge="offline")
    verdicts = [
        {"query_id": id_, "validator": name, "passed": not fails, "severity": severity if fails else "none",
         "reason": reason if fails else "fine", "value": 0.5, "spans": [], "detail": "Drawn at random."}
        for id_ in ids
        for name, (reason, severity) in VALIDATORS.items()
        for fails in [bool(rng.random() < 0.3)]
    ]  # fmt: skip
    return Run.create(
        {
            "source": "upload",
            "name": f"Random run {seed}",
            "steps": {"claims": {"options": {"verifier": "offline"}, "verifier": "offline"}},
        },
        queries=pd.DataFrame(
            {
                "query_id": ids,
                "question": [f"Random question {i}?" for i in ids],
                "answer": answers,
                "answer_status": "answered",
                "reference_answers": [[text] for text in references],
                "n_gold": 1,
                "calibrates": rng.permutation(np.arange(n) % 2 == 0),
            }
        ),
        passages=per_passage,
        samples=pd.DataFrame(
            {
                "query_id": np.repeat(ids, samples),
                "sample_id": np.tile([f"s{j}" for j in range(samples)], n),
                "answer": texts[:, 1:].ravel(),
                "temperature": 1.0,
                "logprob_sum": -rng.exponential(10, n * samples),
                "n_tokens": 2,
            }
        ),
        claims=claims,
        support=support,
        signals=pd.DataFrame(
            {
                "query_id": ids,
                "similarity": rng.random(n),
                "lexical": 100 * rng.random(n),
                "llm_score": rng.random(n),
            }
        ),
        verdicts=pd.DataFrame(verdicts),
    )
