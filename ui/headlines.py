"""What every diagnostic says of the run: its findings and its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core import diagnostics
from core.diagnosis import REASON, Definition, Diagnostic, Finding
from core.text.display import count, number
from ui import cached, questions, router, show, sources
from ui.plain import plain
from ui.state import session

_BADGES = {
    "high": ("High", ":material/priority_high:", "red"),
    "medium": ("Medium", ":material/warning:", "orange"),
    "low": ("Low", ":material/info:", "gray"),
}
_LINKS = 3  # questions linked from a finding


def diagnostic_of(name: str) -> Diagnostic:
    """Return a diagnostic by name."""
    return next(diagnostic for diagnostic in diagnostics.DIAGNOSTICS if diagnostic.name == name)


def define(diagnostic: Diagnostic, name: str) -> Definition | None:
    """Return what a name means to a diagnostic, whatever its kind; None where it does not say."""
    return next((found for found in diagnostic.definitions if found.name == name), None)


def reason(name: str) -> Definition:
    """Return why a number is undefined; one diagnostic may pass on the reason of another."""
    for diagnostic in diagnostics.DIAGNOSTICS:
        for found in diagnostic.definitions:
            if (found.name, found.kind) == (name, REASON):
                return found
    return Definition(name, name.replace("_", " ").capitalize(), name, REASON)


def heading(name: str) -> None:
    """Draw the title of a diagnostic's page, and the question that it answers."""
    diagnostic = diagnostic_of(name)
    show.heading(diagnostic.title, diagnostic.question)


def opening(name: str, places: Sequence[str] = ("card", "row")) -> bool:
    """Draw title, findings and numbers of a diagnostic's page; where it has no data, say why."""
    heading(name)
    if not show.needs_run():
        return False
    missing = lacks(name)
    if missing is not None:
        st.info(plain(missing), icon=":material/inbox:")
        return False
    body(name, places)
    return True


def body(name: str, places: Sequence[str] = ("card", "row")) -> None:
    """Draw findings and numbers of one diagnostic."""
    findings(name)
    numbers(name, places)
    undefined(name)


def lacks(name: str) -> str | None:
    """Return why a diagnostic has nothing to say of the session's run, or None."""
    run = session().run
    assert run is not None, "pages ask for what is lacking only when a run is there"
    return diagnostic_of(name).lacks(run)


def findings(name: str | None = None) -> None:
    """Draw what is wrong, most severe first: of the whole run, or what one diagnostic says."""
    found = [one for one in cached.findings() if name in (None, one.diagnostic)]
    if found:
        with st.grid(2, min_column_width=320):
            for one in found:
                with st.container(border=True, gap="xsmall", height="stretch"):
                    _finding(one)
    elif name is None:
        st.markdown("**Nothing stands out:** no diagnostic found more than chance alone would give.")


def _finding(one: Finding) -> None:
    label, icon, colour = _BADGES[one.severity]
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        st.badge(label, icon=icon, color=colour, help="Severity")  # type: ignore[arg-type]
        st.caption(plain(diagnostic_of(one.diagnostic).title))
    st.markdown(f"**{plain(one.sentence)}**")
    if one.expected_by_chance is not None:
        p = "" if one.p_value is None else f"; p = {number(one.p_value, '{:.2g}')}"
        st.caption(f"Chance baseline: {number(one.expected_by_chance, '{:.1f}')} of {one.of:,}{p}")
    if one.advice:
        st.markdown(plain(one.advice))
    for query_id in one.query_ids[:_LINKS]:
        questions.link(query_id, questions.title(query_id))
    if len(one.query_ids) > _LINKS:
        st.caption(f"and {count(len(one.query_ids) - _LINKS, 'more question')}")


def numbers(name: str, places: Sequence[str] = ("card",)) -> None:
    """Draw the headline numbers of a diagnostic as cards, each with its n and its definition."""
    diagnostic = diagnostic_of(name)
    found = []
    for one in cached.numbers(name):
        if one.place in places and not isinstance(one.value, Mapping):
            definition = define(diagnostic, one.define)
            found.append((one.title, one.text, plain(one.basis), definition.meaning if definition else ""))
    show.cards(found)


def undefined(diagnostic: str) -> None:
    """List why questions have no value, with the count of each reason."""
    for one in cached.numbers(diagnostic):
        if one.define != REASON or not one.value:
            continue
        with st.expander(f"{one.title}: {count(sum(one.value.values()), one.noun)}"):
            lines = []
            for name, n in one.value.items():
                definition = reason(name)
                lines.append(f"- **{n:,} × {definition.title.lower()}** — {plain(definition.meaning)}")
            st.markdown("\n".join(lines))


def overview() -> None:
    """Draw a box for every diagnostic: its numbers, or why it has none."""
    with st.grid(2, min_column_width=320):
        for diagnostic in diagnostics.DIAGNOSTICS:
            with st.container(border=True, gap="small", height="stretch"):
                _box(diagnostic)


def _box(diagnostic: Diagnostic) -> None:
    st.subheader(plain(diagnostic.title), anchor=False)
    st.caption(plain(diagnostic.question))
    missing = lacks(diagnostic.name)
    if missing is None:
        numbers(diagnostic.name)
        undefined(diagnostic.name)
    else:
        st.markdown(plain(missing))
    page = router.page_of(diagnostic.name)
    if page is not None:
        st.page_link(
            page,
            label="Details",
            icon=":material/arrow_forward:",
            query_params=sources.address(),
        )
