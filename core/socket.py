"""The one socket: what a diagnostic is made of, and the analyses of one run.

Whatever shows, prints, exports or compares diagnostics loops over `core.diagnostics.DIAGNOSTICS` and takes a
`core.diagnosis.Diagnosis`; it knows no diagnostic by name.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol, Self

import pandas as pd

from core.errors import InputError
from core.run import Run
from core.severity import SEVERITIES
from core.stats import holm
from core.text.display import DASH, number, p_text, share_interval
from core.text.display import count as counted

METRIC, MODE, REASON = "Metrics", "Failure modes", "Undefined because"
BAD, GOOD, UNCLEAR = "bad", "good", "unclear"  # what a finding is: wrong, in order, or not to be told
WHY, TRUST = "why", "trust"  # what a diagnostic is about: why the answers are what they are; which to trust
BEYOND_CHANCE = 0.05  # largest p-value, adjusted for everything that was tested, of a finding beyond chance
_PROMISED_KEYS = ("mean_claim_uncertainty", "mean_confidence")
EARLIER = ("*",)
RECOVERED = ("check", "planted", "recovered", "low", "high", "n", "meaning", "cases")
_KEPT = 8  # analyses of one diagnostic, under different settings, that are remembered


@dataclass(frozen=True, slots=True)
class Setting:
    """A number, switch or choice that changes an analysis: a widget, a command-line option, a part of links.

    Attributes
    ----------
    name : str
        Unique among all diagnostics; the option is ``--name``, the link parameter ``name``.
    title, help : str
        For people.
    default : float, bool or str
        A bool makes it a switch, a text a choice; then ``low``, ``high`` and ``step`` mean nothing.
    low, high, step : float
        Range, both ends included, and the slider's step.
    choices : tuple of str
        The names, where they are known without a run; else the page of its diagnostic offers them.
    """

    name: str
    title: str
    default: float | bool | str
    help: str
    low: float = 0.0
    high: float = 1.0
    step: float = 0.05
    choices: tuple[str, ...] = ()

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

    Attributes
    ----------
    key : str
        Its key in ``summary --json``.
    title : str
        For people.
    value : float, int, str, list, Mapping or None
        None where undefined. A Mapping counts cases by name (of a `Definition`), each a row of its own.
    n, of : int or None
        Cases behind the value; or, for a count, the whole that it is a part of.
    noun : str
        What is counted, in the singular.
    interval : (float, float) or None
        95 % interval.
    pattern : str
        Format of the value.
    define : str
        Name of the `Definition` that explains it; of a Mapping, the kind of its names.
    chance : float or None
        Chance baseline: a value or, for a count, a count.
    note : str
        What else must be said with it.
    is_share : bool
        Whether a value without ``of`` is the share of its n cases that show something.
    needs_nothing : bool
        Whether it is known even where the run lacks what its diagnostic needs.
    cases : str
        Condition that selects these cases among the rows of the analysis: ``queries.buried_evidence:True``.
    place : {"card", "row", "setup", "data"}
        Where it is shown: on a card and in every table, in tables only, among the set-up of a run, or in
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
        Cases that show it, of those that could.
    interval : (float, float) or None
        95 % interval of the share ``n / of``.
    expected_by_chance : float or None
        Count that chance alone gives; None where chance cannot produce it.
    p_value : float or None
        Of the one test behind it, two-sided where either side would be told; None where nothing was tested.
        A diagnostic returns a tested finding whatever its p-value: `Analyses.findings` corrects for all
        tests of the run, and says what is left (`otherwise`) where chance explains the count.
    severity : {"high", "medium", "low"}
        How much it matters, by `core.severity.graded`; of what is not bad, always low.
    query_ids : tuple of str
        Questions to read for it, the most telling first.
    tone : {"bad", "good", "unclear"}
        Whether something is wrong, or in order, or cannot be told from these data.
    clause : str
        The same for the verdict: short, without a capital at its start and a full stop, plain words before
        the number. Where it is empty, the verdict takes the sentence, and leaves out what matters little.
    topic : str
        Findings of one diagnostic with the same topic share a sentence of the verdict.
    label : str
        What is true of each of the questions, in a word or two: *Gold not first*; by default the title of the
        definition it is named after.
    reads : str
        What a link to the questions promises: ``"questions where gold is not first"``.
    fix : str
        What the advice changes and how, such as ``"threshold:raise"``; of all findings of a run that name the
        same thing, all name the same way. Empty where the advice changes nothing of the RAG.
    otherwise : Finding or None
        What is said instead of a finding that is bad or good where its p-value, adjusted, is above
        `BEYOND_CHANCE`; None: nothing.
    diagnostic : str
        Who says so; `Analyses.findings` fills it in.
    p_adjusted, n_tests : float and int, or None
        The p-value adjusted for all tests of the run (Holm 1979), and their number; filled in likewise.
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

    Where several columns are named, one of them will do; a row in the table ``other``, if named, will do too.

    Where ``step`` is given, a run in which that step was run has what it takes, whatever came of it.
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
        if self.other is not None and len(run[self.other]):
            return True
        frame = run[self.table]
        columns = [self.column] if isinstance(self.column, str) else list(self.column or ())
        return bool(frame[columns].notna().to_numpy().any()) if columns else len(frame) > 0


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

    Attributes
    ----------
    name : str
        Its format on the command line.
    title, about : str
        For people; ``about`` says in a sentence what the file holds.
    ending : str
        Of the file's name, with the dot.
    write : callable
        From a `core.diagnosis.Diagnosis` to the file's content.
    losses : tuple of str
        What does not come back when the file is read again, one sentence each.
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


class Analysis(Protocol):
    """What a diagnostic finds in a run: anything frozen with one row per question, in the run's order."""

    @property
    def queries(self) -> pd.DataFrame:
        """One row per question, with ``query_id`` and the diagnostic's `QuestionColumn`s."""


