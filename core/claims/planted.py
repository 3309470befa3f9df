"""How many planted errors the verifier found, by kind of error, and how many it saw where there are none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.claims.analysis import ClaimsAnalysis
from core.claims.definitions import PLANTED
from core.claims.rafe import NOT_SUPPORTED, SUPPORTED
from core.stats import wilson_interval

ERRORS, CLEAN, TOGETHER = "errors", "none", "two_passages"


@dataclass(frozen=True, eq=False)
class PlantedErrors:
    """What a verifier made of claims whose errors are known.

    ``table`` has one row for all errors, one per kind, then one each for claims that only two passages
    support together and for claims without an error. Found is an error that is called not supported, and a
    claim of two passages that is called supported; of claims without an error, those called not supported:
    false alarms. ``n_questions`` have a claim with the wrong verdict. ``chance`` is what as many verdicts at
    random would give, with their middle 95 % (hypergeometric).
    """

    judge: str | None
    n_verified: int  # claims with a verdict
    n_flagged: int  # those called not supported
    table: pd.DataFrame

    def row(self, planted: str) -> pd.Series:
        """Return the row of one kind."""
        found: pd.Series = self.table.set_index("planted").loc[planted]
        return found

    def to_frame(self) -> pd.DataFrame:
        """Return the table with the verifier in its last column."""
        return self.table.assign(judge=self.judge)


def planted_errors(analysis: ClaimsAnalysis) -> PlantedErrors | None:
    """Count what a verifier found of the errors planted in a composed run; None for any other run."""
    if analysis.run["planted_claims"].empty:  # all claims need their leave-one-out effects, which take long
        return None
    claims = analysis.claims[analysis.claims["planted"].notna()]
    if claims.empty:
        return None
    planted, verdict = claims["planted"], claims["verdict"]
    flagged, verified = verdict == NOT_SUPPORTED, verdict.isin([SUPPORTED, NOT_SUPPORTED])
    of_kind = {kind: planted == kind for kind in PLANTED}
    of_kind[ERRORS] = claims["planted_error"].astype(bool)
    n_verified, n_flagged = int(verified.sum()), int(flagged.sum())
    rows = []
    for kind, definition in PLANTED.items():
        chosen, together = of_kind[kind], kind == TOGETHER
        hit, n_hit = (verdict == SUPPORTED, n_verified - n_flagged) if together else (flagged, n_flagged)
        n, n_unscored = int((chosen & verified).sum()), int((chosen & ~verified).sum())
        found = int((chosen & hit).sum())
        share = found / n if n else np.nan
        wrong = claims["query_id"][chosen & (verdict == wrong_verdict(kind))].nunique()
        told = (kind, definition.title, definition.meaning, n, n_unscored, wrong, found, share)
        rows.append((*told, *wilson_interval(share, n), *_by_chance(n_verified, n_hit, n)))
    columns = ["planted", "title", "meaning", "n", "n_unscored", "n_questions", "n_found", "share"]
    table = pd.DataFrame(rows, columns=[*columns, "low", "high", "chance", "chance_low", "chance_high"])
    return PlantedErrors(analysis.judge, n_verified, n_flagged, table)


def wrong_verdict(planted: str) -> str:
    """Return the verdict that is wrong for claims with this planted in them."""
    return NOT_SUPPORTED if planted in (CLEAN, TOGETHER) else SUPPORTED


def _by_chance(n_all: int, n_marked: int, n: int) -> tuple[float, float, float]:
    """Return how many of ``n`` claims have a verdict that ``n_marked`` of all were given at random."""
    from scipy.stats import hypergeom  # slow to import

    if not n:
        return np.nan, np.nan, np.nan
    low, high = hypergeom.ppf([0.025, 0.975], n_all, n_marked, n)
    return n * n_marked / n_all, float(low), float(high)
