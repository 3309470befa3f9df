"""The one socket: what a diagnostic is made of.

Whatever shows, prints, exports or compares diagnostics loops over `core.diagnostics.DIAGNOSTICS` and takes a
`core.diagnosis.Diagnosis`; it knows no diagnostic by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pandas as pd

from core.errors import InputError
from core.run import Run
from core.text.display import DASH, number, p_text, share_interval
from core.text.display import count as counted

if TYPE_CHECKING:
    from core.analyses import Analyses

METRIC, MODE, REASON = "Metrics", "Failure modes", "Undefined because"
BAD, GOOD, UNCLEAR = "bad", "good", "unclear"  # what a finding is: wrong, in order, or not to be told
WHY, TRUST = "why", "trust"  # what a diagnostic is about: why the answers are what they are; which to trust
BEYOND_CHANCE = 0.05  # largest p-value, adjusted for everything that was tested, of a finding beyond chance
HELPS, HARMS, OPEN, UNTRIED = "helps", "harms", "cannot be told", "untried"  # what became of a fix
EARLIER = ("*",)  # in `Diagnostic.reads`: all diagnostics before this one


@dataclass(frozen=True, slots=True)
class Setting:
    """A number, switch or choice that changes an analysis: a widget, a command-line option, a part of links.

    ``name`` is unique among all diagnostics. A bool as ``default`` makes it a switch, a text a choice of
    ``choices`` (where empty, the page offers them), called by its ``titles`` on screen; a number lies in
    [``low``, ``high``].
    """

    name: str
    title: str
    default: float | bool | str
    help: str
    low: float = 0.0
    high: float = 1.0
    step: float = 0.05
    choices: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off rather than a number."""
        return isinstance(self.default, bool)

    @property
    def is_choice(self) -> bool:
        """Whether it is one of several names."""
        return isinstance(self.default, str)

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return "--" + self.name.replace("_", "-")

    def checked(self, value: Any) -> float | bool | str:
        """Return the value as this setting's type; InputError where it is no such value."""
        if self.is_switch:
            if not isinstance(value, bool):
                raise InputError(f"{self.name} must be True or False, got {value!r}.")
            return value
        if self.is_choice:
            if not isinstance(value, str):
                raise InputError(f"{self.name} must be a name, got {value!r}.")
            if self.choices and value not in self.choices:
                raise InputError(f"{self.name} must be {' or '.join(self.choices)}, got {value!r}.")
            return value
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not self.low <= value <= self.high
        ):
            raise InputError(f"{self.name} must lie from {self.low:g} to {self.high:g}, got {value!r}.")
        return float(value)


@dataclass(frozen=True, slots=True)
class Definition:
    """What a number, state, label, failure mode or reason means; the glossary and tooltips show it.

    ``kind`` is its heading in the glossary. Parts that do not apply are empty.
    """

    name: str
    title: str
    meaning: str
    kind: str = METRIC
    formula: str = ""
    unit: str = ""
    range: str = ""
    direction: str = ""
    undefined_when: str = ""
    source: str = ""
    advice: str = ""


def by_name(*definitions: Definition) -> Mapping[str, Definition]:
    """Return definitions by name, in order."""
    return MappingProxyType({definition.name: definition for definition in definitions})


