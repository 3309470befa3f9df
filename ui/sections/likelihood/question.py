"""One question: what each passage does to the answer given and to the reference answer."""

from __future__ import annotations

from typing import Any

from core.likelihood.definitions import MODES
from core.rows import rows_of
from core.text.display import number
from ui import cached, headlines, questions, show
from ui.plain import plain
from ui.sections import Part


def part(query_id: str) -> Part:
    """Return both drops of every passage, and what is wrong with them where chance does not explain it."""
    row = questions.row(query_id, "likelihood")
    found = rows_of(cached.diagnosis()["likelihood"].passages, query_id)
    beyond = headlines.wrong_with("likelihood")
    return Part(
        rows={str(one["passage_id"]): {"facts": _facts(one)} for one in found.to_dict("records")},
        says=tuple(
            f"**{mode.title}:** {mode.meaning} {mode.advice}"
            for name, mode in MODES.items()
            if name in beyond and show.yes_or_no(row[name])
        ),
    )


def _facts(one: Any) -> list[tuple[str, str]]:
    named = (("Answer likelier by", one["drop"]), ("Reference likelier by", one["reference_drop"]))
    about = " (approximate)" if one["approximate"] else ""
    return [(title, f"{number(value)} nats{about}") for title, value in named if value == value]


def draw(query_id: str) -> None:
    """Draw which passage made the answer and which the reference needs, or why that is not known."""
    row = questions.row(query_id, "likelihood")
    found = rows_of(cached.diagnosis()["likelihood"].passages, query_id)
    estimated = set(found.loc[found["approximate"], "passage_id"])
    show.cards([_card(row, estimated, *names) for names in _CARDS])
    for reason in dict.fromkeys((row["reason"], row["reference_reason"])):
        headlines.why("likelihood", reason)


_CARDS = (
    ("Raises the answer most", "made_by", "made_drop", "reason", "no passage makes it likelier"),
    ("Raises the reference most", "needed", "needed_drop", "reference_reason", "no passage does"),
)


def _card(
    row: Any, estimated: set[str], title: str, by: str, drop: str, reason: str, none: str
) -> tuple[str, str, str, str]:
    known = isinstance(row[by], str)
    about = " (approximate)" if row[by] in estimated else ""
    basis = f"by {number(row[drop])} nats{about}" if known else "" if isinstance(row[reason], str) else none
    return title, plain(row[by], one_line=True) if known else "—", basis, ""
