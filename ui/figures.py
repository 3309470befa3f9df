"""A figure as the browser needs it, made ready once."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import plotly.graph_objects as go
from streamlit.elements.lib.streamlit_plotly_theme import GRAY_90

_LINE = 24  # characters of a line of a row's name


class _Still(go.Figure):  # type: ignore[misc]
    """A figure that stays where it is when it is dragged, also where its marks can be clicked.

    Streamlit makes every figure with selections one to be dragged about, which keeps a phone from scrolling,
    unless the layout says otherwise. Plotly takes the unknown word for what the template says: no dragging.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as it goes to the browser."""
        found: dict[str, Any] = super().to_dict()
        found["layout"]["dragmode"] = "none"
        return found


def _in_lines(axis: Any) -> None:
    names = axis.categoryarray
    if names is not None and axis.tickvals is None:
        axis.update(tickvals=list(names), ticktext=["<br>".join(wrap(str(one), _LINE)) for one in names])


def ready(figure: go.Figure) -> go.Figure:
    """Return the figure with readable axes, and still where it is dragged; one that is ready as it is."""
    if isinstance(figure, _Still):
        return figure
    found = _Still(figure)
    found.layout.template.layout.dragmode = False
    # Streamlit's own grey of axes has a contrast of 3.7 on white. It puts its text colour in for this one.
    found.update_layout(font_color=GRAY_90, hoverlabel_font_color=GRAY_90)
    found.update_traces(textfont_color=GRAY_90, selector={"type": "heatmap"})
    for axes in (found.update_xaxes, found.update_yaxes):
        axes(tickfont_color=GRAY_90, title_font_color=GRAY_90)
    # Long names of rows would leave a phone no room for the marks.
    found.for_each_yaxis(_in_lines)
    return found
