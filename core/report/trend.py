"""Runs of one data set over time: the share of correct answers of each, and what changed in the set-up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from core.errors import InputError
from core.report.compare import is_like, normal, same_data, setup_in
from core.report.regression import outcomes
from core.run import Run, holds_run
from core.stats import wilson_interval
from core.text.display import DASH, count, one_line, percent

NOTE = (
    "Each interval is of one run alone, over the questions that all runs share. Whether two runs differ is a "
    "paired test: compare them."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a trend needs of a run: its manifest, and the outcome of each question by id and text."""

    manifest: Mapping[str, Any]
    outcomes: pd.Series


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a trend: ``n_correct`` of ``n`` questions with a known outcome.

    ``changed`` has the settings in which it differs from the run before it: title, value there, value here.
    """

    run_id: str
    name: str
    created: str
    n_correct: int
    n: int
    changed: tuple[tuple[str, str, str], ...]

    @property
    def share(self) -> float | None:
        """Share of correct answers; None where no outcome is known."""
        return self.n_correct / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the share (Wilson 1927)."""
        return wilson_interval(self.n_correct / self.n, self.n) if self.n else None

    @property
    def text(self) -> str:
        """Share, interval and n for people."""
        if self.share is None or self.interval is None:
            return f"{DASH} (no shared question with a known outcome)"
        return f"{percent(self.share)} (95 % interval {percent(self.share, self.interval)}, n = {self.n:,})"

    @property
    def changes(self) -> str:
        """What changed in the set-up, for people."""
        return "; ".join(f"{title}: {before} → {now}" for title, before, now in self.changed)


@dataclass(frozen=True, slots=True)
class Trend:
    """Runs of one data set, the oldest first; ``n_shared`` questions are in all of them."""

    title: str
    n_shared: int
    points: tuple[Point, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the trend as plain JSON."""
        runs = [
            {
                "run_id": one.run_id, "name": one.name, "created": one.created, "n_correct": one.n_correct,
                "n": one.n, "share": one.share, "interval": one.interval,
                "changed": {title: {"before": before, "now": now} for title, before, now in one.changed},
            }
            for one in self.points
        ]  # fmt: skip
        return {"title": self.title, "n_shared": self.n_shared, "runs": runs}

    def to_text(self) -> str:
        """Return the trend in lines for a terminal."""
        runs = f"{count(len(self.points), 'run')}, {count(self.n_shared, 'shared question')}"
        lines = [f"{self.title}: {runs}"]
        for one in self.points:
            lines.append(f"  {one.created[:16].replace('T', ' ')}  {one.name}: correct {one.text}")
            lines += [f"    changed: {one.changes}"] if one.changes else []
        return "\n".join(map(one_line, [*lines, NOTE]))


def asked_of(run: Run) -> Asked:
    """Return what a trend needs of a run."""
    keys = zip(run.queries["query_id"], normal(run.queries["question"]), strict=True)
    return Asked(run.manifest, pd.Series(outcomes(run).to_numpy(), index=pd.MultiIndex.from_tuples(keys)))


def saved_in(folder: str) -> list[Asked]:
    """Return the runs in the folders of a folder; InputError where there is none."""
    found = sorted(one for one in Path(folder).iterdir() if holds_run(one))
    if not found:
        raise InputError(f"{folder} holds no saved run: give the folder in which the folders of runs are.")
    return [asked_of(Run.load(one)) for one in found]


def trends(runs: Iterable[Asked]) -> tuple[Trend, ...]:
    """Return a trend for each data set, in the order of their oldest runs.

    Runs belong together where their data set has the same digest or name and they share a question with the
    oldest; simulations only with simulations.
    """
    groups: list[list[Asked]] = []
    for one in sorted(runs, key=lambda one: str(one.manifest.get("created", ""))):
        own = next((group for group in groups if _belongs(one, group[0])), None)
        groups.append([one]) if own is None else own.append(one)
    return tuple(map(_trend, groups))


def _belongs(one: Asked, other: Asked) -> bool:
    alike = is_like(one.manifest, other.manifest) and same_data(one.manifest, other.manifest)
    return alike and bool(len(one.outcomes.index.intersection(other.outcomes.index)))


def _trend(group: Sequence[Asked]) -> Trend:
    shared = group[0].outcomes.index
    for one in group[1:]:
        shared = shared.intersection(one.outcomes.index)
    points, before = [], None
    for one in group:
        known = one.outcomes.loc[shared].dropna()
        setup = setup_in(one.manifest)
        titles = () if before is None else tuple(dict.fromkeys((*before, *setup)))
        changed = tuple(
            (title, (before or {}).get(title, DASH), setup.get(title, DASH))
            for title in titles
            if (before or {}).get(title) != setup.get(title)
        )
        facts = (str(one.manifest.get(name, "")) for name in ("run_id", "name", "created"))
        points.append(Point(*facts, int(known.sum()), len(known), changed))
        before = setup
    title = (group[0].manifest.get("dataset") or {}).get("name") or points[0].name
    return Trend(str(title), len(shared), tuple(points))
