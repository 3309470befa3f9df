"""A figure as still SVG, for a file that runs no script.

It draws what the figures of `core.charts` are made of: marks, lines, bands, bars, cells, notes. Text takes
the colour of the page. The legend is HTML, so that it wraps on a phone.
"""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from core.arrays import Floats

WIDTH = 400
_LETTER = 6.6  # pixels of a letter, on average, at the size of labels
_LINE = 14
_LABEL = 22  # letters of a line of a row's name
_TAGS = re.compile(r"</?(?:b|i|sub|sup)>")
_DASHES = {"dot": "2 4", "dash": "7 5"}
_CLEAR = "rgba(0,0,0,0)"


@dataclass(frozen=True, slots=True)
class _Axis:
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
        return _numbers(values, self.names)

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
        return [(float(self.at([first + i * step])[0]), _tick_text(first + i * step)) for i in n]


def figure_html(figure: Any, key: str) -> str:
    """Return a plotly figure as HTML: ``<svg>``, then its legend.

    ``key`` tells it from the other figures of the page: letters, digits and hyphens.
    """
    layout, height = figure.layout, float(figure.layout.height or 380) - 40
    used = sorted({trace.yaxis or "y" for trace in figure.data})
    own_axes = {name: layout[f"yaxis{name[1:]}"] for name in used}
    below = layout.xaxis.title.text if layout.xaxis.visible is not False else None
    bottom = height - (34 + _LINE * len(_lines(below)) if below else 24)
    top = max(10.0, float(layout.margin.t or 0) - 6)
    rough = {name: _axis(figure, "y", name, own_axes[name], 0, 1) for name in used}
    left = _room(rough.values()) if layout.yaxis.visible is not False else 8.0
    x = _axis(figure, "x", "x", layout.xaxis, left, WIDTH - 14.0)
    x = replace(x, end=_end(x, layout.annotations))
    parts, defs = [], _Patterns(key)
    axes = {}
    for name in used:
        low, high = own_axes[name].domain or (0.0, 1.0)
        ends = (bottom - low * (bottom - top), bottom - high * (bottom - top))
        axes[name] = _axis(figure, "y", name, own_axes[name], *ends)
        parts.append(_grid(x, axes[name], name == (layout.xaxis.anchor or "y") or len(used) == 1, bottom))
    paper = {"x": (left, x.end), "y": (bottom, top)}
    before = dict[Any, float]() if layout.barmode == "stack" else None
    parts += [_shape(shape, x, axes["y"], paper) for shape in layout.shapes]
    for trace in figure.data:
        draw: Any = {"bar": partial(_bars, before=before, defs=defs), "heatmap": _cells}.get(
            trace.type, _points
        )
        parts.append(draw(trace, x, axes[trace.yaxis or "y"]))
    parts += [_note(note, x, axes["y"], paper) for note in layout.annotations]
    if below:
        parts.append(
            _text((left + x.end) / 2, height - 4 - _LINE * (len(_lines(below)) - 1), below, "middle")
        )
    legend = _legend(figure, defs)
    view = f'viewBox="0 0 {WIDTH} {height:g}" aria-hidden="true"'  # the text below it says the same
    return f"<svg {view}>{defs.written()}{''.join(parts)}</svg>{legend}"


def _numbers(values: Any, names: Sequence[str]) -> Floats:
    if names:
        place = {name: float(i) for i, name in enumerate(names)}
        return np.array([place.get(v, math.nan) if isinstance(v, str) else _float(v) for v in values])
    return np.array([_float(value) for value in values], dtype=np.float64)


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)


def _axis(figure: Any, way: str, name: str, layout: Any, start: float, end: float) -> _Axis:
    """Return an axis with the range that its layout says, or that holds all its data."""
    own = [t for t in figure.data if way == "x" or (t.yaxis or "y") == name]
    data = [values for t in own if (values := getattr(t, way)) is not None]
    texts = dict.fromkeys(v for values in data for v in values if isinstance(v, str))
    names = tuple(layout.categoryarray) if layout.categoryarray is not None else tuple(texts)
    if layout.range is not None:
        low, high = (float(one) for one in layout.range)
    elif names:
        low, high = -0.5, len(names) - 0.5
    else:
        low, high = _extent(own, way, layout)
    if layout.autorange == "reversed":
        low, high = high, low
    return _Axis(layout, names, low, high if high != low else low + 1, start, end)


