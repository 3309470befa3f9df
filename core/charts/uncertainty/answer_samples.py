"""The samples of one question as its figures need them: those with a text, their meanings and likeness."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from core.arrays import Floats
from core.charts.theme import STYLES, Style, safe_text
from core.rows import rows_of
from core.text.display import number
from core.uncertainty.analysis import UncertaintyAnalysis
from core.uncertainty.similarity import unit

_TITLES = {"cosine": "cosine of embeddings", "rouge_l": "ROUGE-L"}
_TEXT = 120  # characters that a hover box shows
# Colour and shape of the meanings, the largest first; the last is that of all others.
LOOKS = (
    Style(STYLES["Aligned"].color, "circle", ""),
    Style(STYLES["Divergent"].color, "diamond", ""),
    Style(STYLES["influence"].color, "square", ""),
    Style(STYLES["retrieval"].color, "cross", ""),
    Style(STYLES["highlight"].color, "triangle-up", ""),
    Style(STYLES["Undefined"].color, "x", ""),
)


class AnswerSamples(NamedTuple):
    """The samples of a question, the largest meaning first, and how alike every two are."""

    rows: pd.DataFrame
    similarity: Floats
    gram: Floats  # what the plane is laid out from: dot products of embeddings, or the likeness itself
    group: list[int]  # equal for the same words
    kind: str  # of likeness, for people


def answer_samples(analysis: UncertaintyAnalysis, query_id: str) -> AnswerSamples:
    """Return the samples of one question; calls that failed are left out."""
    frame, samples = analysis.samples, analysis.texts.get(query_id)
    rows = rows_of(frame, query_id)
    rows = rows[rows["meaning"].notna()]
    if samples is None or rows.empty:
        return AnswerSamples(frame.head(0), np.empty((0, 0)), np.empty((0, 0)), [], _TITLES["rouge_l"])
    order = np.argsort(rows["meaning"].to_numpy(dtype=np.int64), kind="stable")
    embedded = samples.embeddings is not None
    kind = "cosine" if embedded else "rouge_l"
    likeness = samples.graph(kind)[np.ix_(order, order)]
    vectors = unit(samples.rows("embeddings")[order]) if embedded else None
    return AnswerSamples(
        rows.iloc[order].reset_index(drop=True),
        likeness,
        likeness if vectors is None else vectors @ vectors.T,
        samples.clusters("exact")[order].tolist(),
        _TITLES[kind],
    )


def settings(rows: pd.DataFrame) -> str:
    """Say at which temperature and top_p samples were drawn; "" where that is unknown."""
    known = (
        (title, sorted(set(rows[name].dropna().tolist())))
        for name, title in (("temperature", "Temperature"), ("top_p", "top_p"))
    )
    return ", ".join(f"{title} {_range(values)}" for title, values in known if values)


def _range(values: list[float]) -> str:
    ends = dict.fromkeys((values[0], values[-1]))
    return " to ".join(number(value, "{:g}") for value in ends)


def texts(answers: Iterable[object]) -> str:
    """Return the different wordings of samples that count as one answer, at most three."""
    found = list(dict.fromkeys(answers))
    shown = [safe_text(text, _TEXT // min(len(found), 3)) or "(empty)" for text in found[:3]]
    more = [f"and {len(found) - 3:,} more wordings"] if len(found) > 3 else []
    return "<br>".join([*shown, *more])
