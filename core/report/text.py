"""The verdict, findings and headline numbers of a run as text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.diagnosis import Diagnosis
from core.socket import BAD, Diagnostic, Finding, Number
from core.text.display import one_line
from core.verdict import verdict


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
