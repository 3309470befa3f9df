"""The settings of all diagnostics: a slider or switch each, bound to the address."""

from __future__ import annotations

import streamlit as st

from core import diagnostics
from core.diagnosis import settings_of


def panel() -> None:
    """Draw every setting; the address carries it under its name, so every link does."""
    for setting in settings_of(diagnostics.DIAGNOSTICS):
        if setting.is_switch:
            st.toggle(
                setting.title,
                bool(setting.default),
                key=setting.name,
                bind="query-params",
                help=setting.help,
            )
        else:
            st.slider(
                setting.title,
                setting.low,
                setting.high,
                float(setting.default),
                setting.step,
                key=setting.name,
                bind="query-params",
                help=setting.help,
            )
