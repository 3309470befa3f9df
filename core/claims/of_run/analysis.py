"""From a run's tables of claims to states, verdicts, grounding and quadrants: all questions at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from core.claims import rafe
from core.claims.known import DEFAULT_SUPPORT
from core.claims.matrix import Bools
from core.claims.of_run.answer_claims import AnswerClaims, answer_claims, claim_spans, judges_of
from core.claims.of_run.cells import Cells, Ints, cells_of
from core.claims.of_run.questions import SILENT, question_frame, sought
from core.claims.of_run.ragchecker_run import ragchecker_frame
from core.claims.of_run.removals import KNOWN, REMOVED, Removals
from core.claims.of_run.rows import cell_frame
from core.claims.of_run.scores import claim_scores, joint_rows, passage_scores
from core.claims.quadrants import UNDEFINED, quadrants
from core.claims.ragchecker import ragchecker_means
from core.claims.types import Floats
from core.errors import InputError
from core.influence.analysis import InfluenceAnalysis
from core.run import Run
from core.stats import mean_in_unit

__all__ = ["AnswerClaims", "ClaimsAnalysis", "analyse_claims"]

_FIRST = ("relevant", "state", "verdict", "uncertainty", "support_maximum", "any_support")
_COUNTS = ("n_supporting", "n_passages", "n_unscored")


@dataclass(frozen=True, eq=False)
class ClaimsAnalysis:
    """Claims and evidence of every answer of a run, for one threshold.

    Attributes
    ----------
    queries : DataFrame
        One row per question, in the run's order: ``query_id, question, answer_status``; ``n_claims`` of the
        answer and of them ``n_supported, n_not_supported, n_irrelevant, n_unscored``, which add up to it;
        ``n_relevant``; ``n_joint`` of the supported, by pairs of passages only; ``n_cells`` of the relevant
        claims and of them ``n_cells_unscored``; ``grounding`` with ``grounding_n`` claims it rests on and
        ``grounding_n_left_out``; ``mean_uncertainty`` with ``mean_uncertainty_n``; ``reason`` why grounding
        is undefined (a key of `core.claims.definitions.REASONS`), missing where it is defined.
    threshold : float
        From this probability on a passage supports a claim.
    sought : bool
        Whether claims were looked for at all.
    judge : str or None
        Who judged the cells; None where nobody did.
    """

    queries: pd.DataFrame
    threshold: float
    sought: bool
    judge: str | None
    run: Run = field(repr=False)
    influence: InfluenceAnalysis = field(repr=False)
    cells: Cells = field(repr=False)
    scores: pd.DataFrame = field(repr=False)
    removals: Removals = field(repr=False)

    def at(self, threshold: float) -> ClaimsAnalysis:
        """Return the same claims at another threshold; nothing that does not depend on it is done again."""
        return _analysed(self.run, self.influence, threshold, self.cells, self.removals)

    @property
    def n_with_claims(self) -> int:
        """Number of answers with claims."""
        return int((self.queries["n_claims"] > 0).sum())

    @property
    def n_verdicts_changed(self) -> int:
        """Number of claims whose verdict in the file is not what the file's own cells say."""
        return int(self.scores["changed"].to_numpy()[self.cells.answer].sum())

    @property
    def n_verdicts_from_file(self) -> int:
        """Number of claims without any cell, whose verdict is the file's."""
        return int(self.scores["from_file"].to_numpy()[self.cells.answer].sum())

    @cached_property
    def claims(self) -> pd.DataFrame:
        """One row per claim of an answer, by question: its state, verdict, scores, place and removals.

        ``query_id, claim_id, text, relevant, state`` (of ``CLAIM_STATES``), ``verdict, uncertainty,
        support_maximum, any_support, n_supporting, n_passages, n_unscored, best_passage_id, joint``;
        ``n_removed`` of ``n_removals`` passages whose removal changes the claim or makes it go (missing where
        none was removed); ``start, end`` of its first place, ``added, dropped``.
        """
        cells, own = self.cells, np.flatnonzero(self.cells.answer)
        table, scores = cells.claims.iloc[own].reset_index(drop=True), self.scores.iloc[own]
        frame = table[["query_id", "claim_id", "text"]].copy()
        for name in (*_FIRST, *_COUNTS):
            frame[name] = scores[name].array
        frame["best_passage_id"] = self._best_passages[own]
        frame["joint"] = scores["joint"].array
        removed, known = (
            np.bincount(cells.claim_of_cell, chosen[self.removals.codes], len(cells.claims))[own]
            for chosen in (REMOVED, KNOWN)
        )
        frame["n_removed"] = _counted(removed, known > 0)
        frame["n_removals"] = known.astype(np.int64)
        answers = self.run.queries["answer"].astype("object").to_numpy()[cells.query[own]]
        places = claim_spans(table, [a if isinstance(a, str) else None for a in answers])
        for side, name in enumerate(("start", "end")):
            frame[name] = pd.array([spans[0][side] if spans else None for spans in places], dtype="Int64")
        return frame.assign(added=table["added"], dropped=table["dropped"])

    @cached_property
    def passages(self) -> pd.DataFrame:
        """One row per passage, in the run's order: what it supports, what it changes, and both together.

        ``query_id, passage_id, retrieval_rank``; ``importance``, its mean support for the relevant claims;
        ``support``, the best; ``n_supported`` claims; ``n_removed`` relevant claims that change or go without
        it (missing where that is not known); ``influence, above_noise`` and the ``quadrant``.
        """
        n, cells, scores = len(self.run.passages), self.cells, self._passage_scores
        relevant = (self.scores["relevant"].to_numpy() & cells.answer)[cells.claim_of_cell]
        removed, known = (
            np.bincount(cells.passage_of_cell, chosen[self.removals.codes] & relevant, n)
            for chosen in (REMOVED, KNOWN)
        )
        frame = self.run.passages[["query_id", "passage_id", "retrieval_rank"]].copy()
        return frame.assign(
            importance=scores["importance"],
            support=scores["support"],
            n_supported=_counted(scores["n_supported"], scores["n_claims"] > 0),
            n_removed=_counted(removed, known > 0),
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
            if self.sought
            else np.full(len(passages), UNDEFINED, dtype=object)
        )
        return pd.Series(found, dtype="str")

    @cached_property
    def unsupported(self) -> pd.DataFrame:
        """The relevant claims that no passage supports, to be read first: ``claims`` and ``question``.

        Answers with the most such claims come first, among equals those with the lowest grounding, then the
        run's order; within an answer the claim that the passages come least near to.
        """
        frame = self.claims[self.claims["verdict"] == rafe.NOT_SUPPORTED]
        row = np.asarray(pd.Index(self.queries["query_id"]).get_indexer(frame["query_id"]), dtype=np.int64)
        of_answer = self.queries.iloc[row]
        order = np.lexsort(
            (
                frame["support_maximum"].to_numpy(),
                row,
                of_answer["grounding"].to_numpy(),
                -of_answer["n_not_supported"].to_numpy(),
            )
        )
        return frame.assign(question=of_answer["question"].array).iloc[order].reset_index(drop=True)

    @cached_property
    def ragchecker(self) -> pd.DataFrame:
        """One row per question: ``query_id``, RAGChecker's metrics, and ``reason``.

        ``reason`` says why the first metric without a value has none, and is missing where all are defined.
        """
        silent = self.queries["answer_status"].isin(SILENT).to_numpy(dtype=bool)
        return ragchecker_frame(self.run, self.cells, self.scores, silent, self.threshold)

    @cached_property
    def ragchecker_means(self) -> pd.DataFrame:
        """One row per metric: ``metric, mean, n, n_undefined``, over all questions of the run."""
        return ragchecker_means(list(self.ragchecker.itertuples()))

    def f1_curve(self, ks: Sequence[float] = tuple(range(1, 21))) -> pd.DataFrame:
        """Return the mean F1@K of the answers for every K.

        Returns
        -------
        DataFrame
            ``k, mean, low, high, n, n_undefined``: over the answers whose grounding is defined, with the 95 %
            interval of `mean_in_unit`.
        """
        defined = self.queries[self.queries["reason"].isna()]
        values = rafe.f1_curve(defined["n_supported"], defined["n_not_supported"], ks)
        rows = []
        for k, column in zip(ks, values.T, strict=True):
            rows.append((k, *mean_in_unit(column), column.size))
        frame = pd.DataFrame(rows, columns=["k", "mean", "low", "high", "n"])
        return frame.assign(n_undefined=len(self.queries) - len(defined))

    def answer(self, query_id: str) -> AnswerClaims:
        """Return everything known of the claims of one answer; InputError where there is no such question."""
        row = int(pd.Index(self.queries["query_id"]).get_indexer([query_id])[0])
        if row < 0:
            raise InputError(f"query_id must be a question of the run, got {query_id!r}.")
        reason = self.queries["reason"].iloc[row]
        return answer_claims(
            self.run,
            self.cells,
            self.scores,
            self._joint,
            row,
            reason if isinstance(reason, str) else None,
            self.threshold,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per claim of an answer and passage; a claim without passages has one row, too.

        ``query_id, question, claim_id, claim, relevant, state, verdict, uncertainty, support_maximum,
        any_support, joint, passage_id, retrieval_rank, title, probability, agreement, judge, sentence``,
        ``causal`` (what became of the claim without the passage), ``influence, above_noise, quadrant``.
        """
        return cell_frame(self.run, self.cells, self.claims, self.passages, self.removals.codes)

    @cached_property
    def _joint(self) -> list[tuple[int, int, int, float]]:
        return joint_rows(self.run, self.cells, self.threshold)

    @cached_property
    def _passage_scores(self) -> Mapping[str, Floats]:
        relevant = self.scores["relevant"].to_numpy()
        return passage_scores(self.cells, relevant, len(self.run.passages), self.threshold)

    @property
    def _best_passages(self) -> np.ndarray:
        best, first = self.scores["best"].to_numpy(), self.cells.passage_bounds[self.cells.query]
        ids = self.run.passages["passage_id"].astype("object").to_numpy()[self.cells.passages]
        found = np.full(best.size, None, dtype=object)
        found[best >= 0] = ids[(first + best)[best >= 0]]
        return found


def analyse_claims(
    run: Run, influence: InfluenceAnalysis, threshold: float = DEFAULT_SUPPORT
) -> ClaimsAnalysis:
    """Compute states, verdicts, grounding, importance and quadrants of all claims of a run.

    Parameters
    ----------
    run : Run
        Any run; questions without claims come out undefined, with the reason.
    influence : InfluenceAnalysis
        What `core.influence.analyse` made of the same run: the other axis of the quadrants.
    threshold : float
        In (0, 1]; from this probability on a passage supports a claim.

    Returns
    -------
    ClaimsAnalysis
        Frozen. Everything follows from the cells: a verdict that a file reports is used only for a claim
        without any cell (``n_verdicts_from_file``), and counted where its cells say otherwise
        (``n_verdicts_changed``). Two passages that support a claim together make it SUPPORTED. Answers that
        are empty, in error or abstentions have no grounding, whatever claims a file has for them.

    Raises
    ------
    ValueError
        ``threshold`` is out of range.

    Notes
    -----
    Cost: no LLM calls; 10,000 questions with 3 claims and 10 passages take about a second. What became of
    claims without each passage is worked out when it is first asked for, and takes longer.
    """
    cells = cells_of(run)
    return _analysed(run, influence, threshold, cells, Removals(run, cells))


def _analysed(
    run: Run, influence: InfluenceAnalysis, threshold: float, cells: Cells, removals: Removals
) -> ClaimsAnalysis:
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie above 0 and not above 1, got {threshold}.")
    scores = claim_scores(run, cells, threshold)
    judge = judges_of(run, cells.support) or None
    queries = question_frame(run, cells, scores)
    return ClaimsAnalysis(queries, threshold, sought(run), judge, run, influence, cells, scores, removals)


def _counted(counts: Floats | Ints, known: Bools) -> pd.Series:
    """Whole numbers, missing where nothing is known."""
    found = pd.Series(pd.array(counts.astype(np.int64), dtype="Int64"))
    return found.where(pd.Series(known))
