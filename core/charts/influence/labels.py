"""How many questions are aligned, divergent, or undefined and why, and how many would be by chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.conditions import where
from core.influence import InfluenceAnalysis
from core.influence.definitions import REASONS
from core.stats import poisson_binomial_interval
from core.text.display import count, number


def label_counts(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw the number of aligned and of divergent questions, and of undefined ones by reason.

    Aligned and divergent have a mark at the count that random orders of the same influences give, with its
    middle 95 %. Bars lead to their questions. Empty without questions.
    """
    return _draw(_data(analysis))


def _data(analysis: InfluenceAnalysis) -> pd.DataFrame:
    """One row per bar: name, style, n, rule, door, expected, low, high (NaN where chance plays no part)."""
    labels = analysis.queries["label"].value_counts()
    reasons = analysis.queries["label_reason"].value_counts()
    divergent = analysis.queries["divergent_by_chance"].dropna().to_numpy()
    rows = []
    for name, sign, chance in (("Aligned", "≥", 1 - divergent), ("Divergent", "<", divergent)):
        expected = (chance.sum(), *poisson_binomial_interval(chance)) if chance.size else [np.nan] * 3
        door = theme.where_door(where("influence", "queries", label=name))
        rows.append(
            (name, name, int(labels.get(name, 0)), f"ρ {sign} {analysis.threshold:g}", door, *expected)
        )
    for reason in REASONS.values():
        n = int(reasons.get(reason.name, 0))
        if n:
            door = theme.where_door(where("influence", "queries", label_reason=reason.name))
            rows.append((reason.title, "Undefined", n, reason.meaning, door, *[np.nan] * 3))
    return pd.DataFrame(
        rows, columns=["name", "style", "n", "rule", "door", "expected", "expected_low", "expected_high"]
    )


def _draw(data: pd.DataFrame) -> go.Figure:
    total = int(data["n"].sum())
    if not total:
        return theme.empty_figure("There are no questions to label.")
    listed = ", ".join(f"{row.n:,} {_name(row)}{_by_chance(row)}" for row in data.itertuples() if row.n)
    alt = f"Labels of {count(total, 'question')}: {listed}."
    figure = theme.new_figure(alt, "Questions", "", height=110 + 34 * len(data))
    for style, rows in data.groupby("style", sort=False):
        hover = [
            f"{row.n:,} of {total:,} {_name(row)}{_by_chance(row)}<br>{theme.safe_text(row.rule)}"
            for row in rows.itertuples()
        ]
        leads_to = rows["door"].where(rows["n"] > 0, "")
        figure.add_bar(
            orientation="h",
            x=rows["n"],
            y=rows["name"],
            marker=theme.bar_marker(str(style)),
            showlegend=False,
            **theme.doors(figure, leads_to, hover),
        )
    theme.add_chance(figure, data[data["expected"].notna()].assign(title=data["name"]))
    for row in data.itertuples():
        end = np.nanmax([row.n, row.expected_high])
        figure.add_annotation(x=end, y=row.name, text=f"{row.n:,}", xanchor="left", xshift=6, showarrow=False)
    most = 1.2 * float(np.nanmax(data[["n", "expected_high"]].to_numpy(dtype=np.float64)))
    figure.update_xaxes(range=[0, most], tickformat=",d", dtick=theme.count_step(most))
    figure.update_yaxes(
        autorange="reversed", showgrid=False, categoryarray=data["name"], categoryorder="array"
    )
    figure.update_layout(bargap=0.35)
    return figure


def _name(row: object) -> str:
    name = str(row.name).lower()  # type: ignore[attr-defined]
    return f"undefined: {name}" if row.style == "Undefined" else name  # type: ignore[attr-defined]


def _by_chance(row: object) -> str:
    expected = row.expected  # type: ignore[attr-defined]
    return "" if pd.isna(expected) else f" ({number(expected, '{:.1f}')} by chance)"
