import streamlit as st

from ui import compare, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Compare",
    "Two to four runs compared: their numbers, what differs in their set-ups, and the questions on which "
    "they differ.",
)

comparison = compare.choose()
if comparison is not None:
    st.subheader("Headline numbers", anchor=False)
    compare.numbers(comparison)

    st.subheader("One number, question by question", anchor=False)
    compare.figure(comparison)

    st.subheader("What differs in the set-ups", anchor=False)
    compare.setups(comparison)

    st.subheader("Shared questions", anchor=False)
    compare.questions(comparison)
