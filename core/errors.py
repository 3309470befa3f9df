"""Every error that a user of the engine may meet.

::

    LeadlineError            one sentence a user can act on; never shown as a traceback
    ├── InputError           a file, table or argument is not usable        exit status 2
    │   └── RunFormatError   a folder is not a run, or is damaged
    ├── BackendError         a language model cannot be reached or loaded    exit status 3
    │   └── TransientError   the same call may succeed later: retried with backoff
    └── Cancelled            stopped on request; what was done is kept       exit status 130

The message always names what was given and what would be right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class LeadlineError(Exception):
    """Base class; ``str(error)`` is one sentence for the user."""

    exit_status = 1


class InputError(LeadlineError):
    """A file, a table or an argument cannot be used as given."""

    exit_status = 2


class RunFormatError(InputError):
    """A folder is not a saved run, is damaged, or was written by a newer version."""


class BackendError(LeadlineError):
    """A language model cannot be reached, loaded or used."""

    exit_status = 3


class TransientError(BackendError):
    """A back end failed in a way that may pass: a timeout, a dropped connection, a rate limit.

    ``retry_after`` is the pause in seconds that the server asked for, if it did.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Cancelled(LeadlineError):
    """The user stopped the work; everything finished so far is kept."""

    exit_status = 130


def check_ranges(options: Any, ranges: Mapping[str, tuple[int, int]]) -> None:
    """Raise InputError unless options are whole numbers in their ranges, both ends included."""
    for name, (low, high) in ranges.items():
        value = getattr(options, name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            # A run can name a very long one.
            raise InputError(f"{name} must be a whole number from {low:,} to {high:,}, got {value!r:.80}.")
