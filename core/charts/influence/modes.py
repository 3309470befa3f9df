"""How many questions show each failure mode, and how many would by chance."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.conditions import where
from core.influence import InfluenceAnalysis
from core.influence.definitions import MODES
from core.text.display import count, number, p_text


def failure_mode_counts(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw the number of questions per failure mode, zeros included; a question may show several.

    Horizontal bars in the order of the definitions, with shares of the questions that could show each.
    Modes that depend on the order have a mark at the count expected by chance, with its middle 95 %. Modes
    that need something the run lacks say "not tested". Bars lead to their questions. Empty without questions.
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
    listed = [f"{row.title} {row.n:,}{_by_chance(row)}" for row in data.itertuples() if row.n]
    alt = f"Failure modes among {count(n_queries, 'question')}: {', '.join(listed) or 'none found'}."
    figure = theme.new_figure(alt, "Questions", "", height=80 + 34 * len(data))
    # Room for the text outside the longest bar, on a phone too.
    most = max(int(data["n"].max()), float(chance["expected_high"].max() if len(chance) else 0), 1) * 1.45
    hover = [
        f"{row.title}: {row.n:,} of {count(row.of, 'question')}{_by_chance(row)}<br>"
        f"{theme.safe_text(MODES[row.name].meaning, 160)}"
        for row in data.itertuples(index=False)
    ]
    leads_to = [
        theme.where_door(where("influence", "queries", **{row.name: True})) if row.n else ""
        for row in data.itertuples(index=False)
    ]
    figure.add_bar(
        name="Observed",
        orientation="h",
        x=data["n"],
        y=data["title"],
        marker=theme.bar_marker("neutral"),
        showlegend=bool(len(chance)),
        **theme.doors(figure, leads_to, hover),
    )
    theme.add_chance(figure, chance.assign(note=[p_text(p) for p in chance["p_value"]]))
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


def _by_chance(row: object) -> str:
    expected = row.expected  # type: ignore[attr-defined]
    return "" if pd.isna(expected) else f" ({number(expected, '{:.1f}')} by chance)"
