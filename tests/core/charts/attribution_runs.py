"""Runs with measured subsets whose attribution can be worked out on paper: three passages, so all 8 subsets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.attribution import Game
from core.attribution.measured import Plan, ablation_id, kept_text, play
from core.diagnosis import Diagnosis
from core.run import Run

K = 3
# What the kept passages (and places) add to the log-probability of the answer.
GAMES = {
    "adds": lambda kept, at: 4 * kept[0] + 2 * kept[1] + kept[2] + at[0] - at[2],
    "either": lambda kept, at: 6 * max(kept[0], kept[1]) + kept[2],
    "both": lambda kept, at: 6 * min(kept[0], kept[1]) + kept[2],
    "parity": lambda kept, at: 4 * (sum(kept) % 2),  # no sum of scores predicts it
    "constant": lambda kept, at: 0,
}
WORDS = ("alpha", "beta", "gamma")  # one for each passage, where the model answers again


def attribution_run(
    games=("adds", "either", "both", "parity", "constant"), by="logprob", place=False, shapley=False,
    claims=False, duplicates=(), question="Which word is it?", title="Text",
):  # fmt: skip
    """One question per game, and one without an answer; ``duplicates`` are passages numbered from 0.

    With ``claims``, claim c1 gains from passage 1 only, which does not support it, while passage 2 does; c2 gains
    from passage 2, which supports it.
    """
    queries = [
        {"query_id": one, "question": question, "answer": " ".join(WORDS), "answer_status": "answered"}
        for one in games
    ] + [{"query_id": "silent", "question": question, "answer": "", "answer_status": "empty"}]
    passages = [
        {
            "query_id": one["query_id"], "passage_id": f"p{i}", "title": title, "text": f"Text {i}.",
            "retrieval_rank": i, "slot": i,
        }
        for one in queries
        for i in range(1, K + 1)
    ]  # fmt: skip
    rows = [row for one in games for row in _measured(one, by, shapley, place, duplicates)]
    tables = {name: pd.DataFrame(t) for name, t in (("queries", queries), ("passages", passages))}
    if rows:
        tables["ablations"] = pd.DataFrame(rows)
    if claims:
        tables |= _claims(games[0], rows, question)
    options = {"masks": 48, "shapley": shapley, "place": place, "seed": 0}
    return Run.create(
        {"source": "live", "name": "Attribution", "steps": {"attribution": {"options": options}}}, **tables
    )


def _measured(name, by, shapley, place, duplicates):
    rows = {}

    def score(masks, orders=None):
        found = []
        for i, mask in enumerate(masks):
            order = np.arange(K) if orders is None else orders[i]
            kept = mask.astype(int)
            value = float(GAMES[name](kept, kept[order]) - 20)
            key = ablation_id(mask, None if orders is None else order)
            answer = " ".join(word for word, there in zip(WORDS, mask, strict=True) if there) or "nothing"
            rows[key] = {
                "query_id": name, "ablation_id": key, "kept": kept_text(mask), "answer_status": "answered",
                "order": None if orders is None else [f"p{j + 1}" for j in order],
                "logprob": value if by == "logprob" else None, "n_tokens": 3 if by == "logprob" else None,
                "answer": None if by == "logprob" else answer, "again": None if by == "logprob" else answer,
                "near_duplicates": None,
            }  # fmt: skip
            found.append(value)
        return np.array(found)

    groups = [duplicates] if duplicates else []
    play(Game(K, score, 3.0, score), Plan(48, shapley, place), groups)
    for group in groups:
        rows["".join("01"[i not in group] for i in range(K))]["near_duplicates"] = True
    return list(rows.values())


def _claims(query_id, rows, text):
    claims = [
        {"query_id": query_id, "claim_id": one, "text": f"{text} {one}", "side": "answer"}
        for one in ("c1", "c2")
    ]
    read = [
        {
            "query_id": query_id, "ablation_id": row["ablation_id"], "claim_id": one["claim_id"],
            "logprob": -9.0 + 5 * int(row["kept"][i]),
        }
        for row in rows
        if row["query_id"] == query_id and ":" not in row["ablation_id"]
        for i, one in enumerate(claims)
    ]  # fmt: skip
    support = [
        {"query_id": query_id, "claim_id": one["claim_id"], "passage_id": f"p{i}", "probability": float(i == 2)}
        for one in claims
        for i in range(1, K + 1)
    ]  # fmt: skip
    return {
        "claims": pd.DataFrame(claims),
        "ablated_claims": pd.DataFrame(read),
        "support": pd.DataFrame(support),
    }


def attribution_of(**options):
    """The diagnosis of such a run, and its attribution."""
    diagnosis = Diagnosis(attribution_run(**options))
    return diagnosis, diagnosis["attribution"]
