"""A figure as still SVG, for a file that runs no script.

It draws what the figures of `core.charts` are made of: marks, lines, bands, bars, cells, notes
(`core.report.marks`). Text takes the colour of the page. The legend is HTML, so that it wraps on a phone.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from core.report.marks import (
    LINE,
    Axis,
    Patterns,
    bars,
    cells,
    color_of,
    ends_of,
    lines_of,
    marks,
    numbers,
    on_scale,
    points,
    px,
    stroke,
    text_at,
    tick_text,
)

WIDTH = 400
_LETTER = 6.6  # pixels of a letter, on average, at the size of labels
_LABEL = 22  # letters of a line of a row's name


def figure_html(figure: Any, key: str) -> str:
    """Return a plotly figure as HTML: ``<svg>``, then its legend.

    ``key`` tells it from the other figures of the page: letters, digits and hyphens.
    """
    layout, height = figure.layout, float(figure.layout.height or 380) - 40
    used = sorted({trace.yaxis or "y" for trace in figure.data})
    own_axes = {name: layout[f"yaxis{name[1:]}"] for name in used}
    below = layout.xaxis.title.text if layout.xaxis.visible is not False else None
    bottom = height - (34 + LINE * len(lines_of(below)) if below else 24)
    top = max(10.0, float(layout.margin.t or 0) - 6)
    rough = {name: _axis(figure, "y", name, own_axes[name], 0, 1) for name in used}
    left = _room(rough.values()) if layout.yaxis.visible is not False else 8.0
    x = _axis(figure, "x", "x", layout.xaxis, left, WIDTH - 14.0)
    x = replace(x, end=_end(x, layout.annotations))
    parts, defs = [], Patterns(key)
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
        draw: Any = {"bar": partial(bars, before=before, defs=defs), "heatmap": cells}.get(trace.type, points)
        parts.append(draw(trace, x, axes[trace.yaxis or "y"]))
    parts += [_note(note, x, axes["y"], paper) for note in layout.annotations]
    if below:
        parts.append(
            text_at((left + x.end) / 2, height - 4 - LINE * (len(lines_of(below)) - 1), below, "middle")
        )
    legend = _legend(figure, defs)
    view = f'viewBox="0 0 {WIDTH} {height:g}" aria-hidden="true"'  # the text below it says the same
    return f"<svg {view}>{defs.written()}{''.join(parts)}</svg>{legend}"


def _axis(figure: Any, way: str, name: str, layout: Any, start: float, end: float) -> Axis:
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
    return Axis(layout, names, low, high if high != low else low + 1, start, end)


def _extent(traces: Sequence[Any], way: str, layout: Any) -> tuple[float, float]:
    found: list[float] = []
    for trace in traces:
        values = numbers(getattr(trace, way) if getattr(trace, way) is not None else (), ())
        found += values.tolist()
        bars = getattr(trace, f"error_{way}", None) if trace.type != "heatmap" else None
        if bars is not None and bars.array is not None:
            found += (values + numbers(bars.array, ())).tolist()
            found += (values - numbers(bars.arrayminus, ())).tolist()
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


def _wrapped(text: str) -> list[str]:
    lines = lines_of(text)
    return lines if len(lines) > 1 else textwrap.wrap(lines[0], _LABEL) or [""]


def _room(axes: Iterable[Axis]) -> float:
    """Return the pixels left of the plot: for the longest label and, turned, the title of the axis."""
    rooms = []
    for axis in axes:
        longest = max((len(line) for _, text in axis.ticks() for line in _wrapped(text)), default=0)
        titled = 20 * len(lines_of(axis.layout.title.text)) if axis.layout.title.text else 0
        rooms.append(14 + _LETTER * longest + titled)
    return max(rooms)


def _grid(x: Axis, y: Axis, has_x: bool, bottom: float) -> str:
    parts, (high, low) = [], sorted((y.start, y.end))
    if y.layout.visible is not False:
        for at, text in y.ticks():
            if y.layout.showgrid is not False:
                parts.append(f'<path class="grid" d="M{px(x.start)} {px(at)}H{px(x.end)}"/>')
            lines = _wrapped(text)
            parts.append(text_at(x.start - 6, at + 4 - LINE / 2 * (len(lines) - 1), lines, "end"))
        if y.layout.title.text:
            middle = (y.start + y.end) / 2
            turn = f' transform="rotate(-90 12 {px(middle)})"'
            parts.append(text_at(12, middle, y.layout.title.text, "middle", turn))
    if x.layout.visible is not False:
        for at, text in x.ticks():
            if x.layout.showgrid is not False and not x.names:
                parts.append(f'<path class="grid" d="M{px(at)} {px(high)}V{px(low)}"/>')
            if has_x:
                parts.append(text_at(at, bottom + 16, text, "middle"))
    return "".join(parts)


def _end(x: Axis, notes: Iterable[Any]) -> float:
    """Return where the plot ends, so that the notes right of its marks have room, if it leaves half of it."""
    ends = [x.end]
    for note in notes:
        if note.xref != "paper" and note.xanchor == "left" and note.text:
            share = (float(x.at([note.x])[0]) - x.start) / (x.end - x.start)
            room = WIDTH - 4 - _wide(lines_of(note.text), 12) - (note.xshift or 0) - x.start
            ends.append(x.start + room / max(share, 0.01))
    return max(min(ends), x.start + (x.end - x.start) / 2)


def _wide(lines: Sequence[str], size: float) -> float:
    return max(map(len, lines)) * _LETTER * size / 12


def _shape(shape: Any, x: Axis, y: Axis, paper: Mapping[str, tuple[float, float]]) -> str:
    """Draw a straight line, as of a limit."""
    x0, x1, y0, y1 = (_placed(shape, way, end, x, y, paper) for way in "xy" for end in "01")
    return f'<path d="M{px(x0)} {px(y0)}L{px(x1)} {px(y1)}" {stroke(shape.line)}/>'


def _placed(
    one: Any, way: str, end: str, x: Axis, y: Axis, paper: Mapping[str, tuple[float, float]]
) -> float:
    """Return the pixels of a coordinate: of an axis, or a share of the plot."""
    value, ref = getattr(one, way + end), str(getattr(one, f"{way}ref"))
    start, stop = paper[way]
    free = ref == "paper" or ref.endswith("domain")
    return start + value * (stop - start) if free else float({"x": x, "y": y}[way].at([value])[0])


def _note(note: Any, x: Axis, y: Axis, paper: Mapping[str, tuple[float, float]]) -> str:
    there, up = (_placed(note, way, "", x, y, paper) for way in "xy")
    lines, anchor = lines_of(note.text), {"left": "start", "right": "end"}.get(note.xanchor, "middle")
    size = int(min(12, note.font.size or 12))
    wide, there = _wide(lines, size), there + (note.xshift or 0)
    # What would leave the picture is moved back into it.
    there = (
        min(there, WIDTH - 4 - wide) if anchor == "start" else max(there, wide) if anchor == "end" else there
    )
    above = LINE * (len(lines) - 1)
    first = {"bottom": -4 - above, "top": 12}.get(note.yanchor, 4 - above / 2)
    return text_at(there, up + first, lines, anchor, size=size)


def _legend(figure: Any, defs: Patterns) -> str:
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
        (f'<path d="M1 7H19" {stroke(shape.line)}/>', shape.name)
        for shape in figure.layout.shapes
        if shape.showlegend and shape.name
    ]
    if len(found) < 2 and not any(trace.type == "heatmap" for trace in figure.data):
        return ""
    view = '<svg viewBox="0 0 20 14" aria-hidden="true">'
    items = "".join(
        f"<li>{view}{drawn}</svg>{html.escape(' '.join(lines_of(said)))}</li>" for drawn, said in found
    )
    return f'<ul class="legend">{items}</ul>' if items else ""


def _scale(trace: Any, title: str) -> list[tuple[str, str]]:
    z = np.array(trace.z, dtype=np.float64)
    low, high = ends_of(trace, z)
    texts = trace.colorbar.ticktext
    said = (
        (texts[0], texts[-1])
        if texts is not None and len(texts)
        else (tick_text(round(low, 1)), tick_text(round(high, 1)))
    )
    return [
        (
            f'<path d="M3 1h14v12h-14z" fill="{on_scale(trace.colorscale, share)}" class="cell"/>',
            f"{text} {title}",
        )
        for share, text in zip((0.0, 1.0), said, strict=True)
    ]


def _swatch(trace: Any, defs: Patterns) -> str:
    if trace.type == "bar":
        hatch = defs.fill(trace.marker.pattern.shape)
        d = "M2 1h16v12h-16z"
        pale = trace.marker.opacity if trace.marker.opacity is not None else trace.opacity
        opacity = "" if pale is None else f' opacity="{pale:g}"'
        over = f'<path d="{d}" fill="{hatch}"/>' if hatch else ""
        return f'<path d="{d}" fill="{color_of(trace.marker.color)}"{opacity}/>{over}'
    parts, mode = list[str](), trace.mode or "lines"
    if trace.fill == "toself":
        parts.append(f'<path d="M1 2H19V12H1z" fill="{color_of(trace.fillcolor)}"/>')
    elif "lines" in mode:
        parts.append(f'<path d="M1 7H19" {stroke(trace.line)}/>')
    elif trace.error_x.array is not None:
        color = color_of(trace.error_x.color or trace.marker.color)
        parts.append(f'<path d="M1 7H19" stroke="{color}" stroke-width="2"/>')
    if "markers" in mode and np.max(6 if trace.marker.size is None else trace.marker.size) > 1:
        one = np.array([True])
        look = type(trace.marker)(trace.marker.to_plotly_json() | {"size": 9})
        parts.append(marks(look, np.array([10.0]), np.array([7.0]), one, ""))
    return "".join(parts)
