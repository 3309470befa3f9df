"""Validation over time: a file that counts answers, the last days in numbers, and their trend."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st

from core.charts.validation import pass_rate_by_day
from core.errors import InputError
from core.text.display import count, number, percent, shorten
from core.validation.analysis import ValidationAnalysis
from core.validation.metrics import WINDOWS, Metrics, Share, daily, windowed
from core.validation.store import MetricsStore
from ui import files, headlines, people, show
from ui.plain import plain
from ui.sections.validation import run as page
from ui.state import session

USUAL = "metrics"


def draw() -> None:
    """Draw the store's name, what is added to it, and the last days."""
    st.markdown(
        "A store that counts validated answers, without their texts. A serving program can add to it, too."
    )
    try:
        path = files.choose(files.METRICS, "Metrics", "validation_file", USUAL)
        if path is None:
            return
        if headlines.lacks("validation") is None:
            _add(path, page.found())
        if files.is_there(path):
            _browse(path)
        else:
            st.info("There are no such metrics yet: adding makes them.", icon=":material/inbox:")
    except InputError as error:
        st.error(plain(error), icon=":material/error:")


def _add(path: Path, analysis: ValidationAnalysis) -> None:
    """Draw the button that counts the answers of the run, and say how many are new."""
    run = session().the_run
    n_seen = int(analysis.queries["passed"].notna().sum())
    if not n_seen:
        st.caption("This run has no validated answer: nothing can be added.")
        return
    label = f"Add this run's answers ({n_seen:,})"
    people.explain("review")
    off = not people.may("review")
    if not st.button(label, icon=":material/playlist_add:", key="validation_add", disabled=off):
        return
    people.require("review")
    # On the day on which the run was made, whenever the button is pressed.
    made = _time(run.manifest["created"])
    seen = analysis.observations(made)
    with MetricsStore(path) as store:
        n = store.add(seen)
    there = len(seen) - n
    known = f" {count(there, 'answer was', 'answers were')} counted already." if there else ""
    st.success(f"{count(n, 'answer')} added, as of {seen[0].at:%Y-%m-%d}.{known}", icon=":material/check:")


def _time(created: str) -> datetime:
    """Return when a run was made; InputError where its manifest, which anybody can write, names no time."""
    try:
        made = datetime.fromisoformat(created)
        made.astimezone(UTC)
    except (ValueError, OverflowError):
        made = None
    if made is None or made.tzinfo is None:
        raise InputError(
            f"The run was made on {shorten(repr(created))}, which is no time with its zone: its answers "
            "belong to no day."
        )
    return made


def _browse(path: Path) -> None:
    """Draw the numbers of the windows and the pass rate of every day."""
    now, longest = datetime.now(UTC), max(WINDOWS)
    with MetricsStore(path) as store:
        seen = store.between(now - timedelta(days=longest), now)
    if not seen:
        st.info(f"No answer was counted in the last {longest} days.", icon=":material/inbox:")
        return
    frame = pd.DataFrame([_row(days, one) for days, one in windowed(seen, now).items()])
    share = partial(st.column_config.TextColumn, help="With its 95 % interval")
    columns = {
        "window": "Last",
        "n": show.numeric("Answers", "localized"),
        "passed": share("Pass"),
        "fallback": share("Fallbacks"),
        "uncertain": share("Uncertainty expressed"),
        "confidence": share("Mean context score"),
    }
    show.table(frame, "Validation in the last days", columns, height="content")
    show.figure(pass_rate_by_day(daily(seen, now, longest)), "pass_rate_by_day")
    show.csv("Download windows (CSV)", frame, "validation-windows", "validation_windows_csv")


def _row(days: int, one: Metrics) -> dict[str, object]:
    mean = one.confidence
    interval = "" if mean.low != mean.low else f" ({number(mean.low)} to {number(mean.high)})"
    return {
        "window": count(days, "day"),
        "n": one.passed.n,
        "passed": _share(one.passed),
        "fallback": _share(one.fallback),
        "uncertain": _share(one.uncertain),
        "confidence": f"{number(mean.mean)}{interval}" if mean.n else "",
    }


def _share(share: Share) -> str:
    return f"{percent(share.rate)} ({percent(0, share.interval)})" if share.n else ""
