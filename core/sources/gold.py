"""Which passages hold the evidence: exact fragments found in documents."""

from __future__ import annotations

import re
from collections.abc import Iterable

Span = tuple[int, int]


def gold_spans(text: str, fragments: Iterable[str]) -> list[Span]:
    """Return the character spans of every occurrence of the fragments; only white space may differ."""
    spans = []
    for fragment in fragments:
        parts = fragment.split()
        if parts:
            pattern = r"\s+".join(map(re.escape, parts))
            spans += [match.span() for match in re.finditer(pattern, text)]
    return spans


def holds_gold(start: int, end: int, spans: Iterable[Span]) -> bool:
    """Return whether the passage ``text[start:end]`` holds at least half of one of the spans.

    A fragment cut exactly in the middle counts for both passages.
    """
    return any(2 * (min(end, last) - max(start, first)) >= last - first for first, last in spans)
