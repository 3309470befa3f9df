"""The data of the heat map of one answer's claims against its passages: rows, columns, cells and texts."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from core.charts.theme import name_of, plain_text, safe_text
from core.claims.answer import AnswerClaims
from core.claims.causal import UNKNOWN
from core.claims.matrix import IRRELEVANT
from core.claims.types import Bools, Floats, Labels
from core.text.display import number

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
        np.array([row.style == IRRELEVANT for row in rows], dtype=bool),
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
