"""Influence vs support: whether a passage changes the answer, and whether it supports it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.arrays import Floats
from core.charts.theme import (
    BORDER,
    count_heatmap,
    doors,
    empty_figure,
    marker,
    name_of,
    new_figure,
    question_door,
    safe_text,
    where_door,
)
from core.claims.analysis import ClaimsAnalysis
from core.claims.quadrants import DISTRACTOR, IDLE, REDUNDANT, UNDEFINED, USED, quadrant_counts
from core.conditions import where
from core.text.display import count, number

DENSITY_ABOVE = 2_000  # passages
_CELLS = 30  # a side
_NAMED = 3  # passages that the hover of one marker names
_STYLES = {USED: "well supported", DISTRACTOR: "unsupported", REDUNDANT: "fragile", IDLE: "irrelevant"}
_ROOM = 0.34  # above and below the values, for the names of the quadrants


class _Data(NamedTuple):
    places: pd.DataFrame  # quadrant, influence, support, n, names: one row per place that passages share
    counts: pd.DataFrame  # quadrant, n, share, expected; the last row is "undefined"
    threshold: float
    with_noise: bool  # some influence was compared with repeated calls
    n_passages: int
    cells: _Grid | None


class _Grid(NamedTuple):
    influence: Floats  # edges; the first cell is for no influence at all
    support: Floats  # edges; the threshold is one of them
    counts: Floats  # rows are support


def claims_quadrants(analysis: ClaimsAnalysis) -> go.Figure:
    """Draw the best support of every passage for a relevant claim against its influence.

    Symbols and colours are the quadrants; their names are in the corners with the number and the share
    of the passages, and the count that chance gives: influence and support paired at random within each
    question. There is no jitter: passages with the same numbers share a marker, whose area grows with their
    number and which leads to their questions. Above 2,000 passages counts per cell are drawn instead. Where
    the noise of a question is known, influence counts only above it, so the quadrants have no common border
    there. Passages with unknown influence or support are left out and counted; empty when all are.
    """
    return _draw(_data(analysis))


def _data(analysis: ClaimsAnalysis) -> _Data:
    passages = analysis.passages
    counts = quadrant_counts(passages["quadrant"].tolist())
    counts["expected"] = _expected(passages[passages["quadrant"] != UNDEFINED])
    known = passages[(passages["quadrant"] != UNDEFINED).to_numpy(dtype=bool)]
    influence = known["influence"].astype(float).to_numpy()
    support = known["support"].astype(float).to_numpy()
    with_noise = bool(known["above_noise"].notna().any())
    if len(known) > DENSITY_ABOVE:
        cells = _grid(influence, support, analysis.threshold)
        return _Data(pd.DataFrame(), counts, analysis.threshold, with_noise, len(known), cells)
    titles = _titles(analysis, known)
    frame = pd.DataFrame(
        {
            "query_id": known["query_id"].to_numpy(),
            "quadrant": known["quadrant"].to_numpy(),
            "influence": influence.round(3),
            # Rounding must not carry a passage over the line that decides.
            "support": np.where(
                support < analysis.threshold, np.floor(support * 1000) / 1000, support.round(3)
            ),
            "name": titles,
            "true_influence": influence,
            "true_support": support,
        }
    )
    places = frame.groupby(["quadrant", "influence", "support"], as_index=False).agg(
        n=("name", "size"),
        names=("name", lambda names: list(names[:_NAMED])),
        query_id=("query_id", "first"),
        n_questions=("query_id", "nunique"),
        **{
            f"{end}_{name}": (f"true_{name}", end)
            for name in ("influence", "support")
            for end in ("min", "max")
        },
    )
    return _Data(places, counts, analysis.threshold, with_noise, len(known), None)


def _expected(known: pd.DataFrame) -> list[float]:
    """Return the count of each quadrant if influence and support were paired at random in each question."""
    used = known["quadrant"].isin([USED, DISTRACTOR])
    supports = known["quadrant"].isin([USED, REDUNDANT])
    one = pd.DataFrame({"n": 1, "used": used, "supports": supports}).groupby(known["query_id"]).sum()
    return [
        float((one_way * other_way / one["n"]).sum())
        for one_way, other_way in (
            (one["used"], one["supports"]),
            (one["used"], one["n"] - one["supports"]),
            (one["n"] - one["used"], one["supports"]),
            (one["n"] - one["used"], one["n"] - one["supports"]),
        )
    ] + [np.nan]


def _titles(analysis: ClaimsAnalysis, known: pd.DataFrame) -> list[str]:
    """Return the title of each passage, by its question: its id where it has none."""
    keys = ["query_id", "passage_id"]
    titles = known[keys].merge(analysis.run.passages[[*keys, "title"]], on=keys, how="left")["title"]
    asked = known["query_id"].map(analysis.run.queries.set_index("query_id")["question"])
    return [
        f"{safe_text(name_of(title, passage_id), 40)}<br>{safe_text(question, 60)}"
        for title, passage_id, question in zip(titles, known["passage_id"], asked, strict=True)
    ]


def _grid(influence: Floats, support: Floats, threshold: float) -> _Grid:
    top = max(float(influence.max()), 1e-9)
    across = np.linspace(0, top, _CELLS + 1)
    below = max(1, round(_CELLS * threshold))
    up = np.linspace(0, threshold, below + 1)
    if threshold < 1:
        up = np.concatenate([up, np.linspace(threshold, 1, max(1, _CELLS - below) + 1)[1:]])
    else:
        up = np.append(up, 1 + 1 / below)  # a support of 1 lies above the line, not below
    # Cells are open below: an influence of 0 is no small influence and has a column of its own.
    column = np.clip(np.searchsorted(across, influence, side="left"), 0, _CELLS)
    row = np.clip(np.searchsorted(up, support, side="right") - 1, 0, len(up) - 2)
    counts = np.zeros((len(up) - 1, _CELLS + 1))
    np.add.at(counts, (row, column), 1)
    return _Grid(np.append(-across[1], across), up, counts)


def _draw(data: _Data) -> go.Figure:
    undefined = int(data.counts["n"].iloc[-1])
    if not data.n_passages:
        return empty_figure(
            "No passage has both a known influence and a known support, so none has a quadrant."
            if undefined
            else "There are no passages with claims to support."
        )
    listed = ", ".join(
        f"{n:,} {name} ({_percent(share)}; {number(by_chance, '{:.1f}')} by chance)"
        for name, n, share, by_chance in _defined(data)
    )
    alt = (
        f"Best support against influence of {count(data.n_passages, 'passage')}: {listed}; "
        f"{undefined:,} undefined and not shown."
    )
    rule = "used = above the noise" if data.with_noise else "used = above 0"
    figure = new_figure(alt, f"Influence ({rule})", "Best support for a relevant claim", height=460)
    if data.cells:
        _add_grid(figure, data.cells)
    else:
        _add_markers(figure, data.places)
    figure.add_hline(y=data.threshold, line=BORDER)
    if not data.with_noise:
        # Not over the full height: the names of the quadrants need the room.
        figure.add_shape(type="line", x0=0, x1=0, y0=0, y1=1, line=BORDER, layer="below")
    _name_corners(figure, data)
    top = float(data.cells.influence[-1] if data.cells else data.places["influence"].max())
    margin = 0.06 * max(top, 0.1)
    low = data.cells.influence[0] if data.cells else min(0.0, data.places["influence"].min()) - margin
    figure.update_xaxes(range=[float(low), max(top, 0.1) + margin])
    figure.update_yaxes(range=[-_ROOM, 1 + _ROOM], tickvals=[0, 0.25, 0.5, 0.75, 1])
    return figure


def _defined(data: _Data) -> list[tuple[str, int, float, float]]:
    rows = data.counts.iloc[:-1]
    return list(zip(*(rows[name] for name in ("quadrant", "n", "share", "expected")), strict=True))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _add_grid(figure: go.Figure, cells: _Grid) -> None:
    hover = "Influence about %{x:.2f}<br>Support about %{y:.2f}"
    figure.add_trace(count_heatmap(cells.influence, cells.support, cells.counts, "passages", hover))
    width = cells.influence[-1] - cells.influence[-2]
    ticks = [at for at in (0.25, 0.5, 0.75, 1.0) if at <= cells.influence[-1]] or [float(cells.influence[-1])]
    figure.update_xaxes(tickvals=[-width / 2, *ticks], ticktext=["0", *(f"{at:g}" for at in ticks)])


def _add_markers(figure: go.Figure, places: pd.DataFrame) -> None:
    most = int(places["n"].max())
    for quadrant, style in _STYLES.items():
        chosen = places[places["quadrant"] == quadrant]
        size = 8 + 18 * np.sqrt((chosen["n"].to_numpy() - 1) / most)
        look = {**marker(style), "size": size, "opacity": 0.75, "line": {"width": 0.5, "color": "white"}}
        name = f"{quadrant.capitalize()} ({int(chosen['n'].sum()):,})"
        if len(chosen):
            figure.add_scatter(
                name=name,
                mode="markers",
                x=chosen["influence"],
                y=chosen["support"],
                marker=look,
                cliponaxis=False,
                **doors(
                    figure,
                    [_door(row) for row in chosen.itertuples()],
                    [
                        f"{_named(row.n, row.names)}<br>{_asked(row.n_questions)}"
                        f"Influence {number(row.influence, '{:.3f}')}, "
                        f"support {number(row.support, '{:.3f}')}<br>{quadrant.capitalize()}"
                        for row in chosen.itertuples()
                    ],
                ),
            )


def _door(row: Any) -> str:
    if row.n_questions == 1:
        return question_door(row.query_id)
    near = {
        "influence": (row.min_influence, float(np.nextafter(row.max_influence, np.inf))),
        "support": (row.min_support, float(np.nextafter(row.max_support, np.inf))),
    }
    return where_door(where("claims", "passages", quadrant=row.quadrant, **near))


def _asked(n_questions: int) -> str:
    return f"In {count(n_questions, 'question')}<br>" if n_questions > 1 else ""


def _named(n: int, names: list[str]) -> str:
    more = [f"and {n - len(names):,} more"] if n > len(names) else []
    return "<br>".join([*names, *more])


def _name_corners(figure: go.Figure, data: _Data) -> None:
    corners = {USED: (1, 1), DISTRACTOR: (1, 0), REDUNDANT: (0, 1), IDLE: (0, 0)}
    for quadrant, n, share, by_chance in _defined(data):
        x, y = corners[quadrant]
        figure.add_annotation(
            text=f"<b>{quadrant.capitalize()}</b><br>{n:,} ({_percent(share)})"
            f"<br>{number(by_chance, '{:.1f}')} by chance",
            x=x, xref="paper", xanchor="right" if x else "left", align="right" if x else "left",
            y=y, yref="paper", yanchor="top" if y else "bottom", showarrow=False, font={"size": 12},
        )  # fmt: skip
