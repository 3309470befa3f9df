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
    """Everything a session holds besides its widgets; no two sessions share one."""

    run: Run | None = None  # the run that every page shows
    run_key: str = ""  # cache key of the run, so that caches never mix two
    origin: str = ""  # of the run: recorded, saved, upload, simulation or live
    saved: bool = False  # whether a link to the run works elsewhere
    link: dict[str, str] = field(default_factory=dict)  # to the run: ``run``, or ``sim`` for a simulation
    problem: str | None = None  # why the last link could not be followed
    question: str | None = None  # the one last opened in the workbench
    filter: Filter = field(default_factory=Filter)  # what the worklist shows, and in what order
    moved: bool = False  # whether a callback set question, filter or a choice before this run of the script
    # Settings that are not at their default, as text: widgets are drawn only where they act, and one that is
    # not drawn keeps nothing.
    choices: dict[str, str] = field(default_factory=dict)
    # What the address said of question, filter and choices when it was last read or written.
    place: dict[str, str] = field(default_factory=dict)
    doors: dict[str, Any] = field(default_factory=dict)  # marks followed last: none is followed twice
    # By run and question, the reviews that are on no disk; and those that another tab's stand against.
    reviews: dict[str, dict[str, Review]] = field(default_factory=dict)
    conflicts: dict[str, Review] = field(default_factory=dict)
    unwritten: str | None = None  # why the last review is on no disk
    listed: tuple[Any, Any] | None = None  # the worklist as last selected, after what it was selected by
    compared: list[str] | None = None  # ids of the runs last chosen on the page Compare
    jobs: dict[str, str] = field(default_factory=dict)  # the job started last on each page, by id
    shown_job: str | None = None  # the finished job whose result was shown last
    started: bool = False
    live: dict[str, Any] = field(default_factory=dict)  # data set, model names as typed, fetch of a model
    kept: dict[str, Any] = field(default_factory=dict)  # what sections keep, by names with the diagnostic's
    upload: dict[str, Any] = field(default_factory=dict)  # the last upload: being mapped, or run and report

    @property
    def the_run(self) -> Run:
        """The run, for what pages draw only where there is one."""
        assert self.run is not None
        return self.run

    def show(self, run: Run, origin: str, *, saved: bool, link: dict[str, str], key: str = "") -> None:
        """Make ``run`` the run that every page shows; ``key`` tells it from others, by default a new one."""
        if self.run is None or self.run.whole_id != run.whole_id:
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
