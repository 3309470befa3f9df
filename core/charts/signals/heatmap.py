"""The correlation of every signal with every other, as a heat map."""

from __future__ import annotations

import textwrap

import numpy as np
import plotly.graph_objects as go

from core.charts.theme import empty_figure, new_figure, plain_text, safe_text, two_sided
from core.report.signals import SPEARMAN, SignalAgreement, SignalPair
from core.text.display import DASH, count, number

_NUMBERS_UP_TO = 16  # signals; in more the cells are too small for their numbers
_ROW, _LINE = 44, 16  # height of a row in pixels; characters in a line of its name
_SCALE = {
    "orientation": "h",
    "thickness": 10,
    "y": 1,
    "yanchor": "bottom",
    "outlinewidth": 0,
    "tickvals": [-1, -0.5, 0, 0.5, 1],
    "ticktext": ["−1", "−0.5", "0", "0.5", "1"],
}
_STRONG, _PALE = (0.12, 0.65), (0.0, 0.15)  # opacity at 0 and at ±1


def correlation_heatmap(agreement: SignalAgreement, kind: str = SPEARMAN) -> go.Figure:
    """Draw the correlations of the signals, each pair once: blue is positive, orange negative.

    One that cannot be told from chance is pale, in brackets; an undefined one is a dash, and the hover says
    why. Empty for fewer than two signals.
    """
    n, place = len(agreement.signals), {id(one): i for i, one in enumerate(agreement.signals)}
    if not agreement.pairs:
        return empty_figure("There are fewer than two signals to compare.")
    figure = new_figure(_alt(agreement, kind), "Signal, by its number", "", height=110 + _ROW * n)
    numbered = list(range(1, n + 1))
    for is_clear, (low, high) in ((True, _STRONG), (False, _PALE)):
        z = np.full((n, n), np.nan)
        text, hover = (np.full((n, n), "", dtype=object) for _ in range(2))
        for pair in agreement.pairs:
            if pair[kind].is_clear == is_clear:
                at = place[id(pair.second)], place[id(pair.first)]
                # An undefined cell has a place to point at, and no colour.
                z[at] = np.nan_to_num(pair[kind].value)
                text[at], hover[at] = _text(pair, kind), _hover(pair, kind)
        figure.add_heatmap(
            x=numbered,
            y=numbered,
            z=z,
            zmin=-1,
            zmax=1,
            colorscale=two_sided(low, high),
            xgap=2,
            ygap=2,
            text=text if n <= _NUMBERS_UP_TO else None,
            texttemplate="%{text}" if n <= _NUMBERS_UP_TO else None,
            customdata=hover,
            hovertemplate="%{customdata}<extra></extra>",
            hoverongaps=False,
            showscale=is_clear,
            colorbar=_SCALE,
        )
    figure.update_xaxes(range=[0.5, n + 0.5], tickvals=numbered[:: 1 + n // 13], showgrid=False, tickangle=0)
    names = [f"{_name(one.title)} · {i}" for i, one in enumerate(agreement.signals, 1)]
    figure.update_yaxes(range=[n + 0.5, 0.5], tickvals=numbered, ticktext=names, showgrid=False)
    return figure


def _text(pair: SignalPair, kind: str) -> str:
    if pair.reason:
        return DASH
    shown = number(pair[kind].value)
    return shown if pair[kind].is_clear else f"({shown})"


def _hover(pair: SignalPair, kind: str) -> str:
    one = pair[kind]
    lines = [pair.first.title, f"and {pair.second.title}"]
    if pair.reason:
        return "<br>".join(map(safe_text, [*lines, f"Undefined because {pair.reason}"]))
    lines.append(f"{kind} {number(one.value)}, n = {count(pair.n, 'question')}")
    lines.append(f"95 % interval {one.range_text}")
    lines.append(f"{one.p_text}{'' if one.is_clear else ': cannot be told from chance'}")
    if pair.is_contrary(kind):
        lines.append("Contrary to expectation")
    if pair.expected:
        lines.append(pair.expected_text[:1].upper() + pair.expected_text[1:])
    return "<br>".join(safe_text(line, 200) for line in lines)


def _name(title: str) -> str:
    """Return a title in lines that leave a phone some room for the cells."""
    return "<br>".join(safe_text(line) for line in textwrap.wrap(plain_text(title, 66), _LINE))


def _alt(agreement: SignalAgreement, kind: str) -> str:
    tested, clear = agreement.tested, agreement.clear(kind)
    strongest = ""
    if clear:
        first = clear[0]
        strongest = (
            f"; the strongest is {first.first.title} with {first.second.title}, {number(first[kind].value)}, "
            f"n = {count(first.n, 'question')}"
        )
    undefined = len(agreement.pairs) - len(tested)
    questions = count(agreement.n_questions, "question")
    return (
        f"{kind} correlations of {len(agreement.signals)} signals of {questions}: "
        f"{len(clear):,} of {count(len(tested), 'pair')} beyond chance, {undefined:,} undefined{strongest}."
    )
