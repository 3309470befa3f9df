"""Leadline's engine: pure Python, no user interface.

Importing it is cheap: no torch, no transformers, no streamlit. Heavy libraries are
imported inside the functions that need them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.own_rag import analyze

__all__ = ["analyze"]

# Threads of torch that wait for each other spin unless told otherwise, and so take the processor from the one
# they wait for when another program runs beside them. OpenMP reads this once, when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def __getattr__(name: str) -> Any:
    # Importing core alone stays light; the pipeline loads with its first use.
    if name == "analyze":
        from core.own_rag import analyze

        return analyze
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
