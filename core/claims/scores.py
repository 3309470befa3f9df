"""Scores of all claims, passages and questions of a run, from its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from core.claims import rafe
from core.claims.decomposition.split import is_relevant
from core.claims.layout import JointPair, MatrixLayout
from core.claims.matrix import (
    IRRELEVANT,
    JOINT,
    UNSCORED,
    KnownShare,
    any_support,
    claim_states,
    claim_uncertainty,
    support_maximum,
)
from core.claims.ragchecker import METRICS, ragchecker_metrics
from core.claims.types import Bools, Floats, Ints
from core.run import Run


def relevance(claims: pd.DataFrame, of_answer: Bools) -> Bools:
    """Tell which claims have something to support: as the table says, else all but refusals and the like."""
    relevant = claims["relevance"].ne("IRRELEVANT").fillna(True).to_numpy(dtype=bool).copy()
    unsaid = np.flatnonzero(claims["relevance"].isna().to_numpy() & of_answer)
    texts = claims["text"].iloc[unsaid].to_list()
    judged = {text: is_relevant(text) for text in dict.fromkeys(texts)}
    relevant[unsaid] = [judged[text] for text in texts]
    return relevant


def claim_scores(layout: MatrixLayout, pairs: Sequence[JointPair], threshold: float) -> pd.DataFrame:
    """Return the scores of every claim, of answers and references alike, in the order of the layout.

    ``pairs`` reach the threshold: two passages that only together support a claim make it SUPPORTED, in a
    state of its own. ``best`` is the place of the best passage, -1 where none is scored; ``from_file``:
    without cells the verdict is the file's; ``changed``: that is not the verdict of the cells.
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
            known = np.nan_to_num(m)
            best[rows] = np.where(known.max(axis=1) > 0, known.argmax(axis=1), -1)
    by_cells = rafe.verdicts(state)  # each passage by itself
    joint = np.isin(np.arange(n), [claim for claim, *_ in pairs]) & relevant & (counts["n_supporting"] == 0)
    state[joint], state[~relevant] = JOINT, IRRELEVANT
    verdict = rafe.verdicts(state)
    reported = table["verdict"].where(table["verdict"].isin(rafe.VERDICTS[:2]), None)
    has_cells = np.bincount(layout.claim_of_cell, layout.support >= 0, n) > 0
    given, reported = reported.notna().to_numpy() & relevant, reported.fillna("").to_numpy(dtype=object)
    from_file = given & ~has_cells & ~joint
    verdict[from_file] = reported[from_file]
    comparable = given & has_cells & (by_cells != rafe.UNSCORED)
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
            "changed": comparable & (reported != by_cells) & (reported != verdict),
        }
    )


def passage_scores(layout: MatrixLayout, relevant: Bools, threshold: float) -> pd.DataFrame:
    """Return the passages' support of relevant claims; ``supports`` is NaN where a cell leaves it open."""
    n = len(layout.run.passages)
    chosen = (relevant & layout.of_answer)[layout.claim_of_cell]
    passage, p = layout.passage_of_cell[chosen], layout.probability[chosen]
    n_claims = np.bincount(passage, minlength=n)
    n_scored = np.bincount(passage, ~np.isnan(p), n)
    best = np.full(n, np.nan)
    np.fmax.at(best, passage, p)
    is_open = (n_scored < n_claims) | (n_claims == 0)
    n_supported = np.bincount(passage, np.nan_to_num(p) >= threshold, n)
    return pd.DataFrame(
        {
            "support": best,
            "supports": np.where(best >= threshold, 1.0, np.where(is_open, np.nan, 0.0)),
            "n_supported": np.where(n_claims > 0, n_supported, np.nan),
        }
    )


# Such answers have no grounding, whatever claims a file has for them.
SILENT = ("error", "empty", "abstained")
_COUNTED = {
    "n_supported": rafe.SUPPORTED,
    "n_not_supported": rafe.NOT_SUPPORTED,
    "n_irrelevant": rafe.IRRELEVANT,
    "n_unscored": rafe.UNSCORED,
}


def step_facts(run: Run) -> Mapping[str, Any] | None:
    """Return what the step recorded in the manifest; None where it never ran on the run."""
    facts: Mapping[str, Any] | None = run.manifest.get("steps", {}).get("claims")
    return facts


def was_extracted(run: Run) -> bool:
    """Tell whether claims were extracted from any answer of a run."""
    return step_facts(run) is not None or len(run["claims"]) > 0


