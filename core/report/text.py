"""The verdict, findings and headline numbers of a run as text, for a terminal; and the gate for scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.severity import SEVERITIES
from core.socket import BAD, UNCLEAR, Diagnostic, Finding, Number
from core.text.display import count, one_line
from core.verdict import verdict

NAMED_AT_MOST = 3


def named(texts: Sequence[str], noun: str = "") -> str:
    """Return the first three texts, and how many more of the ``noun`` there are."""
    more = len(texts) - NAMED_AT_MOST
    shown = "; ".join(texts[:NAMED_AT_MOST])
    return f"{shown}; and {count(more, noun) if noun else f'{more:,}'} more" if more > 0 else shown


def summary_text(diagnosis: Diagnosis) -> str:
    """Return a run as text: the verdict, the findings, the numbers of every diagnostic, each with its n."""
    run = diagnosis.run
    state = "" if run.manifest["complete"] else ", not finished"
    kind = f"{run.mark.upper()} DATA" if run.mark else run.data_source
    lines = [f"{run.name}  ({kind}, run {run.run_id}{state})"]
    said = verdict(diagnosis)
    lines += ["", *(f"  {text}" for text in said.texts)]
    if said.advice:
        lines += ["", f"  What to do: {said.advice}"]
    findings = diagnosis.findings()
    if findings:
        lines += ["", "  Findings", *(f"    {finding_text(finding)}" for finding in findings)]
    for diagnostic in diagnosis.diagnostics:
        lines += ["", f"  {diagnostic.title}"]
        missing = diagnostic.lacks(run)
        if missing is not None:
            lines.append(f"    {missing}")
            continue
        for one in diagnosis.numbers(diagnostic.name):
            lines += (_line(*row) for row in _rows(diagnostic, one))
    return "\n".join(map(one_line, lines))


def summary_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the headline numbers of a run and ``verdict``, its sentences, as plain JSON values."""
    return {**diagnosis.summary(), "verdict": list(verdict(diagnosis).texts)}


def finding_text(finding: Finding) -> str:
    """Return a finding in one line, with its interval and what chance alone gives."""
    basis = f" ({finding.basis})" if finding.basis else ""
    kind = finding.severity if finding.tone == BAD else finding.tone
    return f"[{kind}] {finding.sentence}{basis} {finding.advice}".rstrip()


def _rows(diagnostic: Diagnostic, one: Number) -> Iterator[tuple[str, str, str]]:
    """Yield title, value and basis; a value by name gives one row per name that occurs."""
    if one.place == "data" or one.value is None:
        return
    if isinstance(one.value, dict):
        found = {name: n for name, n in one.value.items() if n}
        if found:
            yield one.title, "", ""
        for name, n in found.items():
            definition = diagnostic.define(name, one.define)
            yield f"  {definition.title}", f"{n:,}", definition.meaning
    else:
        yield one.title, one.text, one.basis


def _line(title: str, value: str, basis: str) -> str:
    return f"    {title:<30}{value:>12}  {basis}".rstrip()


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
    """Return whether a run passes: whether no finding as grave as ``severity`` says that something is wrong.

    ``asked`` are settings that were given on purpose: what they belong to must have data. InputError for an
    unknown severity, or a setting of a diagnostic that has nothing to say of the run.

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
    names = ("diagnostic", "name", "severity", "sentence", "n", "of")
    return {**{name: getattr(one, name) for name in names}, "query_ids": list(one.query_ids)}
