"""Runs that fill every diagnostic and in which nothing is related to anything: what chance alone finds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.run import Run
from core.sources.simulation_truth import WORDS
from core.stats.designs import held_out, subsets
from core.validation.fallback import OURS

CORRECT = 0.6  # share of correct answers, and mean of every confidence signal
_WORDS_EACH = 8
_SAMPLES = 10
_CONDITIONS = {"unchanged": 1, "without_support": _SAMPLES + 1, "unrelated_added": _SAMPLES + 1}  # answers


def random_run(seed: int, queries: int = 60, passages: int = 10) -> Run:
    """Make a run of pure chance.

    All answers to a question (baseline, samples, ablated, repeated, closed-book, of the context test) are
    independent draws from one distribution of the question: one of three meanings, with some words replaced.
    Everything else is drawn independently: which answers are correct, which passage is gold, the cells of the
    claims, the drops, the signals (with the share of correct answers as mean, so that even their level is
    right), the verdicts, the halves and the groups.
    """
    rng = np.random.default_rng(seed)
    n, k = queries, passages
    ids, pids = [f"r{i:03d}" for i in range(n)], [f"p{j + 1}" for j in range(k)]
    draw = _Answers(n, rng)
    baseline, correct = draw(1)[:, 0], rng.random(n) < CORRECT
    other = [_text(np.array(row)) for row in draw.unused]
    of_passage = np.repeat(ids, k)
    one_gold = np.arange(k) == rng.integers(k, size=n)[:, None]
    validators = {name: rng.uniform(0.1, 0.5) for name in OURS}
    verdicts = [
        {
            "query_id": id_, "validator": name, "passed": not fails,
            "severity": ("critical" if name == "ConfidenceValidator" else "warning") if fails else "none",
            "reason": "other" if fails else "fine", "value": rng.random(), "spans": [], "detail": "Random.",
        }
        for id_ in ids
        for name, share in validators.items()
        for fails in [rng.random() < share]
    ]  # fmt: skip
    claims, cells = _claims(ids, pids, baseline, rng)
    steps = (
        "influence", "claims", "uncertainty", "conformal", "validation", "confidence", "likelihood", "attribution",
    )  # fmt: skip
    step = {"options": {}, "n_done": n, "n_left": 0, "complete": True, "notes": []}
    return Run.create(
        {
            "source": "upload",
            "name": f"Pure chance, seed {seed}",
            "steps": {name: dict(step) for name in steps},
        },
        queries=pd.DataFrame(
            {
                "query_id": ids,
                "question": [f"Question {id_} of pure chance?" for id_ in ids],
                "answer": baseline,
                "answer_status": "answered",
                "closed_book_answer": draw(1)[:, 0],
                "reference_answers": [
                    [answer if right else unsaid]
                    for answer, right, unsaid in zip(baseline, correct, other, strict=True)
                ],
                "n_gold": 1,
                "kind": rng.choice(["one", "two"], n),
                "calibrates": rng.permutation(n) < n // 2,
            }
        ),
        passages=pd.DataFrame(
            {
                "query_id": of_passage,
                "passage_id": np.tile(pids, n),
                "text": [_text(row) for row in rng.integers(len(WORDS), size=(n * k, _WORDS_EACH))],
                "retrieval_rank": np.tile(np.arange(1.0, k + 1), n),
                "retrieval_score": np.sort(rng.exponential(5, (n, k)))[:, ::-1].ravel(),
                "slot": np.tile(np.arange(1, k + 1), n),
                "ablated_answer": draw(k).ravel(),
                "ablated_status": "answered",
                "logprob_drop": rng.normal(0, 1, n * k),
                "reference_logprob_drop": rng.normal(0, 1, n * k),
                "is_gold": one_gold.ravel(),
            }
        ),
        repeats=pd.DataFrame(
            {
                "query_id": np.repeat(ids, 3),
                "repeat": np.tile([1, 2, 3], n),
                "answer": draw(3).ravel(),
                "answer_status": "answered",
            }
        ),
        samples=_sampled(ids, draw(_SAMPLES), rng),
        ablations=pd.concat([_subsets(id_, k, rng) for id_ in ids]),
        context_samples=pd.concat(
            [
                # A baseline and samples drawn alike, from the same distribution as those of the whole prompt.
                _sampled(ids, draw(count), rng)
                .assign(condition=condition, sample_id=np.tile(["baseline", *_names(count - 1)], n))
                .assign(order=[pids] * (n * count), order_of=[[id_] * k for id_ in ids for _ in range(count)])
                for condition, count in _CONDITIONS.items()
            ]
        ),
        claims=claims,
        support=cells,
        signals=pd.DataFrame(
            {
                "query_id": ids,
                "similarity": rng.beta(12 * CORRECT, 12 * (1 - CORRECT), n),
                "lexical": 100 * rng.beta(12 * CORRECT, 12 * (1 - CORRECT), n),
                "llm_score": rng.beta(12 * CORRECT, 12 * (1 - CORRECT), n),
            }
        ),
        verdicts=pd.DataFrame(verdicts),
    )


def _subsets(query_id: str, k: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return scores of random subsets, also in other orders, that depend on nothing."""
    masks = np.unique(np.vstack([subsets(k, 64), held_out(k, 32), np.ones((1, k), dtype=bool)]), axis=0)
    kept = ["".join("01"[int(one)] for one in mask) for mask in masks]
    return pd.DataFrame(
        {
            "query_id": query_id, "ablation_id": kept, "kept": kept, "answer_status": "answered",
            "logprob": -30 + rng.normal(0, 1, len(kept)), "n_tokens": 8,
        }
    )  # fmt: skip


