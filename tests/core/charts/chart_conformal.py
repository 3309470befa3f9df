"""Calibrations whose figures can be worked out on paper, and a run that calibrates."""

import numpy as np
import pandas as pd

from core.conformal.analysis import OWN, Truth, analyse_conformal
from core.conformal.diagnostic import CONFORMAL
from core.diagnosis import Diagnosis
from core.run import Run
from core.signals import Signal
from core.socket import Diagnostic

NAN = np.nan
CALIBRATES, TESTS, NEW = True, False, None


def calibrated(rows, alpha=0.5, *, kinds=None, question=None, title="Doubt", meanings=None, **options):
    """The analysis of questions given as (side, score, correct); the score lies in [0, 1]."""
    n = len(rows)
    sides, scores, correct = zip(*rows, strict=True)
    queries = pd.DataFrame(
        {
            "query_id": [f"q{i + 1}" for i in range(n)],
            "question": [question or f"Question {i + 1}?" for i in range(n)],
            "answer": "yes",
            "reference_answers": [None if one is None else ["yes"] for one in sides],
            "calibrates": pd.array(sides, dtype="boolean"),
        }
    )
    if kinds:
        queries["kind"] = kinds
    run = Run.create({"source": "upload"}, queries=queries)
    score = Signal("toy", "doubt", title, "Toy", "{:.2f}", "more uncertain", np.array(scores, dtype=float),
                   bounds=(0.0, 1.0))  # fmt: skip
    right = np.array([NAN if one is None else float(one) for one in correct])
    distance = np.where(np.isnan(right), NAN, 1 - right)
    table = samples = None
    if meanings is not None:  # for each question whether each sample is right; equal ones mean the same
        told = [(f"q{i + 1}", 1 if one else 2, one) for i, own in enumerate(meanings) for one in own]
        table = pd.DataFrame(
            {
                "query_id": [one[0] for one in told],
                "status": "answered",
                "meaning": pd.array([one[1] for one in told], dtype="Int64"),
            }
        )
        samples = np.array([float(one[2]) for one in told])
    truth = Truth(distance, np.empty(0) if samples is None else samples)
    options = {"origin": OWN if CALIBRATES in sides else ""} | options
    return analyse_conformal(run, truth, right, score, (score,), alpha, meanings=table, **options)


def diagnosis_of(analysis):
    """A diagnosis that knows only this analysis."""
    one = Diagnostic(
        "conformal", "Conformal", "?", lambda _: analysis, lambda _: (), definitions=CONFORMAL.definitions
    )
    return Diagnosis(analysis.run, diagnostics=[one])


def calibrated_run(n=120, question="What is number {}?"):
    """A run of which every other labelled question calibrates, with eight samples and three signals each."""
    rng, other_rng = np.random.default_rng(5), np.random.default_rng(6)
    queries, samples = [], []
    for i in range(n):
        right = rng.random() < 0.8
        agreeing = rng.beta(6, 1.5) if right else rng.beta(1.5, 3)
        answer, labelled = ("yes indeed" if right else f"wrong {i}"), i < 0.9 * n
        queries.append(
            {
                "query_id": f"q{i}",
                "question": question.format(i),
                "answer": answer,
                "kind": ["who", "when", "where, or why"][i % 3],
                "reference_answers": ["yes indeed"] if labelled else None,
                "calibrates": i % 2 == 0 if labelled else None,
            }
        )
        for j in range(8):
            other = rng.choice(["yes indeed", "another thing", "nothing at all"])
            text = answer if rng.random() < agreeing else other
            samples.append({"query_id": f"q{i}", "sample_id": f"s{j}", "answer": text})
    values = other_rng.beta(3, 2, size=(n, 3)).round(3)
    signals = pd.DataFrame(values * [1, 100, 1], columns=["similarity", "lexical", "llm_score"])
    signals["query_id"] = [one["query_id"] for one in queries]
    return Run.create(
        {"source": "upload"}, queries=pd.DataFrame(queries), samples=pd.DataFrame(samples), signals=signals
    )
