"""The headline numbers of a run's claims, under the names that scripts and CI jobs rely on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.claims.of_run.analysis import ClaimsAnalysis
from core.claims.quadrants import quadrant_counts
from core.stats import mean_in_unit

_SUMS = {
    "n_claims": "n_claims",
    "n_claims_supported": "n_supported",
    "n_claims_not_supported": "n_not_supported",
    "n_claims_irrelevant": "n_irrelevant",
    "n_claims_unscored": "n_unscored",
    "n_claims_joint": "n_joint",
    "n_cells_unscored": "n_cells_unscored",
}
_MEANS = ("mean_grounding", "n_grounding", "grounding_ci", "mean_claim_uncertainty", "n_claim_uncertainty")
_OTHERS = (
    "n_with_claims",
    "n_verdicts_changed",
    "n_verdicts_from_file",
    "claims_judge",
    "support_threshold",
    "claims_undefined_reasons",
    "quadrants",
)
CLAIM_KEYS = (*_SUMS, *_MEANS, *_OTHERS)


def claims_summary(analysis: ClaimsAnalysis) -> dict[str, Any]:
    """Return the headline numbers of a run's claims as plain JSON values.

    Parameters
    ----------
    analysis : ClaimsAnalysis
        What `analyse_claims` made of it.

    Returns
    -------
    dict
        All None where no claims were looked for. Claims are those of answers, and add up: supported (among
        them the joint ones) + not supported + irrelevant + unscored = all. Means are over answers, the unit
        of all other means: ``mean_grounding`` over ``n_grounding`` of them with the 95 % interval
        ``grounding_ci``, ``mean_claim_uncertainty`` (the mean over an answer's relevant claims, averaged)
        over ``n_claim_uncertainty``. From the probability ``support_threshold`` on a passage supports.
        ``claims_undefined_reasons`` counts the answers without grounding by reason; ``quadrants`` the
        passages of answers with claims, *undefined* among them.
    """
    if not analysis.sought:
        return dict.fromkeys(CLAIM_KEYS)
    q, run = analysis.queries, analysis.run
    grounding, low, high = mean_in_unit(q["grounding"].to_numpy())
    uncertainty, *_ = mean_in_unit(q["mean_uncertainty"].to_numpy())
    with_claims = run.passages["query_id"].isin(q["query_id"][q["n_claims"] > 0]).to_numpy(dtype=bool)
    counts = quadrant_counts(analysis.quadrant[with_claims].to_list())
    return {
        **{key: int(q[column].sum()) for key, column in _SUMS.items()},
        "mean_grounding": None if math.isnan(grounding) else grounding,
        "n_grounding": int(q["grounding"].notna().sum()),
        "grounding_ci": None if math.isnan(low) else [low, high],
        "mean_claim_uncertainty": None if math.isnan(uncertainty) else uncertainty,
        "n_claim_uncertainty": int(np.isfinite(q["mean_uncertainty"].to_numpy()).sum()),
        "n_with_claims": analysis.n_with_claims,
        "n_verdicts_changed": analysis.n_verdicts_changed,
        "n_verdicts_from_file": analysis.n_verdicts_from_file,
        "claims_judge": analysis.judge,
        "support_threshold": analysis.threshold,
        "claims_undefined_reasons": {str(k): int(n) for k, n in q["reason"].value_counts().items()},
        "quadrants": dict(zip(counts["quadrant"], counts["n"].tolist(), strict=True)),
    }
