"""How many questions show each failure mode, and how many would by chance."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.influence import InfluenceAnalysis
from core.influence.definitions import MODES
from core.influence.summary import p_text
from core.text.display import count


def failure_mode_counts(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw the number of questions per failure mode, zeros included; a question may show several.

    Horizontal bars in the order of the definitions, with shares of the questions that could show each.
    Modes that depend on the order have a mark at the count expected by chance, with its middle 95 %. Modes
    that need something the run lacks say "not tested". Empty without questions.
    """
    return _draw(_data(analysis), len(analysis.queries))


def _data(analysis: InfluenceAnalysis) -> pd.DataFrame:
    """`InfluenceAnalysis.modes` with title, whether tested, and the share of the questions that show it."""
    modes, titles = analysis.modes, [mode.title for mode in MODES.values()]
    tested = modes["of"] > 0
    return modes.assign(title=titles, share=(modes["n"] / modes["of"]).where(tested, 0.0), tested=tested)


def _draw(data: pd.DataFrame, n_queries: int) -> go.Figure:
    if not n_queries:
        return theme.empty_figure("There are no questions to check for failure modes.")
    chance = data[data["expected"].notna()]
    listed = [
        f"{row.title} {row.n:,}" + ("" if pd.isna(row.expected) else f" ({row.expected:.1f} by chance)")
        for row in data.itertuples()
        if row.n
    ]
    alt = f"Failure modes among {count(n_queries, 'question')}: {', '.join(listed) or 'none found'}."
    figure = theme.new_figure(alt, "Questions", "", height=80 + 34 * len(data))
    # Room for the text outside the longest bar, on a phone too.
    most = max(int(data["n"].max()), float(chance["expected_high"].max() if len(chance) else 0), 1) * 1.45
    figure.add_bar(
        name="Observed",
        orientation="h",
        x=data["n"],
        y=data["title"],
        customdata=[theme.safe_text(MODES[name].meaning) for name in data["name"]],
        hovertemplate="%{y}: %{x:,}<br>%{customdata}<extra></extra>",
        marker=theme.bar_marker("neutral"),
        showlegend=bool(len(chance)),
    )
    if len(chance):
        color = theme.STYLES["highlight"].color
        ranges = [
            f"{row.expected_low:.0f} to {row.expected_high:.0f}<br>adjusted {p_text(row.p_value)}"
            for row in chance.itertuples()
        ]
        look = {"symbol": "line-ns", "size": 16, "line": {"width": 4, "color": color}}
        bars = theme.error_bars(chance["expected"], chance["expected_low"], chance["expected_high"], color)
        hover = "%{y} by chance: %{x:.1f}<br>%{customdata}"
        more = {"customdata": ranges, "error_x": bars}
        theme.add_marks(
            figure, "Chance, middle 95 %", chance["expected"], chance["title"], look, hover, **more
        )
    # Beyond the bar and the range by chance, so that neither crosses the text.
    for row in data.itertuples():
        end = row.n if pd.isna(row.expected_high) else max(row.n, row.expected_high)
        text = f"{row.n:,} ({100 * row.share:.0f} %)" if row.tested else "not tested"
        figure.add_annotation(x=end, y=row.title, text=text, xanchor="left", xshift=6, showarrow=False)
    figure.update_xaxes(range=[0, most], tickformat=",d", dtick=theme.count_step(most))
    figure.update_yaxes(
        autorange="reversed", showgrid=False, categoryarray=data["title"], categoryorder="array"
    )
    figure.update_layout(bargap=0.35)
    return figure
