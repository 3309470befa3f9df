"""Reported labels of an imported file against the recomputed ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.charts.theme import STYLES, doors, empty_figure, new_figure, safe_text, two_sided, where_door
from core.conditions import where
from core.influence.definitions import LABELS
from core.influence.reported import cause_text
from core.text.display import count

_REPORTED = ("Aligned", "Divergent")


class _Data(NamedTuple):
    counts: NDArray[np.int64]  # rows: reported Aligned, Divergent; columns: recomputed LABELS
    causes: NDArray[np.object_]  # the same shape: "cause: n" lines
    n_changed: int


def verdict_changes(comparison: pd.DataFrame) -> go.Figure:
    """Draw how many reported verdicts stay the same and how many change, and to what.

    A matrix of counts from `core.influence.compare_reported`, with causes in the hover. Cells lead to their
    questions; empty when the file reports no verdicts.
    """
    return _draw(_data(comparison))


def _data(comparison: pd.DataFrame) -> _Data:
    counts = np.zeros((len(_REPORTED), len(LABELS)), dtype=np.int64)
    causes = np.full(counts.shape, "", dtype=object)
    for i, reported in enumerate(_REPORTED):
        for j, label in enumerate(LABELS):
            cell = comparison[(comparison["reported_label"] == reported) & (comparison["label"] == label)]
            counts[i, j] = len(cell)
            found = cell["cause"].value_counts()
            causes[i, j] = "<br>".join(safe_text(cause_text(str(c), n), 40) for c, n in found.items())
    n_changed = int(counts.sum() - counts[0, 0] - counts[1, 1])
    return _Data(counts, causes, n_changed)


def _draw(data: _Data) -> go.Figure:
    total = int(data.counts.sum())
    if not total:
        return empty_figure("The file reports no verdicts to compare with.")
    alt = (
        f"Reported against recomputed labels of {count(total, 'question')}: {data.n_changed:,} change, of "
        f"which {int(data.counts[:, 2].sum()):,} become undefined."
    )
    figure = new_figure(alt, "Recomputed label", "Reported label", height=280)
    same = np.array([[reported == label for label in LABELS] for reported in _REPORTED])
    figure.add_heatmap(
        x=list(LABELS),
        y=list(_REPORTED),
        z=np.where(same, data.counts, -data.counts),
        zmin=-total,
        zmax=total,
        # Unchanged and changed in two hues, pale enough for the page's own text colour on top.
        colorscale=two_sided(0.1, 0.4),
        showscale=False,
        xgap=3,
        ygap=3,
        hoverinfo="skip",
    )
    _add_doors(figure, data)
    for i, reported in enumerate(_REPORTED):
        for j, label in enumerate(LABELS):
            what = "unchanged" if same[i, j] else "changed"
            n = int(data.counts[i, j])
            figure.add_annotation(
                x=label, y=reported, showarrow=False, text=f"<b>{n:,}</b><br>{what}" if n else "0"
            )
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_xaxes(showgrid=False)
    return figure


def _add_doors(figure: go.Figure, data: _Data) -> None:
    """Lay a clear square over each cell: heat maps themselves cannot be selected."""
    places = [(i, j) for i in range(len(_REPORTED)) for j in range(len(LABELS))]
    leads_to = [
        where_door(where("influence", "queries", reported_label=_REPORTED[i], label=LABELS[j]))
        if data.counts[i, j]
        else ""
        for i, j in places
    ]
    hover = [
        f"Reported {_REPORTED[i]}, recomputed {LABELS[j]}: {count(int(data.counts[i, j]), 'question')}"
        + (f"<br>{data.causes[i, j]}" if data.causes[i, j] else "")
        for i, j in places
    ]
    figure.add_scatter(
        mode="markers",
        x=[LABELS[j] for _, j in places],
        y=[_REPORTED[i] for i, _ in places],
        marker={"symbol": "square", "size": 70, "opacity": 0, "color": STYLES["highlight"].color},
        selected={"marker": {"opacity": 0.3}},
        showlegend=False,
        **doors(figure, leads_to, hover),
    )
