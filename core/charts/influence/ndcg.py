"""Whether the retriever ranks first the passages that the model uses: nDCG by influence against chance."""

from __future__ import annotations

import plotly.graph_objects as go

from core.charts.influence.points import add_questions
from core.charts.theme import AXIS, empty_figure, new_figure
from core.influence import InfluenceAnalysis
from core.text.display import count, number, p_text


def ndcg_against_chance(analysis: InfluenceAnalysis) -> go.Figure:
    """Draw nDCG by influence against the level that random orders of the same influences give.

    One marker a question, or counts per cell above 5,000. Above the diagonal the retriever ranks the
    passages that the model uses first; below it, last.
    Empty when no question has an nDCG.
    """
    points = analysis.queries.dropna(subset=["influence_ndcg"])
    use = analysis.order_of_use
    if not use.n:
        return empty_figure("No question has an nDCG by influence: no removal changed an answer.")
    alt = (
        f"nDCG by influence against chance of {count(use.n, 'question')}: mean {number(use.mean)}, "
        f"{number(use.chance)} by chance ({p_text(use.p_value)}); excess {number(use.excess)}."
    )
    figure = new_figure(alt, "nDCG by chance", "nDCG by influence")
    figure.add_shape(type="line", x0=0, y0=0, x1=1, y1=1, line={"color": AXIS, "width": 2, "dash": "dot"})
    add_questions(figure, points, "ndcg_by_chance", "influence_ndcg", ("By chance", "nDCG"))
    figure.update_xaxes(range=[0, 1.05])
    figure.update_yaxes(range=[0, 1.05])
    return figure
