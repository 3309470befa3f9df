"""The one place for the colours, symbols, text rules and common layout of every figure.

Text keeps the colour that the surrounding page gives it, and backgrounds are transparent, so a
figure reads on light and on dark pages. Colours are from the Okabe-Ito set, which people with any
common colour vision tell apart, darkened where white paper needs it; each meaning has a symbol and
a hatch of its own, so colour is never the only difference.
"""

from __future__ import annotations

import html
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from urllib.parse import quote

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from core.text.display import number

GRID = "rgba(128, 128, 128, 0.25)"
AXIS = "rgba(128, 128, 128, 0.55)"
BAND = "rgba(128, 128, 128, 0.18)"
BORDER = {"color": AXIS, "width": 1.5, "dash": "dot"}
DASHED = {"color": AXIS, "width": 2, "dash": "dash"}
FONT_SIZE = 13
HEIGHT = 380
TEXT_LIMIT = 80
_INVITES = {
    "question": "Click to open it",
    "where": "Click to list these questions",
    "finding": "Click to list these questions",
}
_WRAP = 40  # characters a line that a hover box on a phone has room for
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

Floats: TypeAlias = NDArray[np.floating]
Column: TypeAlias = Sequence[object] | pd.Series
Doors: TypeAlias = Sequence[str] | pd.Series


class Style(NamedTuple):
    """How one meaning looks: its colour, its marker symbol and its hatch ("" is solid)."""

    color: str
    symbol: str
    pattern: str


STYLES: dict[str, Style] = {
    "Aligned": Style("#0072B2", "circle", ""),
    "Divergent": Style("#D55E00", "diamond", "/"),
    "Undefined": Style("#858585", "x", "."),
    "neutral": Style("#6E8197", "circle", ""),
    "influence": Style("#009E73", "circle", ""),
    "retrieval": Style("#B8679A", "line-ns", ""),
    "highlight": Style("#B57A00", "star", "x"),
    "raised": Style("#009E73", "triangle-up", "/"),
    "lowered": Style("#B8679A", "triangle-down", "\\"),
    # Claims: blue is support, as in the matrix; what has none is red or grey.
    "well supported": Style("#0072B2", "circle", ""),
    "fragile": Style("#B57A00", "triangle-up", "/"),
    "joint": Style("#B8679A", "cross", "+"),
    "unsupported": Style("#D55E00", "diamond", "\\"),
    "unscored": Style("#858585", "x", "."),
    "irrelevant": Style("#6E8197", "square", "-"),
}

# One character per state of a claim, for places that have text and no markers.
SIGNS: dict[str, str] = {
    "well supported": "●",
    "fragile": "▲",
    "joint": "✚",
    "unsupported": "◆",
    "unscored": "✖",
    "irrelevant": "■",
}


def plain_text(value: object, limit: int = TEXT_LIMIT) -> str:
    """Return text from data on one line, without control characters, cut to ``limit`` characters.

    Controls that turn the reading direction go too: they could make a label read as another.
    Missing values come out as "—".
    """
    if not isinstance(value, str):
        return "—" if value is None or value != value else str(value)
    # Only the start can show; cutting first keeps a text of megabytes cheap.
    head = value[: 20 * limit]
    kept = "".join(
        " " if unicodedata.category(c) == "Cc" else c
        for c in head
        if c not in _BIDI_CONTROLS and unicodedata.category(c) != "Cs"
    )
    line = " ".join(kept.split())
    return line if len(line) <= limit and len(head) == len(value) else line[: limit - 1].rstrip() + "…"


def safe_text(value: object, limit: int = TEXT_LIMIT) -> str:
    """Return text from data so that a figure shows it unchanged.

    Plotly reads a subset of HTML, and LaTeX between dollar signs, in labels, hovers and
    annotations. The text is cleaned and cut by `plain_text`, broken into lines that fit a phone,
    and every character with a meaning is escaped.
    """
    lines = textwrap.wrap(plain_text(value, limit), _WRAP) or [""]
    return "<br>".join(html.escape(line, quote=False).replace("$", "&#36;") for line in lines)


def name_of(title: object, passage_id: object) -> object:
    """Return what people call a passage: its title or, where it has none, its id."""
    return title if isinstance(title, str) and title.strip() else passage_id


