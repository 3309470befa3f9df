"""Whether the samples of each question agree, with one another and with the baseline answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.arrays import Floats, Ints
from core.run import Run
from core.text.matching import correctness
from core.uncertainty.clusters import order_dependence
from core.uncertainty.conditions import GREEDY
from core.uncertainty.context import ContextTest, context_test
from core.uncertainty.definitions import (
    COLUMN_ESTIMATORS,
    COMPARED,
    DEFAULT_STABLE,
    MEANING_ENTROPY,
    MEANING_RULE,
    STABLE,
    UNDEFINED,
    UNSTABLE,
    VARIES,
)
from core.uncertainty.estimators import ESTIMATORS, EstimatorScores, scored
from core.uncertainty.grounding import quadrant
from core.uncertainty.meanings import meanings
from core.uncertainty.measures import discrete_semantic_entropy, number_of_semantic_sets
from core.uncertainty.quality import EstimatorPair, EstimatorQuality, comparisons, leaderboard
from core.uncertainty.relations import Key, relations
from core.uncertainty.samples import Batch, Samples, batches

NOTHING = "No question has two samples."
NO_LABELS = "Neither labels nor reference answers: which estimator to believe is not known."
ONE_KIND = "The estimators can be judged only where some answers are right and some wrong."
_MAJORITY = 0.5
_FROM_MODELS = ("entailment", "contradiction", "p_true", "verbalised")

Embed = Callable[[Sequence[str]], npt.NDArray[Any]]


@dataclass(frozen=True)
class UncertaintyAnalysis:
    """What the samples of a run say.

    ``queries``, one row per question: ``query_id, question``, counts of its samples, ``n_meanings`` with the
    fewest and the most in any order of the samples (``meanings_low, meanings_high``), ``meaning_share``, the
    estimators of `COLUMN_ESTIMATORS`, ``consensus_id, baseline_in_largest, differs_by_chance`` (see
    `Meanings`), ``correct, reason, stability, grounding, quadrant``. What is undefined is missing; ``reason``
    says why the entropy is, ``stability`` is Undefined then.

    ``samples``, one row per sampled answer: ``query_id, sample_id, answer, status, temperature, top_p,
    meaning`` (numbered from 1 within the question, the largest first), ``n_same`` (samples with the same
    words, itself among them), ``agreement`` (with the other samples), ``is_consensus``. ``texts`` by query
    id: the baseline first (empty where there is none), then the samples, in the order of ``samples``. A
    question is stable from a share ``stable_from`` of its samples in the largest meaning.
    """

    run: Run
    queries: pd.DataFrame
    samples: pd.DataFrame
    texts: Mapping[str, Samples]
    scores: Mapping[str, EstimatorScores]  # of every estimator that was measured, by name; rows as queries
    correct: Floats
    stable_from: float = DEFAULT_STABLE
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)  # what no setting changes

    rule = MEANING_RULE

    def labelled(
        self, stable_from: float = DEFAULT_STABLE, grounding: pd.Series | None = None
    ) -> UncertaintyAnalysis:
        """Return the same analysis with the labels of a threshold and the grounding of the claims."""
        share = self.queries["meaning_share"]
        label = np.select(
            [share.isna() | self.queries["reason"].notna(), share >= stable_from, share < _MAJORITY],
            [UNDEFINED, STABLE, UNSTABLE],
            VARIES,
        )
        grounded = np.full(len(share), np.nan) if grounding is None else grounding.to_numpy(dtype=np.float64)
        queries = self.queries.assign(stability=label, grounding=grounded)
        queries["quadrant"] = quadrant(queries["stability"], grounded)
        return replace(self, queries=queries, stable_from=stable_from)

    @property
    def embedded(self) -> bool:
        """Whether the texts were embedded, too."""
        return "embedding_variance" in self.scores

    @property
    def leaderboard(self) -> pd.DataFrame:
        """One row per estimator, the best at finding wrong answers first; empty without labels.

        Columns: ``name, title, level, is_baseline, n, n_wrong, auroc, auroc_low, auroc_high, p_value, auprc,
        prr, aurc, e_aurc``, see `EstimatorQuality`.
        """
        return self._once("leaderboard", self._leaderboard)

    @property
    def comparisons(self) -> pd.DataFrame:
        """Pairs of `COMPARED` estimators: the columns of `EstimatorPair`, and ``distinguishable``."""
        return self._once("comparisons", self._comparisons)

    @property
    def context(self) -> ContextTest:
        """Whether the estimators move the right way when the passages are changed, where that was asked."""
        found: ContextTest = self._once("context", lambda: context_test(self.run))
        return found

    def quality(self, name: str) -> EstimatorQuality | None:
        """Return how well one estimator finds wrong answers; None where that cannot be judged."""
        found = {name: self.scores[name].uncertainty}
        return None if self.not_judged else leaderboard(found, self.correct)[0]

    @property
    def not_judged(self) -> str | None:
        """Why the estimators cannot be judged, in a sentence; None where they can."""
        known = set(self.correct[~np.isnan(self.correct)])
        if np.isnan(self.scores[MEANING_ENTROPY].values).all():
            return NOTHING
        return NO_LABELS if not known else ONE_KIND if len(known) == 1 else None

    def _once(self, name: str, compute: Callable[[], Any]) -> Any:
        if name not in self._kept:
            self._kept[name] = compute()
        return self._kept[name]

    def _leaderboard(self) -> pd.DataFrame:
        columns = ["name", "title", "level", "is_baseline", "n", "n_wrong"]
        columns += ["auroc", "auroc_low", "auroc_high", *EstimatorQuality._fields[4:]]
        rows = []
        if self.not_judged is None:
            uncertainty = {name: one.uncertainty for name, one in self.scores.items()}
            for found in leaderboard(uncertainty, self.correct):
                one = ESTIMATORS[found.name]
                values = [found.n, found.n_wrong, *found.auroc, *found[4:]]
                rows.append([one.name, one.title, one.level, one.is_baseline, *values])
        return pd.DataFrame(rows, columns=columns)

    def _comparisons(self) -> pd.DataFrame:
        found: list[EstimatorPair] = []
        if self.not_judged is None:
            measured = {name: self.scores[name].uncertainty for name in COMPARED if name in self.scores}
            found = comparisons(measured, self.correct)
        frame = pd.DataFrame(found, columns=[*EstimatorPair._fields])
        return frame.assign(distinguishable=[pair.distinguishable for pair in found])


def measure(run: Run, embed: Embed | None = None) -> UncertaintyAnalysis:
    """Measure the samples of a run by their texts and, where they are known, their probabilities.

    No language model is called. Without samples every question is undefined. ``embed`` takes texts, each
    different one once, to their unit embeddings, (n, d): with it the estimators that need them are measured
    too.

    >>> queries = pd.DataFrame({"query_id": ["q"], "question": ["Capital?"], "answer": ["Paris"]})
    >>> answers = ["Paris", "Paris.", "Rome"]
    >>> samples = pd.DataFrame({"query_id": "q", "sample_id": list("abc"), "answer": answers})
    >>> run = Run.create({"source": "upload"}, queries=queries, samples=samples)
    >>> measure(run).queries[["n_meanings", "meaning_share", "stability"]].values.tolist()
    [[2, 0.6666666666666666, 'Varies']]
    """
    frame = run["samples"].reset_index(drop=True)
    given = frame[frame["answer"].notna()]  # a failed call is no empty answer
    rows = given.groupby("query_id", sort=False).indices
    asked_again = run.queries["query_id"].isin(rows.keys()).to_numpy(dtype=bool)
    texts = _texts(run, run.queries[asked_again], given, rows, embed)
    questions = [*texts.values()]
    order = np.concatenate([rows[query_id] for query_id in texts]) if texts else np.empty(0, dtype=np.int64)
    n_samples = np.array([len(one.sampled) for one in questions], dtype=np.int64)
    facts = _Facts(np.cumsum(n_samples) - n_samples, given["sample_id"].to_numpy()[order])
    measured = {"embeddings"} if embed is not None else set()
    measured |= {"logprobs"} if given["logprob_sum"].notna().any() else set()
    measured |= {name for name in _FROM_MODELS if any(getattr(one, name) is not None for one in questions)}
    names = [name for name, one in ESTIMATORS.items() if measured >= {*one.needs}]
    found = scored(facts.of(batches(questions)), len(questions), names)
    scores = {name: _among(one, asked_again) for name, one in found.items()}
    of_each = pd.DataFrame(facts.of_samples, columns=[*_EACH], index=given.index[order]).astype(_EACH)
    samples = frame[["query_id", "sample_id", "answer", "temperature", "top_p"]].join(of_each)
    samples.insert(3, "status", samples.pop("status").fillna("error"))
    correct = correctness(run.queries)
    queries = run.queries[["query_id", "question"]].reset_index(drop=True)
    known = pd.DataFrame(facts.of_questions, columns=[*_FACTS], index=np.flatnonzero(asked_again))
    counts = {name: 0 for name, kind in _FACTS.items() if kind == "int64"}
    queries = queries.join(known.reindex(queries.index).fillna(counts).astype(_FACTS))
    for name, estimator in COLUMN_ESTIMATORS.items():
        queries[name] = scores[estimator].values if estimator in scores else np.nan
    queries["correct"] = correct.array
    reasons = [
        reason if n else "not_sampled"
        for reason, n in zip(scores[MEANING_ENTROPY].reasons, queries["n_samples"], strict=True)
    ]
    queries["reason"] = pd.Series(reasons, dtype="str")
    judged = correct.to_numpy(dtype=np.float64, na_value=np.nan)
    kept = MappingProxyType(texts), MappingProxyType(scores)
    return UncertaintyAnalysis(run, queries, samples, *kept, judged).labelled()


def _texts(
    run: Run,
    queries: pd.DataFrame,
    given: pd.DataFrame,
    rows: Mapping[str, npt.NDArray[np.intp]],
    embed: Embed | None,
) -> dict[str, Samples]:
    """Return the baseline and the samples of each question, with what was measured of them."""
    answers, ids = given["answer"].to_numpy(), given["sample_id"].to_numpy()
    known, stated = _checks(run), run["signals"].set_index("query_id")["llm_score"].dropna()
    each = (given["logprob_sum"] / given["n_tokens"].where(given["n_tokens"] > 0)).to_numpy(
        dtype=np.float64, na_value=np.nan
    )
    baselines = queries["answer"].fillna("")
    different = [*dict.fromkeys([*baselines, *answers])] if embed is not None else []
    place = {text: i for i, text in enumerate(different)}
    vectors = None if embed is None else embed(different)
    texts = {}
    for query_id, asked, baseline in zip(queries["query_id"], queries["question"], baselines, strict=True):
        own = rows[query_id]
        found = [baseline, *answers[own]]
        checks = relations(found, [GREEDY, *ids[own]], known[query_id]) if query_id in known else None
        texts[query_id] = Samples(
            found,
            baseline=True,
            question=asked,
            embeddings=None if vectors is None else vectors[[place[text] for text in found]],
            logprobs=np.array([np.nan, *each[own]]),
            verbalised=stated.get(query_id),
            **({} if checks is None else checks._asdict()),
        )
    return texts


def _checks(run: Run) -> Mapping[str, Mapping[Key, tuple[float, float]]]:
    """Return what a model says of each question's answers: entailment and contradiction by pair."""
    found: dict[str, dict[Key, tuple[float, float]]] = {}
    columns = ["query_id", "premise", "hypothesis", "entailment", "contradiction"]
    for query_id, premise, hypothesis, *said in run["sample_checks"][columns].itertuples(index=False):
        found.setdefault(query_id, {})[premise, hypothesis] = (said[0], said[1])
    return found


