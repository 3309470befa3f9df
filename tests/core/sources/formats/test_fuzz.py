"""A file can be damaged in any way: it is refused in one sentence, or what is left of it is a run."""

import pytest

from core.errors import LeadlineError
from tests.core.sources.formats.fuzz import EXAMPLES, check, damaged

FAST, SLOW = 8, 200


def fuzzed(name, numbers):
    for number in numbers:
        data = damaged(name, number)
        try:
            check(data, name)
        except Exception as error:
            raise AssertionError(f"file {number} of {name}: {error!r}, {data[:2_000]!r}") from error


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_few_damaged_files_of_each_kind(name):
    fuzzed(name, range(FAST))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_many_damaged_files_of_each_kind(name):
    fuzzed(name, range(FAST, FAST + SLOW))


def test_there_are_enough_of_them():
    assert FAST * len(EXAMPLES) >= 140 and SLOW * len(EXAMPLES) >= 3_000


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_themselves_are_read(name):
    check(EXAMPLES[name], name)
    assert len({damaged(name, number) for number in range(20)}) > 15
    with pytest.raises(LeadlineError):
        check(b"", name)