def alt_text(figure: go.Figure) -> str:
    """Return the plain sentence that describes a figure to readers who cannot see it."""
    meta = figure.layout.meta
    return str(meta["alt"]) if meta and "alt" in meta else ""


def question_door(query_id: object) -> str:
    """Return the door of a mark that opens a question."""
    return f"question={quote(str(query_id), safe='')}"


def where_door(condition: str) -> str:
    """Return the door of a mark that lists the questions that meet a condition (`core.conditions.where`)."""
    return f"where={quote(condition, safe='')}"


def doors(figure: go.Figure, leads_to: Iterable[str], hover: Iterable[str]) -> dict[str, object]:
    """Return the data of marks that lead somewhere and say so; the figure is told that it has some.

    ``leads_to`` has a door (`question_door`, `where_door`, "" for none) and ``hover`` a text for each mark.
    """
    data = [
        (door, f"{text}<br>{_INVITES.get(door.partition('=')[0], '')}".removesuffix("<br>"))
        for door, text in zip(leads_to, hover, strict=True)
    ]
    if any(door for door, _ in data):
        figure.layout.meta = {**(figure.layout.meta or {}), "doors": True}
    return {"customdata": data, "hovertemplate": "%{customdata[1]}<extra></extra>"}


def has_doors(figure: go.Figure) -> bool:
    """Tell whether marks of a figure lead somewhere."""
    return bool((figure.layout.meta or {}).get("doors"))


def new_figure(alt: str, x_title: str, y_title: str, height: int = HEIGHT) -> go.Figure:
    """Return a figure with the common layout, axis titles and description, and no traces.

    ``alt`` is one plain sentence with the main numbers and holds no text from data; ``height`` is in pixels.
    """
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": AXIS, "automargin": True, "fixedrange": True}
    # All at once: in updates one after another plotly takes ten times as long.
    return go.Figure(
        layout={
            "meta": {"alt": alt},
            "height": height,
            "margin": {"l": 8, "r": 12, "t": 16, "b": 8},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"size": FONT_SIZE},
            "legend": {
                "orientation": "h",
                "yref": "container",
                "y": 0,
                "yanchor": "bottom",
                "xref": "container",
                "x": 0.5,
                "xanchor": "center",
                "bgcolor": "rgba(0,0,0,0)",
                "itemsizing": "constant",
                "font": {"size": FONT_SIZE - 1},
                "title": {"text": ""},
            },
            "hoverlabel": {"align": "left", "namelength": -1},
            "dragmode": False,
            "xaxis": {**axis, "title": {"standoff": 8, "text": x_title}},
            "yaxis": {**axis, "title": {"standoff": 8, "text": y_title}},
        }
    )


def empty_figure(missing: str) -> go.Figure:
    """Return a figure that shows only one sentence: what is missing."""
    figure = new_figure(missing, "", "", height=200)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.add_annotation(
        text="<br>".join(textwrap.wrap(missing, _WRAP)), font={"size": FONT_SIZE + 1}, showarrow=False,
        x=0.5, y=0.5, xref="paper", yref="paper",
    )  # fmt: skip
    return figure


def marker(style: str, size: float = 9) -> dict[str, object]:
    """Return the marker of one meaning; `STYLES` names them. ``size`` in pixels."""
    chosen = STYLES[style]
    return {"color": chosen.color, "symbol": chosen.symbol, "size": size}


def bar_marker(style: str) -> dict[str, object]:
    """Return the bar fill of one meaning: colour and hatch."""
    chosen = STYLES[style]
    return {
        "color": chosen.color,
        # A dark hatch shows on either page background, and white counts stay readable on it.
        "pattern": {"shape": chosen.pattern, "fgcolor": "rgba(0,0,0,0.4)", "fillmode": "overlay", "size": 7},
        "line": {"width": 0},
    }


def fade(style: str, low: float = 0.25, high: float = 1.0) -> list[tuple[float, str]]:
    """Return a scale from nearly clear to full colour; it reads the same way on light and dark."""
    color = STYLES[style].color
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return [(at, f"rgba({red},{green},{blue},{low + (high - low) * at:g})") for at in (0.0, 1.0)]


