"""The traces that make up the picture of one answer's claims against its passages."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from core.charts.claims.cells import HeatmapCells
from core.charts.theme import STYLES, add_marks, fade, marker, where_door
from core.claims.causal import CHANGED, GONE, KEPT, UNKNOWN
from core.claims.rafe import IRRELEVANT, NOT_SUPPORTED, SUPPORTED, UNSCORED
from core.claims.types import Bools, Floats
from core.conditions import where
from core.text.display import count, number

MATRIX_SHARE = 0.8  # of the width; the rest is the column of verdicts
TWO_LINES_UP_TO = 25  # rows with room for two lines of text
_SIGNS_UP_TO = 20  # columns whose cells have room for a letter
_LETTERS = {SUPPORTED: "S", NOT_SUPPORTED: "N", IRRELEVANT: "I", UNSCORED: "?"}
_SIGNS = {KEPT: "=", CHANGED: "≠", GONE: "×", UNKNOWN: "?"}


def _add_heatmap(
    figure: go.Figure, z: Floats, cells: HeatmapCells, scale: object, grey: object, **options: object
) -> None:
    """Draw the rows of relevant claims in colour and the others, which are last, in grey."""
    split = int((~cells.grey).sum())
    for rows, colors, has_bar in ((slice(0, split), scale, True), (slice(split, None), grey, False)):
        if z[rows].size:
            figure.add_heatmap(
                x=np.arange(z.shape[1]),
                y=np.arange(z.shape[0])[rows],
                z=z[rows],
                text=cells.hover[rows],
                hovertemplate="%{text}<extra></extra>",
                colorscale=colors,
                xgap=1,
                ygap=2,
                **{**options, "showscale": bool(options.get("showscale")) and has_bar},
            )


def stepped(style: str, threshold: float) -> list[tuple[float, str]]:
    """Return a scale that grows darker and jumps at the threshold, so that each cell shows the decision."""
    (_, low), (_, below) = fade(style, 0.06, 0.38)
    (_, above), (_, full) = fade(style, 0.78, 1.0)
    return [(0.0, low), (threshold, below), (threshold, above), (1.0, full)]


def support_bar(threshold: float, length: float) -> dict[str, object]:
    """Return a bar above the matrix; its ticks say what it is, since a title would lie on it."""
    ticks = {0.0: "0", 1.0: "1", threshold: f"probability {threshold:g}: supports"}
    return {
        "orientation": "h",
        "thickness": 10,
        "len": length,
        "x": 0,
        "xanchor": "left",
        "yref": "container",
        "y": 1,
        "yanchor": "top",
        "ypad": 2,
        "outlinewidth": 0,
        "tickvals": sorted(ticks),
        "ticktext": [ticks[at] for at in sorted(ticks)],
    }


def add_text(figure: go.Figure, cells: HeatmapCells, threshold: float) -> None:
    """Draw the probabilities, and a cross where one is missing."""
    scales = stepped("well supported", threshold), stepped("unscored", threshold)
    bar = support_bar(threshold, MATRIX_SHARE)
    _add_heatmap(figure, cells.values, cells, *scales, zmin=0, zmax=1, showscale=True, colorbar=bar)
    # An irrelevant claim is not verified, so nothing is missing.
    rows, columns = np.nonzero(np.isnan(cells.values) & ~cells.grey[:, None])
    cross = marker("unscored", 9 * _scale(cells))
    add_marks(figure, f"Not scored ({count(len(rows), 'cell')})", columns, rows, cross)


def _scale(cells: HeatmapCells) -> float:
    """Return how much smaller marks are drawn where columns are narrow."""
    return 1.0 if len(cells.columns) <= _SIGNS_UP_TO else 0.6


def add_causal(figure: go.Figure, cells: HeatmapCells) -> None:
    """Draw leave-one-out effects."""
    codes = np.select([cells.labels == name for name in (KEPT, CHANGED, GONE)], [0.0, 1.0, 2.0], np.nan)
    colors = fade("neutral", 0.18)[0][1], STYLES["fragile"].color, STYLES["unsupported"].color
    scale = [(at / 3, color) for i, color in enumerate(colors) for at in (i, i + 1)]
    _add_heatmap(figure, codes, cells, scale, fade("unscored", 0.18), zmin=-0.5, zmax=2.5)
    for label, fill in zip((KEPT, CHANGED, GONE, UNKNOWN), (*colors, "rgba(0,0,0,0)"), strict=True):
        where = cells.labels == label
        if where.any():
            add_signs(figure, where, _SIGNS[label], "white" if label in (CHANGED, GONE) else None)
            # A line in the legend that draws nothing.
            outline = {"width": 1, "color": STYLES["unscored"].color}
            look = {"symbol": "square", "color": fill, "size": 11, "line": outline}
            add_marks(figure, f"{_SIGNS[label]} {label} ({int(where.sum()):,})", [None], [None], look)


def add_signs(figure: go.Figure, where: Bools, sign: str, color: str | None) -> None:
    """Write a sign into cells, where the columns leave room for one."""
    rows, columns = np.nonzero(where)
    if where.shape[1] <= _SIGNS_UP_TO:
        written = {"text": [sign] * len(rows), "textfont": {"color": color, "size": 14}}
        add_marks(figure, None, columns, rows, None, mode="text", showlegend=False, **written)


def add_removals(figure: go.Figure, cells: HeatmapCells, threshold: float) -> None:
    """Mark where support and leave-one-out effect agree, and where there is only one of them."""
    moved, supports = np.isin(cells.labels, (CHANGED, GONE)), cells.values >= threshold
    # White and outlined where it lies on strong blue: seen there, and in the legend of either page.
    for name, symbol, color, size, mask in (
        ("Supports; gone or changed without it", "star", "#FFFFFF", 14, moved & supports),
        ("Supports; kept without it", "circle", "#FFFFFF", 8, (cells.labels == KEPT) & supports),
        (
            "No support; gone or changed without it",
            "diamond",
            "#F0A030",
            11,
            moved & (cells.values < threshold),
        ),
        (
            "Not scored; gone or changed without it",
            "diamond-tall",
            "#B8679A",
            13,
            moved & np.isnan(cells.values),
        ),
    ):
        rows, columns = np.nonzero(mask)
        outline = {"width": 1, "color": "#333333"}
        look = {"symbol": symbol, "color": color, "size": size * _scale(cells), "line": outline}
        add_marks(figure, f"{name} ({len(rows):,})", columns, rows, look)


def add_verdicts(figure: go.Figure, cells: HeatmapCells) -> None:
    """Draw the column of verdicts: one trace per state, so that the legend names the symbols.

    A symbol leads to the answers with a claim in the same state.
    """
    for style in dict.fromkeys(row.style for row in cells.rows):
        chosen = [(i, row) for i, row in enumerate(cells.rows) if row.style == style]
        texts = [f" <b>{_LETTERS.get(row.verdict, '')}</b>" for _, row in chosen]
        if len(cells.rows) <= TWO_LINES_UP_TO:
            texts = [
                f"{text}<br> {number(row.uncertainty)}" for text, (_, row) in zip(texts, chosen, strict=True)
            ]
        hover = [f"{row.hover}<br>Questions with such a claim:" for _, row in chosen]
        leads_to = [where_door(where("claims", "claims", state=style))] * len(chosen)
        name, y = f"{style.capitalize()} ({cells.states[style]:,})", [i for i, _ in chosen]
        add_marks(
            figure, name, [0.0] * len(y), y, marker(style, 10), hover, leads_to, mode="markers+text",
            xaxis="x2", text=texts, textposition="middle right", textfont={"size": 11},
        )  # fmt: skip
