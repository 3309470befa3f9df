"""Leadline: why a RAG answered as it did, and how far to trust it.

The names below are what users need; each loads with its first use, so importing the package stays cheap: no
torch, no transformers, no streamlit. In a checkout the package is called ``core``, installed ``leadline``.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core import charts as charts
    from core.attribution import Attribution, Game, attribute
    from core.claims import default_verifier, split_claims
    from core.conformal import CalibrationStore, ConformalRAG
    from core.diagnosis import Diagnosis
    from core.influence import spearman
    from core.llm import CompletionCache, open_llm
    from core.own_rag import analyze
    from core.report.results import compare
    from core.run import Run
    from core.serving import show
    from core.sources.formats import import_file
    from core.sources.simulation import SimulationOptions, simulate
    from core.uncertainty.mc_dropout import MCDropoutConfidence
    from core.validation import default_chain, validate
    from core.verdict import RunVerdict

__version__ = "0.2.0"

# Where each public name is defined, below this package.
_HOMES = {
    "own_rag": ("analyze",),
    "run": ("Run",),
    "report.results": ("compare",),
    "diagnosis": ("Diagnosis",),
    "sources.formats": ("import_file",),
    "sources.simulation": ("SimulationOptions", "simulate"),
    "attribution": ("Attribution", "Game", "attribute"),
    "influence": ("spearman",),
    "claims": ("default_verifier", "split_claims"),
    "uncertainty.mc_dropout": ("MCDropoutConfidence",),
    "conformal": ("CalibrationStore", "ConformalRAG"),
    "validation": ("default_chain", "validate"),
    "verdict": ("RunVerdict",),
    "llm": ("CompletionCache", "open_llm"),
    "serving": ("show",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Attribution",
    "CalibrationStore",
    "CompletionCache",
    "ConformalRAG",
    "Diagnosis",
    "Game",
    "MCDropoutConfidence",
    "Run",
    "RunVerdict",
    "SimulationOptions",
    "analyze",
    "attribute",
    "charts",
    "compare",
    "default_chain",
    "default_verifier",
    "import_file",
    "open_llm",
    "show",
    "simulate",
    "spearman",
    "split_claims",
    "validate",
]

# Threads of torch that wait for each other spin unless told otherwise, and so take the processor from the one
# they wait for when another program runs beside them. OpenMP reads this once, when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    if name == "charts":
        return import_module(f"{__name__}.charts")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
