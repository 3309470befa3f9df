"""What each passage does to the answer that was given, against what it does to the reference answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.charts.theme import (
    DASHED,
    add_marks,
    count_heatmap,
    empty_figure,
    marker,
    name_of,
    new_figure,
    question_door,
    safe_text,
)
from core.likelihood.analysis import LikelihoodAnalysis
from core.text.display import count, number

_MOST_MARKS = 2_000
_CELLS = 40
_GROUPS = (
    (True, "Gold passage", "Aligned"),
    (False, "Other passage", "Divergent"),
    (None, "Passage", "neutral"),
)


class _Data(NamedTuple):
    passages: pd.DataFrame  # query_id, drop, reference_drop, is_gold (missing = not known), question, name
    n_queries: int


def answer_against_reference(analysis: LikelihoodAnalysis, correct: bool | None = None) -> go.Figure:
    """Draw the drop of the answer against the drop of the reference answer, one mark a passage.

    Right of the middle the passage made the answer likelier, above it the correct answer. Bottom right:
    misleading; top left: ignored evidence. Up to 2,000 passages have marks that lead to their question, more
    become counts per cell. Empty where no passage has both.

    Parameters
    ----------
    analysis : LikelihoodAnalysis
        The run.
    correct : bool, optional
        Only questions whose answer is correct, or is not.
    """
    return _draw(_data(analysis, correct))


def _data(analysis: LikelihoodAnalysis, correct: bool | None) -> _Data:
    q, p = analysis.queries, analysis.passages
    right = q["correct"].fillna(False).to_numpy(dtype=bool)
    chosen = q if correct is None else q[right == correct]
    found = p[p["query_id"].isin(chosen["query_id"])].dropna(subset=["drop", "reference_drop"])
    n = found["query_id"].nunique()
    if len(found) > _MOST_MARKS:  # counts have no names
        return _Data(found, n)
    names = [name_of(*pair) for pair in zip(found["title"], found["passage_id"], strict=True)]
    found = found.assign(name=names, question=found["query_id"].map(q.set_index("query_id")["question"]))
    return _Data(found, n)


def _draw(data: _Data) -> go.Figure:
    p = data.passages
    if p.empty:
        return empty_figure("No passage has both: score answers that have a reference answer.")
    x, y = p["drop"].to_numpy(dtype=float), p["reference_drop"].to_numpy(dtype=float)
    corners = [
        f"{name} {int(inside.sum()):,}"
        for name, inside in (
            ("raise both", (x > 0) & (y > 0)),
            ("raise only the answer given", (x > 0) & (y <= 0)),
            ("raise only the reference", (x <= 0) & (y > 0)),
            ("raise neither", (x <= 0) & (y <= 0)),
        )
    ]
    alt = (
        f"Drop of the reference answer's log-probability against that of the answer given, of "
        f"{count(len(p), 'passage')} in {count(data.n_queries, 'question')}: {', '.join(corners)}."
        + (f" {int(p['approximate'].sum()):,} of them are approximate." if p["approximate"].any() else "")
    )
    figure = new_figure(alt, "Makes the given answer likelier (nats)", "Makes the reference likelier (nats)")
    figure.add_hline(y=0, line=DASHED)
    figure.add_vline(x=0, line=DASHED)
    if len(p) > _MOST_MARKS:
        counts, across, up = np.histogram2d(x, y, bins=_CELLS)
        centres = (across[:-1] + across[1:]) / 2, (up[:-1] + up[1:]) / 2
        figure.add_trace(
            count_heatmap(*centres, counts.T, "passages", "Answer %{x:.1f} nats<br>reference %{y:.1f} nats")
        )
        return figure
    known = p["is_gold"].notna()
    for gold, title, style in _GROUPS:
        own = p[~known] if gold is None else p[known & p["is_gold"].fillna(False).eq(gold)]
        hover = [
            f"{safe_text(row.name_)}<br>{safe_text(row.question)}<br>answer {number(row.drop_)} nats, "
            f"reference {number(row.reference_drop)} nats{' (approximate)' if row.approximate else ''}"
            for row in own.rename(columns={"name": "name_", "drop": "drop_"}).itertuples()
        ]
        add_marks(
            figure,
            f"{title} ({count(len(own), 'passage')})",
            own["drop"],
            own["reference_drop"],
            {**marker(style), "opacity": 0.7},
            hover,
            [question_door(one) for one in own["query_id"]],
        )
    return figure
