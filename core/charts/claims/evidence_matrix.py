"""The claims of a whole run against the passages they were checked against, one page at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.charts.claims.layers import stepped, support_bar
from core.charts.theme import (
    BORDER,
    SIGNS,
    add_marks,
    empty_figure,
    marker,
    name_of,
    new_figure,
    question_door,
    safe_text,
)
from core.claims.analysis import ClaimsAnalysis
from core.claims.matrix import CLAIM_STATES, IRRELEVANT
from core.claims.types import Bools, Floats
from core.text.display import count, number

ROWS = 15  # claims of a page
_LABEL, _HOVER = 22, 160  # characters of a claim
_ROW = 20  # pixels
_TICKS = 12  # ranks that all have a label


class _Row(NamedTuple):
    query_id: str
    first: bool  # of its answer on this page
    text: str
    state: str
    hover: str


class _Page(NamedTuple):
    rows: tuple[_Row, ...]
    values: Floats  # claims × retrieval ranks; NaN where not scored, or where there is no passage
    missing: Bools  # not scored
    hover: list[list[str]]
    start: int  # claims before this page
    n_claims: int
    n_answers: int


def n_pages(analysis: ClaimsAnalysis) -> int:
    """Return how many pages `evidence_matrix` has; at least 1."""
    return max(1, -(-analysis.reading_order.size // ROWS))


def evidence_matrix(analysis: ClaimsAnalysis, page: int = 1) -> go.Figure:
    """Draw the claims of all answers against their passages, by retrieval rank.

    Rows are claims, answer by answer, those with the most unsupported claims first; a line is between two
    answers. Cells are probabilities of support, darker from the support threshold on; what was not scored is
    crossed, and where an answer had fewer passages there is no cell. The mark at the end of a row is the
    state of its claim, and leads to its question.

    Parameters
    ----------
    analysis : ClaimsAnalysis
        A run, of any size: only the claims of the page are read.
    page : int
        From 1 to `n_pages`; each has 15 claims.
    """
    if not analysis.reading_order.size:
        return empty_figure("No claim was extracted from any answer.")
    return _draw(_data(analysis, page), analysis.threshold)


def _data(analysis: ClaimsAnalysis, page: int) -> _Page:
    layout, order = analysis.layout, analysis.reading_order
    start = ROWS * (page - 1)
    claims = order[start : start + ROWS]
    texts, scores = layout.claims["text"].iloc[claims].to_list(), analysis.scores.iloc[claims]
    queries = layout.query[claims].tolist()
    asked = analysis.queries.iloc[queries]
    width = layout.width[claims]
    values = np.full((len(claims), max(int(width.max()), 1)), np.nan)
    missing = np.zeros(values.shape, dtype=bool)
    passages = analysis.run.passages[["title", "passage_id"]]
    rows, hover = [], []
    for at, (claim, n) in enumerate(zip(claims.tolist(), width.tolist(), strict=True)):
        score, text = scores.iloc[at], texts[at]
        values[at, :n] = layout.probability[layout.start[claim] : layout.start[claim] + n]
        missing[at, :n] = np.isnan(values[at, :n]) & (score["state"] != IRRELEVANT)
        said = f"{safe_text(text, _HOVER)}<br>{safe_text(asked['question'].iloc[at], 100)}"
        state = str(score["state"])
        verdict = f"{SIGNS[state]} {state}, U(c) {number(score['uncertainty'])}, best support "
        rows.append(
            _Row(
                str(asked["query_id"].iloc[at]), at == 0 or queries[at] != queries[at - 1], text, state,
                f"{said}<br>{verdict}{number(score['support_maximum'])}",
            )
        )  # fmt: skip
        listed = passages.iloc[layout.passages_of(queries[at])].itertuples(index=False)
        cells = [
            f"{said}<br>Rank {rank}: {safe_text(name_of(*passage), 60)}<br>"
            + ("Not scored" if np.isnan(p) else f"Probability {number(p)}")
            for rank, (passage, p) in enumerate(zip(listed, values[at], strict=False), start=1)
        ]
        hover.append(cells + [""] * (values.shape[1] - n))
    n_answers = int((analysis.queries["n_claims"] > 0).sum())
    return _Page(tuple(rows), values, missing, hover, start, order.size, n_answers)


def _draw(data: _Page, threshold: float) -> go.Figure:
    n, ranks = data.values.shape
    states = [row.state for row in data.rows]
    counted = ", ".join(f"{states.count(state):,} {state}" for state in CLAIM_STATES if state in states)
    alt = (
        f"Claims {data.start + 1:,} to {data.start + n:,} of {count(data.n_claims, 'claim')} of "
        f"{count(data.n_answers, 'answer')} against the passages by retrieval rank: {counted}."
    )
    figure = new_figure(alt, "Passage, by retrieval rank", "", height=150 + _ROW * n)
    figure.add_heatmap(
        x=list(range(1, ranks + 1)), y=list(range(n)), z=data.values, zmin=0, zmax=1, xgap=1, ygap=1,
        colorscale=stepped("well supported", threshold), text=data.hover, hoverongaps=False,
        hovertemplate="%{text}<extra></extra>", showlegend=False,
        colorbar=support_bar(threshold, 1),
    )  # fmt: skip
    at, rank = np.nonzero(data.missing)
    crosses = [data.hover[i][j] for i, j in zip(at.tolist(), rank.tolist(), strict=True)]
    add_marks(figure, "Not scored", (rank + 1).tolist(), at.tolist(), marker("unscored", 8), crosses)
    for state in dict.fromkeys(states):
        own = [(y, row) for y, row in enumerate(data.rows) if row.state == state]
        add_marks(
            figure, state.capitalize(), [ranks + 1] * len(own), [y for y, _ in own], marker(state, 11),
            [row.hover for _, row in own], [question_door(row.query_id) for _, row in own],
        )  # fmt: skip
    for y, row in enumerate(data.rows):
        if row.first and y:
            figure.add_hline(y=y - 0.5, line={**BORDER, "dash": "solid", "width": 1})
    step = max(1, -(-ranks // _TICKS))
    shown = list(range(1, ranks + 1, step))
    figure.update_xaxes(
        range=[0.5, ranks + 1.6], tickvals=[*shown, ranks + 1], ticktext=[*map(str, shown), "<br>State"],
        tickangle=0, showgrid=False, zeroline=False,
    )  # fmt: skip
    figure.update_yaxes(
        range=[n - 0.5, -0.5], showgrid=False, zeroline=False, tickvals=list(range(n)),
        ticktext=[safe_text(row.text, _LABEL) for row in data.rows], tickfont={"size": 11},
    )  # fmt: skip
    figure.update_layout(margin={"t": 60}, showlegend=True)
    return figure