class _Answers:
    """Draws answers: for each question three meanings of other words, with shares of its own."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.rng = rng
        order = rng.permuted(np.tile(np.arange(len(WORDS)), (n, 1)), axis=1)
        self.meanings = order[:, : 3 * _WORDS_EACH].reshape(n, 3, _WORDS_EACH)
        self.unused, self.fresh = order[:, 24 : 24 + _WORDS_EACH], order[:, 24 + _WORDS_EACH :]
        self.shares = rng.dirichlet((2.0, 1.0, 1.0), n)
        self.noise = rng.choice([0.0, 0.1], n)

    def __call__(self, count: int) -> np.ndarray:
        """Return ``count`` answers to each question, shape (n, count)."""
        n = len(self.shares)
        which = (self.rng.random((n, count, 1)) > self.shares.cumsum(axis=1)[:, None, :2]).sum(axis=2)
        words = np.take_along_axis(self.meanings, which[:, :, None], axis=1)
        hit = self.rng.random(words.shape) < self.noise[:, None, None]
        places = self.rng.permuted(np.tile(np.arange(self.fresh.shape[1]), (n * count, 1)), axis=1)
        others = np.take_along_axis(self.fresh, places[:, :_WORDS_EACH].reshape(n, -1), axis=1)
        words = np.where(hit, others.reshape(words.shape), words)
        return np.array([[_text(one) for one in row] for row in words], dtype=object)


def _text(words: np.ndarray) -> str:
    return " ".join(WORDS[i] for i in words).capitalize() + "."


def _names(m: int) -> list[str]:
    return [f"s{i + 1}" for i in range(m)]


def _sampled(ids: list[str], answers: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    count = answers.shape[1]
    return pd.DataFrame(
        {
            "query_id": np.repeat(ids, count),
            "sample_id": np.tile(_names(count), len(ids)),
            "answer": answers.ravel(),
            "temperature": 1.0,
            "top_p": 0.9,
            "logprob_sum": -rng.exponential(10, answers.size),
            "n_tokens": _WORDS_EACH,
        }
    )


def _claims(
    ids: list[str], pids: list[str], answers: np.ndarray, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one to three claims of each answer and one of its reference, each with random cells."""
    claims = []
    for id_, answer in zip(ids, answers, strict=True):
        ends = [0, *np.cumsum([len(word) + 1 for word in answer.split()])]
        for i in range(rng.integers(1, 4)):
            start, end = ends[2 * i], ends[2 * i + 2] - 1
            own = {"side": "answer", "start": start, "end": end, "text": answer[start:end]}
            claims.append({"query_id": id_, "claim_id": f"a{i + 1}", **own})
        claims.append({"query_id": id_, "claim_id": "r1", "side": "reference", "text": "Reference."})
    frame = pd.DataFrame(claims)
    frame["counterpart"] = rng.choice(["Entailment", "Neutral"], len(frame))
    frame["relevance"] = "RELEVANT"
    cells = frame[["query_id", "claim_id"]].loc[frame.index.repeat(len(pids))].reset_index(drop=True)
    cells["passage_id"] = np.tile(pids, len(frame))
    # Of ten cells one reaches the support threshold of 0.5.
    return frame, cells.assign(probability=rng.beta(1.0, 3.3, len(cells)), judge="random")
