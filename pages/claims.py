import streamlit as st

from ui import headlines, job_panel, show, worklist
from ui.router import require_entrypoint
from ui.sections.claims import form, planted, run

require_entrypoint()
headlines.heading("claims")

job_panel.draw("claims")
if show.needs_run():
    if headlines.lacks("claims"):
        form.first()
    else:
        headlines.body("claims")
        run.judged_by()
        form.again()
        planted.draw()

        st.subheader("Unsupported claims to read first", anchor=False)
        run.unsupported()

        st.subheader("Influence vs support", anchor=False)
        run.quadrants()

        left, right = st.columns([2, 3])
        with left:
            st.subheader("F1@K", anchor=False)
            show.chart("claims", "f1_at_k_chart")
        with right:
            st.subheader("Against the reference answers", anchor=False)
            run.ragchecker()
        show.export("claims-csv", "Download claims × passages (CSV)")

        st.subheader("Questions", anchor=False)
        worklist.door("claims")