def _extent(traces: Sequence[Any], way: str, layout: Any) -> tuple[float, float]:
    found: list[float] = []
    for trace in traces:
        values = _numbers(getattr(trace, way) if getattr(trace, way) is not None else (), ())
        found += values.tolist()
        bars = getattr(trace, f"error_{way}", None) if trace.type != "heatmap" else None
        if bars is not None and bars.array is not None:
            found += (values + _numbers(bars.array, ())).tolist()
            found += (values - _numbers(bars.arrayminus, ())).tolist()
        if trace.type == "bar":
            found.append(0.0)
        if trace.type == "heatmap" and len(values):
            half = 0.5 if len(values) == np.shape(trace.z)[way == "x"] else 0.0
            found += [values.min() - half, values.max() + half]
    known = [value for value in found if math.isfinite(value)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    margin = 0 if any(t.type == "heatmap" for t in traces) else 0.05 * (high - low)
    at_zero = layout.rangemode == "tozero" or any(t.type == "bar" for t in traces)
    return (0.0 if at_zero and low >= 0 else low - margin), high + margin


def _step(rough: float) -> float:
    size = 10.0 ** math.floor(math.log10(rough))
    return next(size * nice for nice in (1, 2, 5, 10) if size * nice >= rough * 0.999)


def _tick_text(value: float) -> str:
    rounded = round(value, 6)
    return (f"{rounded:,.0f}" if rounded == int(rounded) else f"{rounded:g}").replace("-", "−")


def _lines(text: str) -> list[str]:
    """Return a text of plotly, which reads a little HTML, as plain lines."""
    return [html.unescape(_TAGS.sub("", line)) for line in text.split("<br>")]


def _wrapped(text: str) -> list[str]:
    lines = _lines(text)
    return lines if len(lines) > 1 else textwrap.wrap(lines[0], _LABEL) or [""]


def _text(x: float, y: float, text: str | Sequence[str], anchor: str, turn: str = "", size: int = 12) -> str:
    lines = _lines(text) if isinstance(text, str) else text
    spans = "".join(
        f'<tspan x="{_n(x)}" dy="{0 if i == 0 else _LINE}">{html.escape(line)}</tspan>'
        for i, line in enumerate(lines)
    )
    return f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}" font-size="{size}"{turn}>{spans}</text>'


def _n(value: float) -> str:
    return f"{round(float(value), 1):g}"


def _room(axes: Iterable[_Axis]) -> float:
    """Return the pixels left of the plot: for the longest label and, turned, the title of the axis."""
    rooms = []
    for axis in axes:
        longest = max((len(line) for _, text in axis.ticks() for line in _wrapped(text)), default=0)
        titled = 20 * len(_lines(axis.layout.title.text)) if axis.layout.title.text else 0
        rooms.append(14 + _LETTER * longest + titled)
    return max(rooms)


def _grid(x: _Axis, y: _Axis, has_x: bool, bottom: float) -> str:
    parts, (high, low) = [], sorted((y.start, y.end))
    if y.layout.visible is not False:
        for at, text in y.ticks():
            if y.layout.showgrid is not False:
                parts.append(f'<path class="grid" d="M{_n(x.start)} {_n(at)}H{_n(x.end)}"/>')
            lines = _wrapped(text)
            parts.append(_text(x.start - 6, at + 4 - _LINE / 2 * (len(lines) - 1), lines, "end"))
        if y.layout.title.text:
            middle = (y.start + y.end) / 2
            turn = f' transform="rotate(-90 12 {_n(middle)})"'
            parts.append(_text(12, middle, y.layout.title.text, "middle", turn))
    if x.layout.visible is not False:
        for at, text in x.ticks():
            if x.layout.showgrid is not False and not x.names:
                parts.append(f'<path class="grid" d="M{_n(at)} {_n(high)}V{_n(low)}"/>')
            if has_x:
                parts.append(_text(at, bottom + 16, text, "middle"))
    return "".join(parts)


