"""What a picture of one answer's claims against its passages shows: rows, columns, cells and their texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from core.charts.theme import number, plain_text, safe_text, several
from core.claims.causal import removal_matrix
from core.claims.matrix import IRRELEVANT, Bools, Labels
from core.claims.of_run.answer_claims import AnswerClaims
from core.claims.types import Floats

MOST = 60  # rows and columns that are drawn one by one
_LONG_TEXTS_UP_TO = 1_000  # cells; above it the texts of hover boxes are shorter, for the browser's sake

Group = tuple[int, ...]


class Row(NamedTuple):
    """One line of the picture: a claim, or several that share a line."""

    name: str  # "C3", or "4 claims"
    text: str  # the claim as it stands; "" for several
    style: str  # a state of `theme.STYLES`; "neutral" where the claims of the line differ
    verdict: str  # "" where they differ
    uncertainty: float
    hover: str


class Cells(NamedTuple):
    """Everything that is drawn; all matrices are rows × columns, most uncertain claims first."""

    rows: tuple[Row, ...]
    columns: tuple[str, ...]  # the first passage of each
    values: Floats  # mean probability of what was scored; NaN where nothing was
    unscored: Floats  # share that was not scored
    removed: Floats  # share of the known removals that change or remove the claim; NaN where none is known
    labels: Labels | None  # what became of the claim; None where cells stand for several
    grey: Bools  # rows of irrelevant claims only; they are last
    hover: tuple[tuple[str, ...], ...]
    states: Counter[str]  # claims of each state


def cells_of(answer: AnswerClaims, most: int = MOST) -> Cells:
    """Return the picture of one answer: one line per claim, or neighbours together above ``most``."""
    matrix = answer.matrix
    small = matrix.aggregated(most, most)
    states = [str(state) for state in answer.states]
    single = len(small.claims) == len(matrix.claims) and len(small.passages) == len(matrix.passages)
    causal = answer.causal if answer.causal is not None else np.full(matrix.probabilities.shape, "unknown")
    labels = np.asarray(causal, dtype=object).reshape(matrix.probabilities.shape)
    flat = [group[0] for group in small.claims]
    removed = _block_means(removal_matrix(labels), small.claims, small.passages)
    rows = tuple(_row(answer, states, group) for group in small.claims)
    columns = tuple(f"P{group[0] + 1}" for group in small.passages)
    if single:
        hover = _single_hovers(answer, labels, small.claims)
    else:
        hover = tuple(
            tuple(
                _group_hover(c, p, small.values[i, j], small.unscored[i, j], removed[i, j])
                for j, p in enumerate(small.passages)
            )
            for i, c in enumerate(small.claims)
        )
    return Cells(
        rows=rows,
        columns=columns,
        values=small.values,
        unscored=small.unscored,
        removed=removed,
        labels=labels[flat] if single else None,
        grey=np.array([all(states[i] == IRRELEVANT for i in group) for group in small.claims], dtype=bool),
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
        hover = f"{_listed('C', group)}<br>{listed}<br>Mean U(c) {number(mean)}"
        return Row(
            several(len(group), "claim"), "", style, verdicts.pop() if len(verdicts) == 1 else "", mean, hover
        )
    (i,) = group
    text = matrix.claims[i]
    best = float(matrix.support_maximum[i])
    lines = [
        f"C{i + 1}: {safe_text(text, 160)}",
        f"{answer.verdicts[i]}, {states[i]}",
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
        f"P{j + 1}: {safe_text(name, 40)}"
        + (f"<br>{safe_text(title, 60)}" if plain_text(title) not in ("", "—") else "")
        for j, (name, title) in enumerate(zip(answer.passage_ids, answer.titles, strict=True))
    ]
    judge = safe_text(answer.judge, 40)
    found = []
    for (i,) in rows:
        claim = f"C{i + 1}: {safe_text(answer.matrix.claims[i], claim_limit)}"
        found.append(
            tuple(
                f"{claim}<br>{passage}<br>{_judged(answer, i, j, judge)}"
                f"{_quoted(answer.sentences[i][j], sentence_limit)}{_without(answer, labels, i, j)}"
                for j, passage in enumerate(passages)
            )
        )
    return tuple(found)


def _judged(answer: AnswerClaims, i: int, j: int, judge: str) -> str:
    p = answer.matrix.probabilities[i, j]
    if np.isnan(p):
        if not answer.matrix.relevant[i]:
            return "Irrelevant: nothing in it to be supported"
        return f"Not scored by {judge}" if judge else "Not scored"
    said = "supports" if p >= answer.matrix.threshold else "no support"
    agreement = np.nan if answer.agreement is None else float(answer.agreement[i][j])
    agreed = "" if np.isnan(agreement) else f", agreement {number(agreement)}"
    return f"Probability {number(p)}: {said}" + (f"<br>Judge: {judge}{agreed}" if judge else agreed)


def _quoted(sentence: object, limit: int) -> str:
    shown = plain_text(sentence, limit)
    return "" if shown in ("", "—") else f"<br>“{safe_text(sentence, limit)}”"


def _without(answer: AnswerClaims, labels: Labels, i: int, j: int) -> str:
    return "" if answer.causal is None else f"<br>Without P{j + 1} the claim is: {labels[i, j]}"


def _group_hover(claims: Group, passages: Group, value: float, unscored: float, removed: float) -> str:
    lines = [
        f"{several(len(claims), 'claim')} × {several(len(passages), 'passage')}",
        f"{_listed('C', claims)}<br>{_span('P', passages)}",
        f"Mean probability {number(value)}",
        f"Not scored: {100 * unscored:.0f} %",
    ]
    if not np.isnan(removed):
        lines.append(f"Removals that change or remove a claim: {100 * removed:.0f} %")
    return "<br>".join(lines)


def _listed(letter: str, group: Group) -> str:
    """Name the members of a group, the first few only: rows are in order of U, so they are no range."""
    shown = ", ".join(f"{letter}{i + 1}" for i in group[:5])
    return shown + (f" and {len(group) - 5:,} more" if len(group) > 5 else "")


def _span(letter: str, group: Group) -> str:
    first, last = group[0] + 1, group[-1] + 1
    return f"{letter}{first}" if first == last else f"{letter}{first}–{last}"


def _block_means(m: Floats, rows: Sequence[Group], columns: Sequence[Group]) -> Floats:
    """Return the mean of the known values of each block; NaN where none is known."""
    means = np.full((len(rows), len(columns)), np.nan)
    for i, row in enumerate(rows):
        part = m[list(row)]
        for j, column in enumerate(columns):
            block = part[:, list(column)]
            known = block[~np.isnan(block)]
            if known.size:
                means[i, j] = known.mean()
    return means
