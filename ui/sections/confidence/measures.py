"""The measures of two confidences side by side, as a table and in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.confidence import Compared
from core.text.display import count, number, p_text
from ui import show

_TITLES = {"accuracy": "Right decisions", "brier": "Brier score", "auroc": "AUROC"}
_BETTER = {"accuracy": "higher is better", "brier": "lower is better", "auroc": "higher is better"}
_LEVEL = 0.05


def said(found: Sequence[Compared], other: str) -> str:
    """Say which measures differ significantly, and for whom."""
    n = count(found[0].n, "labelled answer")
    differ = [one for one in found if one.p_adjusted < _LEVEL]
    if not differ:
        return f"**No measure differs significantly** (n = {n})."
    better = [(one.difference > 0) != (one.measure == "brier") for one in differ]
    parts = [
        f"{_TITLES[one.measure]} is {'better' if good else 'worse'}"
        for one, good in zip(differ, better, strict=True)
    ]
    return f"**{other}:** {', '.join(parts)} (n = {n})."


def table(found: Sequence[Compared], a: str, b: str) -> None:
    """Draw the measures of both, with differences, intervals and p-values."""
    rows = [
        {
            "measure": f"{_TITLES[one.measure]} ({_BETTER[one.measure]})",
            "a": one.a,
            "b": one.b,
            "difference": one.difference,
            "interval": f"{number(one.low)} to {number(one.high)}",
            "p": p_text(one.p_adjusted),
        }
        for one in found
    ]
    columns = {
        "measure": show.wide("Measure", "medium"),
        "a": show.numeric(a),
        "b": show.numeric(b),
        "difference": show.numeric("Difference", about=f"{b} − {a}"),
        "interval": show.wide("95 % interval", "small"),
        "p": show.wide("p", "small", "Of no difference, adjusted for three measures (Holm)"),
    }
    show.table(pd.DataFrame(rows), f"{a} and {b}, measure by measure", columns)
    st.caption("A right decision: an answer that passes is correct, or one that does not pass is incorrect.")
