"""Options out of their range are told what would be right, and scripts can tell errors apart."""

from types import SimpleNamespace

import pytest

from core.errors import (
    BackendError,
    Cancelled,
    InputError,
    LeadlineError,
    RunFormatError,
    TransientError,
    check_ranges,
)

RANGES = {"tries": (2, 1_000)}


@pytest.mark.parametrize("value", [2, 3, 999, 1_000])
def test_both_ends_of_a_range_are_in_it(value):
    check_ranges(SimpleNamespace(tries=value), RANGES)


@pytest.mark.parametrize("value", [1, 1_001, 2.0, True, "2", None])
def test_what_lies_outside_a_range_or_is_no_whole_number_is_refused(value):
    said = f"tries must be a whole number from 2 to 1,000, got {value!r}."
    with pytest.raises(InputError) as raised:
        check_ranges(SimpleNamespace(tries=value), RANGES)
    assert str(raised.value) == said


def test_a_very_long_value_is_cut():
    with pytest.raises(InputError, match=r"got '9{79}\.$"):
        check_ranges(SimpleNamespace(tries="9" * 5_000), RANGES)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (LeadlineError, 1),
        (InputError, 2),
        (RunFormatError, 2),
        (BackendError, 3),
        (TransientError, 3),
        (Cancelled, 130),
    ],
)
def test_every_kind_of_error_has_the_exit_status_that_scripts_know(kind, status):
    assert kind("Sorry.").exit_status == status
