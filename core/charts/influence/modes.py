"""How many questions show each failure mode, and how many would by chance."""

from __future__ import annotations

from typing import Any

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
    data = _data(analysis)
    if not len(analysis.queries):
        return theme.empty_figure("There are no questions to check for failure modes.")
    chance = data[data["expected"].notna()]
    listed = [f"{row.title} {row.n:,}{_by_chance(row)}" for row in data.itertuples() if row.n]
    asked = count(len(analysis.queries), "question")
    alt = f"Failure modes among {asked}: {', '.join(listed) or 'none found'}."
    figure = theme.new_figure(alt, "Questions", "", height=80 + 34 * len(data))
    hover = [
        f"{row.title}: {row.n:,} of {count(row.of, 'question')}{_by_chance(row)}<br>"
        f"{theme.safe_text(MODES[row.name].meaning, 160)}"
        for row in data.itertuples()
    ]
    leads_to = [
        theme.where_door(where("influence", "queries", **{row.name: True})) if row.n else ""
        for row in data.itertuples()
    ]
    theme.add_bars(
        figure, "Observed", data["n"], data["title"], "neutral", hover, leads_to, showlegend=bool(len(chance))
    )
    theme.add_chance(figure, chance.assign(note=[p_text(p) for p in chance["p_value"]]))
    # Beyond the bar and the range by chance, so that neither crosses the text.
    ends = data[["n", "expected_high"]].max(axis=1)
    texts = [
        f"{row.n:,} ({100 * row.share:.0f} %)" if row.tested else "not tested" for row in data.itertuples()
    ]
    # Room for the text outside the longest bar, on a phone too.
    theme.count_rows(figure, ends, data["title"], texts, 1.45)
    figure.update_layout(bargap=0.35)
    return figure


def _data(analysis: InfluenceAnalysis) -> pd.DataFrame:
    """`InfluenceAnalysis.modes` with title, whether tested, and the share of the questions that show it."""
    modes, titles = analysis.modes, [mode.title for mode in MODES.values()]
    tested = modes["of"] > 0
    return modes.assign(title=titles, share=(modes["n"] / modes["of"]).where(tested, 0.0), tested=tested)


def _by_chance(row: Any) -> str:
    return "" if pd.isna(row.expected) else f" ({number(row.expected, '{:.1f}')} by chance)"
