"""What a figure is drawn with in SVG: axes, texts, lines, marks, bars, cells."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from core.arrays import Floats

LINE = 14  # pixels from a line of text to the next
_TAGS = re.compile(r"</?(?:b|i|sub|sup)>")
_DASHES = {"dot": "2 4", "dash": "7 5"}


@dataclass(frozen=True, slots=True)
class Axis:
    """Where values lie on one axis: ``start`` and ``end`` are the pixels of ``low`` and ``high``."""

    layout: Any
    names: tuple[str, ...]
    low: float
    high: float
    start: float
    end: float

    def at(self, values: Any) -> Floats:
        """Return the pixels of values or names; NaN for what is missing."""
        return self.start + (self.numbers(values) - self.low) / (self.high - self.low) * (
            self.end - self.start
        )

    def numbers(self, values: Any) -> Floats:
        """Return values as numbers: a name is its place."""
        return numbers(values, self.names)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the pixel and the text of every tick."""
        given, said = self.layout.tickvals, self.layout.ticktext
        if given is not None:
            texts = said if said is not None else [f"{value:g}" for value in given]
            return list(zip(self.at(given).tolist(), map(str, texts), strict=False))
        if self.names:
            return list(zip(self.at(self.names).tolist(), self.names, strict=True))
        low, high = sorted((self.low, self.high))
        step = self.layout.dtick or _step((high - low) / 5)
        if self.layout.tickformat == ",d":
            step = max(1, step)
        first = self.layout.tick0 or 0
        n = range(math.ceil((low - first) / step - 1e-9), math.floor((high - first) / step + 1e-9) + 1)
        return [(float(self.at([first + i * step])[0]), tick_text(first + i * step)) for i in n]


def numbers(values: Any, names: Sequence[str]) -> Floats:
    """Return values as numbers, NaN for what is missing; with ``names`` a text is its place among them."""
    if names:
        place = {name: float(i) for i, name in enumerate(names)}
        return np.array([place.get(v, math.nan) if isinstance(v, str) else _float(v) for v in values])
    return np.array([_float(value) for value in values], dtype=np.float64)


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)


def _step(rough: float) -> float:
    size = 10.0 ** math.floor(math.log10(rough))
    return next(size * nice for nice in (1, 2, 5, 10) if size * nice >= rough * 0.999)


def tick_text(value: float) -> str:
    """Return the text of a tick."""
    rounded = round(value, 6)
    return (f"{rounded:,.0f}" if rounded == int(rounded) else f"{rounded:g}").replace("-", "−")


def lines_of(text: str) -> list[str]:
    """Return a text of plotly, which reads a little HTML, as plain lines."""
    return [html.unescape(_TAGS.sub("", line)) for line in text.split("<br>")]


def text_at(
    x: float, y: float, text: str | Sequence[str], anchor: str, turn: str = "", size: int = 12
) -> str:
    """Return a text at pixels, escaped: of plotly, or lines."""
    lines = lines_of(text) if isinstance(text, str) else text
    spans = "".join(
        f'<tspan x="{px(x)}" dy="{0 if i == 0 else LINE}">{html.escape(line)}</tspan>'
        for i, line in enumerate(lines)
    )
    return f'<text x="{px(x)}" y="{px(y)}" text-anchor="{anchor}" font-size="{size}"{turn}>{spans}</text>'


def px(value: float) -> str:
    """Return a number of pixels as SVG has it."""
    return f"{round(float(value), 1):g}"


def stroke(line: Any, color: str | None = None) -> str:
    """Return the attributes of a line; ``color`` where it has none of its own."""
    dash = f' stroke-dasharray="{_DASHES[line.dash]}"' if line.dash in _DASHES else ""
    width = 2 if line.width is None else line.width
    return f'fill="none" stroke="{color_of(line.color or color)}" stroke-width="{px(width)}"{dash}'


def color_of(value: Any) -> str:
    """Return a colour; that of the page where a trace gives one for each mark."""
    return html.escape(value) if isinstance(value, str) else "currentColor"


