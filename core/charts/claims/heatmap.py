"""One answer: its claims against its passages, by support and by leave-one-out effect."""

from __future__ import annotations

import html
import textwrap
from collections import Counter
from typing import Literal, NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.charts.theme import (
    STYLES,
    add_marks,
    empty_figure,
    fade,
    marker,
    name_of,
    new_figure,
    plain_text,
    safe_text,
    where_door,
)
from core.claims import matrix
from core.claims.answer import AnswerClaims
from core.claims.causal import CHANGED, GONE, KEPT, UNKNOWN
from core.claims.rafe import IRRELEVANT, NOT_SUPPORTED, SUPPORTED, UNSCORED
from core.claims.types import Bools, Floats, Labels
from core.conditions import where
from core.text.display import count, number

Shown = Literal["text", "causal", "both"]
SHOWN: tuple[Shown, ...] = ("text", "causal", "both")

_LABEL_WIDTH = 17
_LEGEND_LINE = 22  # pixels
_TICKS_UP_TO, _FEWER_TICKS = 12, 8  # columns that all have a label, and labels where there are more
_TEXT_UP_TO = 40  # rows whose labels have the claim's text
_MATRIX_SHARE = 0.8  # of the width; the rest is the column of verdicts
_TWO_LINES_UP_TO = 25  # rows with room for two lines of text
_SIGNS_UP_TO = 20  # columns whose cells have room for a letter
_LETTERS = {SUPPORTED: "S", NOT_SUPPORTED: "N", IRRELEVANT: "I", UNSCORED: "?"}
_SIGNS = {KEPT: "=", CHANGED: "≠", GONE: "×", UNKNOWN: "?"}
MOST = 60  # rows and columns that are drawn
_LONG_TEXTS_UP_TO = 1_000  # cells; above it the texts of hover boxes are shorter, for the browser's sake


class Row(NamedTuple):
    """One claim."""

    name: str  # "C3"
    text: str
    style: str  # a state of `theme.STYLES`
    verdict: str
    uncertainty: float
    hover: str


class HeatmapCells(NamedTuple):
    """Everything that is drawn; all matrices are rows × columns, most uncertain claims first."""

    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    values: Floats  # probabilities; NaN where there is none
    labels: Labels  # leave-one-out effects
    grey: Bools  # rows of irrelevant claims; they are last
    hover: list[list[str]]
    states: Counter[str]  # claims of each state, whether drawn or not
    n_passages: int  # drawn or not


def heatmap_cells(answer: AnswerClaims) -> HeatmapCells:
    """Return the data of one answer: its 60 most uncertain claims against the first 60 passages."""
    u, p = answer.matrix.uncertainty, answer.matrix.probabilities
    # Most uncertain first, then unscored, then irrelevant.
    claims = np.lexsort((-np.nan_to_num(u), np.isnan(u), ~answer.matrix.relevant))[:MOST]
    n = min(p.shape[1], MOST)
    causal = answer.causal if answer.causal is not None else np.full(p.shape, UNKNOWN)
    states = [str(state) for state in answer.states]
    rows = tuple(_row(answer, i, states[i]) for i in claims.tolist())
    return HeatmapCells(
        rows,
        tuple(f"P{i + 1}" for i in range(n)),
        p[claims, :n],
        np.asarray(causal, dtype=object).reshape(p.shape)[claims, :n],
        np.array([row.style == matrix.IRRELEVANT for row in rows], dtype=bool),
        _hovers(answer, claims.tolist(), n),
        Counter(states),
        p.shape[1],
    )


def _row(answer: AnswerClaims, i: int, state: str) -> Row:
    text, verdict, u = answer.matrix.claims[i], str(answer.verdicts[i]), float(answer.matrix.uncertainty[i])
    lines = [
        f"C{i + 1}: {safe_text(text, 160)}",
        f"{verdict.replace('_', ' ').lower()}, {state}",
        f"U(c) {number(u)}, best support {number(float(answer.matrix.support_maximum[i]))}",
    ]
    lines += [f"P{a + 1} + P{b + 1} together: {number(p)}" for claim, (a, b), p in answer.joint if claim == i]
    return Row(f"C{i + 1}", text, state, verdict, u, "<br>".join(lines))


