"""How many planted errors the verifier found, kind by kind, beside what chance would find."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.claims.planted import CLEAN, ERRORS, PlantedErrors, wrong_verdict
from core.conditions import where
from core.text.display import count, number


def planted_errors_chart(found: PlantedErrors) -> go.Figure:
    """Draw the share found of every kind of planted error with its 95 % interval; last, false alarms.

    Ticks are the shares that as many verdicts at random would give, with their middle 95 %. Kinds without a
    verified claim say so. Marks lead to the questions with a claim that has the wrong verdict.
    """
    return _draw(_data(found.table), found.row(ERRORS))


def _data(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the row of each kind and with chance as shares."""
    data = table.assign(place=range(1, len(table) + 1))
    for name in ("chance", "chance_low", "chance_high"):
        data[name] = table[name] / table["n"].where(table["n"] > 0)
    return data


def _draw(data: pd.DataFrame, errors: pd.Series) -> go.Figure:
    listed = ", ".join(f"{row.title} {row.n_found:,} of {row.n:,}" for row in data.iloc[1:].itertuples())
    by_chance = number(errors["chance"], "{:.1f}")
    alt = f"Planted errors found: {errors['n_found']:,} of {errors['n']:,}, {by_chance} by chance; {listed}."
    figure = theme.new_figure(alt, "Share of claims", "", height=110 + 34 * len(data))
    known = data[data["n"] > 0]
    color = theme.STYLES["highlight"].color
    look = {"symbol": "line-ns", "size": 18, "line": {"width": 4, "color": color}}
    bars = theme.error_bars(known["chance"], known["chance_low"], known["chance_high"], color, 5)
    theme.add_marks(
        figure, "Chance, middle 95 %", known["chance"], known["place"], look, error_x=bars, opacity=0.55
    )
    for name, style, rows in (
        ("Found", "Aligned", known[known["planted"] != CLEAN]),
        ("False alarms", "Divergent", known[known["planted"] == CLEAN]),
    ):
        own = theme.error_bars(rows["share"], rows["low"], rows["high"], theme.STYLES[style].color)
        look, leads_to = theme.marker(style, 10), [planted_door(row) for row in rows.itertuples()]
        theme.add_marks(figure, name, rows["share"], rows["place"], look, _hover(rows), leads_to, error_x=own)
    for row in data.itertuples():
        text = f"{row.n_found:,} of {row.n:,}" if row.n else "none verified"
        figure.add_annotation(x=1.03, y=row.place, text=text, xanchor="left", showarrow=False)
    figure.update_xaxes(range=[-0.03, 1.3], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%")
    theme.name_rows(figure, list(data["title"]))
    return figure


def planted_door(row: Any) -> str:
    """Return where a row of `PlantedErrors.table` leads: to the questions where the verifier is wrong."""
    kind = {"planted_error": True} if row.planted == ERRORS else {"planted": row.planted}
    verdict = wrong_verdict(row.planted)
    return theme.where_door(where("claims", "claims", **kind, verdict=verdict)) if row.n_questions else ""


def _hover(rows: pd.DataFrame) -> list[str]:
    return [
        f"{theme.safe_text(row.title)}: {row.n_found:,} of {count(row.n, 'claim')}, {number(row.share)} "
        f"({number(row.low)} to {number(row.high)})<br>By chance {number(row.chance)} "
        f"({number(row.chance_low)} to {number(row.chance_high)})<br>{theme.safe_text(row.meaning)}<br>"
        f"{'False alarms' if row.planted == CLEAN else 'Missed'} in {count(row.n_questions, 'question')}"
        for row in rows.itertuples()
    ]
