"""A comparison and a report as Python values: they print as text, and a notebook shows them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from core.diagnosis import Diagnosis
from core.errors import InputError
from core.files import write_atomically
from core.html import card
from core.report.compare import Side, check_comparable, setup_differences, sides_of
from core.report.page import report_html
from core.report.paired import RunPair, answer, comparison_facts, comparison_text, pairs_of, regressions
from core.run import Run

_HEIGHT = 700  # pixels of a notebook that a report fills; it scrolls


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs of the same questions: A, the earlier one, and B; ``print`` gives it as text.

    Attributes
    ----------
    pair : RunPair
        The shared questions, and every number that is known in both runs.
    """

    pair: RunPair

    @property
    def sides(self) -> tuple[Side, Side]:
        """The earlier run and the later one, each with its letter and its diagnosis."""
        return self.pair.sides

    @property
    def answer(self) -> tuple[str, ...]:
        """Up to three sentences: whether B is better, at what cost, and what else differs."""
        return answer(self.pair) or ("The runs have no number in common to compare.",)

    @property
    def setups(self) -> pd.DataFrame:
        """Settings in which the runs differ, one row each."""
        return setup_differences(self.sides)

    @property
    def worse(self) -> pd.DataFrame:
        """Questions on which B is worse, the worst first; none where nothing says which answer is better."""
        one = self.pair.outcome
        return self.pair.shared.head(0) if one is None else regressions(self.pair, one)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON values, as the command ``compare --json`` prints it."""
        return comparison_facts(self.sides)

    def __str__(self) -> str:
        return comparison_text(self.sides)

    def _repr_html_(self) -> str:
        a, b = self.sides
        numbers = [
            (one.column.title, f"{one.shown(one.mean, True)} ({one.range_text}), {one.p_text}, n = {one.n:,}")
            for one in self.pair.differences
        ]
        return card(f"{b.title} compared with {a.title}", numbers, self.answer)


def compare(run: Run, earlier: Run) -> Comparison:
    """Compare a run with an earlier one of the same questions.

    Differences are the run minus the earlier one, with intervals and with p-values that are adjusted for all
    numbers compared, as on the page *Compare*.

    Raises
    ------
    InputError
        The runs have no question in common (same id and same text).
    """
    check_comparable([earlier, run])
    (pair,) = pairs_of(sides_of([Diagnosis(earlier), Diagnosis(run)]))
    return Comparison(pair)


@dataclass(frozen=True, slots=True)
class Report:
    """A report as one HTML file that needs no network; a notebook shows it in a frame.

    Attributes
    ----------
    html : str
        The whole document.
    path : Path or None
        The file that was written, if one was.
    """

    html: str = field(repr=False)
    path: Path | None = None

    def _repr_html_(self) -> str:
        # Sandboxed, so that nothing in the document acts in the notebook.
        return f'<iframe sandbox srcdoc="{escape(self.html)}" width="100%" height="{_HEIGHT}"></iframe>'


def report(run: Run, path: str | os.PathLike[str] | None = None) -> Report:
    """Return the report of a run; see `core.run.Run.report`."""
    content = report_html(Diagnosis(run))
    target = None if path is None else Path(path)
    if target is not None:
        try:
            write_atomically(target, content)
        except OSError as error:
            raise InputError(f"{target} cannot be written: {error.strerror or error}.") from error
    return Report(content.decode(), target)
