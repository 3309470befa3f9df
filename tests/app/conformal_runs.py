"""Runs to calibrate on, with answers, samples and labels that are planted."""

import pandas as pd

from core.conformal.step import ConformalStep
from core.pipeline import fill
from core.run import Run
from tests.app.conftest import HOSTILE

N, N_LABELLED = 140, 120
MODEL = {"name": "planted", "options": {"revision": "1"}}


def planted(model=MODEL) -> Run:
    """Return 140 questions, 120 of them labelled, every eighth answer wrong; not calibrated.

    The five samples of a right answer repeat it, but for one more word in none, one or two of them; those of
    a wrong one have no word in common, and every second time one of them is right.
    """
    queries, samples = [], []
    for i in range(N):
        right, truth = i % 8 != 0, f"answer{i} of five whole words"
        answer = truth if right else f"mistake{i}"
        wrong = [truth if i % 16 == 0 else f"guess{i}a", *(f"guess{i}{letter}" for letter in "bcde")]
        queries.append(
            {
                "query_id": f"q{i:03d}",
                "question": f"{HOSTILE} {i}" if i == 1 else f"Question {i}?",
                "answer": answer,
                "reference_answers": [truth] if i < N_LABELLED else None,
                "kind": HOSTILE if i % 2 else "even",
            }
        )
        for j in range(5):
            said = wrong[j] if not right else f"{truth} more" if j < i % 3 else truth
            samples.append({"query_id": f"q{i:03d}", "sample_id": f"s{j}", "answer": said})
    ids = [row["query_id"] for row in queries]
    passages = pd.DataFrame(
        [
            {"query_id": one, "passage_id": f"p{rank}", "retrieval_rank": rank, "text": f"Text {rank}."}
            for one in ids
            for rank in (2, 1)
        ]
    )
    return Run.create(
        {"source": "live", "name": "Planted", "model": model},
        queries=pd.DataFrame(queries),
        samples=pd.DataFrame(samples),
        passages=passages,
    )


def calibrated(run=None) -> Run:
    return fill(planted() if run is None else run, ConformalStep())
