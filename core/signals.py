"""The signals of a run: every number per question, of the diagnostics and of the confidence signals.

Which there are is asked of the diagnostics and of the table of confidence signals; none is known here by
name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from core.analyses import Analyses
from core.arrays import Floats
from core.schema import CONFIDENCES, TABLES
from core.socket import Diagnostic
from core.text.display import number

_DECIMALS = 9  # of a value, so that equal ones are equal however they were summed
_WAYS = {"better": 1, "more confident": 1, "worse": -1, "more uncertain": -1}
_TABLE, OF_TABLE = "signals", "Confidence signals"  # the table, and the owner of its columns


@dataclass(frozen=True, eq=False, slots=True)
class Signal:
    """One number per question.

    ``owner`` is the title of what it belongs to; ``values`` are in the run's order, NaN where undefined;
    ``is_outcome`` says that it is 1 where the answer is correct and 0 where it is not. ``source`` and
    ``name`` are the diagnostic and the column by which `core.conditions.where` finds it; ``bounds`` and
    ``needs_labels`` are as in `core.socket.QuestionColumn`.
    """

    source: str
    name: str
    title: str
    owner: str
    pattern: str
    higher_is: str
    values: Floats = field(repr=False)
    is_outcome: bool = False
    bounds: tuple[float, float] | None = None
    needs_labels: bool = False

    @property
    def key(self) -> str:
        """What tells it from other signals."""
        return f"{self.source}.{self.name}"

    @property
    def known(self) -> Floats:
        """The defined values."""
        return self.values[~np.isnan(self.values)]

    @property
    def rounded(self) -> Floats:
        """The values, such that those which differ by rounding errors only are equal."""
        return np.round(self.values, _DECIMALS)

    @property
    def n(self) -> int:
        """Questions with a value."""
        return self.known.size

    @property
    def way(self) -> int:
        """1 where higher is better or more confident, -1 where it is the contrary, 0 where unknown."""
        return _WAYS.get(self.higher_is, 0)

    def text(self, value: float) -> str:
        """Return a value of it, or a mean of values, for people."""
        return number(value, self.pattern if "." in self.pattern else "{:.2f}")


def signals_of(
    diagnosis: Analyses, among: Iterable[Diagnostic] | None = None, *, secondary: bool = False
) -> tuple[Signal, ...]:
    """Return every number per question of a run, in the order of its diagnostics.

    Parameters
    ----------
    diagnosis : Analyses
        The run.
    among : iterable of Diagnostic, optional
        By default all of its diagnostics. Of those with something to say, the numeric columns, and of yes and
        no only whether the answer is correct; then the columns of the run's confidence signals that none of
        them shows as its own.
    secondary : bool
        Whether columns that say what another one says are among them.

    Returns
    -------
    tuple of Signal
        Also those without any value.
    """
    every = _of_diagnostics(diagnosis, diagnosis.diagnostics if among is None else among, secondary)
    named = {one.name for one in every}
    return (*every, *(one for one in _of_table(diagnosis) if one.name not in named))


def label_free(signals: Iterable[Signal]) -> tuple[Signal, ...]:
    """Return the signals that say something of a new answer.

    They need no label, have a direction and at least one value.
    """
    return tuple(one for one in signals if not (one.needs_labels or one.is_outcome) and one.way and one.n)


def nonconformity(signal: Signal) -> Floats:
    """Return a signal as a score, higher = less typical: in [0, 1] where the signal has a range.

    Returns
    -------
    ndarray, shape (n_questions,)
        Rounded like the signal, so that ties are ties; NaN where it is.
    """
    values = signal.rounded
    if signal.bounds is None:
        return -signal.way * values
    low, high = signal.bounds
    share = (values - low) / (high - low)
    return np.asarray(1 - share if signal.way > 0 else share, dtype=np.float64).round(_DECIMALS)


def confidence(signal: Signal) -> Floats:
    """Return a signal as a confidence in [0, 1]: `confident` of its score."""
    return confident(nonconformity(signal), signal)


def confident(scores: Floats, signal: Signal | None) -> Floats:
    """Return scores of a signal as confidences in [0, 1], by a fixed rule that no data can move.

    A range becomes [0, 1]; an uncertainty without one, from 0 up, becomes exp(−value).
    """
    bounded = signal is None or signal.bounds is not None
    found = 1 - scores if bounded else np.exp(-np.maximum(scores, 0))
    return np.asarray(np.clip(found, 0, 1), dtype=np.float64)


def _of_diagnostics(diagnosis: Analyses, among: Iterable[Diagnostic], secondary: bool) -> list[Signal]:
    found: list[Signal] = []
    for diagnostic in among:
        if diagnostic.lacks(diagnosis.run) is not None:
            continue
        queries = diagnosis[diagnostic.name].queries
        for one in diagnostic.columns:
            is_outcome = one.pattern == "bool" and one.higher_is == "better"
            values = queries[one.name]
            if (
                (one.is_secondary and not secondary)
                or one.is_list
                or not pd.api.types.is_numeric_dtype(values)
            ):
                continue
            if one.pattern == "bool" and (not is_outcome or any(other.is_outcome for other in found)):
                continue
            # A bare symbol says too little beside the signals of other diagnostics.
            title = one.title if len(one.title) > 1 else f"{one.title} ({diagnostic.title})"
            found.append(
                Signal(
                    diagnostic.name, one.name, title, diagnostic.title, one.pattern, one.higher_is,
                    _floats(values), is_outcome, one.bounds, one.needs_labels,
                )
            )  # fmt: skip
    return found


def _of_table(diagnosis: Analyses) -> list[Signal]:
    """Return the columns of the run's confidence signals and the confidences of its file, by question."""
    run, ids = diagnosis.run, diagnosis.run.queries["query_id"]
    if not diagnosis.diagnostics:
        return []
    given = run[CONFIDENCES.name].pivot(index="query_id", columns="name", values="value")
    table = run[_TABLE].set_index("query_id")
    columns = [
        (one.name, one.meaning.rstrip("."), one, table) for one in TABLES[_TABLE].columns[1:] if len(table)
    ]
    value = CONFIDENCES.column("value")
    # In the order of the file, which the pivot loses.
    names = dict.fromkeys(run[CONFIDENCES.name]["name"])
    columns += [(name, name.replace("_", " ").capitalize(), value, given) for name in names]
    return [
        Signal(
            diagnosis.diagnostics[0].name, name, title, OF_TABLE, "{:.2f}",
            one.direction.removeprefix("higher = "), _floats(frame[name].reindex(ids)),
            bounds=_bounds(one.range),
        )
        for name, title, one, frame in columns
    ]  # fmt: skip


def _bounds(limits: tuple[float | None, float | None] | None) -> tuple[float, float] | None:
    low, high = limits or (None, None)
    return None if low is None or high is None else (low, high)


def _floats(values: pd.Series) -> Floats:
    found = values.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(found), found, np.nan)
