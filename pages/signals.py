import streamlit as st

from ui import show, signals
from ui.router import require_entrypoint

require_entrypoint()
show.heading("Signal agreement", "Which signals say the same, and which tell correct from incorrect answers?")

if show.needs_run():
    found, kind = signals.found(), signals.chosen()
    signals.answer(found, kind)
    if found.pairs:
        st.subheader("Every signal against every other", anchor=False)
        signals.matrix(found)
    if found.signals:
        st.subheader("Values of each signal", anchor=False)
        signals.histograms(found)
    if found.pairs:
        st.subheader("Pairs of signals", anchor=False)
        signals.pairs(found, kind)
