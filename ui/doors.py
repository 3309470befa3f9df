"""Marks of figures and rows of tables that lead on: to a question, or to the questions they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote

import pandas as pd
import streamlit as st

from core.conditions import describe, matching
from core.errors import InputError
from core.text.display import count
from core.worklist import key_of, title_of
from ui import cached, router, sources
from ui.plain import plain, shortened
from ui.state import session


def follow(event: Any, key: str) -> None:
    """Go where the newly selected mark of a figure leads; a selection is followed once.

    A question opens in the workbench. A condition or a finding becomes the filter; how many questions match
    is then said below the figure.

    Parameters
    ----------
    event : PlotlyState
        What ``st.plotly_chart(…, on_select="rerun")`` returned.
    key : str
        The figure's key.
    """
    state, doors = session(), _doors(event)
    before = state.doors.get(key, ())
    state.doors[key] = doors
    new = next((door for door in doors if door not in before), None)
    if new is not None:
        _go(new)
    elif any(_is_filter(door) for door in doors):
        matched()


def table(
    frame: pd.DataFrame,
    alt: str,
    columns: Mapping[str, Any],
    key: str,
    leads_to: Sequence[str],
    **options: Any,
) -> None:
    """Draw a table whose rows lead where the marks of a figure do, for those who have no mouse."""
    from ui import show  # it draws doors itself

    options |= {"key": key, "on_select": "rerun", "selection_mode": "single-row"}
    rows = show.table(frame, alt, columns, **options)["selection"]["rows"]
    follow({"selection": {"points": [{"customdata": [leads_to[row]]} for row in rows]}}, key)


def open_question(query_id: str) -> None:
    """Leave for the workbench, with this question."""
    session().open(query_id)
    st.switch_page(router.WORKBENCH, query_params=sources.address())


def compare_door(run_id: str) -> str:
    """Return the door of a mark that compares a run with the loaded one."""
    return f"compare={quote(run_id, safe='')}"


def newly(key: str, chosen: Any) -> bool:
    """Tell whether a table's selection is another one than when it was last asked for, and not empty."""
    state = session()
    before, state.doors[key] = state.doors.get(key), chosen
    return chosen is not None and chosen != before


def matched() -> None:
    """Say how many questions match the filter, with links to them."""
    from ui import worklist  # it draws doors itself

    n, total = len(worklist.ids()), worklist.total()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{n:,} of {count(total, 'question')}** {'matches' if n == 1 else 'match'} "
            f"{plain('; '.join(worklist.said().values()), one_line=True)}.",
            width="content",
        )
        sources.link(router.WORKBENCH, "Read them in the workbench", question=next(iter(worklist.ids()), ""))
        sources.link(router.OVERVIEW, "Show the list", "list")


def _doors(event: Any) -> tuple[str, ...]:
    selection = event.get("selection") if isinstance(event, Mapping) else None
    points = selection.get("points") if isinstance(selection, Mapping) else None
    found = (_first(point.get("customdata")) for point in points or () if isinstance(point, Mapping))
    return tuple(door for door in found if isinstance(door, str) and door)


def _first(data: Any) -> Any:
    """Return the first entry of a mark's data, in whichever form the browser sends it."""
    if isinstance(data, Mapping):
        return data.get("0", data.get(0))
    return data[0] if isinstance(data, (list, tuple)) and data else data


def _parts(door: str) -> tuple[str, str]:
    try:
        ((name, value),) = parse_qsl(door, strict_parsing=True)
    except ValueError:
        name = value = ""
    return name, value


def _is_filter(door: str) -> bool:
    name, value = _parts(door)
    return name in ("where", "finding") and getattr(session().filter, name) == value


def _go(door: str) -> None:
    name, value = _parts(door)
    if name == "compare":
        st.switch_page(router.COMPARE, query_params={"compare": [value, session().the_run.run_id]})
    diagnosis, problem = cached.diagnosis(), ""
    if name == "question":
        if (diagnosis.run.queries["query_id"] == value).any():
            open_question(value)
        problem = f"This run has no question {shortened(value, 60)}."
    elif name == "where":
        try:
            matching(diagnosis, value)
        except InputError as error:
            problem = str(error)
    elif name == "finding":
        if all(key_of(finding) != value for finding in cached.findings()):
            problem = f"This run has no finding {shortened(value, 60)} at these settings."
    else:
        problem = f"This mark leads nowhere: {shortened(door, 60)} names no question, condition or run."
    if problem:
        st.warning(plain(problem), icon=":material/link_off:")
        return
    session().only(**{name: value})
    st.rerun()


def meaning(part: str, value: str) -> str:
    """Return a part of the filter for people."""
    diagnosis = cached.diagnosis()
    if part == "where":
        return describe(diagnosis, value)
    if part == "finding":
        titles = {key_of(one): title_of(diagnosis, one) for one in cached.findings()}
        return titles.get(value, value)
    return value