def _nothing(_: Any) -> Sequence[Any]:
    return ()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One diagnostic: everything the rest of the program needs to run, show, export and compare it.

    Attributes
    ----------
    name : str
        Also the name of its package, page, section, step and tests.
    title, question : str
        Title of its page; the question that it answers.
    analyse : callable
        ``analyse(diagnosis)`` returns an `Analysis`; no model is called. It may read the analyses named in
        ``reads``, and no others; `EARLIER` names all diagnostics before it.
    numbers, findings : callable
        Of an analysis: its headline numbers, always the same keys; and what is wrong.
    needs : tuple of Need
        Without all of them there is nothing to say.
    settings, exports, definitions, columns
        See their types.
    step : type or None
        What must be asked of a model: a frozen dataclass of options, see `core.pipeline.steps.Step`.
    icon : str
        Of its page.
    group : {"why", "trust"}
        Of the menu in which its page is.
    recover : callable or None
        Further rows of `Analyses.recovered`, with the same columns, where a simulation plants what no
        headline number says.
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
    columns: tuple[QuestionColumn, ...] = ()
    step: Any = None
    icon: str = ":material/stethoscope:"
    group: str = WHY
    recover: Callable[[Analyses], pd.DataFrame] | None = None

    def lacks(self, run: Run) -> str | None:
        """Return why there is nothing to say of a run, or None."""
        return next((need.sentence for need in self.needs if not need.is_met(run)), None)

    def define(self, name: str, kind: str | None = None) -> Definition:
        """Return the definition called ``name`` (of one kind, where given); KeyError when there is none."""
        for definition in self.definitions:
            if definition.name == name and kind in (None, definition.kind):
                return definition
        raise KeyError(f"{self.name} defines no {name!r}" + (f" among its {kind.lower()}" if kind else ""))


