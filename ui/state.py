"""What one session remembers, in one typed place."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from core import diagnostics
from core.diagnosis import Setting, settings_of
from core.errors import InputError
from core.run import Run

_KEY = "leadline"


@dataclass
class Session:
    """Everything a session holds besides its widgets; no two sessions share one.

    Attributes
    ----------
    run : Run or None
        The run that every page shows.
    run_key : str
        Cache key of the run: new whenever a run is taken over, so that caches never mix two runs.
    origin : str
        Where it came from: ``recorded``, ``saved``, ``upload``, ``simulation`` or ``live``.
    saved : bool
        Whether a link to the run works elsewhere.
    link : dict
        What the address bar says about the run: ``run``, or ``sim`` for a simulation.
    report : ValidationReport or None
        The import report, for uploads.
    problem : str or None
        Why the last link could not be followed.
    question : str or None
        The question last chosen in the workbench.
    compared : list of str or None
        Ids of the runs last chosen on the page Compare; None before any choice.
    jobs : dict
        The job started last on each page with jobs; the jobs themselves are in the registry.
    shown_job : str or None
        The finished job whose result was shown last.
    live : dict
        What the Live page keeps: the data set, the names of models as typed, the fetch of a model.
    upload : dict
        What the Data page keeps of the last upload while it is being mapped.
    """

    run: Run | None = None
    run_key: str = ""
    origin: str = ""
    saved: bool = False
    link: dict[str, str] = field(default_factory=dict)
    report: Any = None
    problem: str | None = None
    question: str | None = None
    compared: list[str] | None = None
    jobs: dict[str, str] = field(default_factory=dict)
    shown_job: str | None = None
    started: bool = False
    live: dict[str, Any] = field(default_factory=dict)
    upload: dict[str, Any] = field(default_factory=dict)

    def show(self, run: Run, origin: str, *, saved: bool, link: dict[str, str], report: Any = None) -> None:
        """Make ``run`` the run that every page shows."""
        self.run, self.origin, self.saved, self.link, self.report = run, origin, saved, link, report
        self.run_key = f"{run.run_id}-{secrets.token_hex(8)}"
        self.problem = self.question = None


def session() -> Session:
    """Return this session's state, made on first use."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = Session()
    state: Session = st.session_state[_KEY]
    return state


def settings() -> dict[str, float | bool]:
    """Return the value of every diagnostic's setting, as its widget in the sidebar has it."""
    return {setting.name: _value(setting) for setting in settings_of(diagnostics.DIAGNOSTICS)}


def _value(setting: Setting) -> float | bool:
    try:
        return setting.checked(st.session_state.get(setting.name, setting.default))
    except InputError:
        return setting.default
