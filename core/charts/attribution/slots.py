"""What a place in the prompt does to the answers, whatever passage stands there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.attribution.analysis import AttributionAnalysis
from core.charts import theme
from core.conditions import where
from core.text.display import count, number


class _Data(NamedTuple):
    slots: pd.DataFrame  # slot, mean, low, high, n, above (questions with an effect of 0 or more), of
    swap: float  # mean change by a swap of neighbours; NaN where none was measured
    n_swap: int


def slot_effects(analysis: AttributionAnalysis) -> go.Figure:
    """Draw the mean effect of each place in the prompt, beside the mean of all places, with 95 % intervals.

    Over questions with as many passages as most have. The grey band is as wide as the mean change when two
    neighbours change places. A mark leads to the questions in which what stands there counts more than what
    stands at the mean place. Empty where no question was measured in other orders.
    """
    data = _data(analysis)
    if data.slots.empty:
        return theme.empty_figure("The passages were not measured in other orders.")
    slots, n, unit = data.slots, int(data.slots["n"].iloc[0]), analysis.unit
    best, worst = (slots.loc[getattr(slots["mean"], which)()] for which in ("idxmax", "idxmin"))
    alt = (
        f"Mean effect of each of {count(len(slots), 'place')} in the prompt over {count(n, 'question')}, in "
        f"{unit}: most at place {best['slot']:g} ({number(best['mean'])}), least at place {worst['slot']:g} "
        f"({number(worst['mean'])}); a swap of neighbours changes {number(data.swap)}."
    )
    figure = theme.new_figure(alt, "Place in the prompt (1 = first)", f"Effect of the place ({unit})", 300)
    if data.n_swap:
        name = f"± swap of neighbours ({count(data.n_swap, 'question')})"
        width = np.full(2, data.swap)
        theme.add_band(figure, name, (0.5, len(slots) + 0.5), -width, width)
    figure.add_hline(y=0, line=theme.DASHED)
    color = theme.STYLES["influence"].color
    hover = [
        f"Place {row.slot:g}: {number(row.mean)} {unit}<br>95 %: {number(row.low)} to {number(row.high)}, "
        f"n = {row.n:,}<br>0 or more in {row.above:,} of {count(row.of, 'question')}"
        for row in slots.itertuples()
    ]
    leads_to = [
        theme.where_door(where("attribution", "passages", slot=row.slot, slot_effect=(0, None)))
        if row.above
        else ""
        for row in slots.itertuples()
    ]
    theme.add_marks(
        figure, f"Mean, 95 % interval ({count(n, 'question')})", slots["slot"], slots["mean"],
        theme.marker("influence", 10), hover, leads_to, showlegend=True, cliponaxis=False,
        error_y=theme.error_bars(slots["mean"], slots["low"], slots["high"], color, 1.5),
    )  # fmt: skip
    figure.update_xaxes(range=[0.5, len(slots) + 0.5], dtick=max(1, len(slots) // 10), tick0=1)
    return figure


def _data(analysis: AttributionAnalysis) -> _Data:
    known = analysis.passages.dropna(subset="slot_effect")
    above = (known["slot_effect"] >= 0).groupby(known["slot"]).agg(["sum", "size"])
    counts = above.set_axis(["above", "of"], axis=1).astype("int64")
    swaps = analysis.queries["swap"].dropna()
    slots = analysis.slots.join(counts, on="slot")
    return _Data(slots, float(swaps.mean()) if len(swaps) else np.nan, len(swaps))
