"""Open a run from a link, a folder, a file or the simulation; and the sidebar's panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.navigation.page import Page

from core.errors import InputError, LeadlineError
from core.run import Run
from core.sources.simulation import SimulationOptions, read_options, simulate, write_options
from core.text.display import count
from ui import cached, library, people, reviews, router
from ui.plain import plain, shortened
from ui.state import FILTER, choices, in_address, session

BADGES = {
    "recorded": ("Recorded run", ":material/album:", "green"),
    "saved": ("Saved run", ":material/folder:", "green"),
    "upload": ("Upload", ":material/upload_file:", "blue"),
    "simulation": ("Simulated", ":material/science:", "orange"),
    "live": ("Live run", ":material/play_circle:", "violet"),
    "composed": ("Composed for demonstration, no model run", ":material/draw:", "orange"),
}


_LINK = ("sim", "run", "all")  # parameters that name what is shown; ``all``: the whole of a very large run
LOADED = "Questions of the loaded run"  # the way on the Live page that goes on with a run


def follow_link() -> None:
    """Open what the address bar names, if it changed; then make the address say what is shown."""
    state, params = session(), st.query_params
    asked = {name: params[name] for name in _LINK if name in params}
    if "run" not in asked:
        asked.pop("all", None)
    place = {name: params[name] for name in in_address() if name in params}
    if asked and asked != state.link:
        state.link = asked
        try:
            _open(asked)
        except LeadlineError as error:
            state.run, state.problem = None, str(error)
    elif not state.started and (saved := library.recorded()):
        try:
            _show_saved(saved)
        except LeadlineError as error:
            state.problem = str(error)
    state.started = True
    state.follow(place, whole=bool(asked))  # a link of ours names the run; the menu's have nothing
    write_address()


def write_address() -> None:
    """Write the link at once: at the next rerun a stale address would read as a link to follow.

    Each writing is a step of the browser's Back button, so nothing is written that is there already; and an
    address without a run opens the recorded one, so where that is shown nothing has to be said.
    """
    state, params = session(), st.query_params
    state.place = state.where()
    wanted = {**state.link, **state.place}
    said = {name: params[name] for name in (*_LINK, *in_address()) if name in params}
    if not said and not state.place and state.origin == "recorded" and "all" not in state.link:
        return
    for name in said.keys() - wanted.keys():
        del params[name]
    if new := {name: value for name, value in wanted.items() if said.get(name) != value}:
        params.update(new)


def address(**extra: str) -> dict[str, str]:
    """Return the query parameters of a link to what is shown now, plus ``extra``.

    A part of the filter in ``extra`` takes the place of all of it but the order.
    """
    state = session()
    place = state.where()
    if any(name in extra for name in FILTER):
        kept = ("question", "sort", *choices())
        place = {name: value for name, value in place.items() if name in kept}
    return {**state.link, **place, **extra}


def menu(pages: Mapping[str, Sequence[tuple[Page, str]]]) -> None:
    """Draw the way to every page, by section.

    Streamlit's own menu leads to addresses without parameters. They would have to be written anew on every
    page, and the browser's Back button would meet the bare one and never get past it.
    """
    for section, members in pages.items():
        st.caption(section)
        for page, icon in members:
            st.page_link(page, icon=icon, query_params=address())


def link(page: str, label: str, icon: str = "arrow_forward", about: str | None = None, **extra: str) -> None:
    """Draw a link to a page that shows what is shown now; ``extra`` are further query parameters."""
    st.page_link(page, label=label, icon=f":material/{icon}:", help=about, query_params=address(**extra))


def continue_live(label: str, about: str | None = None) -> None:
    """Draw a link to the Live page with the questions of the loaded run."""
    link(router.LIVE, label, "play_circle", about, questions=LOADED)


def _open(asked: dict[str, str]) -> None:
    if "sim" in asked:
        _show_simulation(read_options(asked["sim"]))
    else:
        _show_saved(_saved(asked["run"]), whole="all" in asked)


def open_saved(run_id: str, *, whole: bool = False) -> None:
    """Show a saved run; InputError when it is not here."""
    _show_saved(_saved(run_id), whole=whole)
    write_address()


def open_whole() -> None:
    """Show the whole run that the shown sample was drawn from; every page says why where that fails."""
    state = session()
    try:
        open_saved(state.the_run.whole_id, whole=True)
    except LeadlineError as error:
        state.problem = str(error)


def _saved(run_id: str) -> library.SavedRun:
    saved = library.find(run_id)
    if saved is None:
        raise InputError(
            f"The run {shortened(run_id, 40)} is not saved here: it was deleted, belongs to another "
            "machine or another person who has not shared it, or was an upload that "
            "was never saved; open another run on the Data page, or upload the file again."
        )
    return saved


def _show_saved(saved: library.SavedRun, *, whole: bool = False) -> None:
    origin = "recorded" if saved == library.recorded() else "saved"
    key, run = cached.open_saved(saved, whole=whole)
    link = {"run": saved.run_id, **({"all": "1"} if whole else {})}
    session().show(run, origin, saved=True, link=link, key=key)


def open_simulation(options: SimulationOptions) -> None:
    """Simulate and show; the link carries the options, so it works anywhere."""
    _show_simulation(options)
    write_address()


def _show_simulation(options: SimulationOptions) -> None:
    run = library.owned(_simulated(options))
    session().show(run, "simulation", saved=True, link={"sim": write_options(options)})


def show_run(run: Run, origin: str, *, saved: bool = False) -> None:
    """Show a run that is in memory only, or was just saved."""
    session().show(run, origin, saved=saved, link={"run": run.run_id})
    write_address()


def save_current() -> None:
    """Save the shown run among the user's runs; its link then works for others too.

    Where that fails, every page says why: nothing catches what a button's callback raises.
    """
    state = session()
    if state.run is None:
        return
    try:
        people.require("review")
        library.save(state.run)
        state.saved, state.problem, state.link = True, None, {"run": state.run.run_id}
        reviews.save()
    except LeadlineError as error:
        state.problem = str(error)
    write_address()


def save_button(key: str) -> None:
    """Draw the button that saves the shown run, where it is not saved."""
    if not session().saved:
        about = "The run is kept in this tab only; a saved run can be shared by its link."
        label, icon = "Save to my runs", ":material/save:"
        reason = people.why_not("review")
        off = reason is not None
        st.button(label, icon=icon, key=key, on_click=save_current, help=reason or about, disabled=off)


@st.cache_data(max_entries=4, show_spinner="Simulating …")
def _simulated(options: SimulationOptions) -> Run:
    return simulate(options)


def panel() -> None:
    """Draw the sidebar's summary of what is loaded, and the ways to load something else."""
    state = session()
    with st.container(border=True, gap="xsmall"):
        if state.run is None:
            st.markdown("**No data loaded**")
        else:
            source = state.run.manifest["source"]
            label, icon, colour = BADGES[state.origin]
            st.markdown(f"**{plain(shortened(state.run.name, 60))}**")
            with st.container(horizontal=True, gap="xsmall"):
                st.badge(label, icon=icon, color=colour)  # type: ignore[arg-type]
                if not state.run.manifest["complete"]:
                    st.badge("Partial", icon=":material/hourglass_top:", color="yellow")
                if not state.saved:
                    st.badge(
                        "Not saved",
                        icon=":material/cloud_off:",
                        color="gray",
                        help="Kept in this tab only; save it on the Data page to share a link.",
                    )
            if state.run.mark and source != state.origin:
                label, icon, colour = BADGES[source]
                st.markdown(f":{colour}[{icon} {label}]")  # a badge would cut it off
            st.caption(
                f"{count(state.run.n_rows('queries'), 'question')} · "
                f"{count(state.run.n_rows('passages'), 'passage')}"
            )
        with st.popover("Change data", icon=":material/swap_horiz:", width="stretch"):
            for door, icon in DOORS.items():
                link(router.DATA, door, icon, door=door)
            link(router.LIVE, "Live run", "play_circle")


DOORS = {"Upload": "upload_file", "Simulation": "science", "Saved runs": "folder_open", "Export": "download"}
