"""How grave a finding is: one policy for all diagnostics, by what goes wrong and how often it surely does."""

from __future__ import annotations

import math
from typing import NamedTuple

from core.text.display import percent

SEVERITIES = ("high", "medium", "low")


class Harm(NamedTuple):
    """A kind of harm, and the share of the cases that must surely show it for each severity.

    Attributes
    ----------
    name, meaning : str
        What goes wrong, for people.
    high, medium : float or None
        A finding has this severity where the lower end of the 95 % interval of its share lies above; None
        where it never has.
    """

    name: str
    meaning: str
    high: float | None
    medium: float | None


WRONG = Harm(
    "Wrong answer", "Users get an answer that is wrong, unfounded or missing.", high=0.25, medium=0.1
)
LOSS = Harm(
    "Loss", "Quality or effort is lost: evidence comes late, is ignored, or is not needed.", None, 0.25
)
BROKEN = Harm(
    "Broken promise", "A promise, gate, threshold or signal does not do what it is there for.", -1.0, -1.0
)
NOTE = Harm("Note", "Worth knowing; nothing has to change.", None, None)
HARMS = (WRONG, LOSS, BROKEN, NOTE)


def graded(harm: Harm, interval: tuple[float, float] = (0.0, 1.0)) -> str:
    """Return the severity of a finding.

    Parameters
    ----------
    harm : Harm
        What goes wrong.
    interval : (float, float)
        95 % interval of the share of the cases that show it; only its lower end counts, so that few cases
        never make a grave finding.

    Examples
    --------
    >>> graded(WRONG, (0.36, 0.60)), graded(WRONG, (0.12, 0.9)), graded(LOSS, (0.8, 0.9)), graded(BROKEN)
    ('high', 'medium', 'medium', 'high')
    """
    for severity, limit in zip(SEVERITIES, (harm.high, harm.medium), strict=False):
        if interval[0] > (math.inf if limit is None else limit):
            return severity
    return SEVERITIES[-1]


def policy(markdown: bool = True) -> str:
    """Return the policy as a Markdown table, for the documentation, or in lines, for `check --help`."""
    rows = []
    for one in HARMS:
        cells = []
        for limit, other in ((one.high, None), (one.medium, one.high)):
            always, never = limit is not None and limit < 0, limit is None or limit == other
            cells.append(
                "always" if always and not never else "—" if never else f"surely > {percent(limit or 0)}"
            )
        low = "—" if "always" in cells else "always" if cells == ["—", "—"] else "otherwise"
        rows.append((one, [*cells, low]))
    if markdown:
        head = ["| what goes wrong | high | medium | low |", "|---|---|---|---|"]
        return "\n".join(
            head + [f"| **{one.name}.** {one.meaning} | {' | '.join(each)} |" for one, each in rows]
        )
    return "\n".join(
        f"{one.name}: "
        + ", ".join(f"{name} {cell}" for name, cell in zip(SEVERITIES, each, strict=True) if cell != "—")
        + f". {one.meaning}"
        for one, each in rows
    )
