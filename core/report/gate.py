"""The gate for scripts: a run fails where a finding is grave enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.report.text import finding_text
from core.severity import SEVERITIES
from core.socket import BAD, UNCLEAR, Finding
from core.text.display import count, one_line


@dataclass(frozen=True, slots=True)
class Gate:
    """What fails a run, at least as grave as ``severity``; and all that these data cannot tell."""

    severity: str
    failed: tuple[Finding, ...]
    unclear: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing fails."""
        return not self.failed

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain JSON."""
        return {
            "passed": self.passed,
            "severity": self.severity,
            "failed": [_facts(one) for one in self.failed],
            "unclear": [_facts(one) for one in self.unclear],
        }

    def to_text(self) -> str:
        """Return the outcome in lines for a terminal."""
        what = self.severity + ("" if self.severity == SEVERITIES[0] else " or higher")
        n = count(len(self.failed), "finding")
        lines = [f"{'Passed' if self.passed else 'Failed'}: {n} of severity {what}."]
        lines += [f"  {finding_text(one)}" for one in self.failed]
        if self.unclear:
            lines += ["Cannot be told from these data:", *(f"  {finding_text(one)}" for one in self.unclear)]
        return "\n".join(map(one_line, lines))


def gate(diagnosis: Diagnosis, severity: str = "high", asked: Iterable[str] = ()) -> Gate:
    """Return whether a run passes.

    Parameters
    ----------
    diagnosis : Diagnosis
        The run and its settings.
    severity : {"high", "medium", "low"}
        A finding that something is wrong fails the run if it is at least as grave.
    asked : iterable of str
        Settings that were given on purpose: what they belong to must have data.

    Raises
    ------
    InputError
        An unknown severity; or a setting of a diagnostic that has nothing to say of the run.

    Examples
    --------
    >>> from core.run import Run
    >>> gate(Diagnosis(Run.load("sample_data/recorded_run"))).passed
    False
    """
    if severity not in SEVERITIES:
        raise InputError(f"severity must be one of {', '.join(SEVERITIES)}, got {severity!r}.")
    names = set(asked)
    for diagnostic in diagnosis.diagnostics:
        options = [one.option for one in diagnostic.settings if one.name in names]
        missing = diagnostic.lacks(diagnosis.run)
        if options and missing is not None:
            raise InputError(f"{', '.join(options)} is a setting of {diagnostic.title}. {missing}")
    counted = SEVERITIES[: SEVERITIES.index(severity) + 1]
    found = diagnosis.findings()
    failed = tuple(one for one in found if one.tone == BAD and one.severity in counted)
    return Gate(severity, failed, tuple(one for one in found if one.tone == UNCLEAR))


def _facts(one: Finding) -> dict[str, Any]:
    return {
        "diagnostic": one.diagnostic,
        "name": one.name,
        "severity": one.severity,
        "sentence": one.sentence,
        "n": one.n,
        "of": one.of,
        "query_ids": list(one.query_ids),
    }
