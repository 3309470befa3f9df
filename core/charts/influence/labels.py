"""How many questions are aligned, divergent, or undefined and why."""

from __future__ import annotations

from typing import NamedTuple

import plotly.graph_objects as go

from core.charts.theme import bar_marker, empty_figure, new_figure, safe_text
from core.influence import InfluenceAnalysis
from core.influence.definitions import REASONS
from core.text.display import count

_SHOW_COUNT_FROM = 0.06
_PATTERNS = ("", "x", "-", "|", "+", "\\", ".", "/", "/")  # the last has another colour: ties leave a ρ


class _Part(NamedTuple):
    name: str
    style: str
    pattern: str | None  # None keeps the style's own
    n: int
    meaning: str


def label_counts(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw the questions as one bar: aligned, divergent, and undefined by reason; empty without questions."""
    return _draw(_data(analysis))


def _data(analysis: InfluenceAnalysis) -> tuple[_Part, ...]:
    labels = analysis.queries["label"].value_counts()
    reasons = analysis.queries["label_reason"].value_counts()
    threshold, by_chance = f"{analysis.threshold:g}", analysis.queries["divergent_by_chance"]
    chance = by_chance.sum(), by_chance.notna().sum() - by_chance.sum()
    parts = [
        _Part(name, name, None, int(labels.get(name, 0)), f"ρ {sign} {threshold}; {expected:.1f} by chance")
        for name, sign, expected in (("Aligned", "≥", chance[1]), ("Divergent", "<", chance[0]))
    ]
    for reason, pattern in zip(REASONS.values(), _PATTERNS, strict=True):
        style = "neutral" if reason.name == "ties_cannot_reach" else "Undefined"
        name = f"Undefined: {reason.title.lower()}"
        parts.append(_Part(name, style, pattern, int(reasons.get(reason.name, 0)), reason.meaning))
    return tuple(part for part in parts if part.n)


def _draw(parts: tuple[_Part, ...]) -> go.Figure:
    total = sum(part.n for part in parts)
    if not total:
        return empty_figure("There are no questions to label.")
    listed = ", ".join(f"{part.n:,} {part.name.lower()}" for part in parts)
    figure = new_figure(f"Labels of {count(total, 'question')}: {listed}.", "Questions", "")
    for part in parts:
        fill = bar_marker(part.style)
        if part.pattern is not None:
            fill["pattern"] = {**fill["pattern"], "shape": part.pattern}  # type: ignore[dict-item]
        figure.add_bar(
            name=f"{part.name} ({part.n:,})",
            orientation="h",
            x=[part.n],
            y=[""],
            text=[f"<b>{part.n:,}</b>" if part.n / total >= _SHOW_COUNT_FROM else ""],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"color": "white"},
            hovertemplate=f"%{{x:,}} of {total:,} ({100 * part.n / total:.0f} %)<br>{safe_text(part.meaning)}"
            f"<extra>{part.name}</extra>",
            marker=fill,
        )
    # The legend wraps to about two entries a line on a phone.
    figure.update_layout(
        barmode="stack", bargap=0.2, height=150 + 22 * len(parts), legend_traceorder="normal"
    )
    figure.update_xaxes(range=[0, total], tickformat=",d")
    figure.update_yaxes(visible=False)
    return figure