def two_sided(low: float = 0.0, high: float = 1.0) -> list[tuple[float, str]]:
    """Return a scale around 0: red below, blue above, palest in the middle."""
    below = [(0.5 - at / 2, color) for at, color in reversed(fade("Divergent", low, high))]
    return [*below, *((0.5 + at / 2, color) for at, color in fade("Aligned", low, high))]


def error_bars(
    value: ArrayLike, low: ArrayLike, high: ArrayLike, color: str | None = None, thickness: float = 2
) -> dict[str, object]:
    """Return the error bars from ``low`` to ``high``; an unknown bound (NaN) has none."""
    middle = np.asarray(value, dtype=np.float64)
    return {
        "type": "data",
        "symmetric": False,
        "array": np.nan_to_num(np.asarray(high) - middle),
        "arrayminus": np.nan_to_num(middle - np.asarray(low)),
        "thickness": thickness,
        "width": 2 * thickness + 1,
        "color": color,
    }


def add_band(
    figure: go.Figure, name: str, x: Iterable[float], low: Floats, high: Floats, color: str = BAND
) -> None:
    """Fill the range from ``low`` to ``high`` along ``x``."""
    there = list(x)
    figure.add_scatter(
        name=name,
        mode="lines",
        x=[*there, *there[::-1]],
        y=[*high, *low[::-1]],
        fill="toself",
        fillcolor=color,
        line={"width": 0},
        hoverinfo="skip",
    )


def add_line(
    figure: go.Figure,
    name: str,
    x: Iterable[object],
    y: Iterable[object],
    line: Mapping[str, object] | None = None,
) -> None:
    """Add a line to compare with, dotted by default: a limit, a diagonal, what chance gives; no hover."""
    figure.add_scatter(name=name, mode="lines", x=x, y=y, line=line or BORDER, hoverinfo="skip")


def add_marks(
    figure: go.Figure,
    name: str | None,
    x: Column,
    y: Column,
    look: Mapping[str, object] | None,
    hover: str | Iterable[str] | None = None,
    leads_to: Doors = (),
    **options: object,
) -> None:
    """Add one marker per point, where there are any; ``hover`` is a template for all or a text for each.

    ``leads_to`` has a door for each, where there are any (`doors`); ``mode`` "lines" needs no ``look``.
    """
    if len(x):
        said = _said(figure, hover, leads_to)
        marks = {"name": name, "mode": "markers", "x": x, "y": y, "marker": look}
        figure.add_scatter(**{**marks, **said, **options})


def add_bars(
    figure: go.Figure,
    name: str | None,
    x: Column,
    y: Column,
    style: str,
    hover: Iterable[str],
    leads_to: Doors = (),
    **options: object,
) -> None:
    """Add one bar per row, where there are any; horizontal, unless ``orientation`` is "v"."""
    if len(x):
        said = _said(figure, hover, leads_to)
        bars = {"name": name, "orientation": "h", "x": x, "y": y, "marker": bar_marker(style)}
        figure.add_bar(**{**bars, **said, **options})


def add_squares(
    figure: go.Figure, x: Column, y: Column, size: float, hover: Iterable[str], leads_to: Doors, seen: float
) -> None:
    """Lay a clear square over each cell of a heat map, which itself cannot be selected.

    ``size`` is in pixels and ``seen`` the opacity of one that is selected.
    """
    look = {"symbol": "square", "size": size, "opacity": 0, "color": STYLES["highlight"].color}
    selected = {"marker": {"opacity": seen}}
    add_marks(figure, None, x, y, look, hover, leads_to, selected=selected, showlegend=False)


def _said(figure: go.Figure, hover: str | Iterable[str] | None, leads_to: Doors) -> dict[str, object]:
    if hover is None:
        return {"hoverinfo": "skip"}
    if isinstance(hover, str):
        return {"hovertemplate": hover if "<extra>" in hover else f"{hover}<extra></extra>"}
    if len(leads_to):
        return doors(figure, leads_to, hover)
    return {"customdata": list(hover), "hovertemplate": "%{customdata}<extra></extra>"}


