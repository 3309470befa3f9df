import streamlit as st

from ui import cached, claim_answer, claims, claims_form, claims_job, show
from ui.router import require_entrypoint

require_entrypoint()
show.heading(
    "Claims & evidence",
    "What does each answer claim, which passage supports it, and what was each passage good for?",
)

claims_job.panel()
if show.needs_run():
    if not cached.claims().sought:
        claims_form.first()
    else:
        claims.threshold()
        claims.numbers()
        claims.judged_by()
        claims_form.again()

        st.subheader("Unsupported claims to read first", anchor=False)
        claims.unsupported()

        st.subheader("One answer", anchor=False)
        chosen = claim_answer.picker()
        if chosen is not None:
            claim_answer.draw(chosen)

        st.subheader("What the passages were good for", anchor=False)
        claims.quadrants()

        left, right = st.columns([2, 3])
        with left:
            st.subheader("F1@K", anchor=False)
            claims.f1()
        with right:
            st.subheader("Against the reference answers", anchor=False)
            claims.ragchecker()
        claims.download()
