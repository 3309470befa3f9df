import pytest

from core.errors import InputError
from core.sources.simulation import SimulationOptions
from core.sources.simulation_text import options_from_pairs, read_options, write_options


@pytest.mark.parametrize(
    "options",
    [SimulationOptions(), SimulationOptions(queries=80, seed=7, noise=0.05, share_ties=0.0)],
)
def test_what_is_written_is_read_back(options):
    assert read_options(write_options(options)) == options


def test_only_what_differs_is_written():
    assert write_options(SimulationOptions()) == "default"
    assert write_options(SimulationOptions(queries=80, noise=0.5)) == "queries:80,noise:0.5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour:red", "no simulation option 'colour'"),
        ("queries:many", "queries must be a whole number, got 'many'"),
        ("noise:loud", "noise must be a number, got 'loud'"),
        ("queries:9", "queries must be a whole number from 10 to 100000, got 9"),
        ("noise:nan", "noise"),
        ("", "no simulation option ''"),
    ],
)
def test_junk_is_refused_in_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        read_options(text)


def test_options_from_pairs_keep_the_defaults():
    assert options_from_pairs([("seed", "3")]) == SimulationOptions(seed=3)
