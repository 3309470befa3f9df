import streamlit as st

from ui import show, signals
from ui.router import require_entrypoint

require_entrypoint()
show.heading("Signal agreement", "Which signals agree, and which separate correct from incorrect answers?")

if show.needs_run():
    found, kind = signals.found(), signals.chosen()
    signals.answer(found, kind)
    if found.tested:
        st.subheader("Every signal against every other", anchor=False)
        signals.matrix(found)
    if found.signals:
        with show.more(f"Values of each signal ({len(found.signals)})", "signals_values") as part:
            if part.open:
                signals.histograms(found)
    if found.pairs:
        with show.more(f"Pairs of signals ({len(found.pairs)})"):
            signals.pairs(found, kind)
