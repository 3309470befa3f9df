"""Runs with samples whose agreement with the answer, and so its score, is planted."""

import numpy as np
import pandas as pd

from core.calibration.provenance import provenance_of
from core.calibration.saved import SavedCalibration
from core.run import Run

OTHERS = "bravo charlie delta echo foxtrot golf hotel india juliet kilo".split()


def samples_of(answer, same, n=10):
    """As many samples equal to the answer as said; the others share no word with it or each other."""
    return [answer] * same + OTHERS[: n - same]


def planted(same, correct, calibrates, samples=None, **columns):
    """A run of one-word answers: question i has ``same[i]`` of 10 samples equal to its answer.

    So its agreement by ROUGE-L is same / 10, and its score 1 − same / 10. A correct answer is "alpha", which is
    the reference; a wrong one is "omega". ``correct[i]`` None: no reference answer.
    """
    ids = [f"q{i:03}" for i in range(len(same))]
    answers = ["omega" if right is False else "alpha" for right in correct]
    queries = pd.DataFrame(
        {
            "query_id": ids,
            "question": [f"Which word is number {i}?" for i in range(len(same))],
            "answer": answers,
            "answer_status": "answered",
            "reference_answers": [None if right is None else ["alpha"] for right in correct],
            "calibrates": calibrates,
            **columns,
        }
    )
    texts = samples or [samples_of(answer, n) for answer, n in zip(answers, same, strict=True)]
    rows = [
        {"query_id": query_id, "sample_id": f"s{number}", "answer": text}
        for query_id, own in zip(ids, texts, strict=True)
        for number, text in enumerate(own, start=1)
    ]
    manifest = {
        "source": "live",
        "steps": {"conformal": {}, "uncertainty": {"options": {}}},
        "model": {"name": "m"},
    }
    return Run.create(manifest, queries=queries, samples=pd.DataFrame(rows))


def against_store(run, same):
    """The run, calibrated by a store of correct answers that agreed with as many of ten samples as said."""
    source = provenance_of(run.manifest, "uncertainty.agreement_rouge_l", "uncertainty")
    scores = 1 - np.array(same) / 10
    kept = SavedCalibration("s.db", source, scores, np.ones(len(same)), (None,) * len(same), 0)
    steps = {**run.manifest["steps"], "conformal": {"options": {"calibration": kept.to_json()}}}
    return run.derive({"steps": steps})