def points(trace: Any, x: Axis, y: Axis) -> str:
    """Draw lines, filled bands, marks and their error bars."""
    parts, across, up = [], x.at(trace.x), y.at(trace.y)
    known = np.isfinite(across) & np.isfinite(up)
    opacity = "" if trace.opacity is None else f' opacity="{trace.opacity:g}"'
    if "lines" in (trace.mode or "lines"):
        path, pen = [], False
        for at, high, there in zip(across, up, known, strict=True):
            if there:
                path.append(f"{'L' if pen else 'M'}{px(at)} {px(high)}")
            pen = bool(there)
        filled = trace.fill == "toself"
        look = f'fill="{color_of(trace.fillcolor)}"' if filled else stroke(trace.line)
        parts.append(f'<path d="{"".join(path)}" {look}{opacity}/>')
    for bars, axis, values, other, way in (
        (trace.error_x, x, trace.x, up, "H"), (trace.error_y, y, trace.y, across, "V"),
    ):  # fmt: skip
        if bars.array is not None:
            own = axis.numbers(values)
            ends = axis.at(own - numbers(bars.arrayminus, ())), axis.at(own + numbers(bars.array, ()))
            path = [
                f"M{px(a)} {px(o)}H{px(b)}" if way == "H" else f"M{px(o)} {px(a)}V{px(b)}"
                for a, b, o, there in zip(*ends, other, known, strict=True) if there
            ]  # fmt: skip
            color = color_of(bars.color or trace.marker.color)
            look = f'fill="none" stroke="{color}" stroke-width="{bars.thickness or 2}"'
            parts.append(f'<path d="{"".join(path)}" {look}/>')
    if "markers" in (trace.mode or "") and trace.marker.opacity != 0:
        parts.append(marks(trace.marker, across[known], up[known], known, opacity))
    return "".join(parts)


def marks(marker: Any, across: Floats, up: Floats, known: Any, opacity: str) -> str:
    """Draw the marks of a trace at pixels; ``known`` says which of its places these are."""
    sizes = np.broadcast_to(
        np.asarray(6 if marker.size is None else marker.size, dtype=np.float64), known.shape
    )[known]
    symbol = marker.symbol or "circle"
    # Marks at one place and of one size are drawn once.
    path = "".join(
        dict.fromkeys(
            _mark(symbol, at, high, size / 2) for at, high, size in zip(across, up, sizes, strict=True)
        )
    )
    color = color_of(marker.color)
    outline = marker.line.width
    if symbol.endswith("-open") or symbol == "line-ns":
        stroke = color_of(marker.line.color if symbol == "line-ns" else marker.color)
        look = f'fill="none" stroke="{stroke}" stroke-width="{px(outline or 2)}"'
    else:
        edge = f' stroke="{color_of(marker.line.color)}" stroke-width="{px(outline)}"' if outline else ""
        look = f'fill="{color}"{edge}'
    pale = opacity or ("" if marker.opacity is None else f' opacity="{marker.opacity:g}"')
    return f'<path d="{path}" {look}{pale}/>' if path else ""


# Corners of a symbol, for a mark of radius 1.
_CORNERS: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    "triangle-up": ((0, -1.1), (1.1, 0.8), (-1.1, 0.8)),
    "triangle-down": ((0, 1.1), (1.1, -0.8), (-1.1, -0.8)),
    "star": tuple(
        (r * math.sin(i * math.pi / 5), -r * math.cos(i * math.pi / 5))
        for i, r in enumerate([1.3, 0.55] * 5)
    ),
    "cross": (
        (-0.4, -1), (0.4, -1), (0.4, -0.4), (1, -0.4), (1, 0.4), (0.4, 0.4), (0.4, 1), (-0.4, 1), (-0.4, 0.4),
        (-1, 0.4), (-1, -0.4), (-0.4, -0.4),
    ),
    "x": (
        (0, -0.5), (0.6, -1.1), (1.1, -0.6), (0.5, 0), (1.1, 0.6), (0.6, 1.1), (0, 0.5), (-0.6, 1.1),
        (-1.1, 0.6), (-0.5, 0), (-1.1, -0.6), (-0.6, -1.1),
    ),
}  # fmt: skip


def _mark(symbol: str, x: float, y: float, r: float) -> str:
    if symbol == "line-ns":
        return f"M{px(x)} {px(y - r)}V{px(y + r)}"
    corners = _CORNERS.get(symbol.removesuffix("-open"))
    if corners is None:
        d = px(2 * r)
        return f"M{px(x - r)} {px(y)}a{px(r)} {px(r)} 0 1 0 {d} 0a{px(r)} {px(r)} 0 1 0-{d} 0z"
    return "M" + "L".join(f"{px(x + r * a)} {px(y + r * b)}" for a, b in corners) + "z"


