"""Whether a validator objects to incorrect answers more often than to correct ones."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import (
    STYLES,
    add_marks,
    empty_figure,
    error_bars,
    marker,
    name_rows,
    new_figure,
    safe_text,
)
from core.charts.validation.shared import applied, door, known_name, name_of, void
from core.text.display import count, p_text, percent
from core.validation.analysis import ValidationAnalysis

_APART = 0.17  # rows between the marks of one validator and its middle


def flag_rates(analysis: ValidationAnalysis) -> go.Figure:
    """Draw the share of the incorrect and of the correct answers that each validator objects to.

    With 95 % intervals (Wilson). The bar between the two is what chance gives: as many objections spread at
    random meet the same share of both. A validator that never applies is left out. Marks lead to their
    questions. Empty without labelled answers.
    """
    return _draw(_data(analysis))


def _data(analysis: ValidationAnalysis) -> pd.DataFrame | str:
    """Return the validators with the share that chance gives and their places, or why there are none."""
    if why := void(analysis, labelled=True):
        return why
    rows = applied(analysis)
    labelled = rows["n_wrong"] + rows["n_right"]
    chance = (rows["wrong_flagged"] + rows["right_flagged"]) / labelled
    return rows.assign(labelled=labelled, chance=chance)


def _draw(data: pd.DataFrame | str) -> go.Figure:
    if isinstance(data, str):
        return empty_figure(data)
    figure = new_figure(_alt(data), "Answers with an objection (%)", "", height=120 + 66 * len(data))
    for name, style, flagged, n, rate, step, correct in (
        ("Incorrect", "Divergent", "wrong_flagged", "n_wrong", "recall", -_APART, False),
        ("Correct", "Aligned", "right_flagged", "n_right", "false_positive_rate", _APART, True),
    ):
        known = data[data[n] > 0]
        value, low, high = (100 * known[f"{rate}{end}"] for end in ("", "_low", "_high"))
        add_marks(
            figure,
            f"{name} answers ({int(data[n].max()):,})",
            value,
            known["at"] + step,
            marker(style, 11),
            [_hover(row, name.lower(), flagged, n, rate) for row in known.to_dict("records")],
            [
                door("verdicts", row[flagged], validator=row["validator"], objects=True, correct=correct)
                for row in known.to_dict("records")
            ],
            error_x=error_bars(value, low, high, STYLES[style].color),
            cliponaxis=False,
        )
    add_marks(
        figure,
        "Chance: as many at random",
        100 * data["chance"],
        data["at"],
        {"symbol": "line-ns", "size": 22, "line": {"width": 3, "color": STYLES["highlight"].color}},
        [f"By chance {percent(share)} of both" for share in data["chance"]],
        cliponaxis=False,
    )
    figure.update_xaxes(range=[-2, 102], dtick=20)
    name_rows(
        figure,
        [f"{name_of(row.validator)}<br>{_told(row)}" for row in data.itertuples()],
    )
    return figure


def _told(row: Any) -> str:
    """Return the p-value of a row, or why no test is possible."""
    if not math.isnan(row.p_value):
        return p_text(row.p_value)
    flagged = row.wrong_flagged + row.right_flagged
    return "no objection" if not flagged else "objects to all" if flagged == row.labelled else "no test"


def _hover(row: dict[str, Any], name: str, flagged: str, n: str, rate: str) -> str:
    interval = (row[f"{rate}_low"], row[f"{rate}_high"])
    return (
        f"{safe_text(row['validator'])}<br>objects to {row[flagged]:,} of {count(row[n], f'{name} answer')} "
        f"({percent(row[rate])}; 95 %: {percent(0, interval)})<br>By chance {percent(row['chance'])}"
    )


def _alt(data: pd.DataFrame) -> str:
    said = "; ".join(
        f"{known_name(row.validator)} {row.wrong_flagged:,} of {row.n_wrong:,} and {row.right_flagged:,} "
        f"of {row.n_right:,}, {_told(row)}"
        for row in data.itertuples()
    )
    return (
        f"Incorrect and correct answers that each of {count(len(data), 'validator')} objects to, of "
        f"{count(int(data['labelled'].max()), 'labelled answer')}: {said or 'none applies'}."
    )
