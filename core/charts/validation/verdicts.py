"""What each validator says of the answers: passed, warning, critical, or that it does not apply."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import bar_marker, doors, empty_figure, name_rows, new_figure, safe_text
from core.charts.validation.shared import applied, door, known_name, name_of, void
from core.text.display import count, percent
from core.validation.analysis import ValidationAnalysis

# Verdict, its column of counts, how it reads in a legend, its look.
_VERDICTS = (
    ("passed", "n_passed", "Passed", "Aligned"),
    ("warning", "n_warning", "Warning", "highlight"),
    ("critical", "n_critical", "Critical", "Divergent"),
    ("not applied", "n_silent", "Does not apply", "Undefined"),
)  # fmt: skip


def verdict_counts(analysis: ValidationAnalysis) -> go.Figure:
    """Draw how many answers each validator passes, warns of, calls critical, or leaves alone.

    One bar per validator that ever applies, all of the same length: the validated answers. Parts of a bar
    lead to their questions, but for answers that the validator leaves alone. Empty where nothing was
    validated.
    """
    return _draw(_data(analysis))


def _data(analysis: ValidationAnalysis) -> pd.DataFrame | str:
    """Return the table of validators with the answers that each leaves alone and its place, or why not."""
    if why := void(analysis):
        return why
    rows = applied(analysis)
    return rows.assign(n_silent=rows["n"] - rows["n_applied"])


def _draw(data: pd.DataFrame | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    n = int(data["n"].max())
    said = "; ".join(
        f"{known_name(row.validator)} warns of {row.n_warning:,} and stops {row.n_critical:,}"
        for row in data.itertuples()
        if row.n_warning or row.n_critical
    )
    alt = f"Verdicts of {count(len(data), 'validator')} on {count(n, 'answer')}: {said or 'no objection'}."
    figure = new_figure(alt, "Answers", "", height=100 + 44 * len(data))
    for verdict, column, title, style in _VERDICTS:
        if not data[column].any():
            continue
        silent = verdict == "not applied"
        leads_to = [
            "" if silent else door("verdicts", row[column], validator=row["validator"], verdict=verdict)
            for row in data.to_dict("records")
        ]
        hover = [
            f"{safe_text(row['validator'])}: {title.lower()}<br>{row[column]:,} of "
            f"{count(row['n'], 'answer')} ({percent(row[column] / row['n'])})"
            for row in data.to_dict("records")
        ]
        figure.add_bar(
            name=title,
            orientation="h",
            x=data[column],
            y=data["at"],
            width=0.6,
            marker=bar_marker(style),
            opacity=0.45 if silent else 1,
            **doors(figure, leads_to, hover),
        )
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    figure.update_xaxes(range=[0, n], tickformat=",d")
    name_rows(figure, [name_of(name) for name in data["validator"]])
    return figure
