"""Runs of one data set over time: the share of correct answers of each, and what changed in the set-up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    "Each interval is of one run alone, over the n questions whose outcome is known. Whether two runs "
    "differ is a paired test: compare them."
)


@dataclass(frozen=True, slots=True, eq=False)
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
    """Runs of one data set, the oldest first; ``n_asked`` questions are in the run that is the reference."""

    title: str
    n_asked: int
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
        return {"title": self.title, "n_asked": self.n_asked, "runs": runs}

    def to_text(self) -> str:
        """Return the trend in lines for a terminal."""
        runs = f"{count(len(self.points), 'run')}, {count(self.n_asked, 'question')}"
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
    """Return the trend of each data set; its newest run is the one whose questions count."""
    left, found = sorted(runs, key=_created, reverse=True), []
    while left:
        own = [one for one in left if one is left[0] or belongs(one, left[0])]
        found.append(trend(left[0], own))
        left = [one for one in left if one not in own]
    return tuple(found)


def belongs(one: Asked, other: Asked) -> bool:
    """Tell whether two runs may belong together by their manifests, and share a question."""
    alike = may_belong(one.manifest, other.manifest)
    return alike and bool(len(one.outcomes.index.intersection(other.outcomes.index)))


def may_belong(*manifests: Mapping[str, Any]) -> bool:
    """Tell whether two runs are of one kind and of one data set, by digest or name; or neither has one."""
    named = any(manifest.get("dataset") for manifest in manifests)
    return is_like(*manifests) and (same_data(*manifests) or not named)


def trend(reference: Asked, runs: Iterable[Asked]) -> Trend:
    """Return runs in time, each over the questions that it shares with the ``reference``."""
    asked, points = reference.outcomes.index, []
    before: dict[str, str] | None = None
    for one in sorted(runs, key=_created):
        known = one.outcomes.loc[one.outcomes.index.intersection(asked)].dropna()
        setup = setup_in(one.manifest)
        titles = () if before is None else tuple(dict.fromkeys((*before, *setup)))
        pairs = ((title, (before or {}).get(title, DASH), setup.get(title, DASH)) for title in titles)
        changed = tuple(found for found in pairs if found[1] != found[2])
        run_id, name, created = (str(one.manifest.get(key, "")) for key in ("run_id", "name", "created"))
        points.append(Point(run_id, name, created, int(known.sum()), len(known), changed))
        before = setup
    title = (reference.manifest.get("dataset") or {}).get("name") or reference.manifest["name"]
    return Trend(str(title), len(asked), tuple(points))


def _created(one: Asked) -> str:
    return str(one.manifest.get("created", ""))
