"""What one session remembers, in one typed place."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import streamlit as st

from core import diagnostics
from core.errors import InputError
from core.reviews import Review
from core.run import Run
from core.socket import Setting, settings_of
from core.worklist import Filter

_KEY = "leadline"
FILTER = tuple(part.name for part in fields(Filter))
_LONGEST = 2_000  # characters of a part of the address


@dataclass
class Session:
    """Everything a session holds besides its widgets; no two sessions share one.

    Attributes
    ----------
    run : Run or None
        The run that every page shows.
    run_key : str
        Cache key of the run, so that caches never mix two.
    origin : str
        Where it came from: ``recorded``, ``saved``, ``upload``, ``simulation`` or ``live``.
    saved : bool
        Whether a link to the run works elsewhere.
    link : dict
        What the address bar says about the run: ``run``, or ``sim`` for a simulation.
    problem : str or None
        Why the last link could not be followed.
    question : str or None
        The question last opened in the workbench.
    filter : Filter
        Which questions the worklist shows, and in what order.
    moved : bool
        Whether a callback set question, filter or a choice before this run of the script.
    choices : dict
        Settings that are not at their default, as text: widgets are drawn only where they act, and one that
        is not drawn keeps nothing.
    place : dict
        What the address said of question, filter and choices when it was last read or written.
    doors : dict
        Marks that were followed last, by figure or table: none is followed twice.
    reviews : dict
        By run and question, the reviews that are on no disk: of runs that are not saved, or that could not be
        written.
    conflicts : dict
        By question, the review of this tab that another tab's stands against.
    unwritten : str or None
        Why the last review is on no disk.
    listed : tuple or None
        The worklist as last selected, after what it was selected by.
    compared : list of str or None
        Ids of the runs last chosen on the page Compare; None before any choice.
    jobs : dict
        The job started last on each page with jobs; the jobs themselves are in the registry.
    shown_job : str or None
        The finished job whose result was shown last.
    live : dict
        What the Live page keeps: the data set, the names of models as typed, the fetch of a model.
    kept : dict
        What sections of diagnostics keep beside their widgets, by names that begin with the diagnostic's.
    upload : dict
        What the Data page keeps of the last upload: what is being mapped, or its run and import report.
    """

    run: Run | None = None
    run_key: str = ""
    origin: str = ""
    saved: bool = False
    link: dict[str, str] = field(default_factory=dict)
    problem: str | None = None
    question: str | None = None
    filter: Filter = field(default_factory=Filter)
    moved: bool = False
    choices: dict[str, str] = field(default_factory=dict)
    place: dict[str, str] = field(default_factory=dict)
    doors: dict[str, Any] = field(default_factory=dict)
    reviews: dict[str, dict[str, Review]] = field(default_factory=dict)
    conflicts: dict[str, Review] = field(default_factory=dict)
    unwritten: str | None = None
    listed: tuple[Any, Any] | None = None
    compared: list[str] | None = None
    jobs: dict[str, str] = field(default_factory=dict)
    shown_job: str | None = None
    started: bool = False
    live: dict[str, Any] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    upload: dict[str, Any] = field(default_factory=dict)

    def show(self, run: Run, origin: str, *, saved: bool, link: dict[str, str], key: str = "") -> None:
        """Make ``run`` the run that every page shows; ``key`` tells it from others, by default a new one."""
        if self.run is None or self.run.run_id != run.run_id:
            self.question, self.filter = None, Filter()
        self.run, self.origin, self.saved, self.link = run, origin, saved, link
        self.run_key = key or f"{run.run_id}-{secrets.token_hex(8)}"
        self.problem = None

    def open(self, query_id: str | None) -> None:
        """Make a question the one that the workbench shows."""
        self.question, self.moved = query_id, True

    def narrow(self, **parts: str) -> None:
        """Change parts of the filter; the others stay."""
        self.filter, self.moved = replace(self.filter, **parts), True

    def only(self, **parts: str) -> None:
        """Restrict the list to these parts of the filter alone; the order stays."""
        self.filter, self.moved = Filter(sort=self.filter.sort, **parts), True

    def choose(self, setting: str, value: float | bool | str) -> None:
        """Set a setting; "" is its default."""
        self.choices, self.moved = {**self.choices, setting: _written(setting, value)}, True

    def where(self) -> dict[str, str]:
        """Return question, filter and choices as parameters of the address."""
        parts = {"question": self.question or "", **asdict(self.filter), **self.choices}
        return {name: value for name, value in parts.items() if value}

    def follow(self, asked: dict[str, str], *, whole: bool) -> None:
        """Go where the address says, unless it says what it said before, or a callback moved on since.

        What is missing in a ``whole`` address is no filter and no choice; in others it stays. The browser may
        send an address that is one step behind: without ``moved`` a second click would be undone.
        """
        if not self.moved and asked != self.place:
            cut = {name: value[:_LONGEST] for name, value in asked.items()}
            self.question = cut.get("question", self.question)
            if whole or any(name in cut for name in FILTER):
                self.filter = Filter(**{name: cut[name] for name in FILTER if name in cut})
            given = {name: _written(name, cut[name]) for name in choices() if name in cut}
            self.choices = given if whole else {**self.choices, **given}
        self.moved = False


def choices() -> tuple[str, ...]:
    """Return the names of the settings, which the address carries where they are not at their default."""
    return tuple(one.name for one in settings_of(diagnostics.DIAGNOSTICS))


def in_address() -> tuple[str, ...]:
    """Return what the address says of the place in the run, beside the run itself."""
    return ("question", *FILTER, *choices())


def session() -> Session:
    """Return this session's state, made on first use."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = Session()
    state: Session = st.session_state[_KEY]
    return state


def settings() -> dict[str, float | bool | str]:
    """Return the value of every diagnostic's setting."""
    kept = session().choices
    return {one.name: _read(one, kept.get(one.name, "")) for one in settings_of(diagnostics.DIAGNOSTICS)}


def _read(setting: Setting, text: str) -> float | bool | str:
    """Return the value that a text stands for; the default where it stands for none."""
    try:
        if setting.is_switch:
            return {"true": True, "false": False}.get(text, setting.default)
        return setting.checked(text if setting.is_choice and text else float(text))
    except (InputError, ValueError):
        return setting.default


def _written(name: str, value: float | bool | str) -> str:
    """Return a value of a setting as text; "" for its default and for what is no value of it."""
    setting = next(one for one in settings_of(diagnostics.DIAGNOSTICS) if one.name == name)
    text = value if isinstance(value, str) else str(value).lower() if setting.is_switch else f"{value:.10g}"
    return "" if _read(setting, text) == setting.default else text