def bars(trace: Any, x: Axis, y: Axis, before: dict[Any, float] | None, defs: Patterns) -> str:
    """Draw bars; with the ends of those ``before``, by place, each begins where the last one ends."""
    lies = trace.orientation == "h"
    along, across = (x, y) if lies else (y, x)
    length = along.numbers(trace.x if lies else trace.y)
    place = across.numbers(trace.y if lies else trace.x)
    base = np.zeros(len(length)) if trace.base is None else along.numbers(np.atleast_1d(trace.base))
    apart = np.diff(np.unique(place[np.isfinite(place)]))
    usual = 0.8 * float(apart.min()) if apart.size else 0.8
    width = np.broadcast_to(
        np.asarray(usual if trace.width is None else trace.width, dtype=float), place.shape
    )
    path = []
    for at, size, start, wide in zip(place, length, np.broadcast_to(base, place.shape), width, strict=True):
        if not (math.isfinite(at) and math.isfinite(size)):
            continue
        if before is not None:
            key = (trace.yaxis, float(at), size < 0)
            start, before[key] = before.get(key, 0.0), before.get(key, 0.0) + size
        a, b = along.at([start, start + size])
        low, high = replace(across, names=()).at([at - wide / 2, at + wide / 2])
        (x0, x1), (y0, y1) = ((a, b), (low, high)) if lies else ((low, high), (a, b))
        path.append(f"M{px(x0)} {px(y0)}H{px(x1)}V{px(y1)}H{px(x0)}z")
    marker, line = trace.marker, trace.marker.line
    edge = f' stroke="{color_of(line.color)}" stroke-width="{px(line.width)}"' if line.width else ""
    pale = marker.opacity if marker.opacity is not None else trace.opacity
    opacity = "" if pale is None else f' opacity="{pale:g}"'
    d = "".join(path)
    found = f'<path d="{d}" fill="{color_of(marker.color)}"{edge}{opacity}/>'
    hatch = defs.fill(marker.pattern.shape)
    return found + (f'<path d="{d}" fill="{hatch}"/>' if hatch else "")


class Patterns:
    """The hatches of one figure, each defined once."""

    _PATHS: ClassVar = {
        "/": "M0 7L7 0", "\\": "M0 0L7 7", "x": "M0 7L7 0M0 0L7 7", "-": "M0 3.5H7", "+": "M0 3.5H7M3.5 0V7",
        ".": "M3 3h1.5v1.5h-1.5z",
    }  # fmt: skip

    def __init__(self, key: str) -> None:
        self._key, self._used = key, list[str]()

    def fill(self, shape: Any) -> str:
        """Return the fill of a hatch, or "" for none."""
        if shape not in self._PATHS:
            return ""
        if shape not in self._used:
            self._used.append(shape)
        return f"url(#{self._key}-{self._used.index(shape)})"

    def written(self) -> str:
        """Return the definitions."""
        found = (
            f'<pattern id="{self._key}-{i}" width="7" height="7" patternUnits="userSpaceOnUse">'
            f'<path d="{self._PATHS[shape]}" stroke="rgba(0,0,0,.45)" fill="none"/></pattern>'
            for i, shape in enumerate(self._used)
        )
        return f"<defs>{''.join(found)}</defs>" if self._used else ""


def cells(trace: Any, x: Axis, y: Axis) -> str:
    """Draw the cells of a heat map, with their texts."""
    z = np.array(trace.z, dtype=np.float64)
    edges = [
        _edges(axis.numbers(given), n)
        for axis, given, n in ((x, trace.x, z.shape[1]), (y, trace.y, z.shape[0]))
    ]
    columns, rows = x.at(edges[0]), y.at(edges[1])
    texts = np.asarray(trace.text, dtype=object) if trace.texttemplate and trace.text is not None else None
    low, high = ends_of(trace, z)
    parts = []
    for i, j in np.argwhere(np.isfinite(z)).tolist():
        color = on_scale(trace.colorscale, (z[i, j] - low) / ((high - low) or 1))
        (x0, x1), (y0, y1) = columns[j : j + 2], sorted(rows[i : i + 2])
        parts.append(
            f'<path d="M{px(x0)} {px(y0)}H{px(x1)}V{px(y1)}H{px(x0)}z" fill="{color}" class="cell"/>'
        )
        if texts is not None and texts[i, j]:
            parts.append(text_at((x0 + x1) / 2, (y0 + y1) / 2 + 4, str(texts[i, j]), "middle", size=11))
    return "".join(parts)


def ends_of(trace: Any, z: Floats) -> tuple[float, float]:
    """Return the values at the two ends of a colour scale."""
    low = float(np.nanmin(z)) if trace.zmin is None else float(trace.zmin)
    return low, float(np.nanmax(z)) if trace.zmax is None else float(trace.zmax)


def _edges(values: Floats, n: int) -> Floats:
    if len(values) == n + 1:
        return values
    half = np.diff(values) / 2 if n > 1 else np.array([0.5])
    return np.concatenate([[values[0] - half[0]], values[:-1] + half[: n - 1], [values[-1] + half[-1]]])


def on_scale(scale: Any, share: float) -> str:
    """Return the colour at a place in [0, 1] of a scale."""
    stops = [(at, _channels(color)) for at, color in scale]
    at = [stop for stop, _ in stops]
    red, green, blue, alpha = (
        float(np.interp(share, at, [color[i] for _, color in stops])) for i in range(4)
    )
    return f"rgba({red:.0f},{green:.0f},{blue:.0f},{alpha:.2g})"


def _channels(color: str) -> tuple[float, ...]:
    if color.startswith("#"):
        return (*(int(color[i : i + 2], 16) for i in (1, 3, 5)), 1.0)
    found = [float(one) for one in re.findall(r"[\d.]+", color)]
    return tuple(found) if len(found) == 4 else (*found, 1.0)
