import streamlit as st

from ui import compare, show, trend
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Compare", "Two to four runs over the same questions: what changed, and whether chance explains it."
)

comparison = compare.choose()
if comparison is not None:
    compare.answer(comparison)

    st.subheader("What differs in the set-ups", anchor=False)
    compare.setups(comparison)

    st.subheader("Question by question", anchor=False)
    pair, difference = compare.choose_number(comparison)
    found = compare.figure(pair, difference)

    st.subheader("Shared questions", anchor=False)
    compare.questions(found, pair, difference)

    with show.more("All numbers compared"):
        compare.numbers(pair)
    with show.more("Each run on its own"):
        compare.headlines(comparison)

trend.draw()
