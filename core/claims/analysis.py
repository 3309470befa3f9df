"""From a run's tables of claims to states, verdicts, grounding and quadrants: all questions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.claims import rafe
from core.claims.answer import AnswerClaims, answer_claims, claim_spans, judges_of, sentences_of
from core.claims.causal import removal_matrix
from core.claims.layout import JointPair, MatrixLayout, ablated_answers, layout_of
from core.claims.matrix import DEFAULT_SUPPORT
from core.claims.quadrants import UNDEFINED, quadrants
from core.claims.ragchecker import METRICS
from core.claims.scores import (
    SILENT,
    claim_scores,
    passage_scores,
    question_table,
    ragchecker_table,
    was_extracted,
)
from core.claims.types import Bools, Floats, Ints, Labels
from core.errors import InputError
from core.rows import places_of
from core.run import Run
from core.stats import mean_in_unit

_SCORES = ["relevant", "state", "verdict", "uncertainty", "support_maximum", "any_support"]
_COUNTS = ["n_supporting", "n_passages", "n_unscored"]


class PassageInfluence(Protocol):
    """What claims need of the diagnostic *influence*."""

    @property
    def passages(self) -> pd.DataFrame:
        """One row per passage, in the run's order, with ``influence`` and ``above_noise``."""


@dataclass(frozen=True, eq=False)
class ClaimsAnalysis:
    """Claims and evidence of every answer of a run, for one threshold.

    ``queries`` has one row per question, in the run's order. ``n_claims`` of the answer are ``n_supported +
    n_not_supported + n_irrelevant + n_unscored``; ``n_joint`` of the supported are so by pairs of passages
    only; ``n_cells`` are of the relevant claims; ``f1_at_k`` is at the usual K; ``reason`` (of
    `core.claims.definitions.REASONS`) is missing where grounding is defined.
    """

    queries: pd.DataFrame
    threshold: float  # from this probability on a passage supports a claim
    extracted: bool  # whether claims were extracted from any answer
    judge: str | None  # who verified the cells
    influence: PassageInfluence = field(repr=False)
    layout: MatrixLayout = field(repr=False)
    scores: pd.DataFrame = field(repr=False)  # `core.claims.scores.claim_scores`, in the layout's order
    pairs: list[JointPair] = field(repr=False)  # those of ``layout.pairs`` that reach the threshold

    @property
    def run(self) -> Run:
        """The run."""
        return self.layout.run

    @property
    def n_with_claims(self) -> int:
        """Number of answers with claims."""
        return int((self.queries["n_claims"] > 0).sum())

    @property
    def n_verdicts_changed(self) -> int:
        """Number of claims whose verdict in the file is not what the file's own cells say."""
        return int(self.scores["changed"].to_numpy()[self.layout.of_answer].sum())

    @property
    def n_verdicts_from_file(self) -> int:
        """Number of claims without any cell, whose verdict is the file's."""
        return int(self.scores["from_file"].to_numpy()[self.layout.of_answer].sum())

    @cached_property
    def claims(self) -> pd.DataFrame:
        """One row per claim of an answer, by question: state, verdict, scores, place, leave-one-out effects.

        ``n_removed`` of ``n_removals`` passages are those without which the claim changes or disappears
        (missing where none was removed); ``start, end`` is its first place; ``planted`` (of
        `core.schema.PLANTED`) is missing where nobody knows, ``planted_error`` whether that is an error.
        """
        layout, own = self.layout, np.flatnonzero(self.layout.of_answer)
        effects = removal_matrix(layout.effects)
        removed, known = (
            np.bincount(layout.claim_of_cell, counted, len(layout.claims))[own]
            for counted in (effects == 1, ~np.isnan(effects))
        )
        return self._claims(own, removed, known)

    def claims_of(self, query_id: str) -> pd.DataFrame:
        """Return the rows of `claims` of one answer, without those of all others, which take long."""
        query, layout = self._row(query_id), self.layout
        own, cells = layout.matrix(query, of_answer=True)
        removed = np.full(cells.shape, np.nan)
        if cells.size:
            without = ablated_answers(self.run.passages.iloc[layout.passages_of(query)])
            removed = removal_matrix(layout.effects_of(query, without))
        return self._claims(own, (removed == 1).sum(axis=1), (~np.isnan(removed)).sum(axis=1))

    def _claims(self, own: Ints, removed: npt.NDArray[Any], known: npt.NDArray[Any]) -> pd.DataFrame:
        layout = self.layout
        table, scores = layout.claims.iloc[own].reset_index(drop=True), self.scores.iloc[own]
        frame = table[["query_id", "claim_id", "text"]].copy()
        for name in _SCORES + _COUNTS:
            frame[name] = scores[name].array
        frame["best_passage_id"] = self._best_passages(own)
        frame["joint"] = scores["joint"].array
        frame["n_removed"] = _counted(removed, known > 0)
        frame["n_removals"] = known.astype(np.int64)
        answers = self.run.queries["answer"].astype("object").to_numpy()[layout.query[own]]
        places = claim_spans(table, [a if isinstance(a, str) else None for a in answers])
        for side, name in enumerate(("start", "end")):
            frame[name] = pd.array([spans[0][side] if spans else None for spans in places], dtype="Int64")
        planted = self.run["planted_claims"].set_index(["query_id", "claim_id"])["planted"]
        key = pd.MultiIndex.from_frame(frame[["query_id", "claim_id"]])
        frame["planted"] = planted.reindex(key).array
        error = ~frame["planted"].isin(["none", "two_passages"]).astype("boolean")
        return frame.assign(
            added=table["added"],
            dropped=table["dropped"],
            planted_error=error.where(frame["planted"].notna(), pd.NA),
        )

    @cached_property
    def passages(self) -> pd.DataFrame:
        """One row per passage, in the run's order: its influence, its best support for a relevant claim."""
        scores = self._passage_scores
        frame = self.run.passages[["query_id", "passage_id", "retrieval_rank"]].copy()
        return frame.assign(
            support=scores["support"],
            n_supported=_counted(scores["n_supported"], scores["n_supported"].notna()),
            influence=self.influence.passages["influence"].array,
            above_noise=self.influence.passages["above_noise"].array,
            quadrant=self.quadrant,
        )

    @cached_property
    def quadrant(self) -> pd.Series:
        """Quadrant of every passage, in the run's order."""
        passages = self.influence.passages
        found = (
            quadrants(passages["influence"], passages["above_noise"], self._passage_scores["supports"])
            if self.extracted
            else np.full(len(passages), UNDEFINED, dtype=object)
        )
        return pd.Series(found, dtype="str")

    @cached_property
    def unsupported(self) -> pd.DataFrame:
        """The relevant claims that no passage supports: ``claims`` and ``question``, to be read first.

        Answers with the most of them come first, of equals that of the lowest grounding, then the run's
        order; within an answer the claim that the passages come least near to.
        """
        chosen = np.flatnonzero(self.claims["verdict"] == rafe.NOT_SUPPORTED)
        frame = self.claims.iloc[chosen]
        query = self.layout.query[self.layout.of_answer][chosen]
        order = self._worst_first(query, frame["support_maximum"].to_numpy())
        questions = self.queries["question"].iloc[query].array
        return frame.assign(question=questions).iloc[order].reset_index(drop=True)

    @cached_property
    def reading_order(self) -> Ints:
        """The answers' claims as places in ``layout``: answers as in `unsupported`, then the others."""
        own = np.flatnonzero(self.layout.of_answer)
        return own[self._worst_first(self.layout.query[own], own)]

    def _worst_first(self, query: Ints, within: Ints | Floats) -> Ints:
        """Order claims by their answers, the worst first, and within an answer."""
        asked = self.queries.iloc[query]
        worst = asked["grounding"].to_numpy(), -asked["n_not_supported"].to_numpy()
        return np.lexsort((within, query, *worst))

    @cached_property
    def ragchecker(self) -> pd.DataFrame:
        """RAGChecker's metrics of each question, and ``reason``: why the first undefined one is so."""
        silent = self.queries["answer_status"].isin(SILENT).to_numpy(dtype=bool)
        return ragchecker_table(self.layout, self.scores["relevant"].to_numpy(), silent, self.threshold)

    @cached_property
    def ragchecker_means(self) -> pd.DataFrame:
        """One row per metric: ``metric, mean, n, n_undefined``, over all questions of the run."""
        values = self.ragchecker[list(METRICS)]
        n = values.notna().sum().to_numpy()
        frame = pd.DataFrame({"metric": METRICS, "mean": values.mean().to_numpy(), "n": n})
        return frame.assign(n_undefined=len(values) - n)

    def f1_curve(self, ks: Sequence[float]) -> pd.DataFrame:
        """Return mean F1@K with its interval, over the answers whose grounding is defined, for every K."""
        defined = self.queries[self.queries["reason"].isna()]
        values = rafe.f1_curve(defined["n_supported"], defined["n_not_supported"], ks)
        rows = [(k, *mean_in_unit(column), column.size) for k, column in zip(ks, values.T, strict=True)]
        frame = pd.DataFrame(rows, columns=["k", "mean", "low", "high", "n"])
        return frame.assign(n_undefined=len(self.queries) - len(defined))

    def answer(self, query_id: str) -> AnswerClaims:
        """Return everything known of the claims of one answer; InputError where there is no such question."""
        return answer_claims(self, self._row(query_id))

    def _row(self, query_id: str) -> int:
        found = places_of(self.queries, query_id)
        if not found.size:
            raise InputError(f"query_id must be a question of the run, got {query_id!r}.")
        return int(found[0])

    def to_frame(self) -> pd.DataFrame:
        """Return one row per claim of an answer and passage; a claim without passages has one, too."""
        run, layout = self.run, self.layout
        own = np.flatnonzero(layout.of_answer)
        n = np.maximum(layout.width[own], 1)  # a claim without passages is still a claim
        claim = np.repeat(np.arange(own.size), n)
        place = np.arange(claim.size) - np.repeat(np.cumsum(n) - n, n)
        cell = np.where(layout.width[own][claim] > 0, layout.start[own][claim] + place, -1)
        passage, support = (
            np.append(values, -1)[cell] for values in (layout.passage_of_cell, layout.support)
        )
        said = self.claims.iloc[claim]
        frame = pd.DataFrame(
            {
                "query_id": said["query_id"].array,
                "question": run.queries["question"].iloc[layout.query[own][claim]].array,
                "claim_id": said["claim_id"].array,
                "claim": said["text"].array,
                **{name: said[name].array for name in [*_SCORES, "joint"]},
            }
        )
        # Row -1 of `reindex` is a row of missing values.
        of_passage = run.passages[["passage_id", "retrieval_rank", "title"]].reindex(passage)
        of_cell = run["support"][["probability", "agreement", "judge"]].reindex(support)
        frame = frame.assign(**{name: part[name].array for part in (of_passage, of_cell) for name in part})
        # What is no probability was not counted as one.
        frame["probability"] = np.append(layout.probability, np.nan)[cell]
        frame["sentence"] = pd.Series(sentences_of(run, support, passage).tolist(), dtype="str")
        frame["causal"] = pd.Series(layout.effects, dtype="str").reindex(cell).array
        shown = self.passages[["influence", "above_noise", "quadrant"]].reindex(passage)
        return frame.assign(**{name: shown[name].array for name in shown})

    @cached_property
    def _passage_scores(self) -> pd.DataFrame:
        return passage_scores(self.layout, self.scores["relevant"].to_numpy(), self.threshold)

    def _best_passages(self, claims: Ints) -> Labels:
        best = self.scores["best"].to_numpy()[claims]
        first = self.layout.passage_bounds[self.layout.query[claims]]
        rows = self.layout.passages[(first + best)[best >= 0]]
        found = np.full(best.size, None, dtype=object)
        found[best >= 0] = self.run.passages["passage_id"].iloc[rows].astype("object").to_numpy()
        return found