def _end(x: _Axis, notes: Iterable[Any]) -> float:
    """Return where the plot ends, so that the notes right of its marks have room, if it leaves half of it."""
    ends = [x.end]
    for note in notes:
        if note.xref != "paper" and note.xanchor == "left" and note.text:
            share = (float(x.at([note.x])[0]) - x.start) / (x.end - x.start)
            room = WIDTH - 4 - _wide(_lines(note.text), 12) - (note.xshift or 0) - x.start
            ends.append(x.start + room / max(share, 0.01))
    return max(min(ends), x.start + (x.end - x.start) / 2)


def _wide(lines: Sequence[str], size: float) -> float:
    return max(map(len, lines)) * _LETTER * size / 12


def _shape(shape: Any, x: _Axis, y: _Axis, paper: Mapping[str, tuple[float, float]]) -> str:
    """Draw a straight line, as of a limit."""
    x0, x1, y0, y1 = (_placed(shape, way, end, x, y, paper) for way in "xy" for end in "01")
    return f'<path d="M{_n(x0)} {_n(y0)}L{_n(x1)} {_n(y1)}" {_stroke(shape.line)}/>'


def _placed(
    one: Any, way: str, end: str, x: _Axis, y: _Axis, paper: Mapping[str, tuple[float, float]]
) -> float:
    """Return the pixels of a coordinate: of an axis, or a share of the plot."""
    value, ref = getattr(one, way + end), str(getattr(one, f"{way}ref"))
    start, stop = paper[way]
    free = ref == "paper" or ref.endswith("domain")
    return start + value * (stop - start) if free else float({"x": x, "y": y}[way].at([value])[0])


def _note(note: Any, x: _Axis, y: _Axis, paper: Mapping[str, tuple[float, float]]) -> str:
    there, up = (_placed(note, way, "", x, y, paper) for way in "xy")
    lines, anchor = _lines(note.text), {"left": "start", "right": "end"}.get(note.xanchor, "middle")
    size = int(min(12, note.font.size or 12))
    wide, there = _wide(lines, size), there + (note.xshift or 0)
    # What would leave the picture is moved back into it.
    there = (
        min(there, WIDTH - 4 - wide) if anchor == "start" else max(there, wide) if anchor == "end" else there
    )
    above = _LINE * (len(lines) - 1)
    first = {"bottom": -4 - above, "top": 12}.get(note.yanchor, 4 - above / 2)
    return _text(there, up + first, lines, anchor, size=size)


def _stroke(line: Any, color: str | None = None) -> str:
    dash = f' stroke-dasharray="{_DASHES[line.dash]}"' if line.dash in _DASHES else ""
    width = 2 if line.width is None else line.width
    return f'fill="none" stroke="{_color(line.color or color)}" stroke-width="{_n(width)}"{dash}'


def _color(value: Any) -> str:
    return html.escape(value) if isinstance(value, str) else "currentColor"


