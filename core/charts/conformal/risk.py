"""From which confidence on few enough answers are wrong, and whether the labels prove it."""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from core.calibration.weighted import half_up
from core.charts.bins import thinned
from core.charts.theme import (
    STYLES,
    Floats,
    add_line,
    add_marks,
    empty_figure,
    marker,
    new_figure,
    safe_text,
    where_door,
)
from core.conditions import where
from core.conformal.analysis import ConformalAnalysis
from core.conformal.definitions import FINDINGS
from core.conformal.selective import Certificate
from core.stats import risk_coverage
from core.text.display import count, number, p_text, percent

_HALF = 0.005 + 5e-12  # of the second decimal, to which a confidence is rounded
_WRAP = 44  # characters of a line on a phone


class _Data(NamedTuple):
    certificate: Certificate
    table: pd.DataFrame  # one row per place: share, risk, certified, low (threshold), door, hover
    coverage: Floats  # of the labelled answers of the run, of which there are n
    risk: Floats
    n: int
    chosen: tuple[float, float, str] | None  # share, risk and hover of the threshold in use


def certified_risk(analysis: ConformalAnalysis, threshold: float | None = None) -> go.Figure:
    """Draw the share of incorrect answers against the share answered, by all labels.

    A mark for each threshold on the confidence: filled where it is certified that at most α of its answers
    are incorrect. The star is the lowest certified one, the diamond the ``threshold`` in use; the line is the
    risk–coverage curve of the labelled questions of the run. Marks lead to the incorrect answers behind them.
    Empty without a label.
    """
    return _draw(_data(analysis, threshold))


def _data(analysis: ConformalAnalysis, threshold: float | None) -> _Data | str:
    """Return the marks and the curve, or why there are none."""
    if analysis.stale:
        return FINDINGS["stale_calibration"].meaning
    found = analysis.final
    if not found.n:
        return "No question has both a confidence and a label."
    table = found.to_frame()
    # A start within a tie is no threshold to answer from.
    table = table[(table["n_answered"] > 0) & table["threshold"].notna()]
    # Thresholds that let the same answers through are one mark.
    places = [_place(analysis, rows) for _, rows in table.groupby("n_answered", sort=False)]
    known = analysis.queries[analysis.queries["correct"].notna() & analysis.queries["confidence"].notna()]
    coverage, risk = risk_coverage(half_up(known["confidence"]), known["correct"].astype(float))
    chosen = None
    now = None if threshold is None else analysis.at(threshold)[0]
    if now is not None and now.n_labelled:
        n, wrong = now.n_labelled, now.n_labelled - now.n_correct
        said = f"Threshold {number(now.threshold)}: {wrong:,} of {count(n, 'labelled answer')} incorrect"
        chosen = (100 * n / len(known), 100 * wrong / n, said)
    return _Data(found, pd.DataFrame(places), coverage, risk, len(known), chosen)


def _place(analysis: ConformalAnalysis, rows: pd.DataFrame) -> dict[str, Any]:
    rows = rows[rows["certified"]] if rows["certified"].any() else rows
    one, found = rows.iloc[-1], analysis.final
    n, wrong = int(one["n_answered"]), int(one["n_wrong"])
    low, high = float(one["threshold"]), float(rows["threshold"].iloc[0])
    # The labels of a store are no questions of this run, and a confidence passes as it is shown.
    least = low - _HALF
    own = analysis.queries
    there = (own["confidence"] >= least) & (own["correct"] == False).fillna(False)  # noqa: E712
    door = ""
    if wrong and wrong == there.sum():
        door = where_door(where("conformal", "queries", confidence=(least, None), correct=False))
    if one["certified"]:
        verdict = f"Certified: {p_text(one['p_value'])}, at most {one['level']:.2g} needed"
    elif not (rows["level"] > 0).any():
        verdict = "Not tested: no higher threshold is certified"
    else:
        verdict = f"Not certified: {p_text(one['p_value'])}, at most {rows['level'].max():.2g} needed"
    thresholds = number(low) if low == high else f"{number(low)} to {number(high)}"
    hover = (
        f"Confidence from {thresholds} on<br>{n:,} of {count(found.n, 'label')} answered "
        f"({percent(n / found.n)})<br>{count(wrong, 'incorrect answer')} ({percent(wrong / n)})<br>"
        f"{safe_text(verdict)}"
    )
    shares = {"share": 100 * n / found.n, "risk": 100 * wrong / n}
    return {**shares, "certified": bool(one["certified"]), "low": low, "door": door, "hover": hover}


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    found, table = data.certificate, data.table
    figure = new_figure(_alt(data), "Share answered, the surest first (%)", "Incorrect among them (%)", 440)
    if data.n:
        _add_line(figure, data)
    add_line(figure, f"Allowed: α = {percent(found.alpha)}", [0, 100], [100 * found.alpha] * 2)
    best = (table["low"] == found.threshold) & table["certified"]
    lowest = f"Certified, answers most: from {number(found.threshold)} on"
    hollow = {**marker("Undefined", 10), "symbol": "circle-open", "line": {"width": 2}}
    star = {**marker("influence", 16), "symbol": "star"}
    for name, look, chosen in (
        ("Not certified", hollow, ~table["certified"]),
        ("Certified", marker("Aligned", 10), table["certified"] & ~best),
        (lowest, star, best),
    ):
        rows = table[chosen]
        add_marks(
            figure, name, rows["share"], rows["risk"], look, rows["hover"], [*rows["door"]], cliponaxis=False
        )  # fmt: skip
    if data.chosen is not None:
        share, risk, hover = data.chosen
        add_marks(
            figure, "Threshold in use", [share], [risk], marker("highlight", 13), [hover], cliponaxis=False
        )
    if found.missing:
        lines = textwrap.wrap(f"Nothing is certified with {count(found.n, 'label')}: {found.missing}", _WRAP)
        figure.add_annotation(
            text="<br>".join(lines), x=0.5, y=1, xref="paper", yref="paper", yanchor="bottom", showarrow=False
        )
        figure.update_layout(margin_t=14 + 18 * len(lines))
    top = max(float(table["risk"].max()), 100 * found.alpha, *(100 * data.risk))
    figure.update_xaxes(range=[0, 102])
    figure.update_yaxes(range=[-2, min(103, 1.08 * top + 3)])
    return figure


def _add_line(figure: go.Figure, data: _Data) -> None:
    kept = thinned(data.n)
    figure.add_scatter(
        name=f"Labelled ({data.n:,})",
        mode="lines",
        x=100 * data.coverage[kept],
        y=100 * data.risk[kept],
        line={"color": STYLES["highlight"].color, "width": 2.5, "dash": "dash"},
        customdata=[
            f"The surest {percent(at)} of {count(data.n, 'labelled answer')}: {percent(risk)} incorrect"
            for at, risk in zip(data.coverage[kept], data.risk[kept], strict=True)
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _alt(data: _Data) -> str:
    found = data.certificate
    said = (
        f"nothing is certified ({found.missing})"
        if found.threshold is None
        else f"certified from a confidence of {number(found.threshold)} on, which answers "
        f"{found.n_answered:,} with {found.n_wrong:,} incorrect"
    )
    return (
        f"Share of incorrect answers against the share answered, from each confidence on, of "
        f"{count(found.n, 'answer')} with a label, {percent(found.alpha)} allowed: {said}."
    )
