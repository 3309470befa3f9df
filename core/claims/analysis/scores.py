"""States, verdicts and scores of all claims and passages of a run, from its cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from core.claims import rafe
from core.claims.analysis.layout import JointPair, MatrixLayout
from core.claims.decomposition.relevance import is_relevant
from core.claims.matrix import (
    IRRELEVANT,
    JOINT,
    UNSCORED,
    any_support,
    claim_states,
    claim_uncertainty,
    support_maximum,
)
from core.claims.types import Bools


def relevance(claims: pd.DataFrame, of_answer: Bools) -> Bools:
    """Tell which claims have something to support.

    The table decides; where it is silent, an answer's refusals and talk about the answer
    (`core.claims.decomposition.relevance.is_relevant`) are not relevant, and every other claim is.
    """
    relevant = claims["relevance"].ne("IRRELEVANT").fillna(True).to_numpy(dtype=bool).copy()
    unsaid = np.flatnonzero(claims["relevance"].isna().to_numpy() & of_answer)
    texts = claims["text"].iloc[unsaid].to_list()
    judged = {text: is_relevant(text) for text in dict.fromkeys(texts)}
    relevant[unsaid] = [judged[text] for text in texts]
    return relevant


def claim_scores(layout: MatrixLayout, pairs: Sequence[JointPair], threshold: float) -> pd.DataFrame:
    """Return the scores of every claim, of answers and references alike, in the order of the layout.

    ``pairs`` are those that reach the threshold: two passages that only together support a claim make it
    SUPPORTED, in a state of its own. ``best`` is the place of the passage with the best support, -1 where
    none is scored; ``from_file``: without cells the verdict is the file's; ``changed``: the file's verdict is
    not that of the cells.
    """
    n, table = len(layout.claims), layout.claims
    relevant = relevance(table, layout.of_answer)
    numbers = {name: np.full(n, np.nan) for name in ("uncertainty", "support_maximum", "any_support")}
    counts = {name: np.zeros(n, dtype=np.int64) for name in ("n_supporting", "n_unscored")}
    best = np.full(n, -1, dtype=np.int64)
    state = np.full(n, UNSCORED, dtype=object)
    for rows, m in layout.by_width():
        numbers["uncertainty"][rows] = claim_uncertainty(m)
        numbers["support_maximum"][rows] = support_maximum(m)
        numbers["any_support"][rows] = any_support(m)
        counts["n_supporting"][rows] = (m >= threshold).sum(axis=1)
        counts["n_unscored"][rows] = np.isnan(m).sum(axis=1)
        state[rows] = claim_states(m, threshold)
        if m.shape[1]:
            top = np.argmax(np.where(np.isnan(m), -1.0, m), axis=1)
            best[rows] = np.where(np.nan_to_num(m).max(axis=1) > 0, top, -1)
    by_cells = rafe.verdicts(state)  # each passage by itself
    joint = np.isin(np.arange(n), [claim for claim, *_ in pairs]) & relevant & (counts["n_supporting"] == 0)
    state[joint], state[~relevant] = JOINT, IRRELEVANT
    verdict = rafe.verdicts(state)
    reported = table["verdict"].where(table["verdict"].isin(rafe.VERDICTS[:2]), None)
    has_cells = np.bincount(layout.claim_of_cell, layout.support >= 0, n) > 0
    given, reported = reported.notna().to_numpy() & relevant, reported.fillna("").to_numpy(dtype=object)
    from_file = given & ~has_cells & ~joint
    verdict[from_file] = reported[from_file]
    known = given & has_cells & (by_cells != rafe.UNSCORED)
    return pd.DataFrame(
        {
            "relevant": relevant,
            "state": pd.Series(state, dtype="str"),
            "verdict": pd.Series(verdict, dtype="str"),
            **numbers,
            "n_supporting": counts["n_supporting"],
            "n_passages": layout.width,
            "n_unscored": counts["n_unscored"],
            "best": best,
            "joint": joint,
            "from_file": from_file,
            "changed": known & (reported != by_cells) & (reported != verdict),
        }
    )


def passage_scores(layout: MatrixLayout, relevant: Bools, threshold: float) -> pd.DataFrame:
    """Return ``importance, support, supports, n_supported`` of every passage, in the run's order.

    Over the relevant claims of the answer: mean and best support, of the scored ones; ``supports`` is 1, 0 or
    NaN where an unscored cell leaves it open; ``n_supported`` claims is NaN without claims.
    """
    n = len(layout.run.passages)
    chosen = (relevant & layout.of_answer)[layout.claim_of_cell]
    passage, p = layout.passage_of_cell[chosen], layout.probability[chosen]
    n_claims = np.bincount(passage, minlength=n)
    n_scored = np.bincount(passage, ~np.isnan(p), n)
    best = np.full(n, np.nan)
    np.fmax.at(best, passage, p)
    with np.errstate(invalid="ignore"):
        importance = np.bincount(passage, np.nan_to_num(p), n) / n_scored
    is_open = (n_scored < n_claims) | (n_claims == 0)
    n_supported = np.bincount(passage, np.nan_to_num(p) >= threshold, n)
    return pd.DataFrame(
        {
            "importance": importance,
            "support": best,
            "supports": np.where(best >= threshold, 1.0, np.where(is_open, np.nan, 0.0)),
            "n_supported": np.where(n_claims > 0, n_supported, np.nan),
        }
    )
