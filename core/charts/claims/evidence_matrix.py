"""The claims of a whole run against the passages they were checked against, one page at a time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.arrays import Ints
from core.charts import theme
from core.charts.claims.heatmap import stepped, support_bar
from core.claims.analysis import ClaimsAnalysis
from core.claims.matrix import CLAIM_STATES, IRRELEVANT
from core.claims.types import Floats
from core.text.display import count, number

ROWS = 15  # claims of a page
_LABEL, _HOVER = 22, 160  # characters of a claim
_ROW = 20  # pixels
_TICKS = 12  # ranks that all have a label


def n_pages(analysis: ClaimsAnalysis) -> int:
    """Return how many pages `evidence_matrix` has; at least 1."""
    return max(1, -(-analysis.reading_order.size // ROWS))


def evidence_matrix(analysis: ClaimsAnalysis, page: int = 1) -> go.Figure:
    """Draw the claims of all answers against their passages, by retrieval rank, 15 to a page (from 1).

    Rows are claims, answer by answer, those with the most unsupported claims first; a line is between two
    answers. Cells are probabilities of support, darker from the support threshold on; what was not scored is
    crossed, and where an answer had fewer passages there is no cell. The mark at the end of a row is the
    state of its claim, and leads to its question. A run may have any size: only the claims of the page are
    read.
    """
    order, start = analysis.reading_order, ROWS * (page - 1)
    if not order.size:
        return theme.empty_figure("No claim was extracted from any answer.")
    rows, values, texts = _data(analysis, order[start : start + ROWS])
    n, ranks = values.shape
    found = rows["state"].value_counts()
    counted = ", ".join(f"{found[state]:,} {state}" for state in CLAIM_STATES if state in found)
    n_answers = int((analysis.queries["n_claims"] > 0).sum())
    alt = (
        f"Claims {start + 1:,} to {start + n:,} of {count(order.size, 'claim')} of "
        f"{count(n_answers, 'answer')} against the passages by retrieval rank: {counted}."
    )
    figure = theme.new_figure(alt, "Passage, by retrieval rank", "", height=150 + _ROW * n)
    figure.add_heatmap(
        x=list(range(1, ranks + 1)), y=list(range(n)), z=values, zmin=0, zmax=1, xgap=1, ygap=1,
        colorscale=stepped("well supported", analysis.threshold), text=texts, hoverongaps=False,
        hovertemplate="%{text}<extra></extra>", showlegend=False,
        colorbar=support_bar(analysis.threshold, 1),
    )  # fmt: skip
    verified = (rows["state"] != IRRELEVANT).to_numpy()
    missing = np.isnan(values) & (np.array(texts) != "") & verified[:, None]
    at, rank = (places.tolist() for places in np.nonzero(missing))
    crosses = [texts[i][j] for i, j in zip(at, rank, strict=True)]
    theme.add_marks(figure, "Not scored", [j + 1 for j in rank], at, theme.marker("unscored", 8), crosses)
    for state, own in rows.groupby("state", sort=False):
        theme.add_marks(
            figure, str(state).capitalize(), [ranks + 1] * len(own), own.index.tolist(),
            theme.marker(str(state), 11), own["hover"], own["query_id"].map(theme.question_door),
        )  # fmt: skip
    for y in np.flatnonzero(rows["query_id"].ne(rows["query_id"].shift()))[1:]:
        figure.add_hline(y=y - 0.5, line={**theme.BORDER, "dash": "solid", "width": 1})
    shown = list(range(1, ranks + 1, max(1, -(-ranks // _TICKS))))
    figure.update_xaxes(
        range=[0.5, ranks + 1.6], tickvals=[*shown, ranks + 1], ticktext=[*map(str, shown), "<br>State"],
        tickangle=0, showgrid=False, zeroline=False,
    )  # fmt: skip
    figure.update_yaxes(
        range=[n - 0.5, -0.5], showgrid=False, zeroline=False, tickvals=list(range(n)),
        ticktext=[theme.safe_text(text, _LABEL) for text in rows["text"]], tickfont={"size": 11},
    )  # fmt: skip
    figure.update_layout(margin={"t": 60}, showlegend=True)
    return figure


def _data(analysis: ClaimsAnalysis, claims: Ints) -> tuple[pd.DataFrame, Floats, list[list[str]]]:
    """Return the claims of a page, their probabilities by rank, and what each cell says ("" without one)."""
    layout = analysis.layout
    queries, width = layout.query[claims].tolist(), layout.width[claims].tolist()
    rows = analysis.scores.iloc[claims][["state", "uncertainty", "support_maximum"]].reset_index(drop=True)
    rows["text"] = layout.claims["text"].iloc[claims].to_list()
    rows[["query_id", "question"]] = analysis.queries.iloc[queries][["query_id", "question"]].to_numpy()
    values = np.full((len(claims), max(*width, 1)), np.nan)
    passages = analysis.run.passages[["title", "passage_id"]]
    hover, texts = [], []
    for row, claim, query, n in zip(rows.itertuples(), claims.tolist(), queries, width, strict=True):
        values[row.Index, :n] = layout.probability[layout.start[claim] : layout.start[claim] + n]
        said = f"{theme.safe_text(row.text, _HOVER)}<br>{theme.safe_text(row.question, 100)}"
        hover.append(
            f"{said}<br>{theme.SIGNS[row.state]} {row.state}, U(c) {number(row.uncertainty)}, best support "
            f"{number(row.support_maximum)}"
        )
        listed = passages.iloc[layout.passages_of(query)].itertuples(index=False)
        cells = [
            f"{said}<br>Rank {rank}: {theme.safe_text(theme.name_of(*passage), 60)}<br>"
            + ("Not scored" if np.isnan(p) else f"Probability {number(p)}")
            for rank, (passage, p) in enumerate(zip(listed, values[row.Index], strict=False), start=1)
        ]
        texts.append(cells + [""] * (values.shape[1] - n))
    return rows.assign(hover=hover), values, texts
