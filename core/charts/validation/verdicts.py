"""What each validator says of the answers: passed, warning, critical, or that it does not apply."""

from __future__ import annotations

import plotly.graph_objects as go

from core.charts import theme
from core.charts.validation.shared import applied, door, known_name, name_of, void
from core.text.display import count, percent
from core.validation.analysis import ValidationAnalysis

# Verdict, its column of counts, how it reads in a legend, its look.
_VERDICTS = (
    ("passed", "n_passed", "Passed", "Aligned"),
    ("warning", "n_warning", "Warning", "highlight"),
    ("critical", "n_critical", "Critical", "Divergent"),
    ("", "n_silent", "Does not apply", "Undefined"),
)  # fmt: skip


def verdict_counts(analysis: ValidationAnalysis) -> go.Figure:
    """Draw how many answers each validator passes, warns of, calls critical, or leaves alone.

    One bar per validator that ever applies, all of the same length: the validated answers. Parts of a bar
    lead to their questions, but for answers that the validator leaves alone. Empty where nothing was
    validated.
    """
    if why := void(analysis):
        return theme.empty_figure(why)
    data = applied(analysis)
    data["n_silent"] = data["n"] - data["n_applied"]
    n = int(data["n"].max())
    said = "; ".join(
        f"{known_name(row.validator)} warns of {row.n_warning:,} and stops {row.n_critical:,}"
        for row in data.itertuples()
        if row.n_warning or row.n_critical
    )
    alt = f"Verdicts of {count(len(data), 'validator')} on {count(n, 'answer')}: {said or 'no objection'}."
    figure = theme.new_figure(alt, "Answers", "", height=100 + 44 * len(data))
    for verdict, column, title, style in _VERDICTS:
        if not data[column].any():
            continue
        leads_to, hover = [], []
        for validator, own, of in zip(data["validator"], data[column], data["n"], strict=True):
            asked = {"validator": validator, "verdict": verdict}
            leads_to.append(door("verdicts", own, **asked) if verdict else "")
            said = f"{own:,} of {count(of, 'answer')} ({percent(own / of)})"
            hover.append(f"{theme.safe_text(validator)}: {title.lower()}<br>{said}")
        theme.add_bars(
            figure, title, data[column], data["at"], style, hover, leads_to, width=0.6,
            opacity=1 if verdict else 0.45,
        )  # fmt: skip
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    figure.update_xaxes(range=[0, n], tickformat=",d")
    theme.name_rows(figure, [name_of(name) for name in data["validator"]])
    return figure
