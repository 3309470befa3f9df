"""Reliability presets: how many answers are sampled per question, and the error rate α, as one choice."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from core.errors import InputError


class Preset(NamedTuple):
    """How much reliability is paid for: values by name of a setting, and by name of a step's option."""

    settings: Mapping[str, float]
    options: Mapping[str, int]

    @property
    def text(self) -> str:
        """Its values, for people."""
        return f"{self.options['samples']} samples, α {self.settings['alpha']:g}"


def _preset(samples: int, alpha: float) -> Preset:
    return Preset(MappingProxyType({"alpha": alpha}), MappingProxyType({"samples": samples}))


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {"quick": _preset(5, 0.2), "balanced": _preset(10, 0.1), "high reliability": _preset(20, 0.05)}
)
ABOUT = "; ".join(f"{name}: {one.text}" for name, one in PRESETS.items())


def preset(name: str) -> Preset:
    """Return a preset by name, with hyphens or spaces between its words; InputError where there is none."""
    try:
        return PRESETS[name.replace("-", " ")]
    except KeyError:
        known = ", ".join(one.replace(" ", "-") for one in PRESETS)
        raise InputError(f"The preset must be one of {known}, got {name!r}.") from None


def preset_of(settings: Mapping[str, Any]) -> str | None:
    """Return the name of the preset whose settings these are; None where they are those of none."""
    return next((name for name, one in PRESETS.items() if one.settings.items() <= settings.items()), None)