def add_row_bars(
    figure: go.Figure, name: str, x: Column, y: Column, style: str, hover: Iterable[str], **options: object
) -> None:
    """Add one horizontal bar per row, where there are any; pale, so that marks on it show."""
    # Outlined, so that a 0 shows as a line.
    look = {**bar_marker(style), "line": {"width": 1.5, "color": STYLES[style].color}, "opacity": 0.6}
    # Plotly's own width depends on how far apart a trace's bars are, and one may have few.
    add_bars(figure, name, x, y, style, hover, marker=look, width=0.7, **options)


def chance_tick(size: float, width: float = 3) -> dict[str, object]:
    """Return the mark of what chance alone gives, a tick across the row; in pixels."""
    return {"symbol": "line-ns", "size": size, "line": {"width": width, "color": STYLES["highlight"].color}}


def add_chance(figure: go.Figure, rows: pd.DataFrame) -> None:
    """Mark the counts that chance alone gives, with their middle 95 %, on horizontal bars.

    ``rows`` has ``title`` (of the bar), ``expected, expected_low, expected_high`` and ``note``.
    """
    color = STYLES["highlight"].color
    middle, low, high = (rows[f"expected{end}"] for end in ("", "_low", "_high"))
    hover = [
        f"By chance {number(row.expected, '{:.1f}')}<br>"
        f"95 %: {row.expected_low:.0f} to {row.expected_high:.0f}<br>{row.note}"
        for row in rows.itertuples()
    ]
    bars = error_bars(middle, low, high, color)
    add_marks(
        figure, "Chance, middle 95 %", middle, rows["title"], chance_tick(16, 4), hover, error_x=bars,
        cliponaxis=False,
    )  # fmt: skip


def count_rows(figure: go.Figure, ends: Column, names: Column, texts: Iterable[str], room: float) -> None:
    """Lay out horizontal bars of counts, the first on top, with a text beyond the end of each.

    ``room`` is how much longer than the longest bar the axis is, so that the text has its place.
    """
    for end, name, text in zip(ends, names, texts, strict=True):
        figure.add_annotation(x=end, y=name, text=text, xanchor="left", xshift=6, showarrow=False)
    most = room * max(1.0, *ends)
    figure.update_xaxes(range=[0, most], tickformat=",d", dtick=count_step(most))
    figure.update_yaxes(autorange="reversed", showgrid=False, categoryarray=names, categoryorder="array")


def name_rows(figure: go.Figure, names: Sequence[str]) -> None:
    """Name the rows 1 to n of the y axis, the first on top; at most 60 have their label."""
    step = max(1, -(-len(names) // 60))
    figure.update_yaxes(
        range=[len(names) + 0.6, 0.4],
        tickvals=list(range(1, len(names) + 1, step)),
        ticktext=names[::step],
        showgrid=False,
    )


def count_heatmap(x: Floats, y: Floats, counts: Floats, unit: str, hover: str) -> go.Heatmap:
    """Return a heat map of counts (rows are ``y``) on a log colour scale, with empty cells left clear.

    ``x`` and ``y`` are the cells' centres, ``unit`` is what is counted, in the plural; ``hover`` describes
    a cell's place, with ``%{x}`` and ``%{y}``.
    """
    # Counts of runs differ by orders of magnitude from cell to cell.
    z = np.log10(np.where(counts > 0, counts, np.nan))
    top = float(np.nanmax(z)) if counts.any() else 0.0
    ticks = [10**i for i in range(int(top) + 1)]
    return go.Heatmap(
        x=x,
        y=y,
        z=z,
        zmin=min(0.0, top),
        zmax=max(top, 1.0),
        customdata=np.round(counts, 1),
        colorscale=fade("Aligned"),
        hoverongaps=False,
        xgap=1,
        ygap=1,
        hovertemplate=f"{hover}<br>%{{customdata:,}} {unit}<extra></extra>",
        colorbar={
            "title": {"text": unit, "side": "right"},
            "thickness": 10,
            "tickvals": [float(np.log10(t)) for t in ticks],
            "ticktext": [f"{t:,}" for t in ticks],
            "outlinewidth": 0,
        },
    )


def count_step(highest: float) -> float | None:
    """Return the distance of ticks on an axis of counts: 1 while numbers are small, else plotly's choice."""
    return 1.0 if highest <= 8 else None