def _points(trace: Any, x: _Axis, y: _Axis) -> str:
    """Draw lines, filled bands, marks and their error bars."""
    parts, across, up = [], x.at(trace.x), y.at(trace.y)
    known = np.isfinite(across) & np.isfinite(up)
    opacity = "" if trace.opacity is None else f' opacity="{trace.opacity:g}"'
    if "lines" in (trace.mode or "lines"):
        path, pen = [], False
        for at, high, there in zip(across, up, known, strict=True):
            if there:
                path.append(f"{'L' if pen else 'M'}{_n(at)} {_n(high)}")
            pen = bool(there)
        filled = trace.fill == "toself"
        look = f'fill="{_color(trace.fillcolor)}"' if filled else _stroke(trace.line)
        parts.append(f'<path d="{"".join(path)}" {look}{opacity}/>')
    for bars, axis, values, other, way in (
        (trace.error_x, x, trace.x, up, "H"), (trace.error_y, y, trace.y, across, "V"),
    ):  # fmt: skip
        if bars.array is not None:
            own = axis.numbers(values)
            ends = axis.at(own - _numbers(bars.arrayminus, ())), axis.at(own + _numbers(bars.array, ()))
            path = [
                f"M{_n(a)} {_n(o)}H{_n(b)}" if way == "H" else f"M{_n(o)} {_n(a)}V{_n(b)}"
                for a, b, o, there in zip(*ends, other, known, strict=True) if there
            ]  # fmt: skip
            color = _color(bars.color or trace.marker.color)
            look = f'fill="none" stroke="{color}" stroke-width="{bars.thickness or 2}"'
            parts.append(f'<path d="{"".join(path)}" {look}/>')
    if "markers" in (trace.mode or "") and trace.marker.opacity != 0:
        parts.append(_marks(trace.marker, across[known], up[known], known, opacity))
    return "".join(parts)


def _marks(marker: Any, across: Floats, up: Floats, known: Any, opacity: str) -> str:
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
    color = _color(marker.color)
    outline = marker.line.width
    if symbol.endswith("-open") or symbol == "line-ns":
        stroke = _color(marker.line.color if symbol == "line-ns" else marker.color)
        look = f'fill="none" stroke="{stroke}" stroke-width="{_n(outline or 2)}"'
    else:
        edge = f' stroke="{_color(marker.line.color)}" stroke-width="{_n(outline)}"' if outline else ""
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
        return f"M{_n(x)} {_n(y - r)}V{_n(y + r)}"
    corners = _CORNERS.get(symbol.removesuffix("-open"))
    if corners is None:
        d = _n(2 * r)
        return f"M{_n(x - r)} {_n(y)}a{_n(r)} {_n(r)} 0 1 0 {d} 0a{_n(r)} {_n(r)} 0 1 0-{d} 0z"
    return "M" + "L".join(f"{_n(x + r * a)} {_n(y + r * b)}" for a, b in corners) + "z"


def _bars(trace: Any, x: _Axis, y: _Axis, before: dict[Any, float] | None, defs: _Patterns) -> str:
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
        path.append(f"M{_n(x0)} {_n(y0)}H{_n(x1)}V{_n(y1)}H{_n(x0)}z")
    marker, line = trace.marker, trace.marker.line
    edge = f' stroke="{_color(line.color)}" stroke-width="{_n(line.width)}"' if line.width else ""
    pale = marker.opacity if marker.opacity is not None else trace.opacity
    opacity = "" if pale is None else f' opacity="{pale:g}"'
    d = "".join(path)
    found = f'<path d="{d}" fill="{_color(marker.color)}"{edge}{opacity}/>'
    hatch = defs.fill(marker.pattern.shape)
    return found + (f'<path d="{d}" fill="{hatch}"/>' if hatch else "")


class _Patterns:
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


def _cells(trace: Any, x: _Axis, y: _Axis) -> str:
    z = np.array(trace.z, dtype=np.float64)
    edges = [
        _edges(axis.numbers(given), n)
        for axis, given, n in ((x, trace.x, z.shape[1]), (y, trace.y, z.shape[0]))
    ]
    columns, rows = x.at(edges[0]), y.at(edges[1])
    texts = np.asarray(trace.text, dtype=object) if trace.texttemplate and trace.text is not None else None
    low, high = _ends(trace, z)
    parts = []
    for i, j in np.argwhere(np.isfinite(z)).tolist():
        color = _on_scale(trace.colorscale, (z[i, j] - low) / ((high - low) or 1))
        (x0, x1), (y0, y1) = columns[j : j + 2], sorted(rows[i : i + 2])
        parts.append(
            f'<path d="M{_n(x0)} {_n(y0)}H{_n(x1)}V{_n(y1)}H{_n(x0)}z" fill="{color}" class="cell"/>'
        )
        if texts is not None and texts[i, j]:
            parts.append(_text((x0 + x1) / 2, (y0 + y1) / 2 + 4, str(texts[i, j]), "middle", size=11))
    return "".join(parts)


