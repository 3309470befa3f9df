"""Reliability presets: the values of seed 000, by names that settings and steps really have."""

from dataclasses import fields

import pytest

from core import diagnostics
from core.errors import InputError
from core.pipeline.sampling import DEFAULT_SAMPLES
from core.presets import ABOUT, PRESETS, preset, preset_of
from core.socket import settings_of
from core.uncertainty.mc_dropout import MCDropoutConfidence


def test_the_values():
    assert {name: (dict(one.options), dict(one.settings)) for name, one in PRESETS.items()} == {
        "quick": ({"samples": 5}, {"alpha": 0.2}),
        "balanced": ({"samples": 10}, {"alpha": 0.1}),
        "high reliability": ({"samples": 20}, {"alpha": 0.05}),
    }
    assert dict(MCDropoutConfidence.PRESETS) == {"quick": 5, "balanced": 10, "high reliability": 20}
    assert DEFAULT_SAMPLES == 10
    assert ABOUT == (
        "quick: 5 samples, α 0.2; balanced: 10 samples, α 0.1; high reliability: 20 samples, α 0.05"
    )


def test_settings_and_options_of_these_names_exist_and_balanced_is_their_default():
    by_name = {one.name: one for one in settings_of(diagnostics.DIAGNOSTICS)}
    options = {one.name: one for found in diagnostics.DIAGNOSTICS if found.step for one in fields(found.step)}
    for one in PRESETS.values():
        assert all(by_name[name].checked(value) == value for name, value in one.settings.items())
        assert one.options.keys() <= options.keys()
    assert by_name["alpha"].default == 0.1 and options["samples"].default == 10


def test_by_name():
    assert preset("high-reliability") is preset("high reliability") is PRESETS["high reliability"]
    with pytest.raises(InputError, match=r"one of quick, balanced, high-reliability, got 'fast'\.$"):
        preset("fast")


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"alpha": 0.2, "influence_threshold": 0.3}, "quick"),
        ({"alpha": 0.05}, "high reliability"),
        ({"alpha": 0.21}, None),
        ({}, None),
    ],
)
def test_which_one_settings_are_of(settings, name):
    assert preset_of(settings) == name
