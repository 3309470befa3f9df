"""Numbers and counts as people read them: the same on screen, in the terminal and in figures."""

from __future__ import annotations

DASH = "—"


def number(value: float | None, pattern: str = "{:.2f}") -> str:
    """Format a number with a true minus sign; a missing one is a dash, never 0.

    Examples
    --------
    >>> number(-0.5), number(-0.001), number(None), number(float("nan"))
    ('−0.50', '0.00', '—', '—')
    """
    if value is None or value != value:
        return DASH
    text = pattern.format(value)
    # Rounding must not leave a negative zero.
    return text.replace("-", "−" if any(digit in text for digit in "123456789") else "")


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 question``, ``2 questions``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