@dataclass(frozen=True, slots=True)
class Number:
    """One headline number of a run.

    ``key`` is its key in ``summary --json``. ``value`` is None where undefined; a Mapping counts cases by
    name (of a `Definition`), each a row of its own. ``n`` cases are behind the value; ``of`` is the whole
    that a count is a part of, ``noun`` what is counted, in the singular, ``interval`` a 95 % interval,
    ``pattern`` the format. ``define`` names the `Definition` that explains it; of a Mapping, the kind of its
    names. ``chance`` is the chance baseline: a value or, for a count, a count; ``note`` what else must be
    said with it.

    ``is_share``: whether a value without ``of`` is the share of its n cases that show something. ``cases``:
    the condition that selects these cases among the rows of the analysis: ``queries.buried_evidence:True``.
    ``needs_nothing``: whether it is known even where the run lacks what its diagnostic needs.
    ``place``: on a "card" and in tables, in tables only ("row"), among the "setup" of a run, or "data" for
    ``summary --json`` only.
    """

    key: str
    title: str = ""
    value: Any = None
    n: int | None = None
    of: int | None = None
    noun: str = "question"
    interval: tuple[float, float] | None = None
    pattern: str = "{:.2f}"
    define: str = ""
    chance: float | None = None
    note: str = ""
    is_share: bool = False
    needs_nothing: bool = False
    cases: str = ""
    place: str = "data"

    @property
    def unknown(self) -> Number:
        """The same number without a value, unless it needs nothing."""
        if self.needs_nothing:
            return self
        of = None if self.of is None else 0
        return Number(self.key, self.title, of=of, noun=self.noun, define=self.define, place=self.place)

    @property
    def text(self) -> str:
        """The value for people: ``0.01``, ``29 of 62``, or a dash."""
        if self.value is None or (self.of is not None and not self.of):
            return DASH
        if isinstance(self.value, str):
            return self.value
        if self.of is not None:
            return f"{self.value:,} of {self.of:,}"
        return f"{self.value:,}" if isinstance(self.value, int) else number(self.value, self.pattern)

    @property
    def basis(self) -> str:
        """The cases behind the value, its interval, and its context, for people."""
        parts = [] if self.n is None else [f"n = {counted(self.n, self.noun)}"]
        if self.interval is not None:
            low, high = (number(end, self.pattern) for end in self.interval)
            parts.append(f"95 % interval {low} to {high}")
        return "; ".join(filter(None, [*parts, self.context]))

    @property
    def context(self) -> str:
        """The chance baseline and the note, for people."""
        pattern = "{:g}" if not self.chance else self.pattern if self.of is None else "{:.1f}"
        by_chance = "" if self.chance is None else f"{number(self.chance, pattern)} by chance"
        return "; ".join(filter(None, [by_chance, self.note]))


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a run, or in order, in words, with the count that chance alone would give.

    Attributes
    ----------
    name : str
        Of a `Definition` of the diagnostic.
    sentence, advice : str
        What was seen; what to do about it.
    n, of : int
        Cases that show it, of those that could; ``interval`` is the 95 % interval of the share.
    expected_by_chance : float or None
        Count that chance alone gives; None where chance cannot produce it.
    p_value : float or None
        Of the one test behind it, two-sided where either side would be told; None where nothing was tested.
        A tested finding is returned whatever its p-value: `Analyses.findings` corrects for all tests of the
        run (Holm 1979), fills in ``p_adjusted`` and ``n_tests``, and takes ``otherwise`` (None: nothing)
        where that p-value is above `BEYOND_CHANCE`.
    severity : {"high", "medium", "low"}
        By `core.severity.graded`; of what is not bad, always low.
    query_ids : tuple of str
        Questions to read for it, the most telling first.
    tone : {"bad", "good", "unclear"}
        Whether something is wrong, or in order, or cannot be told from these data.
    clause : str
        The same for the verdict: short, plain words before the number, no capital, no full stop; by default
        the sentence, and what matters little is left out. One ``topic`` makes one sentence of the verdict.
    label, reads : str
        What is true of each question (*Gold not first*; by default the definition's title); what a link to
        them promises (``"questions where gold is not first"``).
    fix : str
        What the advice changes and how, such as ``"threshold:raise"``: all findings of a run that name the
        same thing name the same way. Empty where it changes nothing of the RAG.
    """

    name: str
    sentence: str
    n: int
    of: int
    interval: tuple[float, float] | None = None
    expected_by_chance: float | None = None
    p_value: float | None = None
    severity: str = "medium"
    advice: str = ""
    query_ids: tuple[str, ...] = ()
    tone: str = BAD
    clause: str = ""
    topic: str = ""
    label: str = ""
    reads: str = ""
    fix: str = ""
    otherwise: Finding | None = None
    diagnostic: str = ""
    p_adjusted: float | None = None
    n_tests: int | None = None

    @property
    def basis(self) -> str:
        """Interval of the share, count by chance and p-value, for people."""
        parts = []
        if self.interval is not None:
            parts.append(share_interval(self.interval))
        if self.expected_by_chance is not None:
            parts.append(f"chance baseline {number(self.expected_by_chance, '{:.1f}')} of {self.of:,}")
        if self.p_value is not None:
            parts.append(p_text(self.p_value))
            if self.p_adjusted is not None and p_text(self.p_adjusted) != parts[-1]:
                parts[-1] += f" ({p_text(self.p_adjusted)} corrected for {self.n_tests} tests)"
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Need:
    """A table (or a column of it) without which there is nothing to say, and the sentence that says so.

    One of several columns will do, and so will a row in the table ``other`` or that ``step`` was run.
    """

    table: str
    sentence: str
    column: str | tuple[str, ...] | None = None
    step: str | None = None
    other: str | None = None

    def is_met(self, run: Run) -> bool:
        """Tell whether the run has at least one row, with a value in the column where one is named."""
        if self.step is not None and self.step in run.manifest.get("steps", {}):
            return True
        if self.other is not None and run.has(self.other):
            return True
        return run.has(self.table, *([self.column] if isinstance(self.column, str) else self.column or ()))


@dataclass(frozen=True, slots=True)
class QuestionColumn:
    """A column of ``analysis.queries`` that is shown for a single question and compared between runs.

    ``pattern`` is the format of numbers, ``"bool"`` for yes and no, ``"list"`` for a list of numbers (a small
    chart in tables; not compared between runs); ``bounds`` is the range of the numbers, if they have one.
    ``higher_is`` is "better", "worse", "more confident" or "more uncertain" where one of them is, else "".
    ``by_passages``: the number of passages alone moves the value, so that runs with different numbers of them
    differ by nature. ``needs_labels``: it is known only where a reference answer or gold passage is.
    ``is_secondary``: it follows from another column or says the same in another way; where columns are
    tested against each other it would only cost power, and is left out.
    """

    name: str
    title: str
    pattern: str = "{:.2f}"
    bounds: tuple[float, float] | None = None
    higher_is: str = ""
    by_passages: bool = False
    needs_labels: bool = False
    is_secondary: bool = False

    @property
    def is_list(self) -> bool:
        """Whether each question has several numbers."""
        return self.pattern == "list"

    def text(self, value: Any) -> str:
        """Return a value of the column for people."""
        if isinstance(value, (list, tuple)):
            return ", ".join(number(one) for one in value)
        if value is None or value is pd.NA or value != value:
            return DASH
        if isinstance(value, str):
            return value
        return (
            {True: "yes", False: "no"}[bool(value)] if self.pattern == "bool" else number(value, self.pattern)
        )


@dataclass(frozen=True, slots=True)
class Export:
    """A file that can be written of a run.

    ``name`` is its format on the command line, ``write`` takes a `core.diagnosis.Diagnosis`, ``about`` and
    ``losses`` say in sentences what it holds and what does not come back when it is read again.
    """

    name: str
    title: str
    ending: str
    write: Callable[[Any], bytes]
    about: str = ""
    losses: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Title and file ending, for a menu."""
        return f"{self.title} ({self.ending})"


@dataclass(frozen=True, slots=True)
class Tried:
    """A fix that was tried, or could be: what became of it, in a sentence.

    ``outcome`` is "helps", "harms", "cannot be told", or "untried"; ``sentence`` takes the place of advice
    that names the same `Finding.fix`, behind that advice where the fix helps or was not tried.
    """

    outcome: str
    sentence: str


def _nothing(_: Any) -> Sequence[Any]:
    return ()


def _untried(_: Any) -> Mapping[str, Tried]:
    return {}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One diagnostic: everything the rest of the program needs to run, show, export and compare it.

    ``name`` is also that of its package, page, section, step and tests; ``question`` the one that it answers.
    ``analyse(diagnosis)`` returns anything frozen whose ``queries`` has one row per question in the run's
    order, with ``query_id`` and ``columns``; no model is called. It may read the analyses named in ``reads``,
    and no others. ``numbers`` and ``findings`` take it: always the same keys; and what is wrong. ``finds``
    names every finding there can be, each one of ``definitions``. Without all of ``needs`` there is nothing
    to say. ``figures`` are the two that say most, or one: functions of ``core.charts.<name>`` that draw the
    analysis.

    ``step`` is what must be asked of a model: a frozen dataclass of options, see `core.pipeline.steps.Step`.
    ``group`` is the menu of its page: `WHY` or `TRUST`. ``recover`` gives further rows of
    `Analyses.recovered`, where a simulation plants what no headline number says. ``tried`` says which fixes
    were tried, by `Finding.fix`: advice of all diagnostics that names one yields to it.
    """

    name: str
    title: str
    question: str
    analyse: Callable[[Analyses], Any]
    numbers: Callable[[Any], Sequence[Number]]
    findings: Callable[[Any], Sequence[Finding]] = _nothing
    needs: tuple[Need, ...] = ()
    settings: tuple[Setting, ...] = ()
    reads: tuple[str, ...] = ()
    exports: tuple[Export, ...] = ()
    definitions: tuple[Definition, ...] = ()
    finds: tuple[str, ...] = ()
    columns: tuple[QuestionColumn, ...] = ()
    figures: tuple[str, ...] = ()
    step: Any = None
    icon: str = ":material/stethoscope:"
    group: str = WHY
    recover: Callable[[Analyses], pd.DataFrame] | None = None
    tried: Callable[[Any], Mapping[str, Tried]] = _untried

    def lacks(self, run: Run) -> str | None:
        """Return why there is nothing to say of a run, or None."""
        return next((need.sentence for need in self.needs if not need.is_met(run)), None)

    def define(self, name: str, kind: str | None = None) -> Definition:
        """Return the definition called ``name`` (of one kind, where given); KeyError when there is none."""
        for definition in self.definitions:
            if definition.name == name and kind in (None, definition.kind):
                return definition
        raise KeyError(f"{self.name} defines no {name!r}" + (f" among its {kind.lower()}" if kind else ""))


def read_by(diagnostics: Sequence[Diagnostic], name: str) -> tuple[str, ...]:
    """Return the names of the diagnostics that one of them may read."""
    names = [one.name for one in diagnostics]
    reads = diagnostics[names.index(name)].reads
    return tuple(names[: names.index(name)]) if reads == EARLIER else reads


def settings_of(diagnostics: Sequence[Diagnostic]) -> tuple[Setting, ...]:
    """Return the settings of all diagnostics, in order."""
    return tuple(setting for diagnostic in diagnostics for setting in diagnostic.settings)


def steps_of(diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """Return the steps of the diagnostics that have one, by name, in order."""
    return {diagnostic.name: diagnostic.step for diagnostic in diagnostics if diagnostic.step is not None}


def checked_settings(
    given: Mapping[str, Any], diagnostics: Sequence[Diagnostic]
) -> Mapping[str, float | bool | str]:
    """Return a value for every setting: the given one, checked, or the default."""
    known = {setting.name: setting for setting in settings_of(diagnostics)}
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise InputError(f"There is no setting {unknown!r}; settings are {', '.join(known)}.")
    return MappingProxyType(
        {name: setting.checked(given.get(name, setting.default)) for name, setting in known.items()}
    )
