"""Simulation options as text: in a link, and on the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from core.errors import InputError
from core.sources.simulation import SimulationOptions

_DEFAULT = "default"
SHOWN = 1_000  # questions that a page simulates; more are for the command line


def write_options(options: SimulationOptions) -> str:
    """Write the options that differ from their defaults, e.g. ``queries:80,seed:7``."""
    parts = [
        f"{f.name}:{getattr(options, f.name)}"
        for f in dataclasses.fields(options)
        if getattr(options, f.name) != f.default
    ]
    return ",".join(parts) or _DEFAULT


def read_options(text: str) -> SimulationOptions:
    """Read what `write_options` wrote; InputError on anything else, and on more than `SHOWN` questions."""
    parts = [] if text == _DEFAULT else text.split(",")
    options = options_from_pairs((name, value) for name, _, value in (part.partition(":") for part in parts))
    if options.queries > SHOWN:
        raise InputError(
            f"At most {SHOWN:,} questions in a link, got {options.queries:,}; the command line takes more."
        )
    return options


def options_from_pairs(pairs: Iterable[tuple[str, str]]) -> SimulationOptions:
    """Build options from names and values, the others by default; InputError for a wrong one."""
    fields = {f.name: f for f in dataclasses.fields(SimulationOptions)}
    values: dict[str, int | float] = {}
    for name, value in pairs:
        if name not in fields:
            raise InputError(f"There is no simulation option {name[:30]!r}; options are {', '.join(fields)}.")
        kind = int if isinstance(fields[name].default, int) else float
        try:
            values[name] = kind(value)
        except ValueError as error:
            what = "a whole number" if kind is int else "a number"
            raise InputError(f"The simulation option {name} must be {what}, got {value[:30]!r}.") from error
    return SimulationOptions(**values)  # type: ignore[arg-type]  # each value has its field's type
