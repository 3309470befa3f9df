"""What every diagnostic says of the run: its findings and its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from core import diagnostics
from core.diagnosis import REASON, Definition, Diagnostic, Finding, Number
from core.text.display import count
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


def meaning(diagnostic: str, name: str) -> str:
    """Return what a name means to a diagnostic, whatever its kind; "" where it does not say."""
    definitions = diagnostic_of(diagnostic).definitions
    return next((found.meaning for found in definitions if found.name == name), "")


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


def opening(name: str) -> bool:
    """Draw title, findings and numbers of a diagnostic's page; where it has no data, say why."""
    heading(name)
    if not show.needs_run():
        return False
    missing = lacks(name)
    if missing is not None:
        st.info(plain(missing), icon=":material/inbox:")
        return False
    body(name)
    return True


def body(name: str) -> None:
    """Draw findings and numbers of one diagnostic."""
    findings(name)
    numbers(name)
    rows = [(one.title, one.text, one.basis, meaning(name, one.define)) for one in _scalars(name)]
    with st.expander(f"All numbers ({len(rows)})"):
        frame = pd.DataFrame(rows, columns=["Number", "Value", "n, interval, chance baseline", "Meaning"])
        show.table(frame, f"All numbers of {diagnostic_of(name).title}", height="content")
    undefined(name)


def _scalars(name: str) -> list[Number]:
    """Return the numbers that are shown, but for counts by name."""
    shown = [one for one in cached.numbers(name) if one.place in ("card", "row")]
    return [one for one in shown if not isinstance(one.value, Mapping)]


def lacks(name: str) -> str | None:
    """Return why a diagnostic has nothing to say of the session's run, or None."""
    run = session().run
    assert run is not None, "pages ask for what is lacking only when a run is there"
    return diagnostic_of(name).lacks(run)


def findings(name: str | None = None) -> None:
    """Draw what is wrong, most severe first: of the whole run, or what one diagnostic says."""
    found = [one for one in cached.findings() if name in (None, one.diagnostic)]
    grave = [one for one in found if one.severity != "low"] or found
    _boxes(grave, titled=name is None)
    if len(grave) < len(found):
        with st.expander(f"Minor findings ({len(found) - len(grave)})"):
            _boxes([one for one in found if one not in grave], titled=name is None)
    if not found and name is None:
        st.markdown("**Nothing stands out:** no diagnostic found more than chance alone would give.")


def _boxes(found: Sequence[Finding], *, titled: bool) -> None:
    if found:
        with st.grid(min(2, len(found)), min_column_width=320):
            for one in found:
                with st.container(border=True, gap="xsmall", height="stretch"):
                    _finding(one, titled=titled)


def _finding(one: Finding, *, titled: bool) -> None:
    label, icon, colour = _BADGES[one.severity]
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        st.badge(label, icon=icon, color=colour, help="Severity")  # type: ignore[arg-type]
        if titled:
            st.caption(plain(diagnostic_of(one.diagnostic).title))
    st.markdown(f"**{plain(one.sentence)}**")
    if one.basis:
        st.caption(plain(one.basis))
    if one.advice:
        st.markdown(plain(one.advice))
    for query_id in one.query_ids[:_LINKS]:
        questions.link(query_id, questions.title(query_id, 50))
    if len(one.query_ids) > _LINKS:
        st.caption(f"and {count(len(one.query_ids) - _LINKS, 'more question')}")


def numbers(name: str) -> None:
    """Draw the headline numbers of a diagnostic as cards, each with its n and its definition."""
    cards = [one for one in _scalars(name) if one.place == "card"]
    show.cards([(one.title, one.text, plain(one.basis), plain(meaning(name, one.define))) for one in cards])


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
    for diagnostic in diagnostics.DIAGNOSTICS:
        with st.container(border=True):
            page, missing = router.page_of(diagnostic.name), lacks(diagnostic.name)
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{plain(diagnostic.title)}** · {plain(diagnostic.question)}", width="content")
                if page is not None:
                    sources.link(page, "Details")
            if missing is None:
                numbers(diagnostic.name)
                undefined(diagnostic.name)
            else:
                st.markdown(plain(missing))
