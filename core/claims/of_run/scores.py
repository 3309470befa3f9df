"""States, verdicts and scores of all claims and passages of a run, from its cells."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from core.claims import rafe
from core.claims.decomposition.relevance import is_relevant
from core.claims.known import decided
from core.claims.matrix import (
    IRRELEVANT,
    STATES,
    UNSCORED,
    Bools,
    any_support,
    claim_states,
    claim_uncertainty,
    support_maximum,
)
from core.claims.of_run.cells import Cells, rows_of
from core.claims.types import Floats
from core.run import Run

JOINT = "joint"
CLAIM_STATES = (*STATES[:2], JOINT, *STATES[2:])


def relevance(claims: pd.DataFrame, answer: Bools) -> Bools:
    """Tell which claims there is something to support in.

    What the table says counts; where it says nothing, claims of an answer that are refusals or talk about the
    answer (`core.claims.decomposition.relevance.is_relevant`) are not relevant, and every other claim is.
    """
    relevant = claims["relevance"].ne("IRRELEVANT").fillna(True).to_numpy(dtype=bool).copy()
    unsaid = np.flatnonzero(claims["relevance"].isna().to_numpy() & answer)
    texts = claims["text"].iloc[unsaid].to_list()
    judged = {text: is_relevant(text) for text in dict.fromkeys(texts)}
    relevant[unsaid] = [judged[text] for text in texts]
    return relevant


def joint_claims(run: Run, cells: Cells, threshold: float) -> Bools:
    """Tell which claims two passages of their question are known to support together."""
    joint = np.zeros(len(cells.claims), dtype=bool)
    for claim, *_ in joint_rows(run, cells, threshold):
        joint[claim] = True
    return joint


def joint_rows(run: Run, cells: Cells, threshold: float) -> list[tuple[int, int, int, float]]:
    """Return (claim, place, place, probability) of every pair that supports a claim, in the table's order.

    Places are those of the passages in their question. Pairs with a passage that is not there, or one and the
    same passage twice, say nothing.
    """
    table = run["joint_support"]
    if not len(table) or not len(cells.claims):
        return []
    wanted = np.asarray(pd.Index(run.queries["query_id"]).get_indexer(table["query_id"]), dtype=np.int64)
    claim = rows_of(cells.query, cells.claims["claim_id"], wanted, table["claim_id"])
    of_passage = np.repeat(np.arange(len(run.queries)), cells.n_passages)
    ids = run.passages["passage_id"].iloc[cells.passages]
    pair = [rows_of(of_passage, ids, wanted, table[c]) for c in ("passage_id", "second_passage_id")]
    p = table["probability"].to_numpy(dtype=np.float64, na_value=np.nan)
    good = (claim >= 0) & (pair[0] >= 0) & (pair[1] >= 0) & (pair[0] != pair[1])
    rows = np.flatnonzero(good & (p >= threshold) & (p <= 1))
    first = cells.passage_bounds[wanted]
    places = np.sort(np.stack(pair, axis=1) - first[:, None], axis=1)[rows].tolist()
    return [(int(c), i, j, float(q)) for c, (i, j), q in zip(claim[rows], places, p[rows], strict=True)]


def claim_scores(run: Run, cells: Cells, threshold: float) -> pd.DataFrame:
    """Return the scores of every claim, of answers and references alike, in the order of the layout.

    Returns
    -------
    DataFrame
        ``relevant, state, verdict, uncertainty, support_maximum, any_support, n_supporting, n_passages,
        n_unscored, best`` (place of the passage with the best support, -1 where none is scored), ``joint``,
        ``from_file`` (the verdict is the file's, since there are no cells) and ``changed`` (the file's
        verdict is not that of the cells).

    Notes
    -----
    A claim that no passage supports alone but two do together is SUPPORTED, in a state of its own.
    """
    n = len(cells.claims)
    relevant = relevance(cells.claims, cells.answer)
    numbers = {name: np.full(n, np.nan) for name in ("uncertainty", "support_maximum", "any_support")}
    counts = {name: np.zeros(n, dtype=np.int64) for name in ("n_supporting", "n_unscored")}
    best = np.full(n, -1, dtype=np.int64)
    state, verdict = np.full(n, UNSCORED, dtype=object), np.full(n, rafe.UNSCORED, dtype=object)
    for rows, m in cells.by_width():
        numbers["uncertainty"][rows] = claim_uncertainty(m)
        numbers["support_maximum"][rows] = support_maximum(m)
        numbers["any_support"][rows] = any_support(m)
        counts["n_supporting"][rows] = (decided(m, threshold) == 1).sum(axis=1)
        counts["n_unscored"][rows] = np.isnan(m).sum(axis=1)
        state[rows] = claim_states(m, threshold)
        verdict[rows] = rafe.verdicts(m, threshold=threshold)
        if m.shape[1]:
            top = np.argmax(np.where(np.isnan(m), -1.0, m), axis=1)
            best[rows] = np.where(np.nan_to_num(m).max(axis=1) > 0, top, -1)
    joint = joint_claims(run, cells, threshold) & relevant & (counts["n_supporting"] == 0)
    reported = cells.claims["verdict"].where(cells.claims["verdict"].isin(rafe.VERDICTS[:2]), None)
    has_cells = np.bincount(cells.claim_of_cell, cells.support >= 0, n) > 0
    given = reported.notna().to_numpy()
    from_file = given & ~has_cells & relevant & ~joint
    own = verdict.copy()  # by single passages
    verdict[joint], state[joint] = rafe.SUPPORTED, JOINT
    verdict[from_file] = reported.to_numpy(dtype=object)[from_file]
    verdict[~relevant], state[~relevant] = rafe.IRRELEVANT, IRRELEVANT
    said = reported.fillna("").to_numpy(dtype=object)
    changed = given & has_cells & relevant & (own != rafe.UNSCORED) & (said != own) & (said != verdict)
    return pd.DataFrame(
        {
            "relevant": relevant,
            "state": pd.Series(state, dtype="str"),
            "verdict": pd.Series(verdict, dtype="str"),
            **numbers,
            "n_supporting": counts["n_supporting"],
            "n_passages": cells.width,
            "n_unscored": counts["n_unscored"],
            "best": best,
            "joint": joint,
            "from_file": from_file,
            "changed": changed,
        }
    )


def passage_scores(cells: Cells, relevant: Bools, n_passages: int, threshold: float) -> Mapping[str, Floats]:
    """Return ``importance, support, supports, n_supported, n_claims`` of every passage, in the run's order.

    Over the relevant claims of the answer. ``importance`` is their mean support and ``support`` the best,
    both of the scored ones; ``supports`` is 1, 0 or NaN where an unscored cell leaves it open; ``n_claims``
    counts the relevant claims, scored or not.
    """
    chosen = (relevant & cells.answer)[cells.claim_of_cell]
    passage, p = cells.passage_of_cell[chosen], cells.probability[chosen]
    scored = ~np.isnan(p)
    n_claims = np.bincount(passage, minlength=n_passages)
    n_scored = np.bincount(passage, scored, n_passages)
    best = np.full(n_passages, np.nan)
    np.fmax.at(best, passage, p)
    with np.errstate(invalid="ignore"):
        importance = np.bincount(passage, np.nan_to_num(p), n_passages) / n_scored
    open_ = (n_scored < n_claims) | (n_claims == 0)
    return {
        "importance": importance,
        "support": best,
        "supports": np.where(best >= threshold, 1.0, np.where(open_, np.nan, 0.0)),
        "n_supported": np.bincount(passage, np.nan_to_num(p) >= threshold, n_passages),
        "n_claims": n_claims.astype(np.float64),
    }