@dataclass(frozen=True, slots=True)
class _Store:
    """Analyses that several settings of one run share; the oldest go first."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    analyses: dict[str, OrderedDict[Any, Any]] = field(default_factory=dict)
    layouts: dict[Callable[[Run], Any], Any] = field(default_factory=dict)


class Analyses:
    """The analyses of one run under one set of settings, each computed when it is first asked for.

    Diagnostics take it; whoever needs all diagnostics of the program takes a `core.diagnosis.Diagnosis`.

    Parameters
    ----------
    run : Run
        The run.
    settings : Mapping or None
        Values by name of `Setting`; the others have their defaults.
    diagnostics : sequence of Diagnostic
        Each may read the analyses of those before it.

    Raises
    ------
    InputError
        A setting that no diagnostic has, or a value out of its range.
    """

    def __init__(
        self, run: Run, settings: Mapping[str, Any] | None, diagnostics: Sequence[Diagnostic]
    ) -> None:
        self.run = run
        self.diagnostics = tuple(diagnostics)
        self.settings = checked_settings(settings or {}, self.diagnostics)
        self._by_name = {diagnostic.name: diagnostic for diagnostic in self.diagnostics}
        self._allowed = frozenset(self._by_name)
        self._store = _Store()
        self._findings: tuple[Finding, ...] | None = None

    def __getitem__(self, name: str) -> Any:
        """Return the analysis of a diagnostic."""
        if name not in self._allowed:
            raise KeyError(f"{name!r} is not among {sorted(self._allowed)}")
        key = self._key(name)
        with self._store.lock:
            kept = self._store.analyses.setdefault(name, OrderedDict())
            if key not in kept:
                diagnostic = self._by_name[name]
                kept[key] = diagnostic.analyse(self._seeing(frozenset(self.read_by(name))))
                while len(kept) > _KEPT:
                    kept.popitem(last=False)
            kept.move_to_end(key)
            return kept[key]

    def at(self, settings: Mapping[str, Any]) -> Self:
        """Return the same run under other settings; analyses that do not depend on them are shared."""
        other = type(self)(self.run, settings, self.diagnostics)
        other._store = self._store
        return other

    def once(self, function: Callable[[Run], Any]) -> Any:
        """Return ``function(run)``, computed once whatever the settings."""
        with self._store.lock:
            if function not in self._store.layouts:
                self._store.layouts[function] = function(self.run)
            return self._store.layouts[function]

    def diagnostic(self, name: str) -> Diagnostic:
        """Return a diagnostic by name; KeyError when there is none."""
        return self._by_name[name]

    def read_by(self, name: str) -> tuple[str, ...]:
        """Return the names of the diagnostics that one may read."""
        return read_by(self.diagnostics, name)

    def numbers(self, name: str) -> tuple[Number, ...]:
        """Return the headline numbers of one diagnostic, without a value where the run lacks its data."""
        diagnostic = self._by_name[name]
        found = diagnostic.numbers(self[name])
        return tuple(found) if diagnostic.lacks(self.run) is None else tuple(one.unknown for one in found)

    def recovered(self, name: str) -> pd.DataFrame:
        """Return what a simulation planted for one diagnostic, and what that recovered of it.

        Returns
        -------
        DataFrame
            One row per check: ``check, planted, recovered``, both counts, shares or means; ``low, high``, the
            95 % interval of ``recovered``, NaN for counts; ``n``; ``meaning``; and ``cases``, a condition as
            of `Number.cases`. Empty for a run that is no simulation. What was planted is read from
            ``manifest["planted"]``: by diagnostic, the key of a `Number` and its value.
        """
        diagnostic, truth = self._by_name[name], self.run.manifest.get("planted", {})
        if not truth or diagnostic.lacks(self.run) is not None:
            return pd.DataFrame(columns=[*RECOVERED])
        planted, rows = truth.get(name, {}), []
        for one in self.numbers(name) if planted else ():
            if one.key in planted:
                rows += _recovered(diagnostic, one, planted[one.key])
        frames = [pd.DataFrame(rows, columns=[*RECOVERED], dtype=object)] if rows else []
        if diagnostic.recover is not None:
            frames.append(diagnostic.recover(self))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[*RECOVERED])

    def summary(self) -> dict[str, Any]:
        """Return every headline number as plain JSON values, under the keys that scripts rely on.

        Those of an analysis that was not run, or that no diagnostic offers yet, are None.
        """
        run = self.run
        facts: dict[str, Any] = {
            "run_id": run.run_id,
            "name": run.name,
            "source": run.manifest["source"],
            "simulated": run.simulated,
            "composed": run.mark == "composed",
            "complete": bool(run.manifest["complete"]),
            **dict.fromkeys(_PROMISED_KEYS),
        }
        for diagnostic in self.diagnostics:
            facts |= {number.key: number.value for number in self.numbers(diagnostic.name)}
        return facts

    def findings(self) -> tuple[Finding, ...]:
        """Return what was found in the run: most severe first, then in the order of the diagnostics.

        All tests behind them are one family, since a reader sees all findings at once: with probability at
        least 95 % a run in which nothing but chance is at work has no finding beyond chance.
        """
        return tuple(sorted(self._found(), key=lambda finding: SEVERITIES.index(finding.severity)))

    def findings_of(self, name: str) -> tuple[Finding, ...]:
        """Return what one diagnostic found in the run, in its own order."""
        return tuple(one for one in self._found() if one.diagnostic == name)

    def _found(self) -> tuple[Finding, ...]:
        if self._findings is None:
            said = [
                (diagnostic.name, one)
                for diagnostic in self.diagnostics
                if diagnostic.lacks(self.run) is None
                for one in diagnostic.findings(self[diagnostic.name])
            ]
            p_values = [math.nan if one.p_value is None else one.p_value for _, one in said]
            n_tests = sum(not math.isnan(p) for p in p_values)
            found = []
            for (name, one), adjusted in zip(said, holm(p_values).tolist(), strict=True):
                claims = one.tone != UNCLEAR  # what is unclear claims nothing that chance could refute
                shown = one.otherwise if claims and adjusted > BEYOND_CHANCE else one
                if shown is not None:
                    severity = shown.severity if shown.tone == BAD else SEVERITIES[-1]
                    tested = {} if math.isnan(adjusted) else {"p_adjusted": adjusted, "n_tests": n_tests}
                    found.append(replace(shown, diagnostic=name, severity=severity, otherwise=None, **tested))
            self._findings = tuple(found)
        return self._findings

    def _key(self, name: str) -> tuple[Any, ...]:
        """Return what an analysis depends on: its own settings and those of all that it reads."""
        diagnostic = self._by_name[name]
        own = tuple(self.settings[setting.name] for setting in diagnostic.settings)
        return (*own, *(part for other in self.read_by(name) for part in self._key(other)))

    def _seeing(self, names: frozenset[str]) -> Self:
        view = self.at(self.settings)
        view._allowed = names
        return view


def read_by(diagnostics: Sequence[Diagnostic], name: str) -> tuple[str, ...]:
    """Return the names of the diagnostics that one of them may read."""
    names = [one.name for one in diagnostics]
    reads = diagnostics[names.index(name)].reads
    return tuple(names[: names.index(name)]) if reads == EARLIER else reads


def _recovered(diagnostic: Diagnostic, one: Number, planted: Any) -> list[tuple[Any, ...]]:
    """Return a row of `Analyses.recovered` for a number, or one for each name that it counts."""
    nothing = (math.nan, math.nan)
    if isinstance(planted, Mapping):
        found = one.value or {}
        return [
            (f"{one.title}: {name}", value, found.get(name, 0), *nothing, sum(planted.values()), "", "")
            for name, value in planted.items()
        ]
    meaning = next((known.meaning for known in diagnostic.definitions if known.name == one.define), "")
    value = math.nan if one.value is None else one.value
    n = one.n if one.of is None else one.of
    return [(one.title, planted, value, *(one.interval or nothing), n, meaning, one.cases)]


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
