"""The data of the heat map of one answer's claims against its passages: rows, columns, cells and texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from core.charts.theme import name_of, plain_text, safe_text
from core.claims.answer import AnswerClaims
from core.claims.causal import removal_matrix
from core.claims.matrix import IRRELEVANT
from core.claims.types import Bools, Floats, Labels
from core.text.display import count, number

MOST = 60  # rows and columns that are drawn one by one
_LONG_TEXTS_UP_TO = 1_000  # cells; above it the texts of hover boxes are shorter, for the browser's sake

Group = tuple[int, ...]


class Row(NamedTuple):
    """One row: a claim, or several that share a row."""

    name: str  # "C3", or "4 claims"
    text: str  # the claim; "" for several
    style: str  # a state of `theme.STYLES`; "neutral" where the claims of the row differ
    verdict: str  # "" where they differ
    uncertainty: float
    hover: str


class HeatmapCells(NamedTuple):
    """Everything that is drawn; all matrices are rows × columns, most uncertain claims first."""

    rows: tuple[Row, ...]
    columns: tuple[str, ...]  # the first passage of each
    values: Floats  # mean probability of what was scored; NaN where nothing was
    unscored: Floats  # share that was not scored
    removed: Floats  # share of the known effects that are changed or gone; NaN where none is known
    labels: Labels | None  # leave-one-out effects; None where claims share cells
    grey: Bools  # rows of irrelevant claims only; they are last
    hover: tuple[tuple[str, ...], ...]
    states: Counter[str]  # claims of each state


def heatmap_cells(answer: AnswerClaims, most: int = MOST) -> HeatmapCells:
    """Return the data of one answer: one line per claim, or neighbours together above ``most``."""
    p = answer.matrix.probabilities
    claims, passages = _grouped(_order(answer), most), _grouped(range(p.shape[1]), most)
    states = [str(state) for state in answer.states]
    single = len(claims) == p.shape[0] and len(passages) == p.shape[1]
    causal = answer.causal if answer.causal is not None else np.full(p.shape, "unknown")
    labels = np.asarray(causal, dtype=object).reshape(p.shape)
    values = _block_means(p, claims, passages)
    unscored = _block_means(np.isnan(p).astype(np.float64), claims, passages)
    removed = _block_means(removal_matrix(labels), claims, passages)
    if single:
        hover = _single_hovers(answer, labels, claims)
    else:
        hover = tuple(
            tuple(
                _group_hover(c, p, values[i, j], unscored[i, j], removed[i, j])
                for j, p in enumerate(passages)
            )
            for i, c in enumerate(claims)
        )
    return HeatmapCells(
        rows=tuple(_row(answer, states, group) for group in claims),
        columns=tuple(f"P{group[0] + 1}" for group in passages),
        values=values,
        unscored=unscored,
        removed=removed,
        labels=labels[[group[0] for group in claims]] if single else None,
        grey=np.array([all(states[i] == IRRELEVANT for i in group) for group in claims], dtype=bool),
        hover=hover,
        states=Counter(states),
    )


def _row(answer: AnswerClaims, states: Sequence[str], group: Group) -> Row:
    matrix = answer.matrix
    uncertainty = matrix.uncertainty[list(group)]
    known = uncertainty[~np.isnan(uncertainty)]
    mean = float(known.mean()) if known.size else np.nan
    if len(group) > 1:
        counted = Counter(states[i] for i in group)
        style = next(iter(counted)) if len(counted) == 1 else "neutral"
        verdicts = {str(answer.verdicts[i]) for i in group}
        listed = "<br>".join(f"{n:,} {state}" for state, n in counted.items())
        hover = f"{_listed(group)}<br>{listed}<br>Mean U(c) {number(mean)}"
        verdict = verdicts.pop() if len(verdicts) == 1 else ""
        return Row(count(len(group), "claim"), "", style, verdict, mean, hover)
    (i,) = group
    text = matrix.claims[i]
    best = float(matrix.support_maximum[i])
    lines = [
        f"C{i + 1}: {safe_text(text, 160)}",
        f"{str(answer.verdicts[i]).replace('_', ' ').lower()}, {states[i]}",
        f"U(c) {number(mean)}, best support {number(best)}",
    ]
    lines += [f"P{a + 1} + P{b + 1} together: {number(p)}" for claim, (a, b), p in answer.joint if claim == i]
    return Row(f"C{i + 1}", text, states[i], str(answer.verdicts[i]), mean, "<br>".join(lines))


def _single_hovers(
    answer: AnswerClaims, labels: Labels, rows: Sequence[Group]
) -> tuple[tuple[str, ...], ...]:
    shape = answer.matrix.probabilities.shape
    claim_limit, sentence_limit = (120, 200) if shape[0] * shape[1] <= _LONG_TEXTS_UP_TO else (60, 80)
    passages = [
        f"P{j + 1}: {safe_text(name_of(title, name), 60)}"
        for j, (name, title) in enumerate(zip(answer.passage_ids, answer.titles, strict=True))
    ]
    claims = [f"C{i + 1}: {safe_text(text, claim_limit)}" for i, text in enumerate(answer.matrix.claims)]
    judge = safe_text(answer.judge, 40)

    def hover(i: int, j: int) -> str:
        lines = [claims[i], passages[j], _judged(answer, i, j, judge)]
        lines += [f"“{quote}”" for quote in _optional(answer.sentences[i][j], sentence_limit)]
        if answer.causal is not None:
            lines.append(f"Without P{j + 1} the claim is: {labels[i, j]}")
        return "<br>".join(lines)

    return tuple(tuple(hover(i, j) for j in range(shape[1])) for (i,) in rows)


def _optional(text: object, limit: int) -> list[str]:
    """Return the text as a list's only item, or an empty list where it is missing."""
    return [] if plain_text(text, limit) in ("", "—") else [safe_text(text, limit)]


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