def _among(scores: EstimatorScores, asked_again: npt.NDArray[np.bool_]) -> EstimatorScores:
    """Return the scores of the sampled questions among all."""
    values = np.full(len(asked_again), np.nan)
    values[asked_again] = scores.values
    reasons = np.full(len(asked_again), "not_sampled", dtype=object)
    reasons[asked_again] = list(scores.reasons)
    return replace(scores, values=values, reasons=tuple(reasons))


# Columns of each sample and of each question, with their types.
_EACH = {
    "status": "str", "meaning": "Int64", "n_same": "Int64", "agreement": "float64", "is_consensus": "boolean",
}  # fmt: skip
_FACTS = {
    "n_samples": "int64", "n_distinct": "int64", "n_refused": "int64", "n_empty": "int64",
    "n_meanings": "Int64", "meanings_low": "Int64", "meanings_high": "Int64",
    "meaning_share": "float64", "entropy_normalised": "float64", "baseline_in_largest": "boolean",
    "differs_by_chance": "float64", "consensus_id": "str",
}  # fmt: skip


class _Facts:
    """What is known of each sample and of each question, by column; filled while batches go by.

    ``start``: where the samples of each question begin; ``ids`` of all samples.
    """

    def __init__(self, start: Ints, ids: npt.NDArray[Any]) -> None:
        self._start, self._ids = start, ids
        self.of_samples = {name: np.full(len(ids), None, dtype=object) for name in _EACH}
        self.of_questions = {name: np.full(len(start), None, dtype=object) for name in _FACTS}

    def of(self, parts: Iterable[tuple[Ints, Batch]]) -> Iterator[tuple[Ints, Batch]]:
        """Yield each batch once its facts are known."""
        for at, batch in parts:
            of_samples, of_questions, typical = _of_questions(batch)
            rows = self._start[at][:, None] + np.arange(batch.n_samples)
            for name, values in of_samples.items():
                self.of_samples[name][rows] = values
            for name, values in of_questions.items():
                self.of_questions[name][at] = values
            self.of_questions["consensus_id"][at] = self._ids[self._start[at] + typical]
            yield at, batch


