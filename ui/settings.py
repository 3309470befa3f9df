"""The settings of diagnostics, on the pages where they act: a widget each, and presets for several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core import diagnostics
from core.presets import ABOUT, PRESETS, Preset, preset_of
from core.socket import Diagnostic, Setting, read_by, settings_of
from ui.state import session, settings

_KEY, _CUSTOM = "preset", "custom"


def panel(page: str, *, every: bool) -> None:
    """Draw what a page's numbers depend on: its diagnostic's settings and, folded, those of what it reads.

    ``every``: the page shows all diagnostics, and has the settings of all of them, folded.
    """
    found = diagnostics.DIAGNOSTICS
    own = [one for one in found if one.name == page]
    names = _read_by(page) if own else set()
    read = [one for one in found if every or one.name in names]
    if _has_preset(own):
        _presets()
    _widgets(settings_of(own))
    others = _drawn(settings_of(read))
    if others:
        with st.expander("Settings" if every else "Settings of what this page reads", icon=":material/tune:"):
            if _has_preset(read) and not _has_preset(own):
                _presets()
            _widgets(others)


def _read_by(name: str) -> set[str]:
    """Return the names of the diagnostics that one reads, itself or through others."""
    direct = read_by(diagnostics.DIAGNOSTICS, name)
    return {*direct, *(other for one in direct for other in _read_by(one))}


def _has_preset(found: Sequence[Diagnostic]) -> bool:
    """Tell whether a preset sets something of these diagnostics: a setting, or an option of their step."""
    one = next(iter(PRESETS.values()))
    named = {setting.name for setting in settings_of(found)}
    options = {name for diagnostic in found for name in getattr(diagnostic.step, "__dataclass_fields__", ())}
    return bool(named & one.settings.keys() or options & one.options.keys())


def _drawn(found: Sequence[Setting]) -> list[Setting]:
    """Return the settings that have a widget here; which names others offer is known only on their page."""
    return [one for one in found if not one.is_choice or one.choices]


def _widgets(found: Sequence[Setting]) -> None:
    values = settings()
    for one in _drawn(found):
        st.session_state[one.name] = values[one.name]
        shown: dict[str, Any] = {"key": one.name, "help": one.help, "on_change": _set, "args": (one.name,)}
        if one.choices:
            titles = dict(zip(one.choices, one.titles or one.choices, strict=True))
            st.selectbox(one.title, one.choices, format_func=titles.__getitem__, **shown)
        elif one.is_switch:
            st.toggle(one.title, **shown)
        else:
            st.slider(one.title, one.low, one.high, step=one.step, **shown)


def _set(name: str) -> None:
    session().choose(name, st.session_state[name])


def preset() -> Preset | None:
    """Return the preset whose values the sliders have, if there is one."""
    name = preset_of(settings())
    return None if name is None else PRESETS[name]


def _presets() -> None:
    """Draw the presets as one choice; which one it shows follows from the sliders."""
    found = preset_of(settings())
    st.session_state[_KEY] = found or _CUSTOM
    st.selectbox(
        "Reliability",
        [*PRESETS] if found else [*PRESETS, _CUSTOM],
        key=_KEY,
        format_func=str.capitalize,
        on_change=_apply,
        help=f"Sets the error rate α and the default number of samples. {ABOUT.capitalize()}.",
    )


def _apply() -> None:
    if st.session_state[_KEY] in PRESETS:
        for name, value in PRESETS[st.session_state[_KEY]].settings.items():
            session().choose(name, value)
