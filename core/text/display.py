"""Numbers, counts and foreign texts as people read them: the same on screen, in the terminal, in figures."""

from __future__ import annotations

import re

from core.text.strict import clean

DASH = "—"
# Control characters, and those that reorder what stands around them.
INVISIBLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BREAK = re.compile("\r\n|[\r\u2028\u2029]")
_SHOWN = 80
_MANY = 20  # cases from which on a share in percent says more than a count


def number(value: float | None, pattern: str = "{:.2f}") -> str:
    """Format a number with a true minus sign; a missing one is a dash, never 0.

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


def visible(text: str) -> str:
    r"""Return a text with one kind of line break, and a sign for characters that act, as in a terminal.

    >>> visible("a\x1b[2J\r\nb")
    'a�[2J\nb'
    """
    return INVISIBLE.sub("\N{REPLACEMENT CHARACTER}", _BREAK.sub("\n", text))


def one_line(text: object) -> str:
    """Return a text as `visible` does, in one line."""
    return visible(str(text)).replace("\n", " ")


def shorten(value: object) -> str:
    """Return a value as text of at most 80 characters in one line, for a message."""
    try:
        text = value if isinstance(value, str) else str(value)
    except RecursionError:
        return "(nested too deeply)"
    # What is cut off is not looked at: a text may be long.
    text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return clean(" ".join(text.splitlines()))


def percent(share: float, interval: tuple[float, float] | None = None) -> str:
    """Return a share in percent, or the ends of its 95 % interval.

    >>> percent(0.2), percent(0.2, (0.118, 0.327))
    ('20 %', '12–33 %')
    """
    return (
        f"{100 * share:.0f} %" if interval is None else f"{100 * interval[0]:.0f}–{100 * interval[1]:.0f} %"
    )


def share_interval(interval: tuple[float, float]) -> str:
    """Say what the 95 % interval of a share is.

    >>> share_interval((0.118, 0.327))
    '95 % interval of the share 12 to 33 %'
    """
    low, high = (number(100 * end, "{:.0f}") for end in interval)
    return f"95 % interval of the share {low} to {high} %"


def p_text(p_value: float) -> str:
    """Return a p-value for people.

    >>> p_text(0.0312), p_text(0.0002), p_text(float("nan"))
    ('p = 0.031', 'p < 0.001', 'p = —')
    """
    return "p < 0.001" if p_value < 0.001 else f"p = {number(p_value, '{:.2g}')}"


def part(n: int, of: int, noun: str = "") -> str:
    """Return how many of how many, in words that read well: few are counted, many given in percent.

    >>> part(0, 30, "question"), part(5, 6, "question"), part(11, 54), part(9, 9, "answer")
    ('none of 30 questions', '5 of 6 questions', '20 % of 54', 'all 9 answers')
    """
    what = count(of, noun) if noun else f"{of:,}"
    if n in (0, of) and of > 1:
        return f"all {what}" if n else f"none of {what}"
    return f"{percent(n / of)} of {what}" if of >= _MANY else f"{n:,} of {what}"


def about(expected: float) -> str:
    """Return an expected count for a sentence, which never says that about none is expected.

    >>> about(21.7), about(0.4)
    ('about 22', 'fewer than 1')
    """
    return f"about {expected:,.0f}" if expected >= 1 else "fewer than 1"


def needed(n: int | None) -> str:
    """Return a clause on the questions (`core.stats.cases_needed`) that would show a difference from chance.

    >>> needed(340), needed(None)
    ('about 340 questions would be needed to tell', 'the difference is nil, so more questions would not help')
    >>> needed(0)
    'too few questions to tell'
    """
    if n is None:
        return "the difference is nil, so more questions would not help"
    if not n:
        return "too few questions to tell"
    return f"about {count(n, 'question')} would be needed to tell"


def duration(seconds: float) -> str:
    """Format a duration: ``8 s``, ``3 min 20 s``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
