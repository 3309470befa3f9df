"""All diagnostics of one run: `Diagnosis` is what shows, prints, exports and compares them take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core import diagnostics as registered
from core.analyses import Analyses
from core.html import card
from core.run import Run
from core.socket import Diagnostic
from core.verdict import RunVerdict, verdict


class Diagnosis(Analyses):
    """`core.analyses.Analyses` of one run, by all diagnostics of the program unless told which.

    Examples
    --------
    >>> run = Run.load("sample_data/recorded_run")
    >>> diagnosis = Diagnosis(run, {"influence_threshold": 0.6})
    >>> diagnosis["influence"].threshold, diagnosis.summary()["n_queries"] == len(run.queries)
    (0.6, True)
    """

    def __init__(
        self,
        run: Run,
        settings: Mapping[str, Any] | None = None,
        diagnostics: Sequence[Diagnostic] | None = None,
    ) -> None:
        super().__init__(run, settings, registered.DIAGNOSTICS if diagnostics is None else diagnostics)

    def verdict(self) -> RunVerdict:
        """Return the verdict on the run, one to three sentences; see `core.verdict.verdict`."""
        return verdict(self)

    def _repr_html_(self) -> str:
        findings = [(one.severity, one.sentence) for one in self.findings()]
        return card(self.run.name, findings, self.verdict().texts)