def _hovers(answer: AnswerClaims, claims: list[int], n: int) -> list[list[str]]:
    claim_limit, sentence_limit = (120, 200) if len(claims) * n <= _LONG_TEXTS_UP_TO else (60, 80)
    passages = [
        f"P{j + 1}: {safe_text(name_of(*names), 60)}"
        for j, names in enumerate(zip(answer.titles[:n], answer.passage_ids[:n], strict=True))
    ]
    judge = safe_text(answer.judge, 40)

    def hover(i: int, j: int) -> str:
        claim = f"C{i + 1}: {safe_text(answer.matrix.claims[i], claim_limit)}"
        lines = [claim, passages[j], _judged(answer, i, j, judge)]
        sentence = answer.sentences[i][j]
        if plain_text(sentence, sentence_limit) not in ("", "—"):
            lines.append(f"“{safe_text(sentence, sentence_limit)}”")
        if answer.causal is not None:
            lines.append(f"Without P{j + 1} the claim is: {answer.causal[i][j]}")
        return "<br>".join(lines)

    return [[hover(i, j) for j in range(n)] for i in claims]


def _judged(answer: AnswerClaims, i: int, j: int, judge: str) -> str:
    p = answer.matrix.probabilities[i, j]
    if np.isnan(p):
        if not answer.matrix.relevant[i]:
            return "Irrelevant: no checkable claim"
        return f"Not scored by {judge}" if judge else "Not scored"
    said = "supports" if p >= answer.matrix.threshold else "no support"
    agreement = np.nan if answer.agreement is None else float(answer.agreement[i][j])
    agreed = "" if np.isnan(agreement) else f", agreement {number(agreement)}"
    return f"Probability {number(p)}: {said}" + (f"<br>Judge: {judge}{agreed}" if judge else agreed)


def claims_heatmap(answer: AnswerClaims, shown: Shown = "text") -> go.Figure:
    """Draw the claims of an answer against its passages in retrieval order, most uncertain claim on top.

    Unscored cells are crossed, never drawn as 0; irrelevant claims are at the bottom in grey. A second column
    has the verdict, the symbol of the state, and U(c). At most 60 claims and 60 passages are drawn; the
    others are counted in the description. ``shown``: probabilities ("text"), leave-one-out effects
    ("causal"), or probabilities with a mark where the claim changes or disappears without the passage
    ("both"). Empty where there are no claims or passages, or, for "causal", nothing was left out; ValueError
    for another ``shown``.
    """
    if shown not in SHOWN:
        raise ValueError(f"shown must be one of {', '.join(SHOWN)}, got {shown!r}.")
    if not answer.matrix.claims:
        return empty_figure("This answer has no claims to check against its passages.")
    if not answer.passage_ids:
        return empty_figure("This question has no passages.")
    if shown == "causal" and answer.causal is None:
        return empty_figure("No passage was left out of the prompt, so leave-one-out effects are unknown.")
    return _draw(heatmap_cells(answer), shown, answer.matrix.threshold)


def _draw(cells: HeatmapCells, shown: Shown, threshold: float) -> go.Figure:
    figure = new_figure(_alt(cells, shown), "", "")
    _add_verdicts(figure, cells)
    if shown == "causal":
        _add_causal(figure, cells)
    else:
        _add_text(figure, cells, threshold)
    if shown == "both":
        _add_removals(figure, cells, threshold)
    elif shown == "text":
        _add_signs(figure, cells.values >= threshold, "✓", "white")
    _lay_out(figure, cells)
    return figure


def _alt(cells: HeatmapCells, shown: Shown) -> str:
    n = sum(cells.states.values())
    states = ", ".join(f"{found:,} {state}" for state, found in cells.states.most_common())
    text = f"{count(n, 'claim')} against the passages in retrieval order: {states}."
    known = cells.values[~np.isnan(cells.values)]
    if shown != "causal":
        span = f"{number(known.min())} to {number(known.max())}" if known.size else "none known"
        crossed = int(np.isnan(cells.values[~cells.grey]).sum())
        text += f" Probabilities of support {span}; {count(crossed, 'cell')} not scored."
    if shown != "text":
        moved = int(np.isin(cells.labels, (CHANGED, GONE)).sum())
        unknown = int((cells.labels == UNKNOWN).sum())
        text += f" Leaving a passage out changes or removes a claim in {count(moved, 'cell')}"
        text += f" and is unknown in {unknown:,}."
    if cells.values.shape != (n, cells.n_passages):
        rows, columns = cells.values.shape
        text += (
            f" Drawn are the {rows:,} most uncertain claims against the first {count(columns, 'passage')}."
        )
    return text