def question_table(layout: MatrixLayout, scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row per question, as `ClaimsAnalysis.queries`, from the scores of `claim_scores`."""
    run, n = layout.run, len(layout.run.queries)
    of_answer, relevant = layout.of_answer, scores["relevant"].to_numpy()
    verdict, mine = scores["verdict"].to_numpy(dtype=object), of_answer & relevant

    def count(chosen: Bools, weights: Floats | Ints | None = None) -> Floats | Ints:
        of_claims = None if weights is None else weights[chosen]
        return np.bincount(layout.query[chosen], of_claims, n)

    frame = run.queries[["query_id", "question", "answer_status"]].copy()
    frame["n_claims"] = count(of_answer)
    frame["n_relevant"] = count(mine)
    for name, value in _COUNTED.items():
        frame[name] = count(of_answer & (verdict == value))
    frame["n_joint"] = count(of_answer & scores["joint"].to_numpy())
    for name, column in (("n_cells", "n_passages"), ("n_cells_unscored", "n_unscored")):
        frame[name] = count(mine, scores[column].to_numpy()).astype(np.int64)
    reason = _reasons(run, frame, np.diff(layout.passage_bounds) > 0)
    silent = frame["answer_status"].isin(SILENT).to_numpy(dtype=bool)
    judged = (frame["n_supported"] + frame["n_not_supported"]).to_numpy()
    n_known = np.where(reason.isna(), judged, 0)
    frame["grounding"] = _ratio(frame["n_supported"].to_numpy(), n_known)
    frame["grounding_n"] = n_known
    is_known = n_known > 0
    supported, not_supported = (frame[name].where(is_known, 0) for name in ("n_supported", "n_not_supported"))
    frame["f1_at_k"] = rafe.f1_curve(supported, not_supported, [rafe.DEFAULT_K])[:, 0]
    frame["grounding_n_left_out"] = np.where(reason.isna(), frame["n_unscored"], 0)
    uncertainty = scores["uncertainty"].to_numpy()
    known = mine & ~np.isnan(uncertainty) & ~silent[layout.query]
    frame["mean_uncertainty"] = _ratio(count(known, uncertainty), count(known))
    frame["mean_uncertainty_n"] = count(known)
    return frame.assign(reason=reason)


def _reasons(run: Run, q: pd.DataFrame, has_passages: Bools) -> pd.Series:
    """Why grounding is undefined; the first that applies."""
    facts = step_facts(run)
    all_done = facts is not None and not facts.get("n_not_extracted", 0)
    done = q["query_id"].isin(run["claims"]["query_id"]) | all_done
    status = q["answer_status"]
    undecided = q["n_supported"] + q["n_not_supported"] == 0
    rules = [
        ("not_run", pd.Series(not was_extracted(run), index=q.index)),
        *((name, status.eq(name).fillna(False)) for name in SILENT),
        ("not_run", ~done),
        ("no_claims", q["n_claims"] == 0),
        ("no_relevant_claims", q["n_relevant"] == 0),
        ("no_passages", undecided & ~has_passages),
        ("unscored", undecided),
    ]
    codes = np.select(
        [mask.to_numpy(dtype=bool) for _, mask in rules], [name for name, _ in rules], default=""
    )
    return pd.Series(codes, dtype="str", index=q.index).replace("", None)


def _ratio(part: Floats | Ints, whole: Floats | Ints) -> Floats:
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=np.asarray(whole) > 0)


def ragchecker_table(layout: MatrixLayout, relevant: Bools, silent: Bools, threshold: float) -> pd.DataFrame:
    """Return one row per question: ``query_id``, the metrics (NaN where undefined) and ``reason``.

    ``silent`` answers have no claims. A claim's ``counterpart`` is its comparison with the other text:
    Entailment is yes, Neutral and Contradiction are no. A question is compared with a reference where the
    reference has claims, or any claim of the answer has a counterpart.
    """
    n = len(layout.run.queries)
    values = np.full((n, len(METRICS)), np.nan)
    reasons: list[str | None] = ["not_run"] * n
    labels = layout.claims["counterpart"]
    known = labels.isin(("Entailment", "Neutral", "Contradiction")).to_numpy(dtype=bool)
    counterpart = np.where(known, labels.eq("Entailment").fillna(False).to_numpy(dtype=bool), np.nan)
    for query in np.flatnonzero(np.diff(layout.claim_bounds)).tolist():
        found = _metrics(layout, query, relevant, counterpart, bool(silent[query]), threshold)
        values[query] = [found[name].value for name in METRICS]
        reasons[query] = next((found[name].reason for name in METRICS if found[name].reason), None)
    frame = pd.DataFrame(values, columns=list(METRICS))
    frame.insert(0, "query_id", layout.run.queries["query_id"].array)
    return frame.assign(reason=pd.Series(reasons, dtype="str"))


def _metrics(
    layout: MatrixLayout, query: int, relevant: Bools, counterpart: Floats, silent: bool, threshold: float
) -> dict[str, KnownShare]:
    sides = []
    for of_answer in (True, False):
        claims, cells = layout.matrix(query, of_answer)
        kept = relevant[claims] & (not (of_answer and silent))
        sides.append((layout.probability[cells[kept]], counterpart[claims[kept]]))
    (to_answer, correct), (to_reference, covered) = sides
    if not covered.size and np.isnan(correct).all():
        return ragchecker_metrics(None, to_answer, None, None, threshold)
    return ragchecker_metrics(to_reference, to_answer, correct, covered, threshold)
