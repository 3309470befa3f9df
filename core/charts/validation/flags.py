"""Whether a validator objects to incorrect answers more often than to correct ones."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.charts.validation.shared import applied, door, known_name, name_of, void
from core.text.display import count, p_text, percent
from core.validation.analysis import ValidationAnalysis

_APART = 0.17  # rows between the marks of one validator and its middle
_KINDS = (  # title, style, columns of flags, n and rate, where in the row, whether correct
    ("Incorrect", "Divergent", "wrong_flagged", "n_wrong", "recall", -_APART, False),
    ("Correct", "Aligned", "right_flagged", "n_right", "false_positive_rate", _APART, True),
)


def flag_rates(analysis: ValidationAnalysis) -> go.Figure:
    """Draw the share of the incorrect and of the correct answers that each validator objects to.

    With 95 % intervals (Wilson). The bar between the two is what chance gives: as many objections spread at
    random meet the same share of both. A validator that never applies is left out. Marks lead to their
    questions. Empty without labelled answers.
    """
    if why := void(analysis, labelled=True):
        return theme.empty_figure(why)
    data = _data(analysis)
    said = "; ".join(
        f"{known_name(row.validator)} {row.wrong_flagged:,} of {row.n_wrong:,} and {row.right_flagged:,} "
        f"of {row.n_right:,}, {row.told}"
        for row in data.itertuples()
    )
    alt = (
        f"Incorrect and correct answers that each of {count(len(data), 'validator')} objects to, of "
        f"{count(int(data['labelled'].max()), 'labelled answer')}: {said or 'none applies'}."
    )
    figure = theme.new_figure(alt, "Answers with an objection (%)", "", height=120 + 66 * len(data))
    for name, style, flagged, n, rate, step, correct in _KINDS:
        known = data[data[n] > 0]
        value, low, high = (100 * known[f"{rate}{end}"] for end in ("", "_low", "_high"))
        leads_to, hover = [], []
        for row in known.to_dict("records"):
            asked = {"validator": row["validator"], "objects": True, "correct": correct}
            leads_to.append(door("verdicts", row[flagged], **asked))
            hover.append(
                f"{theme.safe_text(row['validator'])}<br>objects to {row[flagged]:,} of "
                f"{count(row[n], f'{name.lower()} answer')} ({percent(row[rate])}; 95 %: "
                f"{percent(0, (row[f'{rate}_low'], row[f'{rate}_high']))})<br>By chance "
                f"{percent(row['chance'])}"
            )
        theme.add_marks(
            figure, f"{name} answers ({int(data[n].max()):,})", value, known["at"] + step,
            theme.marker(style, 11), hover, leads_to, cliponaxis=False,
            error_x=theme.error_bars(value, low, high, theme.STYLES[style].color),
        )  # fmt: skip
    hover = [f"By chance {percent(share)} of both" for share in data["chance"]]
    theme.add_marks(
        figure, "Chance: as many at random", 100 * data["chance"], data["at"], theme.chance_tick(22), hover,
        cliponaxis=False,
    )  # fmt: skip
    figure.update_xaxes(range=[-2, 102], dtick=20)
    theme.name_rows(figure, [f"{name_of(row.validator)}<br>{row.told}" for row in data.itertuples()])
    return figure


def _data(analysis: ValidationAnalysis) -> pd.DataFrame:
    """Return the validators with their places, the share that chance gives, and what is told of the test."""
    rows = applied(analysis)
    labelled = rows["n_wrong"] + rows["n_right"]
    chance = (rows["wrong_flagged"] + rows["right_flagged"]) / labelled
    rows = rows.assign(labelled=labelled, chance=chance)
    return rows.assign(told=[_told(row) for row in rows.itertuples()])


def _told(row: Any) -> str:
    """Return the p-value of a row, or why no test is possible."""
    if not math.isnan(row.p_value):
        return p_text(row.p_value)
    return "no objection" if not row.chance else "objects to all" if row.chance == 1 else "no test"
