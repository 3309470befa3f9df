import streamlit as st

from ui import show, side_by_side
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Side by side",
    "Two to four runs with the same eyes: their numbers, what differs in their set-ups, and the questions on "
    "which they part.",
)

comparison = side_by_side.choose()
if comparison is not None:
    st.subheader("Headline numbers", anchor=False)
    side_by_side.numbers(comparison)

    st.subheader("Rank agreement of every run", anchor=False)
    show.figure(comparison.figure, "rho_side_by_side")

    st.subheader("What differs in the set-ups", anchor=False)
    side_by_side.setups(comparison)

    st.subheader("The questions they share", anchor=False)
    side_by_side.questions(comparison)