def _lay_out(figure: go.Figure, cells: HeatmapCells) -> None:
    n_rows, n_columns = cells.values.shape
    step = 1 if n_columns <= _TICKS_UP_TO else int(np.ceil(n_columns / _FEWER_TICKS))
    figure.update_xaxes(
        side="top",
        showgrid=False,
        range=[-0.5, n_columns - 0.5],
        domain=[0, _MATRIX_SHARE],
        tickvals=list(range(0, n_columns, step)),
        ticktext=list(cells.columns[::step]),
        tickfont={"size": 11},
        title_text="Passage, in retrieval order",
    )
    top = 105 if any(trace.showscale for trace in figure.select_traces({"type": "heatmap"})) else 60
    row = 40 if n_rows <= _TWO_LINES_UP_TO else 22
    # On a phone each entry of the legend takes a line.
    entries = sum(trace.type == "scatter" and trace.showlegend is not False for trace in figure.data)
    u = "<br>U(c)" if n_rows <= _TWO_LINES_UP_TO else ""
    figure.update_layout(
        xaxis2={
            "side": "top",
            "domain": [_MATRIX_SHARE + 0.02, 1],
            "range": [-0.4, 2],
            "tickvals": [0.5],
            "ticktext": [f"RAFE{u}"],
            "tickfont": {"size": 11},
            "tickangle": 0,
            "showgrid": False,
            "zeroline": False,
        },
        margin={"t": top},
        height=int(np.clip(top + row * n_rows + _LEGEND_LINE * entries, 260, 1_800)),
        legend_traceorder="normal",
        showlegend=True,  # also where there is one entry only
    )
    figure.update_yaxes(
        range=[n_rows - 0.5, -0.5],
        showgrid=False,
        tickvals=list(range(n_rows)),
        ticktext=[_tick(row.name, row.text, n_rows) for row in cells.rows],
        tickfont={"size": 11},
    )


def _tick(name: str, text: str, n_rows: int) -> str:
    """Return a row's label: its number and the start of the claim, short enough for a phone."""
    if n_rows > _TEXT_UP_TO:
        return name
    lines = 2 if n_rows <= _TWO_LINES_UP_TO else 1
    start = plain_text(text, _LABEL_WIDTH * lines - len(name))
    wrapped = textwrap.wrap(f"{name} {start}", _LABEL_WIDTH, max_lines=lines, placeholder="…")
    return "<br>".join(html.escape(line, quote=False).replace("$", "&#36;") for line in wrapped)


def _add_heatmap(
    figure: go.Figure, z: Floats, cells: HeatmapCells, scale: object, grey: object, **options: object
) -> None:
    """Draw the rows of relevant claims in colour and the others, which are last, in grey."""
    split = int((~cells.grey).sum())
    for rows, colors, has_bar in ((slice(0, split), scale, True), (slice(split, None), grey, False)):
        if z[rows].size:
            figure.add_heatmap(
                x=np.arange(z.shape[1]),
                y=np.arange(z.shape[0])[rows],
                z=z[rows],
                text=cells.hover[rows],
                hovertemplate="%{text}<extra></extra>",
                colorscale=colors,
                xgap=1,
                ygap=2,
                **{**options, "showscale": bool(options.get("showscale")) and has_bar},
            )


def stepped(style: str, threshold: float) -> list[tuple[float, str]]:
    """Return a scale that grows darker and jumps at the threshold, so that each cell shows the decision."""
    (_, low), (_, below) = fade(style, 0.06, 0.38)
    (_, above), (_, full) = fade(style, 0.78, 1.0)
    return [(0.0, low), (threshold, below), (threshold, above), (1.0, full)]


def support_bar(threshold: float, length: float) -> dict[str, object]:
    """Return a bar above the matrix; its ticks say what it is, since a title would lie on it."""
    ticks = {0.0: "0", 1.0: "1", threshold: f"probability {threshold:g}: supports"}
    return {
        "orientation": "h",
        "thickness": 10,
        "len": length,
        "x": 0,
        "xanchor": "left",
        "yref": "container",
        "y": 1,
        "yanchor": "top",
        "ypad": 2,
        "outlinewidth": 0,
        "tickvals": sorted(ticks),
        "ticktext": [ticks[at] for at in sorted(ticks)],
    }


def _add_text(figure: go.Figure, cells: HeatmapCells, threshold: float) -> None:
    """Draw the probabilities, and a cross where one is missing."""
    scales = stepped("well supported", threshold), stepped("unscored", threshold)
    bar = support_bar(threshold, _MATRIX_SHARE)
    _add_heatmap(figure, cells.values, cells, *scales, zmin=0, zmax=1, showscale=True, colorbar=bar)
    # An irrelevant claim is not verified, so nothing is missing.
    rows, columns = np.nonzero(np.isnan(cells.values) & ~cells.grey[:, None])
    cross = marker("unscored", 9 * _scale(cells))
    add_marks(figure, f"Not scored ({count(len(rows), 'cell')})", columns, rows, cross)


