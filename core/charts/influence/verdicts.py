"""Reported labels of an imported file against the recomputed ones."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.conditions import where
from core.influence.definitions import LABELS
from core.influence.reported import cause_text
from core.text.display import count

_REPORTED = ("Aligned", "Divergent")


def verdict_changes(comparison: pd.DataFrame) -> go.Figure:
    """Draw how many reported verdicts stay the same and how many change, and to what.

    A matrix of counts from `core.influence.compare_reported`, with causes in the hover. Cells lead to their
    questions; empty when the file reports no verdicts.
    """
    cells = _data(comparison)
    total, changed = int(cells["n"].sum()), cells[cells["reported"] != cells["label"]]
    if not total:
        return theme.empty_figure("The file reports no verdicts to compare with.")
    undefined = int(cells.loc[cells["label"] == "Undefined", "n"].sum())
    alt = (
        f"Reported against recomputed labels of {count(total, 'question')}: {int(changed['n'].sum()):,} "
        f"change, of which {undefined:,} become undefined."
    )
    figure = theme.new_figure(alt, "Recomputed label", "Reported label", height=280)
    signed = cells["n"].where(cells["reported"] == cells["label"], -cells["n"])
    figure.add_heatmap(
        x=list(LABELS),
        y=list(_REPORTED),
        z=signed.to_numpy().reshape(len(_REPORTED), len(LABELS)),
        zmin=-total,
        zmax=total,
        # Unchanged and changed in two hues, pale enough for the page's own text colour on top.
        colorscale=theme.two_sided(0.1, 0.4),
        showscale=False,
        xgap=3,
        ygap=3,
        hoverinfo="skip",
    )
    theme.add_squares(figure, cells["label"], cells["reported"], 70, cells["hover"], cells["door"], 0.3)
    for cell in cells.itertuples():
        what = "unchanged" if cell.reported == cell.label else "changed"
        text = f"<b>{cell.n:,}</b><br>{what}" if cell.n else "0"
        figure.add_annotation(x=cell.label, y=cell.reported, showarrow=False, text=text)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_xaxes(showgrid=False)
    return figure


def _data(comparison: pd.DataFrame) -> pd.DataFrame:
    """One row per cell: reported, label, n, hover (with a line per cause), door."""
    rows = []
    for reported in _REPORTED:
        for label in LABELS:
            cell = comparison[(comparison["reported_label"] == reported) & (comparison["label"] == label)]
            n, causes = len(cell), cell["cause"].value_counts().items()
            said = [theme.safe_text(cause_text(str(cause), size), 40) for cause, size in causes]
            start = f"Reported {reported}, recomputed {label}: {count(n, 'question')}"
            door = theme.where_door(where("influence", "queries", reported_label=reported, label=label))
            rows.append((reported, label, n, "<br>".join([start, *said]), door if n else ""))
    return pd.DataFrame(rows, columns=["reported", "label", "n", "hover", "door"])
