"""Who uses the dashboard: the person who signed in, or the one reader of a server without sign-in."""

from __future__ import annotations

READER = "reader"


def name() -> str:
    """Return the name under which this session's reviews, notes and runs are kept; never empty."""
    return READER
