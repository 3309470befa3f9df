"""Runs of the loaded run's data set over time, each a way to the comparison with it."""

from __future__ import annotations

from contextlib import suppress

import pandas as pd
import streamlit as st

from core.charts.trend import trend_figure
from core.errors import LeadlineError
from core.manifest import read_manifest
from core.report.trend import NOTE, Asked, asked_of, belongs, may_belong, trend
from core.run import MANY, Run
from ui import doors, library, show
from ui.state import session

_MOST = 20  # runs, the newest


def draw() -> None:
    """Draw the runs of the loaded run's data set; nothing where it is the only one."""
    run = session().run
    others = [] if run is None else _others(run)
    if run is None or not others:
        return
    own = asked_of(run)
    found = trend(own, [own, *(one for one in others if belongs(one, own))])
    if len(found.points) < 2:
        return
    st.subheader("Runs of this data set over time", anchor=False)
    show.sentence(
        f"{NOTE} Choose a mark or a row to compare that run with the loaded one. Counted are the questions "
        "of the loaded run; an abstention or an empty answer counts as incorrect."
    )
    show.figure(trend_figure(found, _door), "trend")
    rows = [
        (one.created[:16].replace("T", " "), one.name, one.text, one.changes)
        for one in reversed(found.points)
    ]
    frame = pd.DataFrame(rows, columns=["created", "name", "correct", "changes"])
    columns = {
        "created": "Created", "name": show.wide("Run", "medium"), "correct": show.wide("Correct", "medium"),
        "changes": show.wide("Changed in the set-up"),
    }  # fmt: skip
    leads_to = [_door(one.run_id) for one in reversed(found.points)]
    alt = "Runs of this data set, the newest first; choosing a row compares it with the loaded run"
    doors.table(frame, alt, columns, "trend_table", leads_to, height="content")


def _door(run_id: str) -> str:
    """Return the door to the comparison of a run with the loaded one; "" for that itself."""
    run = session().run
    return "" if run is None or run.run_id == run_id else doors.compare_door(run_id)


def _others(run: Run) -> list[Asked]:
    """Return the newest other saved runs of the same data set."""
    found: list[Asked] = []
    for saved in library.saved_runs():
        with suppress(LeadlineError, OSError):
            manifest = read_manifest(saved.folder)
            alike = may_belong(manifest, run.manifest)
            if saved.run_id != run.run_id and alike and len(found) < _MOST:
                stamp = (saved.folder / "run.json").stat().st_mtime_ns
                found.append(_asked((str(saved.folder), stamp)))
    return found


@st.cache_resource(max_entries=200, show_spinner="Opening the runs …")
def _asked(place: tuple[str, int]) -> Asked:
    """Open a run by its folder; ``place`` also says when it was written."""
    return asked_of(Run.sample(place[0], MANY))
