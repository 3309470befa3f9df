"""Places in texts: of a claim in its answer, and of the sentence of a passage that a cell refers to."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from core.claims.types import Ints, Labels
from core.run import Run
from core.text.sentences import Span, sentence_spans
from core.text.stop_words import ENGLISH
from core.text.words import words

_SPAN = re.compile(r"(\d{1,9}):(\d{1,9})")
_AROUND = " \t\n\r.,;:!?。，；：！？\"'“”‘’"


def claim_spans(claims: pd.DataFrame, answers: Sequence[str | None]) -> tuple[tuple[Span, ...], ...]:
    """Return every place of claims in their answers, given the rows of the table ``claims``."""
    columns = (claims["text"], claims["spans"], *(_whole_numbers(claims[name]) for name in ("start", "end")))
    return tuple(spans_of(*row) for row in zip(answers, *columns, strict=True))


def spans_of(answer: str | None, text: str, spans: object, start: object, end: object) -> tuple[Span, ...]:
    """Return every place of a claim in its answer, in order; found by its text where the run gives none.

    ``spans, start, end`` are cells of the table ``claims``; what is no place within the answer is ignored.

    >>> spans_of("It opened in 1914. It is long.", "it is long", None, None, None)
    ((19, 29),)
    """
    if not answer:
        return ()
    given = [_pair(entry) for entry in spans] if isinstance(spans, (list, tuple)) else []
    places = {place for place in given if place is not None and _within(place, answer)}
    if not places and isinstance(start, int) and isinstance(end, int) and _within((start, end), answer):
        places = {(start, end)}
    return tuple(sorted(places)) or _found(answer, text)


def sentences_of(run: Run, support: Ints, passages: Ints) -> Labels:
    """Return the sentence of each cell, "" where none is known, given its rows in both tables (-1 = none)."""
    found = np.full(support.shape, "", dtype=object)
    given = np.flatnonzero(support.ravel() >= 0)
    rows = run["support"].iloc[support.ravel()[given]]
    texts = run.passages["text"].iloc[passages.ravel()[given]]
    columns = (_whole_numbers(rows[name]) for name in ("start", "end"))
    for cell, text, start, end in zip(given, texts, *columns, strict=True):
        if isinstance(text, str) and start is not None and end is not None and _within((start, end), text):
            found.flat[cell] = text[start:end].strip()
    return found


def sharing_most(claims: Sequence[str], passage: str) -> list[str]:
    """Return for each claim the sentence of a passage that shares most of its words; "" where none does.

    >>> sharing_most(["It opened in 1914.", "Coffee"], "Ships wait. The canal opened in 1914.")
    ['The canal opened in 1914.', '']
    """
    texts = [passage[start:end].strip() for start, end in sentence_spans(passage)]
    there = [set(words(text)) - ENGLISH for text in texts]
    found = []
    for claim in claims:
        wanted = set(words(claim)) - ENGLISH
        n, best = max(((len(wanted & said), -i) for i, said in enumerate(there)), default=(0, 0))
        found.append(texts[-best] if n else "")
    return found


def _whole_numbers(column: pd.Series) -> list[int | None]:
    """Return a column of whole numbers as plain ones, None where one is missing."""
    numbers = column.fillna(0).to_numpy(dtype=np.int64).tolist()
    return [number if known else None for number, known in zip(numbers, column.notna(), strict=True)]


def _pair(entry: object) -> Span | None:
    match = _SPAN.fullmatch(entry) if isinstance(entry, str) else None
    return (int(match[1]), int(match[2])) if match else None


def _within(place: Span, text: str) -> bool:
    return 0 <= place[0] < place[1] <= len(text)


def _found(answer: str, text: str) -> tuple[Span, ...]:
    wanted = text.strip(_AROUND)
    if not wanted:
        return ()
    at = answer.find(wanted)
    if at < 0 and len(lowered := answer.lower()) == len(answer):
        at = lowered.find(wanted.lower())
    return ((at, at + len(wanted)),) if at >= 0 else ()
