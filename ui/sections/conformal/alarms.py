"""Why the promises of a calibration are void, where they are."""

from __future__ import annotations

import streamlit as st

from core.conformal.analysis import ConformalAnalysis
from core.conformal.definitions import FINDINGS
from ui.plain import plain


def draw(found: ConformalAnalysis) -> None:
    """Warn where the calibration is stale or the scores drift."""
    if found.stale:
        said = FINDINGS["stale_calibration"]
        why = plain("; ".join(found.stale))
        st.warning(f"**{said.title}:** {why}. {said.advice}", icon=":material/history:")
    drift = found.drift
    if drift.alarm is not None:
        said = FINDINGS["score_drift"]
        st.warning(
            f"**{said.title}:** alarm at question {drift.alarm + 1:,} of {drift.n:,}. {said.advice}",
            icon=":material/trending_up:",
        )
