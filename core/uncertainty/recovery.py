"""Whether the samples of a simulated run are grouped by the meanings that were planted in them."""

from __future__ import annotations

import pandas as pd

from core.socket import RECOVERED, Analyses
from core.stats import mean_in_unit


def recover(diagnosis: Analyses) -> pd.DataFrame:
    """Return how many questions have their samples in the planted groups, as `Analyses.recovered` has it."""
    samples = diagnosis["uncertainty"].samples
    frame = samples[["query_id", "meaning"]].assign(planted=diagnosis.run["samples"]["planted_meaning"])
    frame = frame[frame["planted"].notna() & frame["meaning"].notna()]
    if frame.empty:
        return pd.DataFrame(columns=[*RECOVERED])
    # The groups are the same where no group of one kind meets two of the other.
    pairs = frame.drop_duplicates().groupby("query_id", sort=False)
    same = pairs.size().eq(pairs["meaning"].nunique()) & pairs.size().eq(pairs["planted"].nunique())
    meaning = "Share of the questions whose samples are grouped by exactly the planted meanings."
    row = ("Meanings as planted", 1.0, *mean_in_unit(same, share=True), len(same), meaning, "")
    return pd.DataFrame([row], columns=[*RECOVERED])
