"""One answer: its claims against its passages, by support and by leave-one-out effect."""

from __future__ import annotations

import html
import textwrap
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from core.charts.claims.cells import HeatmapCells, heatmap_cells
from core.charts.claims.layers import (
    MATRIX_SHARE,
    TWO_LINES_UP_TO,
    add_causal,
    add_removals,
    add_signs,
    add_text,
    add_verdicts,
)
from core.charts.theme import empty_figure, new_figure, plain_text
from core.claims.answer import AnswerClaims
from core.claims.causal import CHANGED, GONE, UNKNOWN
from core.text.display import count, number

Shown = Literal["text", "causal", "both"]
SHOWN: tuple[Shown, ...] = ("text", "causal", "both")

_LABEL_WIDTH = 17
_LEGEND_LINE = 22  # pixels
_TICKS_UP_TO, _FEWER_TICKS = 12, 8  # columns that all have a label, and labels where there are more
_TEXT_UP_TO = 40  # rows whose labels have the claim's text


def claims_heatmap(answer: AnswerClaims, shown: Shown = "text") -> go.Figure:
    """Draw the claims of an answer against its passages, most uncertain claim on top.

    Columns are in retrieval order. Unscored cells are crossed, never drawn as 0; irrelevant claims are at
    the bottom in grey. A second column has the verdict on each claim, the symbol of its state, and U(c).
    At most 60 claims and 60 passages are drawn; the others are counted in the description.

    Parameters
    ----------
    answer : AnswerClaims
        One question of a `ClaimsAnalysis`.
    shown : {"text", "causal", "both"}
        Probabilities; leave-one-out effects; or the probabilities with a mark where the claim changes or
        disappears without the passage, so that the two kinds of evidence can be compared.

    Returns
    -------
    Figure
        An empty figure where there are no claims or no passages, or where nothing was left out of the
        prompt and ``shown`` is "causal".

    Raises
    ------
    ValueError
        ``shown`` is none of the three.
    """
    if shown not in SHOWN:
        raise ValueError(f"shown must be one of {', '.join(SHOWN)}, got {shown!r}.")
    if not answer.matrix.claims:
        return empty_figure("This answer has no claims to check against its passages.")
    if not answer.matrix.passages:
        return empty_figure("This question has no passages.")
    if shown == "causal" and answer.causal is None:
        return empty_figure("No passage was left out of the prompt, so leave-one-out effects are unknown.")
    return _draw(heatmap_cells(answer), shown, answer.matrix.threshold)


def _draw(cells: HeatmapCells, shown: Shown, threshold: float) -> go.Figure:
    figure = new_figure(_alt(cells, shown), "", "")
    add_verdicts(figure, cells)
    if shown == "causal":
        add_causal(figure, cells)
    else:
        add_text(figure, cells, threshold)
    if shown == "both":
        add_removals(figure, cells, threshold)
    elif shown == "text":
        add_signs(figure, cells.values >= threshold, "✓", "white")
    _lay_out(figure, cells)
    return figure


def _alt(cells: HeatmapCells, shown: Shown) -> str:
    n = sum(cells.states.values())
    states = ", ".join(f"{found:,} {state}" for state, found in cells.states.most_common())
    text = f"{count(n, 'claim')} against the passages in retrieval order: {states}."
    known = cells.values[~np.isnan(cells.values)]
    if shown != "causal":
        span = f"{number(known.min())} to {number(known.max())}" if known.size else "none known"
        crossed = int(np.isnan(cells.values[~cells.grey]).sum())
        text += f" Probabilities of support {span}; {count(crossed, 'cell')} not scored."
    if shown != "text":
        moved = int(np.isin(cells.labels, (CHANGED, GONE)).sum())
        unknown = int((cells.labels == UNKNOWN).sum())
        text += f" Leaving a passage out changes or removes a claim in {count(moved, 'cell')}"
        text += f" and is unknown in {unknown:,}."
    if cells.values.shape != (n, cells.n_passages):
        rows, columns = cells.values.shape
        text += (
            f" Drawn are the {rows:,} most uncertain claims against the first {count(columns, 'passage')}."
        )
    return text


def _lay_out(figure: go.Figure, cells: HeatmapCells) -> None:
    n_rows, n_columns = cells.values.shape
    step = 1 if n_columns <= _TICKS_UP_TO else int(np.ceil(n_columns / _FEWER_TICKS))
    figure.update_xaxes(
        side="top",
        showgrid=False,
        range=[-0.5, n_columns - 0.5],
        domain=[0, MATRIX_SHARE],
        tickvals=list(range(0, n_columns, step)),
        ticktext=list(cells.columns[::step]),
        tickfont={"size": 11},
        title_text="Passage, in retrieval order",
    )
    top = 105 if any(trace.showscale for trace in figure.select_traces({"type": "heatmap"})) else 60
    row = 40 if n_rows <= TWO_LINES_UP_TO else 22
    # On a phone each entry of the legend takes a line.
    entries = sum(trace.type == "scatter" and trace.showlegend is not False for trace in figure.data)
    u = "<br>U(c)" if n_rows <= TWO_LINES_UP_TO else ""
    figure.update_layout(
        xaxis2={
            "side": "top",
            "domain": [MATRIX_SHARE + 0.02, 1],
            "range": [-0.4, 2],
            "tickvals": [0.5],
            "ticktext": [f"RAFE{u}"],
            "tickfont": {"size": 11},
            "tickangle": 0,
            "showgrid": False,
            "zeroline": False,
        },
        margin={"t": top},
        height=int(np.clip(top + row * n_rows + _LEGEND_LINE * entries, 260, 1_800)),
        legend_traceorder="normal",
        showlegend=True,  # also where there is one entry only
    )
    figure.update_yaxes(
        range=[n_rows - 0.5, -0.5],
        showgrid=False,
        tickvals=list(range(n_rows)),
        ticktext=[_tick(row.name, row.text, n_rows) for row in cells.rows],
        tickfont={"size": 11},
    )


def _tick(name: str, text: str, n_rows: int) -> str:
    """Return a row's label: its number and the start of the claim, short enough for a phone."""
    if n_rows > _TEXT_UP_TO:
        return name
    lines = 2 if n_rows <= TWO_LINES_UP_TO else 1
    start = plain_text(text, _LABEL_WIDTH * lines - len(name))
    wrapped = textwrap.wrap(f"{name} {start}", _LABEL_WIDTH, max_lines=lines, placeholder="…")
    return "<br>".join(html.escape(line, quote=False).replace("$", "&#36;") for line in wrapped)
