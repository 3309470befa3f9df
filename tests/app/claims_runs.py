"""Runs with claims for the tests of the page: made by hand, so that every state is there and known."""

from __future__ import annotations

import pandas as pd

from core.claims.step import ClaimsStep
from core.run import Run

HOSTILE = "<img src=x onerror=alert(1)> **b** $x^2$ \u202eevil\u202c :smile:"
ANSWER = f"Unwin planned it in 1903. {HOSTILE} is grand. I hope this helps!"
# Claim, place in the answer, support by p0 and p1 (None = unscored), relevance.
CLAIMS = (
    ("c0", "Unwin planned it.", (0, 16), (0.9, 0.8), "RELEVANT"),
    ("c1", "Unwin planned it in 1903.", (0, 25), (0.7, 0.1), "RELEVANT"),
    ("c2", f"{HOSTILE} is grand.", (26, 26 + len(HOSTILE) + 10), (0.2, 0.3), "RELEVANT"),
    ("c3", "Parker was there.", None, (0.4, None), "RELEVANT"),
    ("c4", "It is a town of the north.", None, (0.3, 0.4), "RELEVANT"),
    ("c5", "I hope this helps!", (len(ANSWER) - 18, len(ANSWER)), (None, None), "IRRELEVANT"),
)


def claims_run(facts: bool = True) -> Run:
    """Five questions: one with a claim of every state, an abstention, an empty answer, one all unscored, none."""
    queries = pd.DataFrame(
        {
            "query_id": ["q1", "q2", "q3", "q4", "q5"],
            "question": ["Who planned Letchworth?", "Which river?", "An empty one?", HOSTILE, "How are you?"],
            "answer": [ANSWER, "I don't know.", "", "The Thames is long.", "Well."],
            "answer_status": ["answered", "abstained", "empty", "answered", "answered"],
        }
    )
    passages = pd.DataFrame(
        [
            {
                "query_id": query_id,
                "passage_id": f"p{i}",
                "title": HOSTILE if i else "Letchworth",
                "text": f"Unwin planned Letchworth. {HOSTILE}",
                "retrieval_rank": i + 1,
                "ablated_answer": ("Parker planned it in 1903.", ANSWER)[i] if query_id == "q1" else None,
            }
            for query_id in queries["query_id"]
            for i in range(2)
        ]
    )
    claims = [
        {
            "query_id": "q1",
            "claim_id": claim_id,
            "text": text,
            "start": None if place is None else place[0],
            "end": None if place is None else place[1],
            "relevance": relevance,
            "added": ["north"] if claim_id == "c4" else None,
            "dropped": ["grand"] if claim_id == "c2" else None,
        }
        for claim_id, text, place, _, relevance in CLAIMS
    ]
    claims.append(
        {"query_id": "q4", "claim_id": "c0", "text": "The Thames is long.", "relevance": "RELEVANT"}
    )
    support = [
        {
            "query_id": "q1",
            "claim_id": claim_id,
            "passage_id": f"p{i}",
            "probability": p,
            "judge": "offline",
            "start": 0,
            "end": 25,
        }
        for claim_id, _, _, row, relevance in CLAIMS
        if relevance == "RELEVANT"
        for i, p in enumerate(row)
    ]
    support += [
        {"query_id": "q4", "claim_id": "c0", "passage_id": f"p{i}", "probability": None, "judge": "offline"}
        for i in range(2)
    ]
    joint = {"query_id": "q1", "claim_id": "c4", "passage_id": "p0", "second_passage_id": "p1"}
    manifest: dict = {"source": "live", "name": "Run with claims"}
    if facts:
        manifest["steps"] = {
            "claims": {
                "decomposition": "rules",
                "verifier": "offline",
                "options": ClaimsStep(decompose="rules").settings,
                "model": None,
                "n_questions": 5,
                "n_unscored": 3,
                "unscored_reasons": {"the verifier gave no probability and no reason": 3},
                "complete": True,
            }
        }
    return Run.create(
        manifest,
        queries=queries,
        passages=passages,
        claims=pd.DataFrame(claims),
        support=pd.DataFrame(support),
        joint_support=pd.DataFrame([{**joint, "probability": 0.8, "judge": "offline"}]),
    )
