"""One number of the questions that two runs share: a dumbbell for each question."""

from __future__ import annotations

from textwrap import wrap

import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.socket import QuestionColumn
from core.text.display import count

ROWS_AT_MOST = 60
_ROW, _LINE = 15, 15  # pixels: the dumbbell, and each line of the text above it
_LINES = 4
_LABEL = 40  # characters of a line, which a phone has room for
_LOOKS = {"better": "raised", "higher": "raised", "worse": "lowered", "lower": "lowered", "same": "neutral"}


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
        return theme.empty_figure(f"{column.title}: no question to draw.")
    shown, (a, b) = _data(rows, column), letters
    said = ", ".join(f"{n:,} {change}" for change, n in rows["change"].value_counts().items())
    alt = f"{column.title} of {count(len(rows), 'question')} in run {a} and run {b}: in run {b} {said}."
    if len(shown) < len(rows):
        alt += f" Drawn are the {len(shown):,} that change most."
    lines = [_wrapped(text) for text in shown["question"]]
    most = max(map(len, lines))
    figure = theme.new_figure(alt, column.title, "Question", height=160 + (_ROW + _LINE * most) * len(shown))
    shown["hover"] = [
        f"{theme.safe_text(row.question)}<br>{a} {column.text(row.a)} · {b} {column.text(row.b)} "
        f"({row.change})"
        for row in shown.itertuples()
    ]
    shown["door"] = shown["query_id"].map(theme.question_door)
    changed = shown[shown["change"] != "same"]
    for change, part in changed.groupby("change", sort=True):
        line = {"color": theme.STYLES[_LOOKS[str(change)]].color, "width": 3}
        x = [end for row in part.itertuples() for end in (row.a, row.b, None)]
        y = [end for place in part["place"] for end in (place, place, None)]
        figure.add_scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    ends = [(f"Run {a}", changed, "a", {**theme.marker("neutral", 9), "symbol": "circle-open"})]
    for change, part in shown.groupby("change", sort=True):
        name = f"Run {b}: {change}" if change != "same" else f"{a} and {b} the same"
        ends.append((name, part, "b", theme.marker(_LOOKS[str(change)], 11)))
    for name, part, end, look in ends:
        theme.add_marks(figure, name, part[end], part["place"], look, part["hover"], part["door"])
    _name_rows(figure, lines)
    _scale(figure, shown, column)
    return figure


def _data(rows: pd.DataFrame, column: QuestionColumn) -> pd.DataFrame:
    """Return the rows that change most, with their ``place``, 1 on top."""
    size = rows["difference"].abs()
    kept = rows.loc[size.sort_values(ascending=False, kind="stable").index[:ROWS_AT_MOST]]
    kept = kept.sort_values(["difference", "a"], ascending=column.higher_is == "worse", kind="stable")
    return kept.assign(place=range(1, len(kept) + 1))


def _wrapped(text: object) -> list[str]:
    """Return a question in lines, so that it is read whole."""
    given = " ".join(str(text).split()) if isinstance(text, str) else ""
    return [theme.safe_text(line, 2 * _LABEL) for line in wrap(given, _LABEL)[:_LINES]] or [""]


def _name_rows(figure: go.Figure, lines: list[list[str]]) -> None:
    # Above its dumbbell each question has the whole width, on a phone too.
    for place, text in enumerate(lines, start=1):
        figure.add_annotation(
            text="<br>".join(text), x=0, xref="paper", xanchor="left",
            y=place - 0.12, yanchor="bottom", showarrow=False, align="left", font={"size": 12},
        )  # fmt: skip
    figure.update_yaxes(range=[len(lines) + 0.6, 0.2], showgrid=False, showticklabels=False)


def _scale(figure: go.Figure, shown: pd.DataFrame, column: QuestionColumn) -> None:
    ends = [*shown["a"], *shown["b"]]
    low, high = column.bounds or (min(ends), max(ends))
    margin = 0.04 * (high - low) or 0.5
    figure.update_xaxes(range=[low - margin, high + margin], side="top")
    if column.pattern == "bool":
        figure.update_xaxes(tickvals=[0, 1], ticktext=["no", "yes"])
    elif low < 0 < high:
        figure.add_vline(x=0, line={"color": theme.AXIS, "width": 1, "dash": "dash"})
