"""The analyses of one run, and what follows from all: headline numbers, findings, what was recovered."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import pandas as pd

from core.kept import Kept, NotKept, kept_for
from core.run import RESULTS, Run
from core.severity import SEVERITIES
from core.socket import (
    BAD,
    BEYOND_CHANCE,
    HELPS,
    UNCLEAR,
    UNTRIED,
    Diagnostic,
    Finding,
    Number,
    Tried,
    checked_settings,
    read_by,
)
from core.stats import holm

RECOVERED = ("check", "planted", "recovered", "low", "high", "n", "meaning", "cases")
_PROMISED_KEYS = ("mean_claim_uncertainty", "mean_confidence")
_T = TypeVar("_T")
_KEPT = 8  # analyses of one diagnostic, under different settings, that are remembered


@dataclass(frozen=True, slots=True)
class _Store:
    """Analyses that several settings of one run share; the oldest go first."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    analyses: dict[str, OrderedDict[Any, Any]] = field(default_factory=dict)
    layouts: dict[Callable[[Run], Any], Any] = field(default_factory=dict)


class Analyses:
    """The analyses of one run under one set of settings, each computed when it is first asked for.

    Diagnostics take it; whoever needs all diagnostics of the program takes a `core.diagnosis.Diagnosis`.
    ``settings`` are values by name of `Setting`, the others have their defaults; `InputError` for a setting
    that no diagnostic has, or a value out of its range. Each diagnostic may read only those before it.
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
        self._results = _results_of(self)
        self._remembered: dict[str, Any] = {}

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

    def kept(self, name: str, compute: Callable[[Self], _T]) -> _T:
        """Return ``compute(self)``, read where an earlier process kept it beside a large saved run.

        ``name`` tells results of one run and its settings apart. What `core.kept.Kept` cannot write is
        computed in every process.
        """
        if name not in self._remembered:
            self._remembered[name] = self._read_or(name, compute)
        found: _T = self._remembered[name]
        return found

    @property
    def keeps(self) -> bool:
        """Whether results of the run are kept for the next process."""
        return self._results is not None

    def _read_or(self, name: str, compute: Callable[[Self], _T]) -> _T:
        if self._results is None:
            return compute(self)
        try:
            found: _T = self._results.read(name)
        except NotKept:
            found = compute(self)
            self._results.write(name, found)
        return found

    def diagnostic(self, name: str) -> Diagnostic:
        """Return a diagnostic by name; KeyError when there is none."""
        return self._by_name[name]

    def read_by(self, name: str) -> tuple[str, ...]:
        """Return the names of the diagnostics that one may read."""
        return read_by(self.diagnostics, name)

    def numbers(self, name: str) -> tuple[Number, ...]:
        """Return the headline numbers of one diagnostic, without a value where the run lacks its data."""
        return self.kept(f"numbers of {name}", lambda own: own._numbers(name))

    def _numbers(self, name: str) -> tuple[Number, ...]:
        diagnostic = self._by_name[name]
        found = diagnostic.numbers(self[name])
        return tuple(found) if diagnostic.lacks(self.run) is None else tuple(one.unknown for one in found)

    def tried(self, name: str) -> Mapping[str, Tried]:
        """Return the fixes that one diagnostic tries, by `Finding.fix`; none where it lacks its data."""
        diagnostic = self._by_name[name]
        if diagnostic.lacks(self.run) is not None:
            return {}
        return self.kept(f"tried by {name}", lambda own: dict(diagnostic.tried(own[name])))

    def recovered(self, name: str) -> pd.DataFrame:
        """Return what a simulation planted for one diagnostic, and what that recovered of it, row by row.

        Columns: ``check, planted, recovered``, both counts, shares or means; ``low, high``, the 95 % interval
        of ``recovered``, NaN for counts; ``n``; ``meaning``; and ``cases``, as `Number.cases`. Empty for no
        simulation. ``manifest["planted"]`` says what was planted: by diagnostic and `Number.key`.
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
        return self.kept("findings", lambda own: own._tested())

    def _tested(self) -> tuple[Finding, ...]:
        said = [
            (diagnostic.name, one)
            for diagnostic in self.diagnostics
            if diagnostic.lacks(self.run) is None
            for one in diagnostic.findings(self[diagnostic.name])
        ]
        tried = {fix: what for one in self.diagnostics for fix, what in self.tried(one.name).items()}
        p_values = [math.nan if one.p_value is None else one.p_value for _, one in said]
        n_tests = sum(not math.isnan(p) for p in p_values)
        found = []
        for (name, one), adjusted in zip(said, holm(p_values).tolist(), strict=True):
            claims = one.tone != UNCLEAR  # what is unclear claims nothing that chance could refute
            shown = one.otherwise if claims and adjusted > BEYOND_CHANCE else one
            if shown is not None:
                severity = shown.severity if shown.tone == BAD else SEVERITIES[-1]
                tested = {} if math.isnan(adjusted) else {"p_adjusted": adjusted, "n_tests": n_tests}
                advice = _advised(shown, tried.get(shown.fix))
                found.append(
                    replace(
                        shown, diagnostic=name, severity=severity, advice=advice, otherwise=None, **tested
                    )
                )
        return tuple(found)

    def _key(self, name: str) -> tuple[Any, ...]:
        """Return what an analysis depends on: its own settings and those of all that it reads."""
        diagnostic = self._by_name[name]
        own = tuple(self.settings[setting.name] for setting in diagnostic.settings)
        return (*own, *(part for other in self.read_by(name) for part in self._key(other)))

    def _seeing(self, names: frozenset[str]) -> Self:
        view = self.at(self.settings)
        view._allowed = names
        return view


def _results_of(analyses: Analyses) -> Kept | None:
    """Return where results of a run are kept; None for one that is small or not saved."""
    origin = analyses.run.origin
    if origin is None:
        return None
    about = {**analyses.settings, "diagnostics": [one.name for one in analyses.diagnostics]}
    return kept_for(origin.folder / RESULTS, origin.digest, about, (Finding, Number, Tried))


def _advised(one: Finding, tried: Tried | None) -> str:
    """Return the advice of a finding in the words of the fix that was tried, where one was."""
    if tried is None or not one.advice:
        return one.advice
    return f"{one.advice} {tried.sentence}" if tried.outcome in (HELPS, UNTRIED) else tried.sentence


def _recovered(diagnostic: Diagnostic, one: Number, planted: Any) -> list[tuple[Any, ...]]:
    """Return a row of `Analyses.recovered` for a number, or one for each name that it counts."""
    nothing = (math.nan, math.nan)
    if isinstance(planted, Mapping):
        found = one.value if isinstance(one.value, Mapping) else {}
        return [
            (f"{one.title}: {name}", value, found.get(name, 0), *nothing, sum(planted.values()), "", "")
            for name, value in planted.items()
        ]
    meaning = next((known.meaning for known in diagnostic.definitions if known.name == one.define), "")
    value = math.nan if one.value is None or isinstance(one.value, Mapping) else one.value
    n = one.n if one.of is None else one.of
    return [(one.title, planted, value, *(one.interval or nothing), n, meaning, one.cases)]
