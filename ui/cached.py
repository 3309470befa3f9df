"""Cached results, one session at a time.

Runs are never hashed: the cache key is the session's run key, which is new for every run taken over, and the
settings. Analyses are kept as they are (no copy per rerun, they are read-only); figures as data.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.diagnosis import Diagnosis, Finding, Number
from core.report.compare import Side, headline_table, setup_differences, sides_of
from core.report.exports import exporters
from core.report.paired import Pair, pairs_of
from core.run import Run
from ui import reviews
from ui.state import session, settings

_Key = tuple[Any, ...]


def diagnosis() -> Diagnosis:
    """Return the analyses of the session's run at the current settings."""
    state = session()
    assert state.run is not None, "pages ask for analyses only when a run is there"
    return _base(state.run_key, state.run).at(settings())


def once(name: str, compute: Callable[[Diagnosis], Any]) -> Any:
    """Return ``compute(diagnosis)``, done once for the run and its settings; ``name`` tells results apart."""
    return _computed(key(), name, compute, diagnosis())


def numbers(diagnostic: str) -> tuple[Number, ...]:
    """Return the headline numbers of one diagnostic."""
    found: tuple[Number, ...] = once(f"numbers of {diagnostic}", lambda d: d.numbers(diagnostic))
    return found


def findings() -> tuple[Finding, ...]:
    """Return what is wrong with the run, most severe first."""
    found: tuple[Finding, ...] = once("findings", lambda d: d.findings())
    return found


def chart(diagnostic: str, figure: str, *data: Any, of: str = "", **arguments: Any) -> Any:
    """Return the figure that ``core.charts.<diagnostic>.<figure>`` draws.

    ``data`` is what it draws, by default the analysis; ``of`` says which part of the run that is, so that
    figures of two questions are not taken for each other.
    """
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
    pairs: tuple[Pair, ...]


def comparison_of(runs: list[tuple[str, Run]]) -> Comparison:
    """Compare runs; each comes with a key of its own, as the session's run has its run key."""
    values = settings()
    found = [_base(key, run).at(values) for key, run in runs]
    return _compared((tuple(key for key, _ in runs), *values.items()), found)


@st.cache_resource(max_entries=8, show_spinner="Opening the run …")
def saved_run(folder: str, stamp: int) -> Run:
    """Return a saved run; ``stamp`` is new when its folder was written anew."""
    return Run.load(folder)


def key() -> _Key:
    """Return what tells this run under these settings from any other."""
    return (session().run_key, *settings().items())


@st.cache_resource(scope="session", max_entries=6, show_spinner=False)
def _base(run_key: str, _run: Run) -> Diagnosis:
    return Diagnosis(_run)


@st.cache_resource(scope="session", max_entries=64, show_spinner="Analysing the run …")
def _computed(key: _Key, name: str, _compute: Callable[[Diagnosis], Any], _diagnosis: Diagnosis) -> Any:
    return _compute(_diagnosis)


@st.cache_resource(scope="session", max_entries=2, show_spinner="Comparing the runs …")
def _compared(key: _Key, _found: list[Diagnosis]) -> Comparison:
    sides = sides_of(_found)
    return Comparison(sides, headline_table(sides), setup_differences(sides), pairs_of(sides))


@st.cache_data(scope="session", max_entries=64, show_spinner=False)
def _figure(
    key: _Key, diagnostic: str, figure: str, of: str, arguments: dict[str, Any], _data: tuple[Any, ...]
) -> Any:
    draw = getattr(importlib.import_module(f"core.charts.{diagnostic}"), figure)
    return draw(*_data, **arguments)
