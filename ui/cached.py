"""Cached results: of saved runs for all sessions, so that a reload has them; of others for one.

Runs are never hashed: the cache key is the session's run key and the settings. The key of a saved run is its
folder and when its files were written, any other is new for every run taken over. Results are kept as they
are (no copy per rerun): they are read-only.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from plotly.io import from_json

from core import conditions
from core import worklist as core_worklist
from core.diagnosis import Diagnosis
from core.report.compare import Side, headline_table, setup_differences, sides_of
from core.report.exports import exporters
from core.report.paired import RunPair, pairs_of
from core.run import MANY, RESULTS, SAMPLE, Run
from core.socket import Finding, Number
from core.verdict import RunVerdict
from core.verdict import verdict as verdict_of
from ui import reviews
from ui.figures import ready
from ui.library import SavedRun
from ui.state import session, settings

_Key = tuple[Any, ...]
_T = TypeVar("_T")
_SAVED = "saved "


def diagnosis() -> Diagnosis:
    """Return the analyses of the session's run at the current settings."""
    return _base((session().run_key,), session().the_run).at(settings())


def once(name: str, compute: Callable[[Diagnosis], _T]) -> _T:
    """Return ``compute(diagnosis)``, done once for the run and its settings; ``name`` tells results apart.

    Of a large saved run it is kept for the next server, too (`core.analyses.Analyses.kept`).
    """
    found: _T = _computed(key(), name, lambda own: own.kept(f"shown: {name}", compute), diagnosis())
    return found


def verdict() -> RunVerdict:
    """Return the answer before the proof, made of the findings."""
    found: RunVerdict = _computed(key(), "verdict", verdict_of, diagnosis())
    return found


def drawn(name: str, draw: Callable[[Diagnosis], go.Figure]) -> go.Figure:
    """Return a figure of the whole run, drawn once and kept as `once` keeps results."""

    def ready_to_show(own: Diagnosis) -> go.Figure:
        if not own.keeps:
            return ready(draw(own))
        return ready(from_json(own.kept(f"figure: {name}", lambda found: draw(found).to_json())))

    return _computed(key(), f"figure {name}", ready_to_show, diagnosis())


def worklist() -> pd.DataFrame:
    """Return one row per question: what every diagnostic says of it."""
    found: pd.DataFrame = _worklist(key(), diagnosis())
    return found


def matching(condition: str) -> tuple[str, ...]:
    """Return the ids of the questions that meet a condition (`core.conditions.where`)."""
    found: tuple[str, ...] = _computed(
        key(), f"where {condition}", lambda own: conditions.matching(own, condition), diagnosis()
    )
    return found


def numbers(diagnostic: str) -> tuple[Number, ...]:
    """Return the headline numbers of one diagnostic."""
    found: tuple[Number, ...] = _computed(
        key(), f"numbers of {diagnostic}", lambda own: own.numbers(diagnostic), diagnosis()
    )
    return found


def findings() -> tuple[Finding, ...]:
    """Return what is wrong with the run, most severe first."""
    found: tuple[Finding, ...] = _computed(key(), "findings", lambda own: own.findings(), diagnosis())
    return found


def chart(diagnostic: str, figure: str, *data: Any, of: str = "", **arguments: Any) -> Any:
    """Return the figure that ``core.charts.<diagnostic>.<figure>`` draws.

    ``data`` is what it draws, by default the analysis; ``of`` says which part of the run that is, so that
    figures of two questions are not taken for each other.
    """
    module = importlib.import_module(f"core.charts.{diagnostic}")
    if not (data or of):
        name = f"{diagnostic}.{figure} {sorted(arguments.items())}"
        return drawn(name, lambda own: getattr(module, figure)(own[diagnostic], **arguments))
    return _figure(key(), diagnostic, figure, of, arguments, data or (diagnosis()[diagnostic],))


def export(name: str) -> Callable[[], bytes]:
    """Return a function that writes the run; it runs when the button is pressed, outside the page."""
    found, (noted, _) = diagnosis(), reviews.every()
    return lambda: exporters(noted)[name].write(found)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side, and everything a page shows of them."""

    sides: tuple[Side, ...]
    headlines: Any
    setups: Any
    pairs: tuple[RunPair, ...]


def comparison_of(runs: list[tuple[str, Run]]) -> Comparison:
    """Compare runs; each comes with a key of its own, as the session's run has its run key."""
    values = settings()
    found = [_base((key,), run).at(values) for key, run in runs]
    return _compared((tuple(key for key, _ in runs), *values.items()), found)


def open_saved(saved: SavedRun, *, whole: bool = False) -> tuple[str, Run]:
    """Return a saved run, or the sample that stands for a very large one, after its key.

    RunFormatError or OSError where it cannot be read.
    """
    files = [one for one in saved.folder.iterdir() if one.name != RESULTS]  # which change when it is analysed
    stamp = sorted((one.name, one.stat().st_mtime_ns) for one in files)
    n_shown = saved.n_queries if whole or saved.n_queries <= MANY else SAMPLE
    return f"{_SAVED}{saved.folder} {stamp} {n_shown}", _opened(str(saved.folder), str(stamp), n_shown)


@st.cache_resource(max_entries=8, show_spinner="Opening the run …")
def _opened(folder: str, stamp: str, n_shown: int) -> Run:
    return Run.sample(folder, n_shown)


def key() -> _Key:
    """Return what tells this run under these settings from any other."""
    return (session().run_key, *settings().items())


def _kept(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Keep a function's results by its first argument, a key: of saved runs for all sessions."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        shared = st.cache_resource(**options)(function)
        own = st.cache_resource(scope="session", **options)(function)
        return lambda key, *rest: (shared if key[0].startswith(_SAVED) else own)(key, *rest)

    return decorate


@_kept(max_entries=8, show_spinner=False)
def _base(key: _Key, _run: Run) -> Diagnosis:
    return Diagnosis(_run)


@_kept(max_entries=4, show_spinner="Analysing the run …")
def _worklist(key: _Key, _diagnosis: Diagnosis) -> pd.DataFrame:
    return core_worklist.worklist(_diagnosis)


@_kept(max_entries=256, show_spinner="Analysing the run …")
def _computed(key: _Key, name: str, _compute: Callable[[Diagnosis], Any], _diagnosis: Diagnosis) -> Any:
    return _compute(_diagnosis)


@st.cache_resource(scope="session", max_entries=2, show_spinner="Comparing the runs …")
def _compared(key: _Key, _found: list[Diagnosis]) -> Comparison:
    sides = sides_of(_found)
    return Comparison(sides, headline_table(sides), setup_differences(sides), pairs_of(sides))


@_kept(max_entries=64, show_spinner=False)
def _figure(
    key: _Key, diagnostic: str, figure: str, of: str, arguments: dict[str, Any], _data: tuple[Any, ...]
) -> Any:
    draw = getattr(importlib.import_module(f"core.charts.{diagnostic}"), figure)
    return ready(draw(*_data, **arguments))
