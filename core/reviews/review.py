"""What one person says of one question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import InputError
from core.text.display import shorten
from core.text.strict import clean, is_clean

STATUSES = ("open", "reviewed", "flagged")
DISPUTED = "disputed"  # in filters: people gave different statuses or labels
LONGEST_NOTE = 5_000
# The labels that a review may have, with what yes and no of them are called.
LABELS: Mapping[str, tuple[str, str]] = {
    "correct": ("correct", "incorrect"),
    "grounded": ("grounded", "not grounded"),
}
ByPerson = Mapping[str, Mapping[str, "Review"]]


@dataclass(frozen=True, slots=True)
class Review:
    """What a person noted of one question; InputError for another status or label, or a longer note.

    ``correct`` says whether the answer is, ``grounded`` whether the passages support it; None: not said.
    """

    status: str = "open"  # of STATUSES
    note: str = ""  # at most 5,000 characters; half a surrogate pair becomes U+FFFD
    correct: bool | None = None
    grounded: bool | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise InputError(f"A status is one of {', '.join(STATUSES)}, not {shorten(repr(self.status))}.")
        if not isinstance(self.note, str) or len(self.note) > LONGEST_NOTE:
            raise InputError(f"A note is a text of at most {LONGEST_NOTE:,} characters.")
        if not {type(self.correct), type(self.grounded)} <= {bool, type(None)}:
            raise InputError("correct and grounded of a review are true, false or absent.")
        if not is_clean(self.note):
            object.__setattr__(self, "note", clean(self.note))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in words: ``("incorrect", "grounded")``."""
        given = {name: getattr(self, name) for name in LABELS}
        return tuple(LABELS[name][not value] for name, value in given.items() if value is not None)


class ChangedMeanwhile(InputError):
    """The same person changed the review elsewhere since it was read; ``stored`` is what is stored now."""

    def __init__(self, stored: Review) -> None:
        note = f" with the note “{shorten(stored.note)}”" if stored.note else " without a note"
        said = ", ".join((stored.status, *stored.labels))
        super().__init__(f"This review was changed in another tab meanwhile: it is {said}{note}.")
        self.stored = stored
