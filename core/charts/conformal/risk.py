"""From which confidence on few enough answers are wrong, and whether the labels prove it."""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from core.charts.bins import thinned
from core.charts.conformal.shared import void
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
from core.conformal.definitions import CALIBRATION, TEST
from core.conformal.selective import Certificate
from core.stats import risk_coverage
from core.text.display import count, number, p_text, percent

_WRAP = 44  # characters of a line on a phone


class _Data(NamedTuple):
    certificate: Certificate
    table: pd.DataFrame  # one row per place: share, risk, certified, low, high (thresholds), door, hover
    coverage: Floats  # of the tested answers
    risk: Floats
    n_test: int
    missing: str  # how many labels a certificate would take; "" where there is one


def certified_risk(analysis: ConformalAnalysis) -> go.Figure:
    """Draw the share of incorrect answers against the share answered.

    A mark for each threshold on the confidence, by the calibration labels: filled where it is certified that
    at most α of its answers are incorrect. The star is the lowest certified one; the line is the
    risk–coverage curve of the tested questions. Marks lead to the incorrect answers behind them. Empty
    without a calibration label.
    """
    return _draw(_data(analysis))


def _data(analysis: ConformalAnalysis) -> _Data | str:
    """Return the marks and the curve, or why there are none."""
    if why := void(analysis):
        return why
    found = analysis.certificate
    if not found.n:
        return "No calibration question has both a confidence and a label."
    table = found.to_frame()
    # A start within a tie is no threshold to answer from.
    table = table[(table["n_answered"] > 0) & table["threshold"].notna()]
    # Thresholds that let the same answers through are one mark.
    places = [_place(analysis, rows) for _, rows in table.groupby("n_answered", sort=False)]
    tested = analysis.queries[(analysis.queries["role"] == TEST) & analysis.queries["correct"].notna()]
    tested = tested[tested["confidence"].notna()]
    coverage, risk = risk_coverage(tested["confidence"], tested["correct"].astype(float))
    return _Data(found, pd.DataFrame(places), coverage, risk, len(tested), found.missing)


def _place(analysis: ConformalAnalysis, rows: pd.DataFrame) -> dict[str, Any]:
    rows = rows[rows["certified"]] if rows["certified"].any() else rows
    one, found = rows.iloc[-1], analysis.certificate
    n, wrong = int(one["n_answered"]), int(one["n_wrong"])
    low, high = float(one["threshold"]), float(rows["threshold"].iloc[0])
    # The labels of a store are no questions of this run.
    own = analysis.queries[analysis.queries["role"] == CALIBRATION]
    there = (own["confidence"] >= low) & (own["correct"] == False).fillna(False)  # noqa: E712
    door = ""
    if wrong and wrong == there.sum():
        asked = where("conformal", "queries", role=CALIBRATION, confidence=(low, None), correct=False)
        door = where_door(asked)
    if one["certified"]:
        verdict = f"Certified: {p_text(one['p_value'])}, at most {one['level']:.2g} needed"
    elif not (rows["level"] > 0).any():
        verdict = "Not tested: no higher threshold is certified"
    else:
        verdict = f"Not certified: {p_text(one['p_value'])}, at most {rows['level'].max():.2g} needed"
    thresholds = number(low) if low == high else f"{number(low)} to {number(high)}"
    hover = [
        f"Confidence from {thresholds} on",
        f"{n:,} of {count(found.n, 'label')} answered ({percent(n / found.n)})",
        f"{count(wrong, 'incorrect answer')} ({percent(wrong / n)})",
        safe_text(verdict),
    ]
    return {
        "share": 100 * n / found.n,
        "risk": 100 * wrong / n,
        "certified": bool(one["certified"]),
        "low": low,
        "door": door,
        "hover": "<br>".join(hover),
    }


def _draw(data: _Data | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    found, table = data.certificate, data.table
    figure = new_figure(_alt(data), "Share answered, the surest first (%)", "Incorrect among them (%)", 440)
    if data.n_test:
        _add_tested(figure, data)
    add_line(figure, f"Allowed: α = {percent(found.alpha)}", [0, 100], [100 * found.alpha] * 2)
    best = (table["low"] == found.threshold) & table["certified"]
    for name, style, look, chosen in (
        ("Not certified", "Undefined", {"symbol": "circle-open", "line": {"width": 2}}, ~table["certified"]),
        ("Certified", "Aligned", {}, table["certified"] & ~best),
        (
            f"Certified, answers most: from {number(found.threshold)} on",
            "influence",
            {"symbol": "star"},
            best,
        ),
    ):
        rows = table[chosen]
        add_marks(
            figure, name, rows["share"], rows["risk"],
            {**marker(style, 16 if style == "influence" else 10), **look},
            rows["hover"], [*rows["door"]], cliponaxis=False,
        )  # fmt: skip
    if data.missing:
        lines = textwrap.wrap(f"Nothing is certified with {count(found.n, 'label')}: {data.missing}", _WRAP)
        figure.add_annotation(
            text="<br>".join(lines), x=0.5, y=1, xref="paper", yref="paper", yanchor="bottom", showarrow=False
        )
        figure.update_layout(margin_t=14 + 18 * len(lines))
    top = max(float(table["risk"].max()), 100 * found.alpha, *(100 * data.risk))
    figure.update_xaxes(range=[0, 102])
    figure.update_yaxes(range=[-2, min(103, 1.08 * top + 3)])
    return figure


def _add_tested(figure: go.Figure, data: _Data) -> None:
    kept = thinned(data.n_test)
    figure.add_scatter(
        name=f"Tested ({data.n_test:,})",
        mode="lines",
        x=100 * data.coverage[kept],
        y=100 * data.risk[kept],
        line={"color": STYLES["highlight"].color, "width": 2.5, "dash": "dash"},
        customdata=[
            f"The surest {percent(at)} of {count(data.n_test, 'tested answer')}: {percent(risk)} incorrect"
            for at, risk in zip(data.coverage[kept], data.risk[kept], strict=True)
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _alt(data: _Data) -> str:
    found = data.certificate
    said = (
        f"nothing is certified ({data.missing})"
        if found.threshold is None
        else f"certified from a confidence of {number(found.threshold)} on, which answers "
        f"{found.n_answered:,} with {found.n_wrong:,} incorrect"
    )
    tested = (
        f"; of {count(data.n_test, 'tested answer')} {percent(float(data.risk[-1]))} are incorrect"
        if data.n_test
        else ""
    )
    return (
        f"Share of incorrect answers against the share answered, from each confidence on, by "
        f"{count(found.n, 'calibration label')}, {percent(found.alpha)} allowed: {said}{tested}."
    )
