"""One answer: how far each passage supports it, beside its influence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.claims.analysis.answer import AnswerClaims
from core.claims.three_valued import thresholded
from core.text.display import count, number


class _Data(NamedTuple):
    bars: pd.DataFrame  # place (1 on top), importance, supports (1, 0, NaN), influence, hover
    n_relevant: int


def passage_importance_bars(answer: AnswerClaims, passages: pd.DataFrame | None = None) -> go.Figure:
    """Draw the mean support of each passage for the relevant claims, in retrieval order.

    Bars of passages that support no claim are hatched; a passage without any score has no bar and is marked
    unscored. Circles show the influence, so that support and use can be compared.

    ``passages`` are rows of ``ClaimsAnalysis.passages``, with ``passage_id``, ``influence`` and ``quadrant``;
    rows of other questions are ignored. Empty where there are no passages or no relevant claims.
    """
    return _draw(_data(answer, passages))


def _data(answer: AnswerClaims, passages: pd.DataFrame | None) -> _Data:
    matrix = answer.matrix
    relevant = matrix.probabilities[matrix.relevant]
    n_supported = (thresholded(relevant, matrix.threshold) == 1).sum(axis=0)
    known = _known(answer, passages)
    bars = pd.DataFrame(
        {
            "place": np.arange(1, len(matrix.passages) + 1),
            "importance": matrix.passage_importance,
            "supports": matrix.passage_support,
            "influence": known["influence"].astype(float).to_numpy(),
        }
    )
    columns = answer.passage_ids, answer.titles, n_supported, known["quadrant"]
    bars["hover"] = [
        _hover(row.place, name, title, row.importance, n, row.influence, quadrant)
        for row, name, title, n, quadrant in zip(bars.itertuples(), *columns, strict=True)
    ]
    return _Data(bars, int(matrix.relevant.sum()))


def _known(answer: AnswerClaims, passages: pd.DataFrame | None) -> pd.DataFrame:
    """Return influence and quadrant of the answer's passages, missing where they are not given."""
    if passages is None:
        return pd.DataFrame({"influence": np.nan, "quadrant": ""}, index=range(len(answer.passage_ids)))
    rows = passages
    if "query_id" in rows:
        rows = rows[rows["query_id"] == answer.query_id]
    rows = rows.drop_duplicates("passage_id").set_index("passage_id")
    found = rows.reindex(list(answer.passage_ids))[["influence", "quadrant"]]
    return found.astype({"quadrant": object}).fillna({"quadrant": ""})


def _hover(
    place: int, name: str, title: object, importance: float, n: int, influence: float, quadrant: str
) -> str:
    lines = [f"P{place}: {theme.safe_text(name, 40)}"]
    if theme.plain_text(title) not in ("", "—"):
        lines.append(theme.safe_text(title, 60))
    lines.append(
        "No claim was scored against it"
        if np.isnan(importance)
        else f"Mean support {number(importance, '{:.3f}')}<br>Supports {count(n, 'claim')}"
    )
    lines.append(f"Influence {'unknown' if np.isnan(influence) else number(influence, '{:.3f}')}")
    return "<br>".join([*lines, theme.safe_text(quadrant, 40)] if quadrant else lines)


def _draw(data: _Data) -> go.Figure:
    bars = data.bars
    if not len(bars):
        return theme.empty_figure("This question has no passages.")
    if not data.n_relevant:
        return theme.empty_figure("This answer has no relevant claim that a passage could support.")
    known = bars[bars["importance"].notna()]
    influence = bars[bars["influence"].notna()]
    height = int(np.clip(160 + 26 * len(bars), 260, 1_600))
    title = "Mean support" if not len(influence) else "Mean support (bar), influence (circle)"
    figure = theme.new_figure(_alt(data, known, influence), title, "Passage, in retrieval order", height)
    supports = known["supports"]
    for name, rows, style in (
        ("Supports a claim", known[supports == 1], "well supported"),
        ("Supports no claim", known[supports == 0], "unsupported"),
        ("No support found, not all scored", known[supports.isna()], "unscored"),
    ):
        name = f"{name} ({len(rows):,})"
        theme.add_row_bars(figure, name, rows["importance"], rows["place"], style, rows["hover"])
    circle = {**theme.marker("influence", 11), "line": {"width": 1.5, "color": "white"}}
    x, y, hover = (influence[name] for name in ("influence", "place", "hover"))
    theme.add_marks(figure, "Influence", x, y, circle, hover, cliponaxis=False)
    for at in bars.loc[bars["importance"].isna(), "place"]:
        figure.add_annotation(text="unscored", x=0, y=at, xanchor="left", xshift=8, showarrow=False)
    figure.update_xaxes(range=[0, 1.02], tickvals=[0, 0.25, 0.5, 0.75, 1])
    theme.name_rows(figure, [f"P{at}" for at in bars["place"]])
    figure.update_layout(barmode="overlay")
    return figure


def _alt(data: _Data, known: pd.DataFrame, influence: pd.DataFrame) -> str:
    n = len(data.bars)
    text = f"Mean support of {count(n, 'passage')} for {count(data.n_relevant, 'relevant claim')}: "
    if len(known):
        best = known.loc[known["importance"].idxmax()]
        text += f"highest {number(best['importance'])} (P{int(best['place'])}), "
    text += f"{int((known['supports'] == 1).sum())} support a claim, {n - len(known)} unscored"
    if len(influence):
        most = influence.loc[influence["influence"].idxmax()]
        text += f"; highest influence {number(most['influence'])} (P{int(most['place'])})"
        text += f", unknown for {n - len(influence)}"
    return f"{text}."
