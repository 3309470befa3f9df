"""What every diagnostic says of the run: its findings and its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from core import diagnostics
from core.charts.overview import against_chance
from core.charts.theme import where_door
from core.socket import BAD, GOOD, REASON, UNCLEAR, UNTRIED, Definition, Diagnostic, Finding, Number
from core.text.display import DASH, count, number
from core.verdict import text_of
from core.worklist import key_of, title_of
from ui import cached, doors, router, show, sources
from ui.plain import plain
from ui.state import session

_BADGES = {
    "high": ("High", ":material/priority_high:", "red"),
    "medium": ("Medium", ":material/warning:", "orange"),
    "low": ("Low", ":material/info:", "gray"),
    GOOD: ("In order", ":material/check_circle:", "green"),
    UNCLEAR: ("Unclear", ":material/help:", "gray"),
}
_CARDS = 4  # on the Overview
_OPEN = 2  # findings of a page that are read without opening anything


def diagnostic_of(name: str) -> Diagnostic:
    """Return a diagnostic by name."""
    return next(diagnostic for diagnostic in diagnostics.DIAGNOSTICS if diagnostic.name == name)


def meaning(diagnostic: str, name: str) -> str:
    """Return what a name means to a diagnostic, whatever its kind; "" where it does not say."""
    definitions = diagnostic_of(diagnostic).definitions
    return next((found.meaning for found in definitions if found.name == name), "")


def reason(name: str, diagnostic: str = "") -> Definition:
    """Return why a number is undefined, in the words of its diagnostic; one may pass on another's reason."""
    for one in sorted(diagnostics.DIAGNOSTICS, key=lambda one: one.name != diagnostic):
        for found in one.definitions:
            if (found.name, found.kind) == (name, REASON):
                return found
    return Definition(name, name.replace("_", " ").capitalize(), name, REASON)


def why(diagnostic: str, name: object, title: str = "") -> bool:
    """Say why a question has no value, where ``name`` is that of a reason; tell whether it is."""
    if not isinstance(name, str):
        return False
    start = f"**{title}** " if title else ""
    st.info(f"{start}{plain(reason(name, diagnostic).meaning)}", icon=":material/do_not_disturb_on:")
    return True


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
    recovered(name)


def recovered(name: str) -> None:
    """Draw what a simulation planted for a diagnostic and what that recovered; nothing of other runs."""
    frame = cached.once(f"recovered {name}", lambda found: found.recovered(name))
    if frame.empty:
        return
    st.subheader("Ground truth vs recovered", anchor=False)
    st.markdown("The simulation planted these values, so that the metrics can be checked against them.")
    shown = frame.assign(
        planted=[_plain_number(value) for value in frame["planted"]],
        recovered=[_plain_number(value) for value in frame["recovered"]],
        interval=[
            DASH if pd.isna(low) else f"{number(low)} to {number(high)}"
            for low, high in zip(frame["low"], frame["high"], strict=True)
        ],
    )
    columns = {
        "check": "Check",
        "planted": "Planted",
        "recovered": "Recovered",
        "interval": "95 % interval",
        "n": "n",
        "meaning": show.wide("Meaning"),
    }
    leads_to = [where_door(f"{name}.{cases}") if cases else "" for cases in frame["cases"]]
    alt = "What was planted and what was recovered; choosing a row lists its questions"
    doors.table(shown, alt, columns, f"recovered_{name}", leads_to, height="content")


def _plain_number(value: float) -> str:
    whole = isinstance(value, (int, np.integer)) or pd.isna(value)
    return number(value) if not whole else DASH if pd.isna(value) else f"{value:,}"


def _scalars(name: str) -> list[Number]:
    """Return the numbers that are shown, but for counts by name."""
    shown = [one for one in cached.numbers(name) if one.place in ("card", "row")]
    return [one for one in shown if not isinstance(one.value, Mapping)]


def wrong_with(name: str) -> set[str]:
    """Return the names of what is wrong with the run by a diagnostic, where a test says so beyond chance."""
    return {one.name for one in cached.findings() if (one.diagnostic, one.tone) == (name, BAD)}


def lacks(name: str) -> str | None:
    """Return why a diagnostic has nothing to say of the session's run, or None."""
    run = session().the_run
    return diagnostic_of(name).lacks(run)


def verdict() -> None:
    """Draw the verdict: each sentence with links to its proof, and what to do."""
    said = cached.verdict()
    with st.container(border=True):
        for sentence in said.sentences:
            with st.container(gap="xsmall"):
                st.markdown(f"#### {plain(text_of(sentence), one_line=True)}")
                with st.container(horizontal=True, gap="small"):
                    for clause in sentence:
                        _proof(clause.diagnostic, clause.finding)
        with st.container(gap="xsmall"):
            if said.advice:
                st.markdown(f"**What to do:** {plain(said.advice)}")
            _untried()


def _untried() -> None:
    """Draw the way to each step that would try fixes, where none of them was tried."""
    for one in diagnostics.DIAGNOSTICS:
        page, outcomes = router.page_of(one.name), _outcomes(one)
        if one.step is not None and page is not None and outcomes == {UNTRIED}:
            sources.link(page, one.step.title, "play_circle")


def _outcomes(diagnostic: Diagnostic) -> set[str]:
    """Return what became of the fixes that a diagnostic tries; empty where it has nothing to say."""
    return {one.outcome for one in cached.diagnosis().tried(diagnostic.name).values()}