def _group_hover(claims: Group, passages: Group, value: float, unscored: float, removed: float) -> str:
    lines = [
        f"{count(len(claims), 'claim')} × {count(len(passages), 'passage')}",
        f"{_listed(claims)}<br>P{passages[0] + 1}" + (f"–{passages[-1] + 1}" if passages[1:] else ""),
        f"Mean probability {number(value)}",
        f"Not scored: {100 * unscored:.0f} %",
    ]
    if not np.isnan(removed):
        lines.append(f"Leave-one-out: a claim changes or disappears in {100 * removed:.0f} %")
    return "<br>".join(lines)


def _listed(group: Group) -> str:
    """Name the claims of a group, the first few only: rows are in order of U, so they are no range."""
    shown = ", ".join(f"C{i + 1}" for i in group[:5])
    return shown + (f" and {len(group) - 5:,} more" if len(group) > 5 else "")


def _order(answer: AnswerClaims) -> list[int]:
    """Return the claims as read from the top: most uncertain first, then unscored, then irrelevant."""
    u = answer.matrix.uncertainty
    return np.lexsort((-np.nan_to_num(u), np.isnan(u), ~answer.matrix.relevant)).tolist()


def _grouped(items: Iterable[int], at_most: int) -> tuple[Group, ...]:
    """Put neighbours together in at most ``at_most`` groups of nearly equal size."""
    listed = list(items)
    n = min(len(listed), at_most)
    edges = [len(listed) * i // n for i in range(n + 1)] if n else [0]
    return tuple(tuple(listed[a:b]) for a, b in pairwise(edges))


def _block_means(m: Floats, rows: Sequence[Group], columns: Sequence[Group]) -> Floats:
    """Return the mean of the known values of each block; NaN where none is known."""
    if not rows or not columns:
        return np.full((len(rows), len(columns)), np.nan)
    ordered = m[[i for group in rows for i in group]]
    starts = [np.cumsum([0, *map(len, groups[:-1])]) for groups in (rows, columns)]
    known, total = (
        np.add.reduceat(np.add.reduceat(part, starts[0], axis=0), starts[1], axis=1)
        for part in (1.0 - np.isnan(ordered), np.nan_to_num(ordered))
    )
    return np.divide(total, known, out=np.full(total.shape, np.nan), where=known > 0)
