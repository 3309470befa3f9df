"""How many questions show each failure mode."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import bar_marker, count_step, empty_figure, new_figure, safe_text, several
from core.influence import InfluenceAnalysis
from core.influence.definitions import MODES


def failure_mode_counts(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw the number of questions per failure mode, zeros included; a question may show several.

    Parameters
    ----------
    analysis : InfluenceAnalysis
        The run's analysis.

    Returns
    -------
    Figure
        Horizontal bars in the schema's order, with shares of the questions that could show
        each; an empty figure when there are no questions. Modes that need something the run lacks
        say "not tested".
    """
    data = _data(analysis)
    return _draw(data, len(analysis.queries))


def _data(analysis: InfluenceAnalysis) -> pd.DataFrame:
    """One row per mode: name, title, n, share of the questions that could show it, tested."""
    rows = []
    for name, mode in MODES.items():
        n, testable = int(analysis.queries[name].sum()), analysis.testable[name]
        rows.append((name, mode.title, n, n / testable if testable else 0.0, testable > 0))
    return pd.DataFrame(rows, columns=["name", "title", "n", "share", "tested"])


def _draw(data: pd.DataFrame, n_queries: int) -> go.Figure:
    if not n_queries:
        return empty_figure("There are no questions to look for failure modes in.")
    listed = ", ".join(f"{row.title} {row.n:,}" for row in data.itertuples() if row.n)
    alt = f"Failure modes among {several(n_queries, 'question')}: {listed or 'none found'}."
    figure = new_figure(alt, "Questions", "", height=80 + 34 * len(data))
    figure.add_bar(
        orientation="h",
        x=data["n"],
        y=data["title"],
        text=[
            f"{row.n:,} ({100 * row.share:.0f} %)" if row.tested else "not tested"
            for row in data.itertuples()
        ],
        textposition="outside",
        cliponaxis=False,
        customdata=[safe_text(MODES[name].meaning) for name in data["name"]],
        hovertemplate="%{y}: %{x:,}<br>%{customdata}<extra></extra>",
        marker=bar_marker("neutral"),
        showlegend=False,
    )
    # Room for the text outside the longest bar, on a phone too.
    most = max(int(data["n"].max()), 1)
    figure.update_xaxes(range=[0, most * 1.45], tickformat=",d", dtick=count_step(most * 1.45))
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_layout(bargap=0.35)
    return figure