def _proof(diagnostic: str, finding: str = "", paged: bool = True) -> None:
    """Draw the link to the questions of a finding; where it names all or none, to its page."""
    found = [one for one in cached.findings() if (one.diagnostic, one.name) == (diagnostic, finding)]
    page = router.page_of(diagnostic) if diagnostic else None
    # One that counts every case would list them all.
    telling = (
        bool(found) and bool(found[0].query_ids) and (found[0].n < found[0].of or (page is None and paged))
    )
    if telling:
        ids = found[0].query_ids
        sources.link(router.WORKBENCH, reading(found[0]), finding=key_of(found[0]), question=ids[0])
    elif page is not None and paged:
        sources.link(page, f"Open {diagnostic_of(diagnostic).title}")


def reading(one: Finding) -> str:
    """Say what a reader will find behind the link to the questions of a finding."""
    n, title = len(one.query_ids), title_of(cached.diagnosis(), one)
    which = one.reads or f"({title[:1].lower()}{title[1:]})"
    return f"Read the {'question' if n == 1 else count(n, 'question')} {which}"


def findings(name: str) -> None:
    """Draw what a diagnostic found, what is wrong first and most severe first."""
    found = [one for one in cached.findings() if one.diagnostic == name]
    grave = [one for one in found if one.tone != BAD or one.severity != "low"][:_OPEN]
    _boxes(grave)
    if len(found) > len(grave):
        with st.expander(f"{'Other' if grave else 'Minor'} findings ({len(found) - len(grave)})"):
            _boxes([one for one in found if one not in grave])


def all_findings() -> None:
    """List what every diagnostic found, one line each, and what was not diagnosed."""
    found = cached.findings()
    with st.expander(f"All findings ({len(found):,})"):
        for one in found:
            with st.container(gap="xsmall"):
                with st.container(horizontal=True, gap="small", vertical_alignment="center"):
                    badge(one)
                    st.markdown(plain(one.sentence), width="content")
                    _proof(one.diagnostic, one.name)
                if one.basis:
                    st.caption(plain(one.basis))
        for diagnostic in diagnostics.DIAGNOSTICS:
            missing = lacks(diagnostic.name)
            if missing is not None:
                st.caption(f"{plain(diagnostic.title)}: {plain(missing)}")
                _proof(diagnostic.name)


def _boxes(found: Sequence[Finding]) -> None:
    if found:
        with st.grid(min(2, len(found)), min_column_width=320):
            for one in found:
                with st.container(border=True, gap="xsmall", height="stretch"):
                    _finding(one)


def badge(one: Finding, title: str = "") -> None:
    """Draw how grave a finding is; with a title, the finding as a chip that says the rest when pointed at."""
    label, icon, colour = _BADGES[one.severity if one.tone == BAD else one.tone]
    said = {"help": plain(one.sentence)} if title else {}
    st.badge(plain(title, one_line=True) or label, icon=icon, color=colour, **said)  # type: ignore[arg-type]


def _finding(one: Finding) -> None:
    badge(one)
    st.markdown(f"**{plain(one.sentence)}**")
    if one.basis:
        st.caption(plain(one.basis))
    if one.advice:
        st.markdown(plain(one.advice))
    _proof(one.diagnostic, one.name, paged=False)


def numbers(name: str) -> None:
    """Draw the headline numbers that have a value as cards, each with its n and its definition."""
    show.cards([_card(one, name) for one in _scalars(name) if one.place == "card" and one.text != DASH])


def undefined(diagnostic: str) -> None:
    """List why questions have no value, with the count of each reason."""
    for one in cached.numbers(diagnostic):
        if one.define != REASON or not one.value:
            continue
        with st.expander(f"{one.title}: {count(sum(one.value.values()), one.noun)}"):
            lines = []
            for name, n in one.value.items():
                definition = reason(name, diagnostic)
                lines.append(f"- **{n:,} × {definition.title.lower()}**: {plain(definition.meaning)}")
            st.markdown("\n".join(lines))


def overview() -> None:
    """Draw a card of the four diagnostics with the gravest findings, and the counts against chance."""
    cards = {}
    for diagnostic in diagnostics.DIAGNOSTICS:
        if lacks(diagnostic.name) is None:
            own = [one for one in _scalars(diagnostic.name) if one.place == "card" and one.text != DASH]
            if own:
                cards[diagnostic.name] = _card(own[0], diagnostic.name)
    show.cards([cards[name] for name in gravest(list(cards), cached.findings())[:_CARDS]])
    drawn = cached.drawn("against chance", against_chance)
    if drawn.data:
        # Where fixes were tried, what they did is the one figure that is read first.
        fold = any(_outcomes(one) - {UNTRIED} for one in diagnostics.DIAGNOSTICS)
        if fold:
            with show.more("Against chance", "overview_chance") as part:
                if part.open:
                    show.figure(drawn, "against_chance")
        else:
            st.subheader("Against chance", anchor=False)
            show.figure(drawn, "against_chance")
    recovered("answers")


def gravest(names: Sequence[str], found: Sequence[Finding]) -> list[str]:
    """Return names of diagnostics by their gravest finding, as ``found`` has them; those without one last."""
    order = [one.diagnostic for one in found]
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))


def _card(one: Number, diagnostic: str) -> tuple[str, str, str, str]:
    return one.title, one.text, plain(one.basis), plain(meaning(diagnostic, one.define))