def _ends(trace: Any, z: Floats) -> tuple[float, float]:
    low = float(np.nanmin(z)) if trace.zmin is None else float(trace.zmin)
    return low, float(np.nanmax(z)) if trace.zmax is None else float(trace.zmax)


def _edges(values: Floats, n: int) -> Floats:
    if len(values) == n + 1:
        return values
    half = np.diff(values) / 2 if n > 1 else np.array([0.5])
    return np.concatenate([[values[0] - half[0]], values[:-1] + half[: n - 1], [values[-1] + half[-1]]])


def _on_scale(scale: Any, share: float) -> str:
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


def _legend(figure: Any, defs: _Patterns) -> str:
    """Return what the marks mean: one entry a named trace; a scale is its two ends."""
    found = []
    for trace in figure.data:
        if trace.type == "heatmap":
            title = trace.colorbar.title.text
            if trace.showscale is not False and title:
                found += _scale(trace, title)
        elif trace.name and trace.showlegend is not False:
            found.append((_swatch(trace, defs), trace.name))
    found += [
        (f'<path d="M1 7H19" {_stroke(shape.line)}/>', shape.name)
        for shape in figure.layout.shapes
        if shape.showlegend and shape.name
    ]
    if len(found) < 2 and not any(trace.type == "heatmap" for trace in figure.data):
        return ""
    view = '<svg viewBox="0 0 20 14" aria-hidden="true">'
    items = "".join(
        f"<li>{view}{drawn}</svg>{html.escape(' '.join(_lines(said)))}</li>" for drawn, said in found
    )
    return f'<ul class="legend">{items}</ul>' if items else ""


def _scale(trace: Any, title: str) -> list[tuple[str, str]]:
    z = np.array(trace.z, dtype=np.float64)
    low, high = _ends(trace, z)
    texts = trace.colorbar.ticktext
    said = (
        (texts[0], texts[-1])
        if texts is not None and len(texts)
        else (_tick_text(round(low, 1)), _tick_text(round(high, 1)))
    )
    return [
        (
            f'<path d="M3 1h14v12h-14z" fill="{_on_scale(trace.colorscale, share)}" class="cell"/>',
            f"{text} {title}",
        )
        for share, text in zip((0.0, 1.0), said, strict=True)
    ]


def _swatch(trace: Any, defs: _Patterns) -> str:
    if trace.type == "bar":
        hatch = defs.fill(trace.marker.pattern.shape)
        d = "M2 1h16v12h-16z"
        pale = trace.marker.opacity if trace.marker.opacity is not None else trace.opacity
        opacity = "" if pale is None else f' opacity="{pale:g}"'
        over = f'<path d="{d}" fill="{hatch}"/>' if hatch else ""
        return f'<path d="{d}" fill="{_color(trace.marker.color)}"{opacity}/>{over}'
    parts, mode = list[str](), trace.mode or "lines"
    if trace.fill == "toself":
        parts.append(f'<path d="M1 2H19V12H1z" fill="{_color(trace.fillcolor)}"/>')
    elif "lines" in mode:
        parts.append(f'<path d="M1 7H19" {_stroke(trace.line)}/>')
    elif trace.error_x.array is not None:
        color = _color(trace.error_x.color or trace.marker.color)
        parts.append(f'<path d="M1 7H19" stroke="{color}" stroke-width="2"/>')
    if "markers" in mode and np.max(6 if trace.marker.size is None else trace.marker.size) > 1:
        one = np.array([True])
        look = type(trace.marker)(trace.marker.to_plotly_json() | {"size": 9})
        parts.append(_marks(look, np.array([10.0]), np.array([7.0]), one, ""))
    return "".join(parts)
