"""The Data page: import, simulate, open or export runs."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.errors import LeadlineError
from core.report.exports import exporters
from core.sources.simulation import SHOWN, SimulationOptions, read_options
from core.text.display import count
from ui import library, people, router, show, sources, uploads
from ui.plain import plain
from ui.state import session


def door() -> None:
    """Draw the choice of tasks, bound to the address, and the chosen one."""
    chosen = st.segmented_control(
        "Task",
        list(sources.DOORS),
        default="Upload",
        required=True,
        key="door",
        bind="query-params",
        label_visibility="collapsed",
        wrap=True,
    )
    doors = {"Upload": uploads.door, "Simulation": simulation, "Saved runs": saved_runs, "Export": export}
    doors.get(chosen or "Upload", uploads.door)()


def simulation() -> None:
    """Draw the simulation's controls."""
    st.markdown(
        "A seeded simulation plants a ground truth, so that you can see whether the metrics recover it. It "
        "is labelled as simulated on screen and in every export."
    )
    shown = _shown_options()
    with st.form("data_simulation"):
        values: dict[str, Any] = {}
        for group, knobs in _KNOBS.items():
            st.markdown(f"**{group}**")
            with st.grid(4, min_column_width=150):
                for name, knob in knobs.items():
                    values[name] = _control(name, knob, getattr(shown, name))
        if st.form_submit_button("Simulate", type="primary", icon=":material/science:"):
            sources.open_simulation(SimulationOptions(**values))
            st.rerun()
    run = session().run
    if run is not None and session().origin == "simulation":
        sources.link(router.OVERVIEW, "Open the overview", "monitoring")


def _shown_options() -> SimulationOptions:
    link = session().link.get("sim")
    try:
        return read_options(link) if link else SimulationOptions()
    except LeadlineError:
        return SimulationOptions()


# Title, lowest, highest, help; shares run from 0 to 1.
_KNOBS: dict[str, dict[str, tuple[str, float, float, str]]] = {
    "Size": {
        "queries": ("Questions", 10, SHOWN, "How many to simulate; the command line takes up to 100,000."),
        "passages": ("Passages per question", 3, 15, "k, the passages in the prompt."),
        "repeats": ("Noise repeats", 0, 50, "Unablated repeats per question, for the noise floor."),
        "seed": ("Seed", 0, 2**32 - 1, "The same options and seed give the same run."),
    },
    "Ordinary questions": {
        "influential": ("Influential passages", 1, 15, "Passages of a question that carry influence."),
        "share_divergent": ("Placed at random", 0, 1, "Share where these have random ranks; else they lead."),
        "noise": ("Noise", 0, 1, "Chance of each word to change in every ablated answer and repeat."),
    },
    "Shares of special questions (together at most 1)": {
        "share_ties": ("Ties", 0, 1, "The influential passages are equally strong."),
        "share_empty": ("Empty baselines", 0, 1, "The baseline answer is empty."),
        "share_inert": ("Inert", 0, 1, "Nothing changes the answer."),
        "share_redundant": ("Redundant", 0, 1, "Two passages hold the same evidence."),
        "share_parametric": ("Parametric", 0, 1, "The closed-book answer is the same as the baseline."),
        "share_position": ("Position-driven", 0, 1, "Influence follows the place in the prompt, ends first."),
    },
}


def _control(name: str, knob: tuple[str, float, float, str], value: float) -> float:
    title, low, high, help_text = knob
    kind = type(value)
    step, pattern = (1, "%d") if kind is int else (0.01, "%.2f")
    return kind(
        st.number_input(title, kind(low), kind(high), value, step, pattern, key=f"sim_{name}", help=help_text)
    )


def saved_runs() -> None:
    """Draw the saved runs with what can be done to each."""
    runs = library.saved_runs()
    if not runs:
        st.info(
            "No saved runs yet: a live run is saved automatically, an upload when you press Save.",
            icon=":material/inbox:",
        )
    for position, saved in enumerate([*runs, *library.unreadable()]):
        with st.container(border=True):
            about, actions = st.columns([3, 2], vertical_alignment="center")
            about.markdown(f"**{plain(saved.name, one_line=True)}**")
            about.caption(plain(_described(saved), one_line=True))
            with actions, st.container(horizontal=True, horizontal_alignment="right"):
                key = f"{position}_{saved.run_id}"
                if not saved.problem:
                    show.button("Open", "folder_open", f"open_{key}", _open, saved.run_id)
                if saved.own and people.may("review"):
                    if not saved.problem:
                        _share(saved, key)
                        _rename(saved, key)
                    _delete(saved, key)


def _described(saved: library.SavedRun) -> str:
    if saved.problem:
        return f"unreadable: {saved.problem}"
    state = "" if saved.complete else " · partial"
    return (
        f"{count(saved.n_queries, 'question')} · {sources.BADGES[saved.source][0]} · "
        f"{saved.created[:16].replace('T', ' ')}{state}"
    )


def _open(run_id: str) -> None:
    try:
        sources.open_saved(run_id)
    except LeadlineError as error:
        session().problem = str(error)


def _share(saved: library.SavedRun, key: str) -> None:
    if people.signs_in():
        about = "Everyone who signs in here can then open this run; only you can change it."
        # Another tab may have changed it since this one drew it.
        st.session_state[f"share_{key}"] = saved.shared
        change: dict[str, Any] = {"on_change": _set_shared, "args": (saved, not saved.shared)}
        st.toggle("Share with everyone here", key=f"share_{key}", help=about, **change)


def _set_shared(saved: library.SavedRun, shared: bool) -> None:
    try:
        library.share(saved, shared)
    except LeadlineError as error:
        session().problem = str(error)


def _rename(saved: library.SavedRun, key: str) -> None:
    with st.popover("", icon=":material/edit:", help="Rename"), st.form(f"rename_{key}", border=False):
        name = st.text_input("New name", saved.name, max_chars=200, key=f"name_{key}")
        if st.form_submit_button("Rename"):
            library.rename(saved, name or "")
            st.rerun()


def _delete(saved: library.SavedRun, key: str) -> None:
    with st.popover("", icon=":material/delete:", help="Delete"):
        st.markdown("Delete this run permanently? Its folder is removed from the disk.")
        if st.button("Delete permanently", type="primary", key=f"delete_{key}"):
            library.delete(saved)
            st.rerun()


def export() -> None:
    """Draw the downloads of the shown run."""
    state = session()
    if not show.needs_run() or state.run is None:
        return
    texts = uploads.has_texts(state.run)
    # Files of other tools hold passages, which are their texts.
    offered = {name: one for name, one in exporters().items() if texts or not one.losses}
    if not texts:
        st.caption(uploads.NO_TEXTS)
    chosen = show.menu("Format", {name: one.label for name, one in offered.items()}, "export_format")
    found = offered[chosen]
    file = show.export(chosen)
    st.caption(plain(f"{file}: {found.about}"))
    if found.losses:
        st.markdown("Not restored when this file is imported again:")
        st.markdown("\n".join(f"- {plain(loss)}" for loss in found.losses))
    sources.save_button("export_save")
