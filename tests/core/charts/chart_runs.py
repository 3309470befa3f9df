"""Small runs whose figures can be worked out on paper, and what a figure shows."""

import json

import pandas as pd

from core.run import Run

HOSTILE = '<script>alert("x")</script><b>bold</b> $\\alpha$ & %{x}\u202e\x00\n' + "long " * 60


def make_run(influences, *, ranks=None, **columns):
    """A run with one question per list of influences; None is an unknown influence.

    ``columns`` named ``query_*`` go to the questions, others to the passages (flat lists).
    """
    query_ids = [f"q{i + 1}" for i in range(len(influences))]
    queries = {"query_id": query_ids, "question": [f"Question {i}?" for i in query_ids]}
    queries |= {name.removeprefix("query_"): v for name, v in columns.items() if name.startswith("query_")}
    rows = [
        (q, f"p{j + 1}", j + 1, v)
        for q, row in zip(query_ids, influences, strict=True)
        for j, v in enumerate(row)
    ]
    passages = pd.DataFrame(rows, columns=["query_id", "passage_id", "retrieval_rank", "influence_score"])
    if ranks:
        passages["retrieval_rank"] = [r for row in ranks for r in row]
    for name, values in columns.items():
        if not name.startswith("query_"):
            passages[name] = values
    return Run.create({"source": "upload"}, queries=pd.DataFrame(queries), passages=passages)


def shown_strings(figure):
    """Every string of a figure that plotly may draw; selection ids (customdata of points) are apart."""
    found = []

    def walk(value, key=""):
        if isinstance(value, dict):
            for name, inner in value.items():
                if name not in ("template", "meta"):
                    walk(inner, name)
        elif isinstance(value, list):
            for inner in value:
                walk(inner, key)
        elif isinstance(value, str):
            found.append((key, value))

    walk(json.loads(figure.to_json()))
    return found
