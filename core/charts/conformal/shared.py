"""What the figures of *conformal* share: why there is nothing to draw, and curves along 1 − α."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import STYLES, Floats, add_band, add_line
from core.conformal.analysis import OWN, ConformalAnalysis
from core.conformal.definitions import FINDINGS, METRICS, REASONS
from core.conformal.splits import Splits
from core.text.display import percent

MOST_MARKS = 300  # questions of a stream with a mark each
_MANY = 100  # questions from which on their marks are small
_PALE = "rgba(0, 114, 178, 0.20)"  # of the colour of "Aligned"


def void(analysis: ConformalAnalysis) -> str:
    """Return why nothing is promised of the run at all; "" where something may be."""
    if not analysis.calibrated:
        return REASONS["not_calibrated"].meaning
    return FINDINGS["stale_calibration"].meaning if analysis.stale else ""


def splits_of(analysis: ConformalAnalysis, name: str) -> Splits | str:
    """Return the repeated splits of one promise, or why there are none."""
    if why := void(analysis):
        return why
    one = analysis.coverages.get(name)
    if one is None:
        return f"Undefined because {METRICS[name].undefined_when}."
    return one.splits or "Fewer than two labelled cases of the run itself: nothing can be split."


def stream_of(analysis: ConformalAnalysis) -> pd.DataFrame | str:
    """Return the questions with a place in the drift test, in the run's order, or why there are none."""
    if why := void(analysis):
        return why
    if not analysis.drift.n and analysis.origin == OWN:
        return f"Undefined because {METRICS['drift'].undefined_when}."
    if not analysis.drift.n:
        return "No score of another question can be compared with one of the calibration."
    rows = analysis.queries
    return rows[rows["drift_p"].notna()].reset_index(drop=True)


def add_mean(
    figure: go.Figure, title: str, promised: Floats, rows: pd.DataFrame, name: str, hover: Sequence[str]
) -> None:
    """Add the mean of many splits with their middle 95 %; dotted where a threshold may be infinite.

    ``rows`` is `Splits.to_frame`, in percent or as it is; ``name`` is the column of the mean.
    """
    mean, finite = rows[name].to_numpy(), rows["finite"].to_numpy() == 1
    low, high = rows[f"{name}_low"].to_numpy(), rows[f"{name}_high"].to_numpy()
    add_band(figure, "Middle 95 % of the splits", promised, low, high, _PALE)
    # α rises along the rows, and with it ever more thresholds are finite; the dotted part meets the other.
    n_open = int((~finite).sum())
    parts = []
    if n_open < len(rows):
        parts.append((title, "solid", slice(n_open, None)))
    if n_open:
        never = (rows["finite"].iloc[:n_open] == 0).all()
        parts.append(("Nothing promised" if never else "Not always promised", "dot", slice(n_open + 1)))
    for text, dash, part in parts:
        figure.add_scatter(
            name=text,
            mode="lines",
            x=promised[part],
            y=mean[part],
            line={"color": STYLES["Aligned"].color, "width": 3, "dash": dash},
            customdata=hover[part],
            hovertemplate="%{customdata}<extra></extra>",
        )


def not_promised(rows: pd.DataFrame) -> str:
    """Say from where on nothing, or not always something, is promised; "" where it always is."""
    never, always = rows["finite"] == 0, rows["finite"] == 1
    if always.all():
        return ""
    if never.all():
        return "nothing is promised at any 1 − α"
    sometimes = rows[~never & ~always]
    said = []
    if never.any():
        said.append(f"nothing is promised from {percent(1 - rows.loc[never, 'alpha'].max())} on")
    if len(sometimes):
        said.append(
            f"from {percent(1 - sometimes['alpha'].max())} on the threshold is infinite in some of the splits"
        )
    return "; ".join(said)


def add_setting(figure: go.Figure, alpha: float, low: float, high: float) -> None:
    """Mark 1 − α of the setting from ``low`` to ``high`` on the y axis."""
    at = 100 * (1 - alpha)
    add_line(figure, f"Setting: 1 − α = {percent(1 - alpha)}", [at, at], [low, high])


def mark_size(n: int) -> int:
    """Return the size in pixels of the marks of n questions along a line."""
    return 8 if n <= _MANY else 5
