"""How well each estimator finds incorrect answers, beside chance and the trivial baselines."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.conditions import where
from core.text.display import count, number, p_text
from core.uncertainty.analysis import UncertaintyAnalysis

_LEVEL = 0.05
_BEST = 8  # estimators with a row, beside the trivial baselines


def estimator_leaderboard(analysis: UncertaintyAnalysis) -> go.Figure:
    """Draw the AUROC of finding incorrect answers of the best estimators and the trivial baselines.

    Each has its 95 % interval; the dotted line is 0.5, guessing. Beyond chance: p, adjusted for all
    estimators, is below 0.05. An estimator that does not beat the baselines is not worth its cost. Marks lead
    to the incorrect answers. Empty where the estimators cannot be judged.
    """
    data = _data(analysis)
    if not len(data):
        return theme.empty_figure(analysis.not_judged or "No estimator has a value.")
    first, trivial = data.iloc[0], data[data["is_baseline"]]
    against = "".join(f"; {row.title} (trivial) {number(row.auroc)}" for row in trivial.itertuples())
    alt = (
        f"AUROC of finding the {first['n_wrong']:,} incorrect ones among {count(first['n'], 'answer')}: "
        f"best {first['title']} with {number(first['auroc'])}, 95 % interval {number(first['auroc_low'])} to "
        f"{number(first['auroc_high'])}{against}; 0.5 is guessing."
    )
    figure = theme.new_figure(alt, "AUROC (0.5 = guessing)", "", height=90 + 42 * len(data))
    figure.add_vline(x=0.5, line=theme.BORDER)
    door = theme.where_door(where("uncertainty", "queries", correct=False))
    beyond = (data["p_value"] < _LEVEL) & (data["auroc"] > 0.5)
    for name, style, chosen in (
        ("Beyond chance", "Aligned", ~data["is_baseline"] & beyond),
        ("Not beyond chance", "neutral", ~data["is_baseline"] & ~beyond),
        ("Trivial baseline", "highlight", data["is_baseline"]),
    ):
        rows = data[chosen]
        value, low, high = (rows[f"auroc{end}"] for end in ("", "_low", "_high"))
        theme.add_marks(
            figure, f"{name} ({len(rows)})", value, rows["at"], theme.marker(style, 10),
            [_hover(row) for row in rows.itertuples()], [door] * len(rows), cliponaxis=False,
            error_x=theme.error_bars(value, low, high, theme.STYLES[style].color),
        )  # fmt: skip
    low = min(0.45, float(data["auroc_low"].min()), float(data["auroc"].min()))
    figure.update_xaxes(range=[low - 0.02, 1.02], dtick=0.1)
    # Cut at its commas before a long name is wrapped elsewhere.
    names = [",<br>".join(theme.safe_text(part, 60) for part in str(t).split(", ")) for t in data["title"]]
    theme.name_rows(figure, names)
    return figure


def _data(analysis: UncertaintyAnalysis) -> pd.DataFrame:
    """Return the best and all baselines, the best first."""
    board = analysis.leaderboard
    board = board[board["auroc"].notna()].astype({"is_baseline": bool})
    best = board[~board["is_baseline"]].head(_BEST)
    kept = board[board["is_baseline"] | board.index.isin(best.index)].reset_index(drop=True)
    n_incorrect = int(analysis.queries["correct"].eq(False).sum())
    return kept.assign(at=kept.index + 1, n_incorrect=n_incorrect)


def _hover(row: Any) -> str:
    return (
        f"{row.title}: {number(row.auroc, '{:.3f}')}<br>"
        f"95 %: {number(row.auroc_low)} to {number(row.auroc_high)}; guessing 0.50<br>"
        f"{p_text(row.p_value)}, adjusted for all estimators<br>"
        f"{count(row.n, 'answer')}, {row.n_wrong:,} incorrect<br>"
        f"{count(row.n_incorrect, 'question')} with an incorrect answer"
    )
