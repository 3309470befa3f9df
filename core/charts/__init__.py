"""Figures, one module each, in a folder per diagnostic: from a result to a plotly figure.

In a notebook, each takes the analysis of its diagnostic and returns a figure that shows itself:
``charts.influence.rho_histogram(diagnosis["influence"])``.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

__all__ = [one.name for one in pkgutil.iter_modules(__path__)]


def __getattr__(name: str) -> Any:
    if name in __all__:  # loaded with its first use: plotly takes time to import
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