def _of_questions(batch: Batch) -> tuple[dict[str, Any], dict[str, Any], Ints]:
    """Return what is known of each sample of a question and of the question, and the most typical sample."""
    n, status = batch.n_samples, batch.status[:, batch.start :]
    groups = meanings(batch)
    orders = order_dependence(batch.equivalent("content"))
    likeness = (batch.graph("jaccard") + batch.graph("rouge_l")) / 2
    total = likeness.sum(axis=2)
    # Of the largest meaning.
    typical = np.argmax(np.where(groups.numbers == 1, total, -1), axis=1)
    exact, in_largest = batch.equivalent("exact"), groups.baseline_size == groups.sizes[:, 0]
    of_samples = {
        "status": status,
        "meaning": groups.numbers,
        "n_same": exact.sum(axis=2),
        "agreement": (total - 1) / (n - 1) if n > 1 else math.nan,
        "is_consensus": np.arange(n) == typical[:, None],
    }
    of_questions = {
        "n_samples": n,
        "n_distinct": number_of_semantic_sets(batch.clusters("exact")),
        "n_refused": (status == "abstained").sum(axis=1),
        "n_empty": (status == "empty").sum(axis=1),
        "n_meanings": (groups.sizes > 0).sum(axis=1),
        "meanings_low": orders.low,
        "meanings_high": orders.high,
        "meaning_share": groups.sizes[:, 0] / n if n > 1 else math.nan,
        "entropy_normalised": discrete_semantic_entropy(groups.numbers) / math.log(n) if n > 1 else math.nan,
        "baseline_in_largest": np.where(batch.status[:, 0] == "empty", None, in_largest.astype(object)),
        "differs_by_chance": groups.differs_by_chance,
    }
    return of_samples, of_questions, typical
