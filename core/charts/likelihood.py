"""What each passage does to the answer that was given, against what it does to the reference answer."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.charts import theme
from core.charts.points import add_density
from core.likelihood.analysis import LikelihoodAnalysis
from core.text.display import count, number

_MOST_MARKS = 2_000


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
    p = _data(analysis, correct)
    if p.empty:
        return theme.empty_figure("No passage has both: score answers that have a reference answer.")
    x, y = p["drop"].astype(float), p["reference_drop"].astype(float)
    corners = ", ".join(
        f"{name} {int(inside.sum()):,}"
        for name, inside in (
            ("raise both", (x > 0) & (y > 0)),
            ("raise only the answer given", (x > 0) & (y <= 0)),
            ("raise only the reference", (x <= 0) & (y > 0)),
            ("raise neither", (x <= 0) & (y <= 0)),
        )
    )
    alt = (
        f"Drop of the reference answer's log-probability against that of the answer given, of "
        f"{count(len(p), 'passage')} in {count(p['query_id'].nunique(), 'question')}: {corners}."
        + (f" {int(p['approximate'].sum()):,} of them are approximate." if p["approximate"].any() else "")
    )
    across, up = "Makes the given answer likelier (nats)", "Makes the reference likelier (nats)"
    figure = theme.new_figure(alt, across, up)
    figure.add_hline(y=0, line=theme.DASHED)
    figure.add_vline(x=0, line=theme.DASHED)
    if len(p) > _MOST_MARKS:
        add_density(figure, x, y, "passages", "Answer %{x:.1f} nats<br>reference %{y:.1f} nats", 40)
        return figure
    questions = analysis.queries.set_index("query_id")["question"]
    gold = p["is_gold"].astype(object).map({True: "Aligned", False: "Divergent"}).fillna("neutral")
    for title, style in (("Gold passage", "Aligned"), ("Other passage", "Divergent"), ("Passage", "neutral")):
        own = p[gold == style]
        hover = [
            f"{theme.safe_text(theme.name_of(row['title'], row['passage_id']))}<br>"
            f"{theme.safe_text(questions[row['query_id']])}<br>answer {number(row['drop'])} nats, reference "
            f"{number(row['reference_drop'])} nats{' (approximate)' if row['approximate'] else ''}"
            for row in own.to_dict("records")
        ]
        theme.add_marks(
            figure, f"{title} ({count(len(own), 'passage')})", own["drop"], own["reference_drop"],
            {**theme.marker(style), "opacity": 0.7}, hover, own["query_id"].map(theme.question_door),
        )  # fmt: skip
    return figure


def _data(analysis: LikelihoodAnalysis, correct: bool | None) -> pd.DataFrame:
    """Return the passages with both drops, of the chosen questions."""
    q, p = analysis.queries, analysis.passages
    right = q["correct"].fillna(False).to_numpy(dtype=bool)
    chosen = q if correct is None else q[right == correct]
    return p[p["query_id"].isin(chosen["query_id"])].dropna(subset=["drop", "reference_drop"])