def analyse_claims(
    run: Run | MatrixLayout, influence: PassageInfluence, threshold: float = DEFAULT_SUPPORT
) -> ClaimsAnalysis:
    """Compute states, verdicts, grounding, importance and quadrants of all claims of a run or its layout.

    Everything follows from the cells: a verdict of a file is used only for a claim without any cell, and
    counted where its cells say otherwise. Two passages that support a claim together make it SUPPORTED.
    Answers that are empty, in error or abstentions have no grounding, whatever claims a file has for them.
    ValueError where ``threshold`` is not in (0, 1].

    Cost: no LLM calls; 10,000 questions with 3 claims and 10 passages take about a second; leave-one-out
    effects, when they are first asked for, take longer.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie above 0 and not above 1, got {threshold}.")
    layout = layout_of(run) if isinstance(run, Run) else run
    pairs = [pair for pair in layout.pairs if pair[3] >= threshold]
    scores = claim_scores(layout, pairs, threshold)
    judge = judges_of(layout.run, layout.support) or None
    queries = question_table(layout, scores)
    extracted = was_extracted(layout.run)
    return ClaimsAnalysis(queries, threshold, extracted, judge, influence, layout, scores, pairs)


def _counted(counts: Floats | Ints | pd.Series, known: Bools | pd.Series) -> pd.Series:
    """Return whole numbers, missing where nothing is known."""
    found = pd.Series(counts).where(known)
    return found.astype("Int64")
