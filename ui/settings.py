"""The settings of all diagnostics: a slider or switch each, bound to the address, and presets for several."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core import diagnostics
from core.diagnosis import settings_of
from core.presets import ABOUT, PRESETS, Preset, preset_of
from ui.state import settings

_KEY, _CUSTOM = "preset", "custom"


def panel() -> None:
    """Draw every slider and switch; the address carries it under its name, so every link does."""
    above = st.container()
    for one in settings_of(diagnostics.DIAGNOSTICS):
        if one.is_choice and not one.choices:
            continue  # which names there are is known where the diagnostic is shown
        shown: dict[str, Any] = {"key": one.name, "bind": "query-params", "help": one.help}
        if one.choices:
            st.selectbox(one.title, one.choices, **shown)
        elif one.is_switch:
            st.toggle(one.title, bool(one.default), **shown)
        else:
            st.slider(one.title, one.low, one.high, float(one.default), one.step, **shown)
    # What the address says of a slider is known once it is drawn.
    with above:
        _presets()


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
        st.session_state.update(PRESETS[st.session_state[_KEY]].settings)
