"""All headline numbers of a run in one: influence, and claims where there are any."""

from __future__ import annotations

from typing import Any

from core.claims.of_run.analysis import ClaimsAnalysis, analyse_claims
from core.claims.of_run.summary import claims_summary
from core.influence.analysis import InfluenceAnalysis
from core.influence.summary import summary
from core.run import Run


def run_summary(
    run: Run, influence: InfluenceAnalysis, claims: ClaimsAnalysis | None = None
) -> dict[str, Any]:
    """Return the headline numbers of a run as plain JSON values.

    Parameters
    ----------
    run : Run
        The run.
    influence : InfluenceAnalysis
        What `core.influence.analyse` made of it.
    claims : ClaimsAnalysis, optional
        What `core.claims.analyse_claims` made of it; computed here where it is not given.

    Returns
    -------
    dict
        The keys of `core.influence.summary` and of `core.claims.claims_summary`; those of an analysis that
        was not run are None.
    """
    claims = analyse_claims(run, influence) if claims is None else claims
    return {**summary(run, influence), **claims_summary(run, claims)}