def _scale(cells: HeatmapCells) -> float:
    """Return how much smaller marks are drawn where columns are narrow."""
    return 1.0 if len(cells.columns) <= _SIGNS_UP_TO else 0.6


def _add_causal(figure: go.Figure, cells: HeatmapCells) -> None:
    """Draw leave-one-out effects."""
    codes = np.select([cells.labels == name for name in (KEPT, CHANGED, GONE)], [0.0, 1.0, 2.0], np.nan)
    colors = fade("neutral", 0.18)[0][1], STYLES["fragile"].color, STYLES["unsupported"].color
    scale = [(at / 3, color) for i, color in enumerate(colors) for at in (i, i + 1)]
    _add_heatmap(figure, codes, cells, scale, fade("unscored", 0.18), zmin=-0.5, zmax=2.5)
    for label, fill in zip((KEPT, CHANGED, GONE, UNKNOWN), (*colors, "rgba(0,0,0,0)"), strict=True):
        where = cells.labels == label
        if where.any():
            _add_signs(figure, where, _SIGNS[label], "white" if label in (CHANGED, GONE) else None)
            # A line in the legend that draws nothing.
            outline = {"width": 1, "color": STYLES["unscored"].color}
            look = {"symbol": "square", "color": fill, "size": 11, "line": outline}
            add_marks(figure, f"{_SIGNS[label]} {label} ({int(where.sum()):,})", [None], [None], look)


def _add_signs(figure: go.Figure, where: Bools, sign: str, color: str | None) -> None:
    """Write a sign into cells, where the columns leave room for one."""
    rows, columns = np.nonzero(where)
    if where.shape[1] <= _SIGNS_UP_TO:
        written = {"text": [sign] * len(rows), "textfont": {"color": color, "size": 14}}
        add_marks(figure, None, columns, rows, None, mode="text", showlegend=False, **written)


def _add_removals(figure: go.Figure, cells: HeatmapCells, threshold: float) -> None:
    """Mark where support and leave-one-out effect agree, and where there is only one of them."""
    moved, supports = np.isin(cells.labels, (CHANGED, GONE)), cells.values >= threshold
    silent, unscored = cells.values < threshold, np.isnan(cells.values)
    without = "gone or changed without it"
    # White and outlined where it lies on strong blue: seen there, and in the legend of either page.
    for name, symbol, color, size, mask in (
        (f"Supports; {without}", "star", "#FFFFFF", 14, moved & supports),
        ("Supports; kept without it", "circle", "#FFFFFF", 8, (cells.labels == KEPT) & supports),
        (f"No support; {without}", "diamond", "#F0A030", 11, moved & silent),
        (f"Not scored; {without}", "diamond-tall", "#B8679A", 13, moved & unscored),
    ):
        rows, columns = np.nonzero(mask)
        outline = {"width": 1, "color": "#333333"}
        look = {"symbol": symbol, "color": color, "size": size * _scale(cells), "line": outline}
        add_marks(figure, f"{name} ({len(rows):,})", columns, rows, look)


def _add_verdicts(figure: go.Figure, cells: HeatmapCells) -> None:
    """Draw the column of verdicts: a trace per state, which leads to the answers with such a claim."""
    for style in dict.fromkeys(row.style for row in cells.rows):
        chosen = [(i, row) for i, row in enumerate(cells.rows) if row.style == style]
        texts = [f" <b>{_LETTERS.get(row.verdict, '')}</b>" for _, row in chosen]
        if len(cells.rows) <= _TWO_LINES_UP_TO:
            texts = [
                f"{text}<br> {number(row.uncertainty)}" for text, (_, row) in zip(texts, chosen, strict=True)
            ]
        hover = [f"{row.hover}<br>Questions with such a claim:" for _, row in chosen]
        leads_to = [where_door(where("claims", "claims", state=style))] * len(chosen)
        name, y = f"{style.capitalize()} ({cells.states[style]:,})", [i for i, _ in chosen]
        add_marks(
            figure, name, [0.0] * len(y), y, marker(style, 10), hover, leads_to, mode="markers+text",
            xaxis="x2", text=texts, textposition="middle right", textfont={"size": 11},
        )  # fmt: skip
