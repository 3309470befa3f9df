"""Small runs with claims, made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.diagnosis import Diagnosis
from core.llm.embeddings import TokenVectors
from core.run import Run
from core.text.words import word_spans, words


class WordByWord:
    """Reads the tokens of texts by embedding each distinct word, once, without its context."""

    def embed_tokens(self, texts):
        known = self.__dict__.setdefault("known", {})
        if new := list(dict.fromkeys(word for text in texts for word in words(text) if word not in known)):
            known.update(zip(new, self.embed(new), strict=True))
        return [
            TokenVectors(
                np.stack([known[word] for word in words(text)]),
                np.array(word_spans(text), dtype=np.int64),
                np.ones(len(words(text)), dtype=bool),
            )
            for text in texts
        ]


def claims_run(questions, manifest=None):
    """Return a run; each question is a dict of its columns, with ``passages``, ``claims`` and ``joint``.

    A passage is a dict of its columns with ``passage_id``; ranks are their places unless given. A claim is a
    dict of its columns, with ``cells``: the probability by passage id, or a dict of columns of ``support``.
    """
    tables = {name: [] for name in ("queries", "passages", "claims", "support", "joint_support")}
    for n, given in enumerate(questions, start=1):
        one = dict(given)
        passages, claims, joint = (one.pop(k, []) for k in ("passages", "claims", "joint"))
        key = {"query_id": one.pop("query_id", f"q{n}")}
        tables["queries"].append(
            key | {"question": "When did the canal open?", "answer_status": "answered"} | one
        )
        for rank, passage in enumerate(passages, start=1):
            tables["passages"].append(key | {"retrieval_rank": float(rank)} | passage)
        for number, claim in enumerate(claims, start=1):
            columns = dict(claim)
            cells = columns.pop("cells", {})
            claim_id = columns.setdefault("claim_id", f"a{number}")
            tables["claims"].append(key | columns)
            for passage_id, cell in cells.items():
                cell = cell if isinstance(cell, dict) else {"probability": cell, "judge": "hand"}
                tables["support"].append(key | {"claim_id": claim_id, "passage_id": passage_id} | cell)
        for claim_id, first, second, p in joint:
            pair = {"passage_id": first, "second_passage_id": second, "probability": p}
            tables["joint_support"].append(key | {"claim_id": claim_id} | pair)
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items() if rows}
    return Run.create({"source": "upload", **(manifest or {})}, **frames)


def analysed(questions, manifest=None, threshold=0.5):
    """Return the run and the analysis of its claims."""
    run = claims_run(questions, manifest)
    return run, Diagnosis(run, {"support": threshold})["claims"]


def matrix_question(matrix, texts=None, **columns):
    """Return a question whose claims and passages are the rows and columns of a matrix; None = no cell."""
    n = len(matrix[0]) if matrix else 0
    return {
        "answer": "One. Two.",
        "passages": [{"passage_id": f"p{j + 1}"} for j in range(n)],
        "claims": [
            {
                "text": texts[i] if texts else f"Statement {i + 1}",
                "cells": {f"p{j + 1}": p for j, p in enumerate(row) if p is not None},
            }
            for i, row in enumerate(matrix)
        ],
        **columns,
    }


CANAL = {
    "query_id": "canal",
    "answer": "The canal opened in 1914. It has twelve locks and three lakes.",
    "passages": [
        # In another order than that of retrieval.
        {"passage_id": "p3", "retrieval_rank": 3.0, "text": "Twelve locks there are.",
         "ablated_answer": "The canal opened in 1914. It has twelve locks and three lakes.", "ablated_status": "answered"},
        {"passage_id": "p1", "retrieval_rank": 1.0, "title": "Canal", "text": "History. The canal opened in 1914. More.",
         "ablated_answer": "It has twelve locks and three lakes.", "ablated_status": "answered"},
        {"passage_id": "p2", "retrieval_rank": 2.0, "text": "Ships are big.",
         "ablated_answer": "The canal opened in 1915. It has twelve locks and three lakes.", "ablated_status": "answered"},
        {"passage_id": "p4", "retrieval_rank": 4.0, "text": "Nothing.", "ablated_answer": None, "ablated_status": "error"},
    ],
    "claims": [
        {"text": "The canal opened in 1914.", "start": 0, "end": 25, "spans": ["0:25"], "added": [], "dropped": ["panama"],
         "cells": {"p1": {"probability": 0.9, "judge": "hand", "start": 9, "end": 34, "agreement": 1.0},
                   "p2": 0.1, "p3": 0.2, "p4": 0.0}},
        {"text": "It has twelve locks and three lakes", "cells": {"p1": 0.0, "p2": 0.2, "p3": 0.6, "p4": 0.4}},
    ],
}  # fmt: skip
