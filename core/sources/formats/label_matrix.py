"""Reading a claim-by-passage matrix of entailment labels that may lie on its side or be ragged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from core.sources.fields import Fields
from core.sources.formats.records import CONTRADICTION, ENTAILMENT, NEUTRAL

LABELS = (ENTAILMENT, NEUTRAL, CONTRADICTION)
Orientation = Literal["claims", "passages", "mixed"]
_ENTAILED_FROM = 0.5  # of a probability, as everywhere unless another threshold is chosen
_WANTED = "Entailment, Neutral or Contradiction"


def orientation_of(shapes: Iterable[tuple[Any, int, int]]) -> Orientation:
    """Detect from all matrices of a file whether their rows are claims (the rule) or passages.

    ``shapes`` are (matrix, number of claims, number of passages). A square matrix fits both ways, so the
    others decide; what has neither shape is ignored.
    """
    by_claims = by_passages = False
    for matrix, n_claims, n_passages in shapes:
        upright, on_its_side = _fits(matrix, n_claims, n_passages), _fits(matrix, n_passages, n_claims)
        # A matrix without cells says nothing.
        if n_claims and n_passages and upright != on_its_side:
            by_claims |= upright
            by_passages |= on_its_side
    if by_passages:
        return "mixed" if by_claims else "passages"
    return "claims"


def label_matrix(
    fields: Fields, name: str, n_claims: int, n_passages: int, orientation: Orientation
) -> list[Sequence[str | None]]:
    """Return the labels of each claim, one per passage; None where there is none to be had.

    Rows of the wrong length, cells that are no label and matrices of the wrong shape are noted as warnings.
    One flat list stands for the column of an only passage.
    """
    matrix: Sequence[Any] = fields.items(name)
    unscored: list[Sequence[str | None]] = [[None] * n_passages for _ in range(n_claims)]
    if not matrix or not n_claims:
        if matrix and any(row != [] for row in matrix):
            fields.warn(name, matrix, "claims that the labels belong to")
        return unscored
    if n_passages == 1 and len(matrix) == n_claims and not any(isinstance(row, list) for row in matrix):
        matrix = [[label] for label in matrix]
    upright, on_its_side = _fits(matrix, n_claims, n_passages), _fits(matrix, n_passages, n_claims)
    if upright and on_its_side:
        turned = [list(column) for column in zip(*matrix, strict=True)]
        if orientation == "mixed" and turned != matrix:
            fields.warn(name, matrix, "a matrix whose shape tells claims from passages")
            return unscored
        matrix = turned if orientation == "passages" else matrix
    elif on_its_side:
        matrix = [list(column) for column in zip(*matrix, strict=True)] or unscored
    elif not upright and (orientation != "claims" or len(matrix) != n_claims):
        fields.warn(name, matrix, f"{n_claims} rows (claims) of {n_passages} labels (passages)")
        return unscored
    return [labels_of(fields, f"{name}[{place}]", row, n_passages) for place, row in enumerate(matrix)]


def labels_of(fields: Fields, name: str, row: object, n: int, what: str = "passage") -> Sequence[str | None]:
    """Return ``n`` labels; None for what is none, with a warning."""
    if not isinstance(row, (list, tuple)) or len(row) != n:
        fields.warn(name, row, f"{n} labels, one per {what}")
        return [None] * n
    for place, label in enumerate(row):
        if label not in LABELS:
            fields.warn(f"{name}[{place}]", label, _WANTED)
    return [label if label in LABELS else None for label in row]


def as_label(support: str | float | None) -> str | None:
    """Return a label as it is; a probability is Entailment from a half on, Neutral below."""
    if isinstance(support, float):
        return ENTAILMENT if support >= _ENTAILED_FROM else NEUTRAL
    return support if support in LABELS else None


def _fits(matrix: object, n_rows: int, n_columns: int) -> bool:
    return (
        isinstance(matrix, (list, tuple))
        and len(matrix) == n_rows
        and all(isinstance(row, (list, tuple)) and len(row) == n_columns for row in matrix)
    )
