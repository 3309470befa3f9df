"""Which passages hold the evidence: exact fragments found in documents."""

from __future__ import annotations

import re
from collections.abc import Iterable

Span = tuple[int, int]


def gold_spans(text: str, fragments: Iterable[str]) -> list[Span]:
    """Find where fragments stand in a text.

    Parameters
    ----------
    text : str
        A document or a passage.
    fragments : iterable of str
        Exact pieces of text; only the amount of white space (a line break, two spaces) may differ.

    Returns
    -------
    list of (start, end)
        Character spans of every occurrence, ``text[start:end]``, in order of fragments.
    """
    spans = []
    for fragment in fragments:
        parts = fragment.split()
        if parts:
            pattern = r"\s+".join(map(re.escape, parts))
            spans += [match.span() for match in re.finditer(pattern, text)]
    return spans


def holds_gold(start: int, end: int, spans: Iterable[Span]) -> bool:
    """Tell whether the passage ``text[start:end]`` holds at least half of one of the spans.

    Parameters
    ----------
    start, end : int
        Character offsets of the passage in its document.
    spans : iterable of (start, end)
        What `gold_spans` found in the same document.

    Returns
    -------
    bool
        A fragment cut exactly in the middle by a passage boundary counts for both passages.
    """
    return any(2 * (min(end, last) - max(start, first)) >= last - first for first, last in spans)
