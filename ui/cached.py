"""Cached results, one session at a time.

Frames are passed with a leading underscore and never hashed: the cache key is the session's run
key, which is new for every run taken over, and the settings. Analyses are kept as they are (no
copy per rerun, they are read-only); figures as data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core import charts
from core.claims.of_run.analysis import ClaimsAnalysis, analyse_claims
from core.influence import InfluenceAnalysis, analyse, compare_reported, recovery
from core.influence.attention import what_to_look_at
from core.report.exports import EXPORTERS
from core.report.side_by_side import Side, headline_table, setup_differences, shared_questions, sides_of
from core.report.summary import run_summary
from core.retrieval_quality.analysis import retrieval_quality
from core.run import Run
from ui.state import session, support_threshold, threshold


def current_analysis() -> InfluenceAnalysis:
    """Return the analysis of the session's run at the current threshold."""
    state = session()
    assert state.run is not None, "pages ask for an analysis only when a run is there"
    return _analysis(state.run_key, threshold(), state.run)


def current_summary() -> dict[str, Any]:
    """Return the headline numbers of the session's run."""
    return _summary(*_claims_key(), session().run, current_analysis(), claims())


def claims() -> ClaimsAnalysis:
    """Return the claims of the session's run and their evidence, at the current threshold of support."""
    found = _claims(*_key(), session().run, current_analysis())
    return _claims_at(*_claims_key(), found)


def claims_chart(name: str, query_id: str | None = None, **settings: Any) -> Any:
    """Return the figure that ``core.charts.<name>`` draws of the run's claims, or of those of one answer."""
    analysis = claims()
    data = (analysis,) if query_id is None else (analysis.answer(query_id),)
    return _claims_figure(name, *_claims_key(), query_id, data, **settings)


def importance_chart(query_id: str) -> Any:
    """Return the figure of how much each passage of a question says for the answer, beside its influence."""
    analysis = claims()
    data = analysis.answer(query_id), analysis.passages
    return _claims_figure("passage_importance_bars", *_claims_key(), query_id, data)


def attention() -> Any:
    """Return the questions to look at first."""
    return _attention(*_key(), current_analysis())


def comparison() -> Any:
    """Return what the file reports against what was recomputed."""
    return _comparison(*_key(), session().run, current_analysis())


def recovered() -> Any:
    """Return what a simulation planted against what was found."""
    return _recovery(*_key(), session().run, current_analysis())


def quality() -> Any:
    """Return how well gold passages were retrieved and used."""
    return _quality(*_key(), session().run, current_analysis())


def export(name: str) -> Callable[[], bytes]:
    """Return a function that writes the run; it runs when the button is pressed, outside the page."""
    run, analysis, found = session().run, current_analysis(), claims()
    return lambda: EXPORTERS[name](run, analysis, found)


def chart(name: str, data: Any = None, **settings: Any) -> Any:
    """Return the figure that ``core.charts.<name>`` draws of ``data`` (the current analysis)."""
    return _figure(name, *_key(), current_analysis() if data is None else data, **settings)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side, and everything a page shows of them."""

    sides: tuple[Side, ...]
    headlines: Any
    setups: Any
    shared: Any
    figure: Any


def comparison_of(runs: list[tuple[str, Run]]) -> Comparison:
    """Compare runs; each comes with a key of its own, as the session's run has its run key."""
    keys = tuple(key for key, _ in runs)
    analysed = [(run, _analysis(key, threshold(), run)) for key, run in runs]
    return _compared(keys, threshold(), analysed)


@st.cache_resource(max_entries=8, show_spinner="Opening the run …")
def saved_run(folder: str, stamp: int) -> Run:
    """Return a saved run; ``stamp`` is new when its folder was written anew."""
    return Run.load(folder)


def _key() -> tuple[str, float]:
    return session().run_key, threshold()


def _claims_key() -> tuple[str, float, float]:
    return (*_key(), support_threshold())


@st.cache_resource(scope="session", max_entries=6, show_spinner="Computing influence and ranks …")
def _analysis(run_key: str, tau: float, _run: Run) -> InfluenceAnalysis:
    return analyse(_run, tau)


@st.cache_data(scope="session", max_entries=8, show_spinner=False)
def _summary(
    run_key: str,
    tau: float,
    support: float,
    _run: Run,
    _analysis: InfluenceAnalysis,
    _found: ClaimsAnalysis,
) -> dict[str, Any]:
    return run_summary(_run, _analysis, _found)


@st.cache_resource(scope="session", max_entries=6, show_spinner="Computing support and grounding …")
def _claims(run_key: str, tau: float, _run: Run, _analysis: InfluenceAnalysis) -> ClaimsAnalysis:
    return analyse_claims(_run, _analysis)


@st.cache_resource(scope="session", max_entries=6, show_spinner=False)
def _claims_at(run_key: str, tau: float, support: float, _found: ClaimsAnalysis) -> ClaimsAnalysis:
    return _found if support == _found.threshold else _found.at(support)


@st.cache_data(scope="session", max_entries=8, show_spinner=False)
def _attention(run_key: str, tau: float, _analysis: InfluenceAnalysis) -> Any:
    return what_to_look_at(_analysis)


@st.cache_resource(scope="session", max_entries=3, show_spinner=False)
def _comparison(run_key: str, tau: float, _run: Run, _analysis: InfluenceAnalysis) -> Any:
    return compare_reported(_run, _analysis)


@st.cache_data(scope="session", max_entries=8, show_spinner=False)
def _recovery(run_key: str, tau: float, _run: Run, _analysis: InfluenceAnalysis) -> Any:
    return recovery(_run, _analysis)


@st.cache_resource(scope="session", max_entries=2, show_spinner="Comparing the runs …")
def _compared(keys: tuple[str, ...], tau: float, _runs: list[tuple[Run, InfluenceAnalysis]]) -> Comparison:
    sides = sides_of(_runs)
    figure = charts.rho_side_by_side([(side.run.name, side.analysis) for side in sides])
    return Comparison(sides, headline_table(sides), setup_differences(sides), shared_questions(sides), figure)


@st.cache_resource(scope="session", max_entries=3, show_spinner=False)
def _quality(run_key: str, tau: float, _run: Run, _analysis: InfluenceAnalysis) -> Any:
    return retrieval_quality(_run, analysis=_analysis)


@st.cache_data(scope="session", max_entries=64, show_spinner=False)
def _figure(name: str, run_key: str, tau: float, _data: Any, **settings: Any) -> Any:
    return getattr(charts, name)(_data, **settings)


@st.cache_data(scope="session", max_entries=64, show_spinner=False)
def _claims_figure(
    name: str,
    run_key: str,
    tau: float,
    support: float,
    query_id: str | None,
    _data: tuple[Any, ...],
    **settings: Any,
) -> Any:
    return getattr(charts, name)(*_data, **settings)
