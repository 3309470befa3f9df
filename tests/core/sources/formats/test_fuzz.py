"""A file can be damaged in any way: it is refused in one sentence, or what is left of it is a run."""

import pytest

from core.errors import InputError
from core.sources.dataset import read_dataset
from core.sources.formats import import_file
from tests.core.sources.formats.fuzz import EXAMPLES, check, damaged

# However many examples there are, 150 files here and 1,000 among the slow tests.
FAST, SLOW = (-(-n // len(EXAMPLES)) for n in (150, 1_000))


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


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_read_and_its_damages_differ(name):
    """An example that is refused as it is would test nothing."""
    try:
        report = import_file(EXAMPLES[name], name).report
    except InputError:  # questions only
        report = read_dataset(EXAMPLES[name], name).report
    assert report.n_rejected == 0
    assert len({damaged(name, number) for number in range(20)}) > 15
