"""Each claim with the passage that makes it likelier most, beside the passages that support it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from core.attribution.analysis import AttributionAnalysis
from core.attribution.measured import LOGPROB, SUPPORTS
from core.text.display import count
from ui import show

_COLUMNS = (
    "query_id", "claim_id", "text", "by_influence", "score", "low", "high", "by_support", "disagrees",
)  # fmt: skip


def by_claim(claims: pd.DataFrame) -> pd.DataFrame:
    """Return one row per claim: places of its first passage, with the score, and of those that support it."""
    rows = []
    for (query_id, claim_id), own in claims.groupby(["query_id", "claim_id"], sort=False):
        first = own[own["is_first"].astype(bool)]
        given = first.iloc[0] if len(first) else None
        supporting = own.loc[own["support"] >= SUPPORTS, "slot"]
        known = own["support"].notna().all()
        rows.append(
            (
                query_id, claim_id, own["text"].iloc[0],
                "none" if given is None else f"{given['slot']}",
                *((None, None, None) if given is None else given[["score", "low", "high"]]),
                ", ".join(map(str, supporting)) or ("none" if known else "not verified"),
                own["disagrees"].iloc[0],
            )
        )  # fmt: skip
    return pd.DataFrame(rows, columns=[*_COLUMNS])


def disagreeing(own: pd.DataFrame) -> str:
    """Say in how many claims, of those of `by_claim`, influence and support disagree."""
    told = own["disagrees"].dropna()
    if told.empty:
        return (
            f"None of {count(len(own), 'claim')} can be compared: verify the claims, or measure more subsets."
        )
    return (
        f"In {int(told.astype(bool).sum()):,} of {count(len(told), 'claim')} the passage that makes the "
        "claim likeliest does not support it, while another one does."
    )


def columns(found: AttributionAnalysis) -> dict[str, Any]:
    """Return the columns of the table of claims."""
    unit = found.unit if found.by == LOGPROB else "share of its words"
    return {
        "text": show.wide("Claim"),
        "by_influence": "Passage by influence",
        "by_support": "Passages by support",
        "score": show.numeric(f"Score ({unit})"),
        "low": show.numeric("95 % from"),
        "high": show.numeric("to"),
    }
