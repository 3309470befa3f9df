import streamlit as st

from ui import show, side_by_side
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Side by side",
    "Two to four runs compared: their numbers, what differs in their set-ups, and the questions on which "
    "they differ.",
)

comparison = side_by_side.choose()
if comparison is not None:
    st.subheader("Headline numbers", anchor=False)
    side_by_side.numbers(comparison)

    st.subheader("One number, question by question", anchor=False)
    side_by_side.figure(comparison)

    st.subheader("What differs in the set-ups", anchor=False)
    side_by_side.setups(comparison)

    st.subheader("Shared questions", anchor=False)
    side_by_side.questions(comparison)
