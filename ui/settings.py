"""The settings of all diagnostics: a slider or switch each, bound to the address."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core import diagnostics
from core.diagnosis import settings_of


def panel() -> None:
    """Draw every slider and switch; the address carries it under its name, so every link does."""
    for one in settings_of(diagnostics.DIAGNOSTICS):
        if one.is_choice:
            continue  # which names there are is known where the diagnostic is shown
        shown: dict[str, Any] = {"key": one.name, "bind": "query-params", "help": one.help}
        if one.is_switch:
            st.toggle(one.title, bool(one.default), **shown)
        else:
            st.slider(one.title, one.low, one.high, float(one.default), one.step, **shown)
