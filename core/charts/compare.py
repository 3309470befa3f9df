"""One number of the questions that two runs share: a dumbbell for each question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import AXIS, STYLES, doors, empty_figure, marker, new_figure, question_door, safe_text
from core.socket import QuestionColumn
from core.text.display import count

ROWS_AT_MOST = 60
_ROW, _LINE = 15, 15  # pixels: the dumbbell, and each line of the text above it
_LINES = 4
_LABEL = 40  # characters of a line, which a phone has room for
_LOOKS = {"better": "raised", "higher": "raised", "worse": "lowered", "lower": "lowered", "same": "neutral"}


class _Data(NamedTuple):
    rows: pd.DataFrame  # the first on top
    counts: Mapping[str, int]  # of all rows, by change
    n: int


def compare_figure(
    rows: pd.DataFrame, column: QuestionColumn, letters: tuple[str, str] = ("A", "B")
) -> go.Figure:
    """Draw a number of every question in two runs, joined by a line.

    Parameters
    ----------
    rows : DataFrame
        One row per question: ``query_id, question, a, b, difference, change``; ``change`` is better, worse,
        higher, lower or same.
    column : QuestionColumn
        The number.
    letters : (str, str)
        Of the two runs.

    Returns
    -------
    Figure
        The best (or highest) change on top; at most 60 questions, those that change most. A question whose
        values are equal has one mark. Empty without rows.
    """
    if rows.empty:
        return empty_figure(f"{column.title}: no question to draw.")
    return _draw(_data(rows, column), column, letters)


def _data(rows: pd.DataFrame, column: QuestionColumn) -> _Data:
    size = rows["difference"].abs()
    kept = rows.loc[size.sort_values(ascending=False, kind="stable").index[:ROWS_AT_MOST]]
    worse_up = column.higher_is == "worse"
    kept = kept.sort_values(["difference", "a"], ascending=worse_up, kind="stable")
    return _Data(
        kept.assign(place=range(1, len(kept) + 1)), rows["change"].value_counts().to_dict(), len(rows)
    )


def _draw(data: _Data, column: QuestionColumn, letters: tuple[str, str]) -> go.Figure:
    shown, (a, b) = data.rows, letters
    said = ", ".join(f"{n:,} {change}" for change, n in data.counts.items())
    alt = f"{column.title} of {count(data.n, 'question')} in run {a} and run {b}: in run {b} {said}."
    if len(shown) < data.n:
        alt += f" Drawn are the {len(shown):,} that change most."
    lines = [_wrapped(text) for text in shown["question"]]
    most = max(map(len, lines))
    figure = new_figure(alt, column.title, "Question", height=160 + (_ROW + _LINE * most) * len(shown))
    changed = shown[shown["change"] != "same"]
    for change, part in changed.groupby("change", sort=True):
        _add_lines(figure, part, STYLES[_LOOKS[str(change)]].color)
    _add_ends(
        figure, f"Run {a}", changed, "a", {**marker("neutral", 9), "symbol": "circle-open"}, column, letters
    )
    for change, part in shown.groupby("change", sort=True):
        name = f"Run {b}: {change}" if change != "same" else f"{a} and {b} the same"
        _add_ends(figure, name, part, "b", marker(_LOOKS[str(change)], 11), column, letters)
    _name_rows(figure, shown["place"], lines)
    _scale(figure, shown, column)
    return figure


def _add_lines(figure: go.Figure, part: pd.DataFrame, color: str) -> None:
    x = [end for row in part.itertuples() for end in (row.a, row.b, None)]
    y = [end for place in part["place"] for end in (place, place, None)]
    figure.add_scatter(
        x=x, y=y, mode="lines", line={"color": color, "width": 3}, hoverinfo="skip", showlegend=False
    )


def _add_ends(
    figure: go.Figure,
    name: str,
    part: pd.DataFrame,
    end: str,
    look: Mapping[str, Any],
    column: QuestionColumn,
    letters: tuple[str, str],
) -> None:
    a, b = letters
    texts = [
        f"{safe_text(row.question)}<br>{a} {column.text(row.a)} · {b} {column.text(row.b)} ({row.change})"
        for row in part.itertuples()
    ]
    if len(part):
        figure.add_scatter(
            name=name,
            mode="markers",
            x=part[end],
            y=part["place"],
            marker=look,
            **doors(figure, map(question_door, part["query_id"]), texts),
        )


def _wrapped(text: object) -> list[str]:
    """Return a question in lines, so that it is read whole."""
    given = " ".join(str(text).split()) if isinstance(text, str) else ""
    return [safe_text(line, 2 * _LABEL) for line in wrap(given, _LABEL)[:_LINES]] or [""]


def _name_rows(figure: go.Figure, places: pd.Series, lines: Sequence[Sequence[str]]) -> None:
    # Above its dumbbell each question has the whole width, on a phone too.
    for place, text in zip(places, lines, strict=True):
        figure.add_annotation(
            text="<br>".join(text), x=0, xref="paper", xanchor="left",
            y=place - 0.12, yanchor="bottom", showarrow=False, align="left", font={"size": 12},
        )  # fmt: skip
    figure.update_yaxes(range=[len(places) + 0.6, 0.2], showgrid=False, showticklabels=False)


def _scale(figure: go.Figure, shown: pd.DataFrame, column: QuestionColumn) -> None:
    ends = [*shown["a"], *shown["b"]]
    low, high = column.bounds or (min(ends), max(ends))
    margin = 0.04 * (high - low) or 0.5
    figure.update_xaxes(range=[low - margin, high + margin], side="top")
    if column.pattern == "bool":
        figure.update_xaxes(tickvals=[0, 1], ticktext=["no", "yes"])
    elif low < 0 < high:
        figure.add_vline(x=0, line={"color": AXIS, "width": 1, "dash": "dash"})
