"""Influence vs support: whether a passage changes the answer, and whether it supports it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.arrays import Floats
from core.charts import theme
from core.charts.points import add_density
from core.claims.analysis import ClaimsAnalysis
from core.claims.quadrants import DISTRACTOR, IDLE, REDUNDANT, UNDEFINED, USED, quadrant_counts
from core.conditions import where
from core.text.display import count, number

DENSITY_ABOVE = 2_000  # passages
_CELLS = 30  # a side
_NAMED = 3  # passages that the hover of one marker names
_ROOM = 0.34  # above and below the values, for the names of the quadrants
_LOOKS = {  # style, and corner of the figure
    USED: ("well supported", 1, 1),
    DISTRACTOR: ("unsupported", 1, 0),
    REDUNDANT: ("fragile", 0, 1),
    IDLE: ("irrelevant", 0, 0),
}


def claims_quadrants(analysis: ClaimsAnalysis) -> go.Figure:
    """Draw the best support of every passage for a relevant claim against its influence.

    Symbols and colours are the quadrants; the corners have the number and the share of the passages, and the
    count that chance gives: influence and support paired at random within each question. Passages with the
    same numbers share a marker, whose area grows with their number. Above 2,000 passages counts per cell are
    drawn. Where the noise of a question is known, influence counts only above it, so the quadrants have no
    common border there. Unknown ones are counted; empty when all are.
    """
    known = analysis.passages[(analysis.passages["quadrant"] != UNDEFINED).to_numpy(dtype=bool)]
    counts = _counts(analysis.passages)
    undefined = int(counts["n"].iloc[-1])
    if known.empty:
        return theme.empty_figure(
            "No passage has both a known influence and a known support, so none has a quadrant."
            if undefined
            else "There are no passages with claims to support."
        )
    drawn = [row._replace(share=f"{100 * row.share:.0f} %") for row in counts.iloc[:-1].itertuples()]
    listed = ", ".join(
        f"{row.n:,} {row.quadrant} ({row.share}; {number(row.expected, '{:.1f}')} by chance)" for row in drawn
    )
    alt = (
        f"Best support against influence of {count(len(known), 'passage')}: {listed}; "
        f"{undefined:,} undefined and not shown."
    )
    with_noise = bool(known["above_noise"].notna().any())
    rule = "used = above the noise" if with_noise else "used = above 0"
    up = "Best support for a relevant claim"
    figure = theme.new_figure(alt, f"Influence ({rule})", up, height=460)
    add = _add_density if len(known) > DENSITY_ABOVE else _add_markers
    low, top = add(figure, analysis, known)
    figure.add_hline(y=analysis.threshold, line=theme.BORDER)
    if not with_noise:
        # Not over the full height: the names of the quadrants need the room.
        figure.add_shape(type="line", x0=0, x1=0, y0=0, y1=1, line=theme.BORDER, layer="below")
    for row in drawn:
        _, x, y = _LOOKS[row.quadrant]
        figure.add_annotation(
            text=f"<b>{row.quadrant.capitalize()}</b><br>{row.n:,} ({row.share})"
            f"<br>{number(row.expected, '{:.1f}')} by chance",
            x=x, xref="paper", xanchor="right" if x else "left", align="right" if x else "left",
            y=y, yref="paper", yanchor="top" if y else "bottom", showarrow=False, font={"size": 12},
        )  # fmt: skip
    figure.update_xaxes(range=[low, max(top, 0.1) + _margin(top)])
    figure.update_yaxes(range=[-_ROOM, 1 + _ROOM], tickvals=[0, 0.25, 0.5, 0.75, 1])
    return figure


def _margin(top: float) -> float:
    return 0.06 * max(top, 0.1)


def _counts(passages: pd.DataFrame) -> pd.DataFrame:
    """Return quadrant, n, share, and the count if influence and support were paired at random by question."""
    counts = quadrant_counts(passages["quadrant"].tolist())
    known = passages[passages["quadrant"] != UNDEFINED]
    used = known["quadrant"].isin([USED, DISTRACTOR])
    supports = known["quadrant"].isin([USED, REDUNDANT])
    one = pd.DataFrame({"n": 1, "used": used, "supports": supports}).groupby(known["query_id"]).sum()
    ways = [(n, other) for n in (one["used"], one["n"] - one["used"])
            for other in (one["supports"], one["n"] - one["supports"])]  # fmt: skip
    return counts.assign(expected=[*(float((n * other / one["n"]).sum()) for n, other in ways), np.nan])


def _add_density(figure: go.Figure, analysis: ClaimsAnalysis, known: pd.DataFrame) -> tuple[float, float]:
    """Add counts per cell; return where the axis of influence begins, and the largest influence."""
    influence = known["influence"].astype(float)
    across, up = _edges(influence.max(), analysis.threshold)
    hover = "Influence about %{x:.2f}<br>Support about %{y:.2f}"
    add_density(figure, influence, known["support"].astype(float), "passages", hover, (across, up))
    low, top = float(across[0]), float(across[-1])
    ticks = [at for at in (0.25, 0.5, 0.75, 1.0) if at <= top] or [top]
    figure.update_xaxes(tickvals=[low / 2, *ticks], ticktext=["0", *(f"{at:g}" for at in ticks)])
    return low, top


def _edges(top: float, threshold: float) -> tuple[Floats, Floats]:
    """Return the ends of the cells across (no influence has a column of its own) and up."""
    across = np.linspace(0, max(float(top), 1e-9), _CELLS + 1)
    below = max(1, round(_CELLS * threshold))
    above = np.linspace(threshold, 1, max(1, _CELLS - below) + 1) if threshold < 1 else [1, 1 + 1 / below]
    up = np.concatenate([np.linspace(0, threshold, below + 1)[:-1], above])
    return np.concatenate([[-across[1], np.nextafter(0, 1)], across[1:]]), up


def _add_markers(figure: go.Figure, analysis: ClaimsAnalysis, known: pd.DataFrame) -> tuple[float, float]:
    """Add a marker per place; return where the axis of influence begins, and the largest influence."""
    places = _places(analysis, known)
    most = int(places["n"].max())
    for quadrant, (style, _, _) in _LOOKS.items():
        chosen = places[places["quadrant"] == quadrant]
        size = 8 + 18 * np.sqrt((chosen["n"].to_numpy() - 1) / most)
        look = {
            **theme.marker(style),
            "size": size,
            "opacity": 0.75,
            "line": {"width": 0.5, "color": "white"},
        }
        rows = list(chosen.itertuples())
        theme.add_marks(
            figure, f"{quadrant.capitalize()} ({int(chosen['n'].sum()):,})", chosen["influence"],
            chosen["support"], look, [_hover(row) for row in rows], [_door(row) for row in rows],
            cliponaxis=False,
        )  # fmt: skip
    top = float(places["influence"].max())
    return min(0.0, float(places["influence"].min())) - _margin(top), top


def _places(analysis: ClaimsAnalysis, known: pd.DataFrame) -> pd.DataFrame:
    """Return one row per place that passages share."""
    keys = ["query_id", "passage_id"]
    titles = known[keys].merge(analysis.run.passages[[*keys, "title"]], on=keys, how="left")["title"]
    asked = known["query_id"].map(analysis.run.queries.set_index("query_id")["question"])
    names = [
        f"{theme.safe_text(theme.name_of(title, passage_id), 40)}<br>{theme.safe_text(question, 60)}"
        for title, passage_id, question in zip(titles, known["passage_id"], asked, strict=True)
    ]
    true = known[["query_id", "quadrant"]].assign(
        name=names,
        true_influence=known["influence"].astype(float),
        true_support=known["support"].astype(float),
    )
    # Rounding must not carry a passage over the line that decides.
    support = true["true_support"]
    down = np.floor(support * 1000) / 1000
    true["support"] = np.where(support < analysis.threshold, down, support.round(3))
    true["influence"] = true["true_influence"].round(3)
    return true.groupby(["quadrant", "influence", "support"], as_index=False).agg(
        n=("name", "size"),
        names=("name", lambda found: list(found[:_NAMED])),
        query_id=("query_id", "first"),
        n_questions=("query_id", "nunique"),
        **{
            f"{end}_{name}": (f"true_{name}", end)
            for name in ("influence", "support")
            for end in ("min", "max")
        },
    )


def _hover(row: Any) -> str:
    more = [f"and {row.n - len(row.names):,} more"] if row.n > len(row.names) else []
    asked = [f"In {count(row.n_questions, 'question')}"] if row.n_questions > 1 else []
    values = f"Influence {number(row.influence, '{:.3f}')}, support {number(row.support, '{:.3f}')}"
    return "<br>".join([*row.names, *more, *asked, values, row.quadrant.capitalize()])


def _door(row: Any) -> str:
    if row.n_questions == 1:
        return theme.question_door(row.query_id)
    near = {
        "influence": (row.min_influence, float(np.nextafter(row.max_influence, np.inf))),
        "support": (row.min_support, float(np.nextafter(row.max_support, np.inf))),
    }
    return theme.where_door(where("claims", "passages", quadrant=row.quadrant, **near))
